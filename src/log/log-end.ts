/**
 * Where the log of a node ends: which old flushes may go, and when.
 *
 * LOG-16  A flush goes only when this node's durable mark is past it, and every other node of the replica set that
 *         counts has told that it durably applied what the flush names (LOG-18). A peer that holds up more than
 *         `logRetainBytes`, or a flush older than `logRetainMs`, is behind and does not count.
 *
 * Flushes with what is to be erased go as soon as they may, however few bytes they take.
 *
 * The disk says each time how long the log is. No file says when a flush was written. After a start all flushes count
 * as written then, so the node keeps them for longer.
 */
import { assert } from '../base/assert.ts'
import type { NodeId } from '../base/ids.ts'
import type { Limits } from '../base/limits.ts'
import type { Clock } from '../ports/clock.ts'
import type { Trace } from '../ports/trace.ts'

/** The log, as far as its end is a matter of it. */
export interface EndingLog {
  readonly firstFlush: number
  readonly durableFlush: number
  /** The last flush that no start needs. */
  readonly dispensableFlush: number
  sizeAfter(after: number, through?: number): Promise<number>
  giveUp(first: number): boolean
}

/** The durable mark that a peer has told, of its store; undefined: it has told none since the start. */
export type ToldMark = readonly [NodeId, number | undefined]

export interface LogEndParts {
  readonly log: EndingLog
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly trace: Trace
  readonly limits: Pick<Limits, 'logRetainBytes' | 'logRetainMs' | 'truncateBytesMin'>
  /** Of each other node of the replica set. */
  marks(): readonly ToldMark[]
}

/** As status has it. Bytes as of the last look, about. */
export interface LogEndFigures {
  readonly firstFlush: number
  readonly retainedBytes: number
  /** How long ago the oldest flush was written at least, milliseconds. */
  readonly retainedMs: number
  /** Given up since the start. */
  readonly droppedFlushes: number
  readonly peersBehind: number
}

/** Of one peer. */
export interface PeerMark {
  /** Absent: it has told none since this node started. */
  readonly mark?: number
  /** It is not waited for, or has to do without flushes that are gone. */
  readonly isBehind: boolean
}

/** The time that peers have after a start to tell their marks. */
const untoldMs = 60_000
/** The number of parts of `logRetainMs` by which it tells ages apart. */
const ageSteps = 64

/** All flushes through this one were there at that time. */
interface Written {
  readonly through: number
  readonly atMs: number
}

export class LogEnd {
  readonly #parts: LogEndParts
  readonly #sinceMs: number
  readonly #firstOpened: number
  /** Ascending. */
  #written: Written[]
  #uncounted: ReadonlySet<NodeId> = new Set()
  #retainedBytes = 0
  #erasedThrough = 0
  #isLooking = false

  constructor(parts: LogEndParts) {
    this.#parts = parts
    this.#sinceMs = parts.clock.monotonicMs()
    this.#firstOpened = parts.log.firstFlush
    this.#written = [{ through: parts.log.durableFlush, atMs: this.#sinceMs }]
  }

  get figures(): LogEndFigures {
    const { log, clock } = this.#parts
    const { firstFlush } = log
    const oldest = this.#written.find(({ through }) => through >= firstFlush)
    return {
      firstFlush,
      retainedBytes: this.#retainedBytes,
      retainedMs: oldest === undefined ? 0 : Math.round(clock.monotonicMs() - oldest.atMs),
      droppedFlushes: firstFlush - this.#firstOpened,
      peersBehind: [...this.peers().values()].filter(({ isBehind }) => isBehind).length,
    }
  }

  /** The flushes through this one are to go, however few bytes they take. */
  erase(through: number): void {
    this.#erasedThrough = through
  }

  peers(): ReadonlyMap<NodeId, PeerMark> {
    const { log, marks } = this.#parts
    const least = log.firstFlush - 1
    return new Map(
      marks().map(([node, mark]) => {
        const isBehind = this.#uncounted.has(node) || (mark ?? least) < least
        return [node, { ...(mark !== undefined && { mark }), isBehind }]
      }),
    )
  }

  /** Gives up what may go, where that is worth a write. Rejects when the log cannot be read. */
  async look(): Promise<void> {
    this.#noteTime()
    if (this.#isLooking) return
    this.#isLooking = true
    try {
      await this.#look()
    } finally {
      this.#isLooking = false
    }
  }

  async #look(): Promise<void> {
    const { log, limits, marks } = this.#parts
    this.#retainedBytes = await log.sizeAfter(0)
    const uncounted = new Set<NodeId>()
    let through = log.dispensableFlush
    for (const [node, told] of marks()) {
      const mark = Math.max(told ?? 0, log.firstFlush - 1)
      if (mark >= through) continue
      if (this.#isHeard(told) && (await this.#holdsUpTooMuch(mark))) uncounted.add(node)
      else through = mark
    }
    this.#tell(uncounted)
    if (through < log.firstFlush) return
    const isAsked = log.firstFlush <= this.#erasedThrough
    if (!isAsked && (await log.sizeAfter(0, through)) < limits.truncateBytesMin) return
    const counted = marks().filter(([node]) => !uncounted.has(node))
    // A peer may have told a lower mark meanwhile: its data store is made anew.
    const least = Math.min(through, ...counted.map(([, mark]) => mark ?? 0))
    if (least < through || through > log.dispensableFlush) return
    assert(least >= log.firstFlush, 'LOG-16: the log is to end before it begins')
    log.giveUp(through + 1)
  }

  /** A peer that has told nothing since the start has had its time. */
  #isHeard(told: number | undefined): boolean {
    const { clock } = this.#parts
    return told !== undefined || clock.monotonicMs() - this.#sinceMs >= untoldMs
  }

  /** The flushes after `mark` are too long, or the first of them is too old. */
  async #holdsUpTooMuch(mark: number): Promise<boolean> {
    const { log, limits, clock } = this.#parts
    if ((await log.sizeAfter(mark)) > limits.logRetainBytes) return true
    const oldMs = clock.monotonicMs() - limits.logRetainMs
    return this.#written.some(({ through, atMs }) => atMs <= oldMs && through > mark)
  }

  #tell(uncounted: ReadonlySet<NodeId>): void {
    const { trace } = this.#parts
    for (const node of uncounted) {
      if (this.#uncounted.has(node)) continue
      trace.mark('peer_behind_the_log')
      trace.emit({ kind: 'peer-behind', peer: node })
    }
    this.#uncounted = uncounted
  }

  #noteTime(): void {
    const { log, limits, clock } = this.#parts
    const nowMs = clock.monotonicMs()
    const last = this.#written.at(-1)
    const isDue = last === undefined || nowMs - last.atMs >= limits.logRetainMs / ageSteps
    if (!isDue || log.durableFlush === last?.through) return
    this.#written.push({ through: log.durableFlush, atMs: nowMs })
    const isOld = ({ atMs }: Written): boolean => nowMs - atMs >= limits.logRetainMs
    const kept = this.#written.findLastIndex(isOld)
    if (kept > 0) this.#written.splice(0, kept)
  }
}
