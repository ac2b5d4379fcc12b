/**
 * Whose time groups go by.
 *
 * CLOCK-1  An entry of a leader's own is stamped by its clock as it is held back, or right after the one
 *          before. Above ballot zero the value may be another's, who knew of other clocks.
 */
import type { TraceEvent } from '../../src/ports/trace.ts'
import { decodeEntry } from '../../src/replication/entry.ts'
import type { PositionBook } from './position-book.ts'
import type { Referee } from './referee.ts'
import { ballotOf, bytesOf, numberOf, textOf } from './trace-fields.ts'

export class ClockChecker {
  readonly #book: PositionBook
  readonly #referee: Referee

  constructor(book: PositionBook, referee: Referee) {
    this.#book = book
    this.#referee = referee
  }

  /** `node` proposes; `held` is its clock, undefined until it is open. */
  onProposed(node: string, event: TraceEvent, held: number | undefined): void {
    if (held === undefined || ballotOf(event, 'ballot').round > 0) return
    const entry = decodeEntry(bytesOf(event, 'value'))
    if (entry === undefined) return
    const group = textOf(event, 'group')
    const position = numberOf(event, 'position')
    const { timestamp } = entry
    this.#referee.check(
      timestamp <= held || timestamp === this.#stampBefore(group, position) + 1,
      'CLOCK-1',
      "An entry is stamped further ahead than the others' clocks allow.",
      () => ({ node, group, position, timestamp, held }),
    )
  }

  #stampBefore(group: string, position: number): number {
    const before = position === 1 ? undefined : this.#book.of(group, position - 1).chosen
    return (before && decodeEntry(before.value)?.timestamp) ?? 0
  }
}
