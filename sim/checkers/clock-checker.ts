/**
 * Whose time groups go by.
 *
 * CLOCK-1  An entry of a leader's own is stamped by its clock as it is held back, or right after
 *          the one before. Above ballot zero the value may be another's, who knew of other clocks.
 * CLOCK-2  In a world that is well, each node goes by a time that is no further from a majority's
 *          true clocks than it may be, either way, and says how it is off.
 * CLOCK-3  Soon after its start a node is ready only when it holds its clock to those of a
 *          majority.
 */
import type { TraceEvent } from '../../src/ports/trace.ts'
import { decodeEntry } from '../../src/replication/entry.ts'
import type { PositionBook } from './position-book.ts'
import type { Coverage } from '../coverage.ts'
import type { Referee } from './referee.ts'
import { readBallot, readBytes, readNumber, readText } from './trace-fields.ts'

/** A node as seen from outside: its true clock and its estimate of it, in microseconds. */
export interface SeenClock {
  readonly node: string
  readonly wall: number
  readonly held: number
  readonly isAhead: boolean
  readonly isBehind: boolean
}

/** A running node: whether it is ready, and its estimate of a wall clock. */
export interface SeenReadiness {
  isReady(): boolean
  held(wall: number): number
}

/** Less than `clockWaitMs`. */
const waitMs = 2_000
/** Wall time in microseconds, far later than any node's clock shows. */
const farWall = Number.MAX_SAFE_INTEGER / 2

/**
 * Allows for the drift of clocks between two answers, and for the time of answers in a healthy
 * world.
 */
const slackMicros = 1_500_000

export class ClockChecker {
  readonly #book: PositionBook
  readonly #referee: Referee
  readonly #coverage: Coverage
  readonly #startMs = new Map<string, number>()
  /** Nodes that wait for the clocks of others since their start: with fewer voters no majority of others is there to tell any. */
  readonly #waiting = new Set<string>()

  constructor(book: PositionBook, referee: Referee, coverage: Coverage) {
    this.#book = book
    this.#referee = referee
    this.#coverage = coverage
  }

  /** By the node's own monotonic clock, which may leap, and by which it waits. */
  onStart(node: string, atMs: number): void {
    this.#startMs.set(node, atMs)
    this.#waiting.delete(node)
    if (this.#book.voters.hasOthersEnough(node)) this.#waiting.add(node)
  }

  /** A node at work. */
  onSeen(node: string, atMs: number, { isReady, held }: SeenReadiness): void {
    const upMs = atMs - (this.#startMs.get(node) ?? -Infinity)
    if (upMs >= waitMs || !this.#waiting.has(node)) return
    const isHeld = held(farWall) < farWall
    if (!isHeld) this.#coverage.count('at work before others have told their clocks')
    this.#referee.check(
      isHeld || !isReady(),
      'CLOCK-3',
      'A node is ready before a majority has told it its clocks.',
      () => ({ node, upMs }),
    )
  }

  /** `node` proposes; `held` is its clock, undefined until it is open. */
  onProposed(node: string, event: TraceEvent, held: number | undefined): void {
    if (held === undefined || readBallot(event, 'ballot').round > 0) return
    const entry = decodeEntry(readBytes(event, 'value'))
    if (entry === undefined) return
    const group = readText(event, 'group')
    const position = readNumber(event, 'position')
    const { timestamp } = entry
    this.#referee.check(
      timestamp <= held || timestamp === this.#stampBefore(group, position) + 1,
      'CLOCK-1',
      "An entry is stamped further ahead than the others' clocks allow.",
      () => ({ node, group, position, timestamp, held }),
    )
  }

  /** Whether `onWell` would find nothing wrong now. */
  isWell(set: readonly SeenClock[], leadMsMax: number): boolean {
    return set.every((one) => findWrong(one, set, leadMsMax) === undefined)
  }

  /** All nodes of a replica set, in a world that has been well for a while. */
  onWell(set: readonly SeenClock[], leadMsMax: number): void {
    for (const one of set) {
      const wrong = findWrong(one, set, leadMsMax)
      const { rule, sentence } = wrong ?? { rule: 'CLOCK-2', sentence: '' }
      this.#referee.check(wrong === undefined, rule, sentence, () => ({ ...wrong?.detail }))
      if (one.isBehind) this.#coverage.count('a clock that is behind was noticed')
    }
  }

  #stampBefore(group: string, position: number): number {
    const before = position === 1 ? undefined : this.#book.of(group, position - 1).chosen
    return (before && decodeEntry(before.value)?.timestamp) ?? 0
  }
}

interface Wrong {
  readonly rule: 'CLOCK-1' | 'CLOCK-2'
  readonly sentence: string
  readonly detail: object
}

function findWrong(
  one: SeenClock,
  set: readonly SeenClock[],
  leadMsMax: number,
): Wrong | undefined {
  const majority = Math.floor(set.length / 2) + 1
  const others = set.filter(({ node }) => node !== one.node).map(({ wall }) => wall)
  const rising = others.toSorted((a, b) => a - b)
  const mostMicros = leadMsMax * 1_000 + slackMicros
  const latest = (rising[majority - 1] ?? Infinity) + mostMicros
  const earliest = (rising.at(-majority) ?? -Infinity) - mostMicros
  const { wall, held, isAhead, isBehind } = one
  const detail = { ...one, latest, earliest }
  const far = "A node goes by a time that is further from most others' than it may be."
  const untold = 'A node whose clock is wrong has not noticed.'
  if (held > latest) return { rule: 'CLOCK-1', sentence: far, detail }
  if (held < earliest) return { rule: 'CLOCK-2', sentence: far, detail }
  if (wall > latest && !isAhead) return { rule: 'CLOCK-1', sentence: untold, detail }
  if (wall < earliest && !isBehind) return { rule: 'CLOCK-2', sentence: untold, detail }
  return undefined
}
