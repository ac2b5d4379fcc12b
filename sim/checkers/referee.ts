/** Where checkers report: the rule's id, a sentence, and the positions and messages concerned. */

export interface Violation {
  readonly rule: string
  readonly sentence: string
  readonly timeMicros: number
  readonly detail: Readonly<Record<string, unknown>>
}

/** Further violations are mostly echoes of the first. */
const violationsMax = 20

export class Referee {
  readonly violations: Violation[] = []
  readonly #judged = new Map<string, { count: number }>()
  readonly #now: () => number
  readonly #rules: ReadonlySet<string> | undefined

  /**
   * With `rules`, only violations of these count: to see what one checker finds by itself. An
   * unexpected error (META-3) always counts.
   */
  constructor(now: () => number, rules?: readonly string[]) {
    this.#now = now
    this.#rules = rules && new Set(rules)
  }

  /** Reports unless `holds`. Returns `holds`. */
  check(
    holds: boolean,
    rule: string,
    sentence: string,
    detail: () => Readonly<Record<string, unknown>>,
  ): boolean {
    this.judged(rule)
    const counts = this.#rules === undefined || this.#rules.has(rule) || rule === 'META-3'
    if (!holds && counts && this.violations.length < violationsMax) {
      this.violations.push({ rule, sentence, timeMicros: this.#now(), detail: detail() })
    }
    return holds
  }

  /** Counts what a checker compared by this rule, for a checker that reports violations only. */
  judged(rule: string, times = 1): void {
    const before = this.#judged.get(rule)
    if (before === undefined) this.#judged.set(rule, { count: times })
    else before.count += times
  }

  /**
   * How often each rule was held to something, in the order of their ids: a rule that judged
   * nothing says nothing.
   */
  judgements(): Readonly<Record<string, number>> {
    const rows = [...this.#judged].map(([rule, { count }]) => [rule, count] as const)
    return Object.fromEntries(rows.sort(([a], [b]) => (a < b ? -1 : 1)))
  }
}

/** One line a person can read. */
export function describeViolation(violation: Violation): string {
  const { rule, sentence, timeMicros, detail } = violation
  return `${rule} at ${(timeMicros / 1_000_000).toFixed(6)} s: ${sentence} ${JSON.stringify(detail)}`
}
