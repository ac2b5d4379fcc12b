/**
 * LOG-16, LOG-17, LOG-18: what a log gives up is not needed any more, by its own node nor by another that counts; it is
 * given up only after the mark is durable, which names the flush before truly; and a durable mark that a node tells is true.
 */
import { numberOfKey, recordKey } from '../../src/journal/ordered-journal.ts'
import { latin1 } from '../../src/base/bytes.ts'
import type { Limits } from '../../src/base/limits.ts'
import { decodeFlush, type FlushRecord } from '../../src/log/flush.ts'
import { metaName, tryDecodeMeta } from '../../src/log/log-meta.ts'
import type { Put } from '../../src/ports/storage.ts'
import type { Message } from '../../src/replication/message.ts'
import type { Referee } from './referee.ts'

/** The highest position of each group that a flush names. */
type Positions = ReadonlyMap<string, number>

interface Flush {
  /** Of all records, and of those with values. */
  readonly all: Positions
  readonly named: Positions
  readonly crc: number
  /** On the disk, and when it was there, by the clock of its node. */
  readonly bytes: number
  readonly atMs: number
}

interface LogOnDisk {
  readonly flushes: Map<number, Flush>
  /** The durable mark: flushes before it may be gone. */
  first: number
  /** By group, the last flush with a record of it. */
  readonly last: Map<string, number>
}

export interface LogEndCheckerParts {
  readonly referee: Referee
  /** How far a node's data disk has applied the group. */
  findPosition(node: string, group: string): number
  /** The node's log is of another time. */
  isForgotten(node: string): boolean
  /** The other nodes of its replica set. */
  others(node: string): readonly string[]
  /** A node may hold up as much of another one's log, and still counts there. */
  readonly limits: Pick<Limits, 'logRetainBytes' | 'logRetainMs'>
  /** The node's monotonic clock now. */
  monotonicMs(node: string): number
}

const metaText = latin1(recordKey(metaName))
/** Bytes of a journal around a flush, at most. */
const frameBytes = 64
/** A peer that has told nothing has as long after a start. */
const untoldMs = 60_000

/** One run of a node. */
interface NodeRun {
  readonly sinceMs: number
  /** The peers that have told it a durable mark. */
  readonly heard: Set<string>
}

export class LogEndChecker {
  readonly #parts: LogEndCheckerParts
  readonly #logs = new Map<string, LogOnDisk>()
  /** Nodes whose data disk was replaced at some time. */
  readonly #replaced = new Set<string>()
  /** By node that told a mark and the peer whose log that is of: through which flush it was looked at. */
  readonly #checked = new Map<string, Map<string, number>>()
  readonly #runs = new Map<string, NodeRun>()

  constructor(parts: LogEndCheckerParts) {
    this.#parts = parts
  }

  /** A put of the node's log became durable, with these records. The put may delete a flush. */
  onLogDurable(node: string, { key, value }: Put, records: readonly FlushRecord[]): void {
    const number = numberOfKey(key)
    const log = this.#of(node)
    if (number === undefined) {
      if (value !== undefined && latin1(key) === metaText) this.#onMeta(node, log, value)
      return
    }
    if (value === undefined) return this.#onDeleted(node, log, number)
    const [all, named] = [new Map<string, number>(), new Map<string, number>()]
    for (const { kind, group, position } of records) {
      raise(all, group, position)
      raise(log.last, group, number)
      if (kind !== 'promise') raise(named, group, position)
    }
    const crc = decodeFlush(value)?.crc ?? -1
    const [bytes, atMs] = [value.length + frameBytes, this.#parts.monotonicMs(node)]
    log.flushes.set(number, { all, named, crc, bytes, atMs })
  }

  /**
   * The node's data disk is replaced. Marks of before say nothing of this one. A peer that goes by such a mark gives up
   * what this disk lacks: the node gets it from there as a snapshot.
   */
  onReplaced(node: string): void {
    this.#checked.delete(node)
    this.#replaced.add(node)
  }

  /** Another store is to have the node's vote: its log begins anew. */
  onStoreLost(node: string): void {
    this.onReplaced(node)
    this.#logs.delete(node)
    for (const checked of this.#checked.values()) checked.delete(node)
  }

  onStart(node: string): void {
    this.#runs.set(node, { sinceMs: this.#parts.monotonicMs(node), heard: new Set() })
  }

  onDelivered(from: string, to: string, message: Message): void {
    if (message.kind === 'durable-mark') this.#runs.get(to)?.heard.add(from)
  }

  onSent(from: string, to: string, message: Message): void {
    if (message.kind !== 'durable-mark') return
    const { referee, isForgotten } = this.#parts
    if (isForgotten(from) || isForgotten(to)) return
    const checked = this.#checked.get(from) ?? new Map<string, number>()
    this.#checked.set(from, checked)
    const after = checked.get(to) ?? 0
    checked.set(to, Math.max(after, message.through))
    for (let flush = after + 1; flush <= message.through; flush++) {
      const lacking = this.#lacking(from, this.#of(to).flushes.get(flush)?.named)
      referee.check(
        lacking === undefined,
        'LOG-18',
        'A node tells a peer that it durably applied what it has not.',
        () => ({ node: from, peer: to, flush, ...lacking }),
      )
    }
  }

  #onDeleted(node: string, log: LogOnDisk, number: number): void {
    this.#parts.referee.check(
      number < log.first,
      'LOG-17',
      'A flush is deleted that the durable mark does not give up.',
      () => ({ node, flush: number, first: log.first }),
    )
  }

  #onMeta(node: string, log: LogOnDisk, value: Uint8Array): void {
    const { referee } = this.#parts
    const meta = tryDecodeMeta(value)
    if (meta === undefined) return
    const { firstFlush: first, previousCrc } = meta
    referee.check(first >= log.first, 'LOG-17', 'The mark of the first flush goes back.', () => ({
      node,
      first,
      before: log.first,
    }))
    if (first <= log.first) return
    const before = log.flushes.get(first - 1)
    referee.check(
      before === undefined || before.crc === previousCrc,
      'LOG-17',
      'The mark of the first flush names another flush before it than there was.',
      () => ({ node, first, previousCrc, crc: before?.crc }),
    )
    const old = log.first
    const behind = new Set(
      this.#parts.others(node).filter((one) => this.#mayBeBehind(node, log, one)),
    )
    log.first = first
    for (let flush = old; flush < first; flush++) this.#checkGone(node, log, flush, behind)
  }

  /**
   * Whether the other node may hold up too much of this log: all of it is too long, or the first flush of it too old. How
   * much it does hold up says the mark that it told last over the present link, of which no checker knows.
   */
  #mayBeBehind(node: string, { flushes, first }: LogOnDisk, other: string): boolean {
    const { limits, monotonicMs } = this.#parts
    const nowMs = monotonicMs(node)
    const { sinceMs, heard } = this.#runs.get(node) ?? { sinceMs: nowMs, heard: new Set() }
    if (!heard.has(other) && nowMs - sinceMs < untoldMs) return false
    const kept = [...flushes].filter(([number]) => number >= first)
    const bytes = kept.reduce((sum, [, flush]) => sum + flush.bytes, 0)
    const isOld = kept.some(([, { atMs }]) => nowMs - atMs >= limits.logRetainMs)
    return bytes > limits.logRetainBytes || isOld
  }

  /** Its own node needs it no more, nor does another one that counts. */
  #checkGone(node: string, log: LogOnDisk, flush: number, behind: ReadonlySet<string>): void {
    const { referee, others, isForgotten } = this.#parts
    const gone = log.flushes.get(flush)
    log.flushes.delete(flush)
    const isAgain = (group: string): boolean => (log.last.get(group) ?? 0) >= log.first
    const own = this.#lacking(node, gone?.all, isAgain)
    referee.check(
      own === undefined,
      'LOG-16',
      'A log gives up what its own node has neither applied nor written again.',
      () => ({ node, flush, ...own }),
    )
    for (const other of others(node)) {
      if (isForgotten(other) || this.#replaced.has(other) || behind.has(other)) continue
      const lacking = this.#lacking(other, gone?.named)
      referee.check(
        lacking === undefined,
        'LOG-16',
        'A log gives up what another node that counts has not applied.',
        () => ({ node, flush, other, ...lacking }),
      )
    }
  }

  #lacking(
    node: string,
    positions: Positions = new Map(),
    isExcused: (group: string) => boolean = () => false,
  ): { readonly group: string; readonly position: number } | undefined {
    for (const [group, position] of positions) {
      const isThere = this.#parts.findPosition(node, group) >= position
      if (!isThere && !isExcused(group)) return { group, position }
    }
    return undefined
  }

  #of(node: string): LogOnDisk {
    let log = this.#logs.get(node)
    if (log === undefined) {
      log = { flushes: new Map(), first: 1, last: new Map() }
      this.#logs.set(node, log)
    }
    return log
  }
}

function raise(positions: Map<string, number>, group: string, position: number): void {
  if (position > (positions.get(group) ?? 0)) positions.set(group, position)
}
