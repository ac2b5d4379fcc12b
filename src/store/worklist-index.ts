/**
 * Which groups have something on their worklist, by topic: derived from their rows, and kept beside
 * them. A group is listed in the batch that makes its row durable, and in memory before that. It
 * stays listed until a worker looked and found nothing: a worker of a topic looks at some groups in
 * vain, and misses none.
 *
 * QUE-5  A group with a row under a topic is listed under it.
 */
import { worklistPrefix, findTopicText } from '../group/worklist-key.ts'
import { compareText, latin1 } from '../base/bytes.ts'
import type { GroupId, Position } from '../base/ids.ts'
import { listedGroupsMax } from '../base/limits.ts'
import type { KeyValue, Put, Range } from '../ports/storage.ts'
import type { ListedGroup, TopicCounts } from '../group/replica-port.ts'
import type { Commit, TakenGroup } from './overlay.ts'
import {
  afterListed,
  encodeStored,
  groupOfListed,
  listedKey,
  listedPrefix,
  type Stored,
} from './row-format.ts'

export interface ListingPorts {
  readonly read: (key: Uint8Array) => Stored | undefined
  readonly scan: (range: Range) => AsyncIterable<readonly KeyValue[]>
  readonly checked: (key: Uint8Array, value: Uint8Array) => Stored
  /** Whether something of the group waits to be written. */
  readonly isUnwritten: (group: GroupId) => boolean
}

/** By topic and group, a position: that of the newest row, or the one at which there was none. */
type Positions = Map<string, Map<GroupId, Position>>

const nothing = new Uint8Array()
/** Topics of which more is known in memory than what is listed; those met first. */
const knownTopicsMax = 1_000

export class WorklistIndex {
  /** A row was put on a worklist; `topic` is the prefix of its key as text. */
  onListed: (topic: string, group: GroupId, position: Position) => void = () => undefined
  readonly #ports: ListingPorts
  readonly #counts = new Map<string, { put: number; gone: number }>()
  /** Not durable yet. */
  readonly #pending: Positions = new Map()
  /** Looked at in vain; they go with a batch that writes that the rows are gone, or a later one. */
  readonly #empty: Positions = new Map()
  /** Topics of which nothing is stored: no worker looks for it until a group is listed. */
  readonly #bare = new Set<string>()
  readonly #texts = new Map<string, string>()
  /** Rows that were put on worklists since the start. */
  #putRows = 0

  constructor(ports: ListingPorts) {
    this.#ports = ports
  }

  commit({ group, position, writes }: Commit): void {
    for (const { text, value, isNew } of writes) {
      const topic = findTopicText(text)
      if (topic === undefined) continue
      this.#count(topic, value !== undefined, isNew)
      if (value !== undefined) this.#list(topic, group, position)
    }
  }

  #list(topic: string, group: GroupId, position: Position): void {
    this.#putRows += 1
    this.#bare.delete(topic)
    set(this.#pending, topic, group, position)
    this.#empty.get(topic)?.delete(group)
    this.onListed(topic, group, position)
  }

  /** A snapshot that is taken in next brings rows under these topics, which are the prefixes of their keys. */
  install(group: GroupId, position: Position, topics: Iterable<string>): void {
    for (const topic of topics) this.#list(topic, group, position)
  }

  #count(topic: string, isPut: boolean, isNew: boolean): void {
    const counts = this.#counts.get(topic) ?? { put: 0, gone: 0 }
    if (isPut && isNew) counts.put += 1
    if (!isPut) counts.gone += 1
    if (this.#counts.size < knownTopicsMax) this.#counts.set(topic, counts)
  }

  /** The prefix of the topic's keys. */
  #encodeTopic(topic: string): string {
    const known = this.#texts.get(topic)
    if (known !== undefined) return known
    const text = latin1(worklistPrefix(topic))
    if (this.#texts.size < knownTopicsMax) this.#texts.set(topic, text)
    return text
  }

  /** By topic, rows that came and went here since the node started. */
  get counts(): ReadonlyMap<string, TopicCounts> {
    return this.#counts
  }

  /**
   * A worker has seen the group at `position`, and no row was there under the topic. Of no effect
   * when one was put since; forgotten when the node ends before its next
   * batch, or when too many wait for that.
   */
  unlist(topic: string, group: GroupId, position: Position): void {
    const text = this.#encodeTopic(topic)
    const pending = this.#pending.get(text)?.get(group) ?? 0
    const isFull = (this.#empty.get(text)?.size ?? 0) >= listedGroupsMax
    if (pending <= position && !isFull) set(this.#empty, text, group, position)
  }

  /** The puts of a batch that takes these groups. */
  *puts(groups: readonly TakenGroup[]): Iterable<Put> {
    const taken = new Map(groups.map(({ group, position }) => [group, position]))
    for (const [topic, among] of this.#empty) {
      for (const [group, position] of among) {
        const rest = this.#ports.isUnwritten(group) ? -1 : Infinity
        // A removed row may still be on disk: its group is listed as long as that is so.
        if ((taken.get(group) ?? rest) < position) continue
        among.delete(group)
        const key = listedKey(topic, group)
        const isStale = (this.#ports.read(key)?.stamp ?? 0) <= position
        // A row that came and went before it was durable needs no listing either.
        if (isStale) this.#pending.get(topic)?.delete(group)
        if (isStale) yield { key }
      }
      if (among.size === 0) this.#empty.delete(topic)
    }
    for (const [topic, among] of this.#pending) {
      for (const { group } of groups) {
        const position = among.get(group)
        if (position === undefined) continue
        const key = listedKey(topic, group)
        yield { key, value: encodeStored(key, position, nothing) }
      }
    }
  }

  /** A batch that took these groups is durable. */
  onWritten(groups: readonly TakenGroup[]): void {
    for (const [topic, among] of this.#pending) {
      for (const { group, position } of groups) {
        if ((among.get(group) ?? Infinity) <= position) among.delete(group)
      }
      if (among.size === 0) this.#pending.delete(topic)
    }
  }

  /** Prefixes of topics, as latin1: one look at the store for each. */
  async topics(limit: number): Promise<readonly string[]> {
    const found = new Set(this.#pending.keys())
    const end = afterListed('')
    for (let from: Uint8Array = listedPrefix(''); found.size < limit;) {
      const next = await this.#firstTopic({ gte: from, lt: end, limit: 1 })
      if (next === undefined) break
      found.add(next)
      from = afterListed(next)
    }
    return [...found].sort(compareText).slice(0, limit)
  }

  async #firstTopic(range: Range): Promise<string | undefined> {
    for await (const [row] of this.#ports.scan(range)) {
      if (row !== undefined) return findTopicText(latin1(row.key).slice(1))
    }
    return undefined
  }

  /** As of the call, in the order of their names, those behind `after`; at most `limit`. */
  async list(topic: string, after: GroupId | undefined, limit: number): Promise<ListedGroup[]> {
    const text = this.#encodeTopic(topic)
    if (this.#bare.has(text)) return []
    const most = Math.min(limit, listedGroupsMax)
    const found = new Map<GroupId, Position>()
    const empty = new Map(this.#empty.get(text))
    const add = (group: GroupId, position: Position): void => {
      if ((empty.get(group) ?? -1) < position) found.set(group, position)
    }
    const pending = [...(this.#pending.get(text) ?? [])]
    for (const { key, value } of await this.#stored(text, after, most + empty.size)) {
      add(groupOfListed(text, key), this.#ports.checked(key, value).stamp)
    }
    // Newer than what is stored of the same groups.
    for (const [group, position] of pending) add(group, position)
    return [...found]
      .filter(([group]) => after === undefined || compareText(group, after) > 0)
      .sort(([a], [b]) => compareText(a, b))
      .slice(0, most)
      .map(([group, position]) => ({ group, position }))
  }

  async #stored(topic: string, after: GroupId | undefined, limit: number): Promise<KeyValue[]> {
    const putRows = this.#putRows
    const isPending = this.#pending.has(topic)
    const lt = afterListed(topic)
    const range: Range =
      after === undefined
        ? { gte: listedPrefix(topic), lt, limit }
        : { gt: listedKey(topic, after), lt, limit }
    const found: KeyValue[] = []
    for await (const rows of this.#ports.scan(range)) {
      found.push(...rows)
    }
    // A row that was put meanwhile, or waits to be written, is or will be stored.
    const isBare = after === undefined && found.length === 0 && !isPending
    if (isBare && putRows === this.#putRows && this.#bare.size < knownTopicsMax) {
      this.#bare.add(topic)
    }
    return found
  }
}

function set(positions: Positions, topic: string, group: GroupId, position: Position): void {
  const among = positions.get(topic) ?? new Map<GroupId, Position>()
  positions.set(topic, among)
  among.set(group, position)
}
