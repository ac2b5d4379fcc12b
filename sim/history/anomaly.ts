/**
 * The anomalies of a history, by name. G0 to G2-item are Adya's, as Elle finds them. The suffixes
 * say that the cycle needs the order of a session, or of real time, beside the data.
 */

export type CycleShape = 'G0' | 'G1c' | 'G-single' | 'G2-item'

export type CycleName = CycleShape | `${CycleShape}-session` | `${CycleShape}-realtime`

export type AnomalyName =
  | CycleName
  /** Saw what a failed transaction wrote. */
  | 'G1a'
  /** Saw a state in the middle of a transaction. */
  | 'G1b'
  /** Wrote on top of what a failed transaction wrote. */
  | 'dirty-update'
  /** Two wrote on top of the same state; or what one wrote is gone. */
  | 'lost-update'
  /** Two reads show one list in ways that cannot both be. */
  | 'incompatible-order'
  | 'duplicate-elements'
  /** A read shows an element, or a version, without a writer. */
  | 'unwritten'
  /** One version with two values. */
  | 'changed-value'
  /** A transaction that contradicts itself. */
  | 'internal'
  /** A current read misses a write that was acknowledged before it began. */
  | 'stale-read'
  /** A session sees less than it has seen. */
  | 'session-backwards'

export interface Anomaly {
  readonly name: AnomalyName
  /** The contradiction and its reason, in whole sentences. */
  readonly sentences: readonly string[]
  /** Indexes of the operations concerned: T1 of the sentences is the first one. */
  readonly operations: readonly number[]
}

/** The reported anomalies of each name; further ones are mostly echoes. */
export const anomaliesPerNameMax = 10

export class Anomalies {
  readonly #byName = new Map<AnomalyName, Anomaly[]>()

  add(anomaly: Anomaly): void {
    const known = this.#byName.get(anomaly.name)
    if (known === undefined) this.#byName.set(anomaly.name, [anomaly])
    else if (known.length < anomaliesPerNameMax) known.push(anomaly)
  }

  isFull(name: AnomalyName): boolean {
    return (this.#byName.get(name)?.length ?? 0) >= anomaliesPerNameMax
  }

  list(): Anomaly[] {
    return [...this.#byName.values()].flat()
  }
}
