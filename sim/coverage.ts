/**
 * What a run reached: faults that really struck, branches of the code that were marked. A campaign
 * in which something expected never happened proves nothing and fails (META-2).
 */

/** Faults that a campaign of default swarms must have seen at work. */
export const expectedFaults = [
  'cut',
  'drop',
  'duplicate',
  'late-duplicate',
  'tail',
  'reorder',
  'survivor',
  'clog',
  'reset',
  'partition',
  'one-way',
  'pause',
  'crash',
  'crash-all',
  'restart',
  'stop',
  'lost-write',
] as const

export class Coverage {
  readonly #countByName = new Map<string, number>()

  count(name: string, times = 1): void {
    this.#countByName.set(name, (this.#countByName.get(name) ?? 0) + times)
  }

  /** How often each thing happened, in the order of their names. */
  counts(): Readonly<Record<string, number>> {
    const rows = [...this.#countByName].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    return Object.fromEntries(rows)
  }
}
