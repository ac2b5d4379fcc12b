/**
 * Reads of bounded staleness.
 *
 * STALE-1 What a node answers from what it has applied has every write that was acknowledged more than the bound before.
 *         Every write counts from the moment at which the first node took it for chosen: none is acknowledged before.
 */
import type { Referee } from './referee.ts'

/** A position that is known to be chosen since a moment of the world's time. */
interface Known {
  readonly position: number
  readonly sinceMicros: number
}

export interface FreshRead {
  readonly group: string
  readonly position: number
  readonly maxStalenessMs: number
}

export class FreshnessChecker {
  readonly #referee: Referee
  readonly #nowMicros: () => number
  /** By group, rising in both. */
  readonly #known = new Map<string, Known[]>()

  constructor(referee: Referee, nowMicros: () => number) {
    this.#referee = referee
    this.#nowMicros = nowMicros
  }

  /** A node takes the position for chosen. */
  onKnown(group: string, position: number): void {
    const known = this.#known.get(group) ?? []
    if (position <= (known.at(-1)?.position ?? 0)) return
    known.push({ position, sinceMicros: this.#nowMicros() })
    this.#known.set(group, known)
  }

  /** The node answers from what it has applied, or `node` is the reader, and the read began at `atMicros`. */
  onAnswered(node: string, read: FreshRead, atMicros: number = this.#nowMicros()): void {
    const { group, position, maxStalenessMs } = read
    const untilMicros = atMicros - maxStalenessMs * 1_000
    const must = this.#known.get(group)?.findLast(({ sinceMicros }) => sinceMicros < untilMicros)
    this.#referee.check(
      position >= (must?.position ?? 0),
      'STALE-1',
      'A read of bounded staleness lacks a write that was acknowledged longer ago than its bound.',
      () => ({
        ...{ node, group: Buffer.from(group, 'latin1').toString('hex'), position },
        ...{ lacks: must?.position, knownMicros: must?.sinceMicros, untilMicros, maxStalenessMs },
      }),
    )
  }
}
