/**
 * Changes on their way to indexes, from the log alone: for every entry, the changes that the groups
 * of rows announced, one after another, and their effects in the group of the index.
 *
 * IDX-1  When nothing is on its way, an index's group has the last announced change, and nothing
 *        else.
 * IDX-3  A reported lag is the time since the change, of one that the index has.
 * IDX-4  An older change never follows a newer one.
 * IDX-5  A change is taken off its worklist when the index has it, or a newer one.
 */
import { worklistPrefix } from '../../src/group/worklist-key.ts'
import { asBuffer, equalBytes, fromLatin1, latin1, readCount } from '../../src/base/bytes.ts'
import { decodeEntryState, indexTopic } from '../../src/tables/index-worklist.ts'
import { stampBytes } from '../../src/tables/index-batcher.ts'
import type { TraceEvent } from '../../src/ports/trace.ts'
import type { Coverage } from '../coverage.ts'
import type { RowWrite } from './log-model.ts'
import type { Referee } from './referee.ts'

/** An entry as a group of rows said that it is, and when. */
interface Said {
  readonly at: number
  readonly value: Uint8Array | undefined
}

interface EntryHistory {
  /** The index's group, and the entry's key in it. */
  readonly target: string
  readonly key: string
  /** The number of the write that said or made something of it last. */
  changedBy: number
  readonly said: Said[]
  /** The entry in the index's group: the change that made it, and its value. */
  hasOf: number
  has: Uint8Array | undefined
  isOnWorklist: boolean
}

/** An entry as the index's group has it: its key, and its value without the stamp. */
export interface StandingEntry {
  readonly group: string
  readonly key: string
  readonly value: Uint8Array
}

/** Clocks are read in steps; beyond that a lag is exact. */
const lagMicrosMax = 2_000

const opening = latin1(worklistPrefix(indexTopic))

export class IndexChecker {
  readonly #referee: Referee
  readonly #coverage: Coverage
  /** By the index's group and the entry's key; by the row's group and that key. */
  readonly #entries = new Map<string, EntryHistory>()
  readonly #bySource = new Map<string, EntryHistory>()
  readonly #targets = new Set<string>()
  #onWorklists = 0
  #writes = 0

  constructor(referee: Referee, coverage: Coverage) {
    this.#referee = referee
    this.#coverage = coverage
  }

  /** Changes that are on worklists now. */
  get pending(): number {
    return this.#onWorklists
  }

  /** Now, as the number of the last write that was seen. */
  get moment(): number {
    return this.#writes
  }

  /** The entries that an index has, and their rows say, without any change since that moment. */
  standingSince(moment: number): readonly StandingEntry[] {
    return [...this.#entries.values()].flatMap(({ target, key, changedBy, said, has }) => {
      const isStanding = changedBy <= moment && isSame(said.at(-1)?.value, has)
      return has !== undefined && isStanding ? [{ group: target, key, value: has }] : []
    })
  }

  onWrite(write: RowWrite): void {
    this.#writes += 1
    if (write.key.startsWith(opening)) this.#onWorklist(write)
    else if (this.#targets.has(write.group)) this.#onEntry(write)
  }

  #onWorklist({ group, key, value, timestamp }: RowWrite): void {
    const entryKey = key.slice(opening.length)
    const place = formatPlace(group, entryKey)
    if (value === undefined) return this.#onTakenOff(place)
    const state = decodeEntryState({ key: fromLatin1(key), value })
    this.#targets.add(state.target)
    const history = this.#bySource.get(place) ?? this.#begin(place, state.target, entryKey)
    // Of two values that one entry of the log gives, the later one counts.
    if (history.said.at(-1)?.at === timestamp) history.said.pop()
    history.said.push({ at: timestamp, value: state.value })
    history.changedBy = this.#writes
    this.#setOnWorklist(history, true)
    this.#coverage.count(state.value === undefined ? 'index: an entry goes' : 'index: an entry')
  }

  #begin(place: string, target: string, entryKey: string): EntryHistory {
    const history: EntryHistory = {
      ...{ target, key: entryKey, changedBy: this.#writes },
      ...{ said: [], hasOf: 0, has: undefined, isOnWorklist: false },
    }
    this.#bySource.set(place, history)
    this.#entries.set(formatPlace(target, entryKey), history)
    return history
  }

  #setOnWorklist(history: EntryHistory, isOn: boolean): void {
    if (history.isOnWorklist !== isOn) this.#onWorklists += isOn ? 1 : -1
    history.isOnWorklist = isOn
  }

  #onTakenOff(place: string): void {
    const history = this.#bySource.get(place)
    if (history === undefined || !history.isOnWorklist) return
    this.#setOnWorklist(history, false)
    const last = history.said.at(-1)
    const isThere = last !== undefined && isSame(last.value, history.has)
    const sentence = 'A change was taken off its worklist, and the index does not have it.'
    this.#check(isThere, 'IDX-5', sentence, { place: hex(place), last, has: history.has })
  }

  #onEntry({ group, key, value }: RowWrite): void {
    const place = formatPlace(group, key)
    const history = this.#entries.get(place)
    const unasked = 'An index has an entry that no group has said.'
    this.#check(history !== undefined, 'IDX-1', unasked, { place: hex(place) })
    if (history === undefined) return
    const of = value === undefined ? findRemoval(history) : readCount(asBuffer(value), 0)
    const held = value?.subarray(stampBytes)
    const wasSaid = history.said.some((one) => one.at === of && isSame(one.value, held))
    const detail = { place: hex(place), of, before: history.hasOf, said: history.said.length }
    this.#check(wasSaid, 'IDX-1', 'An entry is not what its group has said.', detail)
    const isLater = of !== undefined && of >= history.hasOf
    this.#check(isLater, 'IDX-4', 'An older change of an entry followed a newer one.', detail)
    if (of !== undefined && of < (history.said.at(-1)?.at ?? 0)) {
      this.#coverage.count('index: a change that another one had replaced')
    }
    if (of === history.hasOf) this.#coverage.count('index: a change relayed twice')
    history.hasOf = of ?? history.hasOf
    history.has = held
    history.changedBy = this.#writes
  }

  /** A node says that it has relayed a change; `wall` is its clock. */
  onRelayed(node: string, event: TraceEvent, wall: number | undefined): void {
    const { group, key, madeAt, lagMicros } = event
    if (typeof group !== 'string' || typeof key !== 'string' || typeof madeAt !== 'number') return
    const history = this.#bySource.get(formatPlace(group, key.slice(opening.length)))
    // The deletion may be this one, though the first one that fits was taken for it.
    if (history?.has === undefined && history !== undefined && isGoneAt(history.said, madeAt)) {
      history.hasOf = Math.max(history.hasOf, madeAt)
    }
    const isThere = history !== undefined && history.hasOf >= madeAt
    const detail = { node, madeAt, lagMicros, wall, has: history?.hasOf }
    this.#check(isThere, 'IDX-3', 'A lag was told of a change that the index has not.', detail)
    if (wall === undefined || typeof lagMicros !== 'number') return
    const error = Math.abs(lagMicros - Math.max(0, wall - madeAt))
    this.#check(error <= lagMicrosMax, 'IDX-3', 'A lag was told that is another one.', detail)
  }

  /** Nothing is on its way. */
  atRest(): void {
    for (const [place, { said, has }] of this.#entries) {
      const last = said.at(-1)?.value
      const sentence = 'Nothing is on its way, and an index has something else than was said last.'
      this.#check(isSame(last, has), 'IDX-1', sentence, { place: hex(place), last, has })
    }
  }

  #check(holds: boolean, rule: string, sentence: string, detail: object): void {
    this.#referee.check(holds, rule, sentence, () => ({ ...detail }))
  }
}

/**
 * The first change after what the index has that took the entry away: deletions do not name theirs.
 */
function findRemoval({ said, hasOf, has }: EntryHistory): number | undefined {
  const later = said.find(({ at, value }) => value === undefined && at > hasOf)
  return later?.at ?? (has === undefined && isGoneAt(said, hasOf) ? hasOf : undefined)
}

function isGoneAt(said: readonly Said[], at: number): boolean {
  return said.some((one) => one.at === at && one.value === undefined)
}

function isSame(a: Uint8Array | undefined, b: Uint8Array | undefined): boolean {
  return a === undefined || b === undefined ? a === b : equalBytes(a, b)
}

function formatPlace(group: string, key: string): string {
  return `${group.length} ${group}${key}`
}

function hex(text: string): string {
  return Buffer.from(text, 'latin1').toString('hex')
}
