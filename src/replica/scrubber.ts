/**
 * Reads all of the data store in the background, again and again: a start reads only what votes rest on.
 *
 * DISK-15  Damage that a scrub finds ends the node, as damage does that a read finds: the data store is
 *          put aside, and made anew from the log.
 *
 * First come the rows of applied positions: who asks for a vote at one of them gets none before that,
 * unless it was chosen. Then everything, at `scrubBytesPerSecond`, and a part of that while clients or
 * peers are at work; it never rests for good. A pass is followed by the next one after `scrubPauseMs`.
 */
import type { Limits } from '../base/limits.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import type { CheckPace, KeySpan, OrderedStore } from '../ports/storage.ts'
import type { Trace } from '../ports/trace.ts'
import { allPositions } from './row-format.ts'
import { checked } from './start-check.ts'

export interface ScrubberPorts {
  readonly store: OrderedStore
  readonly clock: Clock
  readonly trace: Trace
  readonly limits: Pick<Limits, 'scrubBytesPerSecond' | 'scrubPauseMs'>
  /** What was done so far for clients and for nodes that wait: only whether it grows matters. */
  foreground(): number
  /** Every row of a position is what was written. */
  onPositionsSound(): void
  onFailed(error: unknown): void
}

/** How far the pass under way, or the last one, has come. */
export interface ScrubFigures {
  readonly scrubbedBytes: number
  /** Of the store, 0 to 1. */
  readonly scrubbedPart: number
  readonly scrubPasses: number
}

/** While others are at work the rate is divided by this. */
const busyDivisor = 8

export class Scrubber {
  readonly #ports: ScrubberPorts
  readonly #pace: CheckPace
  #bytes = 0
  #part = 0
  #passes = 0
  #foregroundSeen = 0
  #isStopped = false
  #timer: Timer | undefined

  constructor(ports: ScrubberPorts) {
    this.#ports = ports
    this.#pace = {
      bytesPerSecond: () => this.#bytesPerSecond(),
      isOver: () => this.#isStopped,
      onProgress: (bytes, part) => {
        this.#bytes = bytes
        this.#part = part
      },
    }
  }

  get figures(): ScrubFigures {
    return {
      ...{ scrubbedBytes: this.#bytes, scrubbedPart: this.#part, scrubPasses: this.#passes },
    }
  }

  start(): void {
    void this.#run([allPositions], () => {
      this.#ports.onPositionsSound()
      this.#ports.clock.defer(() => this.#pass())
    })
  }

  stop(): void {
    this.#isStopped = true
    this.#timer?.cancel()
  }

  #pass(): void {
    const { store, clock, trace, limits } = this.#ports
    if (this.#isStopped || store.check === undefined) return
    void this.#run('all', () => {
      this.#passes += 1
      trace.mark('a scrub has read everything')
      this.#timer = clock.setTimer(limits.scrubPauseMs, () => this.#pass())
    })
  }

  async #run(spans: readonly KeySpan[] | 'all', then: () => void): Promise<void> {
    const { store, trace, onFailed } = this.#ports
    try {
      await checked(store.check?.(spans, this.#pace))
      if (!this.#isStopped) then()
    } catch (error) {
      if (this.#isStopped) return
      trace.mark('a scrub found damage')
      onFailed(error)
    }
  }

  #bytesPerSecond(): number {
    const { limits, foreground } = this.#ports
    const isBusy = foreground() !== this.#foregroundSeen
    this.#foregroundSeen = foreground()
    return isBusy ? limits.scrubBytesPerSecond / busyDivisor : limits.scrubBytesPerSecond
  }
}
