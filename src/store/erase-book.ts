/**
 * Deletions whose bytes may still stand in files of this node, in *rounds*: one gathers deletions while the one before is
 * erased. A round names its groups, or stands for all of them where they are too many. It goes along with the batch that
 * takes the deletion in, so a start knows of it exactly when it knows of the deletion.
 *
 * ERASE-2  A deletion that is durable in the data store is of a round that is, until its bytes are in no file.
 *
 * Left out: how a round is erased; `../replica/erasing.ts`.
 */
import { assert, present } from '../base/assert.ts'
import { groupOfBytes, type GroupId } from '../base/ids.ts'
import { pack, unpack } from '../base/pack.ts'
import type { Range } from '../ports/storage.ts'
import { corruptData, unknownFormat } from './damage.ts'
import type { OverlayRow, TakenGroup } from './overlay.ts'
import { nameKey } from './row-format.ts'

/** The deletions of a while. Times are of the wall clock, in milliseconds. */
export interface EraseRound {
  readonly number: number
  /** When the first of its deletions was taken in. */
  readonly openedAtMs: number
  /** 0: it still gathers. */
  readonly closedAtMs: number
  /** Some of its deletions are of groups that it does not name: it stands for all. */
  readonly isAll: boolean
  readonly groups: ReadonlySet<GroupId>
}

/** The part of the data store that the book is kept in. */
export interface BookStore {
  meta(name: string): Uint8Array | undefined
  setMeta(name: string, value: Uint8Array): void
  setRow(key: Uint8Array, payload: Uint8Array): void
  dropRow(key: Uint8Array): void
  rows(range: Range): Promise<readonly { readonly key: Uint8Array }[]>
}

interface Round extends EraseRound {
  closedAtMs: number
  isAll: boolean
  readonly groups: Set<GroupId>
}

/** Groups that a round names. */
export const roundGroupsMax = 1_000
const roundsName = 'erase'
const groupsName = 'erase/'
const bookFormat = 1
const numberDigits = 15
const nothing = new Uint8Array()

export class EraseBook {
  readonly #store: BookStore
  /** One that is closed, and one that gathers; either may be missing. */
  readonly #rounds: Round[]
  #last: number

  /** Rejects with `invalid` for a format unknown here, with `corrupt` for what is not whole. */
  static async open(store: BookStore): Promise<EraseBook> {
    const bytes = store.meta(roundsName)
    if (bytes === undefined) return new EraseBook(store, 0, [])
    const { last, rounds } = decodeRounds(bytes)
    for (const round of rounds) {
      for (const { key } of await store.rows(groupRange(round.number))) {
        round.groups.add(groupOfBytes(key.subarray(groupKey(round.number, '').length)))
      }
    }
    return new EraseBook(store, last, rounds)
  }

  private constructor(store: BookStore, last: number, rounds: Round[]) {
    this.#store = store
    this.#last = last
    this.#rounds = rounds
  }

  /** The older one first. */
  get rounds(): readonly EraseRound[] {
    return this.#rounds
  }

  /** The number of the round that began last; 0: there was none. */
  get last(): number {
    return this.#last
  }

  get isGathering(): boolean {
    return this.#gathering !== undefined
  }

  /** The round that is to be erased. */
  get closed(): EraseRound | undefined {
    return this.#rounds.find(({ closedAtMs }) => closedAtMs > 0)
  }

  /** A batch is put together: what it deletes, and what a snapshot takes the place of, is to be erased. */
  onBatch(groups: readonly TakenGroup[], nowMs: number): void {
    for (const { group, rows, isSnapshot } of groups) {
      if (isSnapshot === true || rows.some(deletes)) this.#add(group, nowMs)
    }
  }

  #add(group: GroupId, nowMs: number): void {
    const round = this.#gathering ?? this.#begin(nowMs)
    if (round.isAll || round.groups.has(group)) return
    if (round.groups.size >= roundGroupsMax) {
      round.isAll = true
      this.#keep()
      return
    }
    round.groups.add(group)
    this.#store.setRow(groupKey(round.number, group), nothing)
  }

  get #gathering(): Round | undefined {
    return this.#rounds.find(({ closedAtMs }) => closedAtMs === 0)
  }

  #begin(nowMs: number): Round {
    this.#last += 1
    const round: Round = {
      ...{ number: this.#last, openedAtMs: nowMs, closedAtMs: 0, isAll: false },
      groups: new Set(),
    }
    this.#rounds.push(round)
    this.#keep()
    return round
  }

  /** The round that gathers takes in nothing more. One is erased after the other. */
  close(nowMs: number): EraseRound {
    assert(this.closed === undefined, 'ERASE-2: a round is closed before the last one is erased')
    const round = present(this.#gathering, 'ERASE-2: a round is closed that was begun')
    round.closedAtMs = nowMs
    this.#keep()
    return round
  }

  /** No file of this node has a byte of what the closed round names. */
  onErased(): void {
    const at = this.#rounds.findIndex(({ closedAtMs }) => closedAtMs > 0)
    const [round] = this.#rounds.splice(at, 1)
    assert(at >= 0 && round !== undefined, 'ERASE-2: what was erased is of a closed round')
    for (const group of round.groups) this.#store.dropRow(groupKey(round.number, group))
    this.#keep()
  }

  #keep(): void {
    const rounds = this.#rounds.map(({ number, openedAtMs, closedAtMs, isAll }) => {
      return [number, openedAtMs, closedAtMs, isAll]
    })
    this.#store.setMeta(roundsName, pack([bookFormat, this.#last, rounds]))
  }
}

/** Whether one of the versions takes the row away. */
function deletes(newest: OverlayRow): boolean {
  for (let one: OverlayRow | undefined = newest; one !== undefined; one = one.previous) {
    if (one.value === undefined) return true
  }
  return false
}

function groupKey(round: number, group: GroupId | ''): Buffer {
  return nameKey(`${groupsName}${String(round).padStart(numberDigits, '0')}/${group}`)
}

function groupRange(round: number): Range {
  const gte = groupKey(round, '')
  const lt = Buffer.from(gte)
  lt[lt.length - 1] = (lt.at(-1) ?? 0) + 1
  return { gte, lt }
}

function decodeRounds(bytes: Uint8Array): { readonly last: number; readonly rounds: Round[] } {
  const packed = unpack(bytes)
  const [format, last, rounds]: unknown[] = Array.isArray(packed) ? packed : []
  if (format !== bookFormat && typeof format === 'number')
    throw unknownFormat('list of what is to be erased', format)
  if (!isCount(last) || !Array.isArray(rounds)) throw notWhole()
  return { last, rounds: rounds.map(decodeRound) }
}

function decodeRound(fields: unknown): Round {
  const [number, openedAtMs, closedAtMs, isAll]: unknown[] = Array.isArray(fields) ? fields : []
  const isWhole = isCount(number) && isCount(openedAtMs) && isCount(closedAtMs)
  if (!isWhole || typeof isAll !== 'boolean') throw notWhole()
  return { number, openedAtMs, closedAtMs, isAll, groups: new Set() }
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

function notWhole(): Error {
  return corruptData('what it says of bytes that are to be erased is not whole')
}
