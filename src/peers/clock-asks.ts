/** Asks peers for their clocks, and takes the answers up: what lies between a question and its answer bounds the clock. */
import { numbersFrom } from '../base/drawn-numbers.ts'
import type { NodeId } from '../base/ids.ts'
import type { Clock } from '../ports/clock.ts'
import type { Trace } from '../ports/trace.ts'
import type { ClockTold } from '../replication/message.ts'
import { clockAnswerMsMax, clockTellMs, type PeerClocks } from './peer-clocks.ts'

export interface ClockAsksParts {
  readonly incarnation: number
  readonly clock: Clock
  readonly trace: Trace
  readonly clocks: PeerClocks
  send(to: NodeId, message: ClockTold): void
}

interface Asked {
  lastMs: number
  /** Questions that are not answered: when they left, by their numbers, which rise. */
  readonly left: Map<number, number>
}

export class ClockAsks {
  readonly #parts: ClockAsksParts
  readonly #asked = new Map<NodeId, Asked>()
  readonly #startMs: number
  #numbers: number

  constructor(parts: ClockAsksParts) {
    this.#parts = parts
    this.#numbers = numbersFrom(parts.incarnation)
    this.#startMs = parts.clock.monotonicMs()
  }

  /** Whether the peer is to be asked once more. */
  isDue(node: NodeId, now: number): boolean {
    return now - this.#of(node).lastMs >= clockTellMs
  }

  ask(node: NodeId): void {
    const { clock, send } = this.#parts
    const asked = this.#of(node)
    const now = clock.monotonicMs()
    const number = (this.#numbers += 1)
    asked.lastMs = now
    for (const [earlier, leftMs] of asked.left) {
      if (now - leftMs > clockAnswerMsMax) asked.left.delete(earlier)
    }
    asked.left.set(number, now)
    send(node, { kind: 'clock', wall: clock.wallMicros(), asked: number, answers: 0 })
  }

  /** A peer asks for this node's clock, or says what its own showed. */
  onTold(from: NodeId, { wall, asked, answers }: ClockTold): void {
    const { clock, clocks, send } = this.#parts
    if (asked > 0) send(from, { kind: 'clock', wall: clock.wallMicros(), asked: 0, answers: asked })
    const { left } = this.#of(from)
    const leftMs = left.get(answers)
    if (leftMs === undefined) return
    // The answer to an older question may come later: that clock may have been set since.
    for (const number of left.keys()) if (number <= answers) left.delete(number)
    const now = clock.monotonicMs()
    if (now - leftMs <= clockAnswerMsMax) clocks.hear(from, wall, leftMs, now)
  }

  /** Tells when this node's own wall clock is found wrong, or right again. */
  watch(now: number): void {
    const { clock, trace, clocks } = this.#parts
    const reading = { wall: clock.wallMicros(), now }
    const is = clocks.look(reading)
    if (is === undefined) return
    trace.mark(is === 'right' ? 'the wall clock is right again' : `the wall clock is ${is}`)
    trace.emit({ kind: 'clock', is, leadMs: clocks.leadMs(reading), lagMs: clocks.lagMs(reading) })
  }

  #of(node: NodeId): Asked {
    const known = this.#asked.get(node)
    if (known !== undefined) return known
    const asked = { lastMs: this.#startMs, left: new Map<number, number>() }
    this.#asked.set(node, asked)
    return asked
  }
}
