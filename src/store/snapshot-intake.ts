/**
 * Takes in a snapshot of a group that a peer sends (`group-snapshot.ts`): gathers its rows beside the group's own, and
 * puts them in their place when all of them are here.
 *
 * SNAP-3  All or nothing: whenever the process ends, the group is as it was before, or as the snapshot has it.
 * HASH-1  The hash of its rows is counted here as they come, and stands in the record that takes the group over.
 *
 * A small one is held in memory, and one batch takes the group over. A large one is put down beside the group's own rows first,
 * under keys of its own. Once all of it is durable, a record says so; then the old rows go, the new ones come in
 * their place, and the last batch writes the state record. A start that finds such a record does that again, from the
 * beginning, before any read of the group (`resumeSwitches`): so the rows that were put down stay until the end.
 */
import { latin1 } from '../base/bytes.ts'
import { groupOfBytes, type GroupId, type Position } from '../base/ids.ts'
import { pack, unpack, type Packable } from '../base/pack.ts'
import { findTopicText } from '../group/worklist-key.ts'
import type { KeySpan, Put, Range } from '../ports/storage.ts'
import type { SnapshotRow } from '../replication/message.ts'
import type { Installed } from './alongside.ts'
import { corruptData } from './damage.ts'
import { hashBytes, RowsSum, type GroupHash } from './group-hash.ts'
import { sizeInBytes } from './group-snapshot.ts'
import {
  allOf,
  allStagings,
  encodeStored,
  groupPrefix,
  joined,
  listedKey,
  rowSubspace,
  stagedKey,
  stagingKey,
  unstagedKey,
  type Stored,
} from './row-format.ts'

/** The data store, as far as it is needed here. */
export interface IntakeStore {
  writeAlong(puts: readonly Put[]): Promise<void>
  install(installed: Installed, puts: readonly Put[]): Promise<void>
  scanStored(
    range: Range,
  ): AsyncIterable<readonly { readonly key: Uint8Array; readonly stored: Stored }[]>
}

/** The group as the snapshot makes it, beside its rows. */
export type Taken = Omit<Installed, 'group' | 'topics' | 'hash'>

type Hashed = Taken & Pick<Installed, 'hash'>

/** `coming`: not all of it is here. `switching`: all of it is. `done`: the group is as it says. */
type Phase = 'coming' | 'switching' | 'done'
const phases: readonly Phase[] = ['coming', 'switching', 'done']
const stagingFormat = 2
/** The same without a hash. */
const unhashedFormat = 1
/** Keys that one batch deletes: it bounds the turn that puts the batch together. */
const keysPerBatch = 1_024

/** A row under the group's own key. */
interface Row {
  readonly key: Buffer
  readonly stamp: number
  readonly payload: Uint8Array
}

export class SnapshotIntake {
  readonly #store: IntakeStore
  readonly #group: GroupId
  readonly #prefix: Buffer
  readonly #batchBytesMax: number
  readonly #topics = new Set<string>()
  readonly #sum = new RowsSum()
  /** Not put down. */
  #held: Row[] = []
  #heldBytes = 0
  #isStaged = false

  /** `batchBytesMax`: the bytes that it holds in memory and writes at once, about. */
  constructor(store: IntakeStore, group: GroupId, batchBytesMax: number) {
    this.#store = store
    this.#group = group
    this.#prefix = groupPrefix(group)
    this.#batchBytesMax = batchBytesMax
  }

  /** Of the rows that have come so far. */
  get hash(): GroupHash {
    return this.#sum.hash
  }

  /** The next rows, in the order in which the snapshot has them. One call at a time. */
  async add(rows: readonly SnapshotRow[]): Promise<void> {
    for (const row of rows) {
      const { subspace, key, stamp, payload } = row
      if (subspace === rowSubspace) this.#noteRow(row)
      const own = joined(joined(this.#prefix, Uint8Array.of(subspace)), key)
      this.#held.push({ key: own, stamp, payload })
      this.#heldBytes += sizeInBytes(row)
    }
    if (this.#heldBytes > this.#batchBytesMax) await this.#putDown()
  }

  #noteRow({ key, stamp, payload }: SnapshotRow): void {
    this.#sum.add(key, stamp, payload)
    const topic = findTopicText(latin1(key))
    if (topic !== undefined) this.#topics.add(topic)
  }

  async #putDown(): Promise<void> {
    if (!this.#isStaged) {
      this.#isStaged = true
      // First: else a start would find rows of which nothing says what they are.
      await this.#store.writeAlong([stagingRecord(this.#group, 'coming')])
    }
    const held = this.#held
    this.#held = []
    this.#heldBytes = 0
    await this.#store.writeAlong(held.map((row) => toPut(stagedKey(row.key), row)))
  }

  /** It is of no use: the rows that were put down go. */
  async abandon(): Promise<void> {
    this.#held = []
    if (this.#isStaged) await clearStaged(this.#store, this.#group)
  }

  /** All of it is here: the group becomes what it says. The caller keeps readers and writers from the group until that is over. */
  async switchTo(taken: Taken): Promise<void> {
    const hashed = { ...taken, hash: this.#sum.hash }
    const installed = { ...hashed, group: this.#group, topics: this.#topics }
    // More may have to go than one batch takes.
    const deletes = this.#isStaged ? undefined : await this.#ownKeys()
    if (deletes !== undefined) {
      const puts = this.#held.map((row) => toPut(row.key, row))
      return this.#store.install(installed, [...deletes, ...puts])
    }
    await this.#putDown()
    await this.#store.writeAlong([stagingRecord(this.#group, 'switching', hashed)])
    await switchStaged(this.#store, this.#group, hashed)
  }

  /** Deletes of all that the group has and the snapshot has not; undefined: these are too many for one batch. */
  async #ownKeys(): Promise<readonly Put[] | undefined> {
    const kept = new Set(this.#held.map(({ key }) => latin1(key)))
    const deletes: Put[] = []
    for await (const rows of this.#store.scanStored(allOf(this.#prefix))) {
      for (const { key } of rows) if (!kept.has(latin1(key))) deletes.push({ key })
      if (deletes.length > keysPerBatch) return undefined
    }
    return deletes
  }

  /** After the switch: deletes the rows that were put down. */
  async clean(): Promise<void> {
    if (this.#isStaged) await clearStaged(this.#store, this.#group)
  }
}

/**
 * Before the log is replayed and before the first read: ends the switches that the last run did not end, and clears the rows
 * that it had put down of other snapshots. Gives the groups that it took to a snapshot.
 */
export async function resumeSwitches(store: IntakeStore): Promise<readonly GroupId[]> {
  const resumed: GroupId[] = []
  const found: Staging[] = []
  for await (const rows of store.scanStored(allStagings)) {
    for (const { stored } of rows) found.push(decodeStaging(stored))
  }
  for (const { group, taken } of found) {
    if (taken !== undefined) {
      await switchStaged(store, group, taken)
      resumed.push(group)
    }
    await clearStaged(store, group)
  }
  return resumed
}

async function switchStaged(store: IntakeStore, group: GroupId, taken: Hashed): Promise<void> {
  const prefix = groupPrefix(group)
  for await (const rows of store.scanStored(allOf(prefix))) {
    await inBatches(store, rows.map(toDelete))
  }
  const topics = new Set<string>()
  for await (const rows of store.scanStored(stagedSpan(prefix))) {
    const puts = rows.map(({ key: staged, stored }): Put => {
      const key = unstagedKey(staged)
      const topic = topicOf(key, prefix)
      if (topic !== undefined) topics.add(topic)
      return toPut(key, stored)
    })
    // Listed before the rows are there, as ever (QUE-5).
    await inBatches(
      store,
      [...topics].map((topic) => listing(topic, group, taken.position)),
    )
    await inBatches(store, puts)
  }
  await store.install({ ...taken, group, topics }, [stagingRecord(group, 'done')])
}

function topicOf(key: Uint8Array, prefix: Uint8Array): string | undefined {
  if (key[prefix.length] !== rowSubspace) return undefined
  return findTopicText(latin1(key.subarray(prefix.length + 1)))
}

function listing(topic: string, group: GroupId, position: Position): Put {
  return toPut(listedKey(topic, group), { stamp: position, payload: new Uint8Array() })
}

/** The record goes last: a start that finds rows without it would not know what they are. */
async function clearStaged(store: IntakeStore, group: GroupId): Promise<void> {
  const prefix = groupPrefix(group)
  for await (const rows of store.scanStored(stagedSpan(prefix))) {
    await inBatches(store, rows.map(toDelete))
  }
  await store.writeAlong([{ key: stagingKey(prefix) }])
}

async function inBatches(store: IntakeStore, puts: readonly Put[]): Promise<void> {
  for (let at = 0; at < puts.length; at += keysPerBatch) {
    await store.writeAlong(puts.slice(at, at + keysPerBatch))
  }
}

function stagedSpan(prefix: Uint8Array): KeySpan {
  const { gte, lt } = allOf(prefix)
  return { gte: stagedKey(gte), lt: stagedKey(lt) }
}

function toDelete({ key }: { readonly key: Uint8Array }): Put {
  return { key }
}

/** A checksum is over the key, too: under another key a value is another one. */
function toPut(key: Uint8Array, { stamp, payload }: Pick<Stored, 'stamp' | 'payload'>): Put {
  return { key, value: encodeStored(key, stamp, payload) }
}

/** `taken`: of the phase `switching`. */
interface Staging {
  readonly group: GroupId
  readonly taken: Hashed | undefined
}

/** Format 2 · phase · group · of `switching`: position, horizon before, horizon, state record, hash, which format 1 has not. */
function stagingRecord(group: GroupId, phase: Phase, taken?: Hashed): Put {
  const key = stagingKey(groupPrefix(group))
  const payload = pack([stagingFormat, phases.indexOf(phase), group, ...(taken ? told(taken) : [])])
  return { key, value: encodeStored(key, 0, payload) }
}

function told({ position, horizonBefore, horizon, state, hash }: Hashed): readonly Packable[] {
  return [position, horizonBefore, horizon, state, hash && Buffer.from(hash, 'latin1')]
}

function decodeStaging({ payload }: Stored): Staging {
  const fields = unpack(payload)
  if (!Array.isArray(fields)) throw notWhole()
  const [format, number, group, ...rest]: unknown[] = fields
  const phase = typeof number === 'number' ? phases[number] : undefined
  const isKnown = format === stagingFormat || format === unhashedFormat
  if (!isKnown || phase === undefined || typeof group !== 'string') throw notWhole()
  const taken = phase === 'switching' ? readTaken(rest) : undefined
  return { group: groupOfBytes(Buffer.from(group, 'latin1')), taken }
}

function readTaken([position, horizonBefore, horizon, state, bytes]: readonly unknown[]): Hashed {
  if (!isCount(position) || !isCount(horizonBefore) || !isCount(horizon)) throw notWhole()
  if (!(state instanceof Uint8Array)) throw notWhole()
  const hash = bytes instanceof Uint8Array && bytes.length === hashBytes ? latin1(bytes) : undefined
  return { position, horizonBefore, horizon, state, hash }
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

function notWhole(): Error {
  return corruptData('what it says of a snapshot that is taken in is not whole')
}
