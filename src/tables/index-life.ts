/**
 * Where the indexes of a schema stand, as rows of the registry's group. An index that came with its
 * table is ready from the beginning, and nothing is noted of it.
 *
 *   building  (name, since[, filled to])*     declared or known; with the third one, building
 *   built     (name, since)*                  ready
 *   dropping  (name, number, since, version)* dropping; version 0: the schema has it still, since then queries
 *                                             are refused; another one: that was the last one to have it
 */
import { equalBytes } from '../base/bytes.ts'
import { bytesOfGroup, groupOfBytes, type GroupId, type Timestamp } from '../base/ids.ts'
import { pack, unpack, type Packable } from '../base/pack.ts'
import { encodeTuple } from '../base/tuple.ts'
import { checkMove, type IndexState } from '../indexes/state.ts'
import type { RawTransaction } from '../txn/raw-transaction.ts'
import type { StoredRow } from '../txn/reads.ts'

/** In time to come by any clock: a build of a declared index waits for the whole grace. */
const notKnownYet: Timestamp = Number.MAX_SAFE_INTEGER

export interface IndexLife {
  readonly state: IndexState
  /**
   * Since when it is known, and from then on. Of a ready one: a read as of an earlier moment may lack
   * entries, where its group does not say otherwise (`index-gate.ts`).
   */
  readonly since: Timestamp
  /** Of a building one: groups up to this name are filled. */
  readonly filledTo?: GroupId | undefined
}

/** An index by its name and its number: one that was dropped and declared anew has another number. */
export interface NumberedName {
  readonly name: string
  readonly number: number
}

/** A dropped index that no version has any more, and whose entries may still be there. */
export interface Withdrawn extends NumberedName {
  /** The last version that had it. */
  readonly version: number
}

export interface IndexLives {
  /** Of indexes that the current version has. */
  readonly byName: ReadonlyMap<string, IndexLife>
  readonly withdrawn: readonly Withdrawn[]
}

export const noLives: IndexLives = { byName: new Map(), withdrawn: [] }

/** Of an index that came with its table. */
const readyAlways: IndexLife = { state: 'ready', since: 0 }

export function findLife({ byName }: IndexLives, index: string): IndexLife {
  return byName.get(index) ?? readyAlways
}

/** The same lives, but for one index, which goes from its state to the next one, or on in it. */
export function withLife(lives: IndexLives, index: string, life: IndexLife): IndexLives {
  const { state } = findLife(lives, index)
  if (state !== life.state) checkMove(state, life.state)
  return { ...lives, byName: new Map(lives.byName).set(index, life) }
}

/** A declaration is new: it says nothing of an index of the same name that was dropped before. */
export function withDeclared(lives: IndexLives, names: readonly string[]): IndexLives {
  const declared: IndexLife = { state: 'declared', since: notKnownYet }
  const byName = new Map([...lives.byName, ...names.map((name) => [name, declared] as const)])
  return { ...lives, byName }
}

/** The schema has it no more. */
export function withdrawn(lives: IndexLives, index: Withdrawn): IndexLives {
  const byName = new Map(lives.byName)
  byName.delete(index.name)
  return { byName, withdrawn: [...lives.withdrawn, index] }
}

const keyBuilding = encodeTuple(['building'])
const keyBuilt = encodeTuple(['built'])
const keyDropping = encodeTuple(['dropping'])
export const lifeKeys: readonly Uint8Array[] = [keyBuilding, keyBuilt, keyDropping]

/** `rows`: those of `lifeKeys`. Items of an unknown form are left out. */
export function livesIn(rows: readonly (StoredRow | undefined)[]): IndexLives {
  const [building = [], built = [], dropping = []] = rows.map((row) => listsIn(row?.value))
  const byName = new Map<string, IndexLife>()
  for (const [name, since, to] of building) addLife(byName, name, earlyLife(since, to))
  for (const [name, since] of built) addLife(byName, name, lifeSince('ready', since))
  const gone: Withdrawn[] = []
  for (const [name, number, since, version] of dropping) {
    if (version === 0) addLife(byName, name, lifeSince('dropping', since))
    else if (typeof name !== 'string') continue
    else if (typeof number === 'number' && typeof version === 'number')
      gone.push({ name, number, version })
  }
  return { byName, withdrawn: gone }
}

function addLife(byName: Map<string, IndexLife>, name: unknown, life: IndexLife | undefined): void {
  if (typeof name === 'string' && life !== undefined) byName.set(name, life)
}

function lifeSince(state: IndexState, since: unknown): IndexLife | undefined {
  return typeof since === 'number' ? { state, since } : undefined
}

function earlyLife(since: unknown, filledTo: unknown): IndexLife | undefined {
  const life = lifeSince(since === notKnownYet ? 'declared' : 'known', since)
  if (life === undefined || !(filledTo instanceof Uint8Array)) return life
  const to = filledTo.length === 0 ? undefined : groupOfBytes(filledTo)
  return { ...life, state: 'building', filledTo: to }
}

function listsIn(bytes: Uint8Array | undefined): readonly (readonly unknown[])[] {
  const lists = bytes === undefined ? undefined : unpack(bytes)
  return Array.isArray(lists) ? lists.filter((one) => Array.isArray(one)) : []
}

/** `before`: as the transaction has read them. Rows that stay the same are not written. */
export function putLives(
  transaction: RawTransaction,
  before: IndexLives,
  after: IndexLives,
  numbers: Readonly<Record<string, number>>,
): void {
  const [was, is] = [encodeRows(before, numbers), encodeRows(after, numbers)]
  for (const [at, key] of lifeKeys.entries()) {
    const [old, now] = [was[at], is[at]]
    if (old !== undefined && now !== undefined && !equalBytes(old, now)) transaction.put(key, now)
  }
}

function encodeRows(
  lives: IndexLives,
  numbers: Readonly<Record<string, number>>,
): readonly Buffer[] {
  const building: Packable[] = []
  const built: Packable[] = []
  const dropping: Packable[] = []
  for (const [name, { state, since, filledTo }] of lives.byName) {
    if (state === 'ready') built.push([name, since])
    else if (state === 'dropping') dropping.push([name, numbers[name] ?? 0, since, 0])
    else if (state === 'building') {
      building.push([
        name,
        since,
        filledTo === undefined ? Buffer.alloc(0) : bytesOfGroup(filledTo),
      ])
    } else building.push([name, since])
  }
  for (const { name, number, version } of lives.withdrawn) dropping.push([name, number, 0, version])
  return [pack(building), pack(built), pack(dropping)]
}
