/**
 * Reads all of both stores in the background, again and again: a start reads only what votes rest on.
 *
 * DISK-15  Damage of the data store that a scrub finds ends the node, as damage does that a read finds: the
 *          data store is put aside, and made anew from the log.
 * DISK-16  Damage of the log that a scrub finds is logged, and ends nothing: what the node has in memory is all that
 *          it votes by, and a start would have to do without what is damaged.
 *
 * It reads at `scrubBytesPerSecond`, and at a part of that while clients or peers are at work; it never rests for
 * good. The log follows the data store, at the same pace. A pass is followed by the next one after
 * `scrubPauseMs`.
 */
import type { Limits } from '../base/limits.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import type { Journal } from '../ports/journal.ts'
import type { CheckPace, OrderedStore } from '../ports/storage.ts'
import type { Trace } from '../ports/trace.ts'
import { checked } from './start-check.ts'

export interface ScrubberPorts {
  readonly store: OrderedStore
  readonly log: Journal
  readonly clock: Clock
  readonly trace: Trace
  readonly limits: Pick<Limits, 'scrubBytesPerSecond' | 'scrubPauseMs'>
  /** A count of the work done so far for clients and for nodes that wait: only whether it grows matters. */
  foreground(): number
  /** A file of the log is not what was written: which one, where and how, in words. */
  onLogDamaged(what: string): void
  onFailed(error: unknown): void
}

/** How far the pass under way, or the last one, has come. */
export interface ScrubFigures {
  readonly scrubbedBytes: number
  /** Of the data store, 0 to 1. */
  readonly scrubbedPart: number
  readonly scrubPasses: number
  /** The same of the log, which is read after the data store. */
  readonly logScrubbedBytes: number
  readonly logScrubbedPart: number
  readonly logScrubPasses: number
}

/** One store's. */
class Progress {
  bytes = 0
  part = 0
  passes = 0

  begin(): void {
    this.bytes = 0
    this.part = 0
  }

  /** A store without files has nothing to read. */
  end(): void {
    this.part = 1
    this.passes += 1
  }
}

/** While others are at work the rate is divided by this. */
const busyDivisor = 8

export class Scrubber {
  readonly #ports: ScrubberPorts
  readonly #data = new Progress()
  readonly #log = new Progress()
  #foregroundSeen = 0
  #isStopped = false
  #timer: Timer | undefined
  #underWay: Promise<void> | undefined

  constructor(ports: ScrubberPorts) {
    this.#ports = ports
  }

  get figures(): ScrubFigures {
    const [data, log] = [this.#data, this.#log]
    return {
      ...{ scrubbedBytes: data.bytes, scrubbedPart: data.part, scrubPasses: data.passes },
      ...{ logScrubbedBytes: log.bytes, logScrubbedPart: log.part, logScrubPasses: log.passes },
    }
  }

  #makePace(progress: Progress): CheckPace {
    return {
      bytesPerSecond: () => this.#bytesPerSecond(),
      isOver: () => this.#isStopped,
      onProgress: (bytes, part) => {
        progress.bytes = bytes
        progress.part = part
      },
    }
  }

  get isUnderWay(): boolean {
    return this.#underWay !== undefined
  }

  start(): void {
    void this.now()
  }

  stop(): void {
    this.#isStopped = true
    this.#timer?.cancel()
  }

  /** A pass over both stores now, or the one under way. Resolves at its end. */
  now(): Promise<void> {
    const { store, clock, limits } = this.#ports
    if (this.#isStopped || store.check === undefined) return Promise.resolve()
    this.#timer?.cancel()
    this.#underWay ??= this.#pass().then((isWhole) => {
      this.#underWay = undefined
      if (!isWhole || this.#isStopped) return
      this.#timer = clock.setTimer(limits.scrubPauseMs, () => void this.now())
    })
    return this.#underWay
  }

  /** False: the data store is damaged, and the node ends; or the scrub has stopped. */
  async #pass(): Promise<boolean> {
    const { store, trace, onFailed } = this.#ports
    for (const progress of [this.#data, this.#log]) progress.begin()
    try {
      await checked(store.check?.('all', this.#makePace(this.#data)))
      if (this.#isStopped) return false
      this.#data.end()
      trace.mark('scrub_done')
      await this.#passLog()
      return true
    } catch (error) {
      if (this.#isStopped) return false
      trace.mark('scrub_found_damage')
      onFailed(error)
      return false
    }
  }

  async #passLog(): Promise<void> {
    const { log, trace } = this.#ports
    const onDamage = (what: string): void => this.#onLogDamage(what)
    try {
      await log.check({ ...this.#makePace(this.#log), onDamage })
      if (this.#isStopped) return
      this.#log.end()
      trace.mark('scrub_of_log_done')
    } catch {
      // Something keeps it from reading that may be gone at the next pass, such as no file left to open.
      if (!this.#isStopped) trace.mark('scrub_cannot_read_log')
    }
  }

  #onLogDamage(what: string): void {
    if (this.#isStopped) return
    this.#ports.trace.mark('scrub_found_damage_in_log')
    this.#ports.onLogDamaged(what)
  }

  #bytesPerSecond(): number {
    const { limits, foreground } = this.#ports
    const isBusy = foreground() !== this.#foregroundSeen
    this.#foregroundSeen = foreground()
    return isBusy ? limits.scrubBytesPerSecond / busyDivisor : limits.scrubBytesPerSecond
  }
}
