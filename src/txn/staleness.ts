/** The bound of a read with bounded staleness, as programs and requests give it. */
import { wholeFrom, type Rule } from '../base/arguments.ts'
import { stalenessMsMin } from '../base/limits.ts'
import { problem, type Problem } from '../base/problem.ts'

/** Of `maxStalenessMs`. */
export const stalenessRule: Rule = {
  ...wholeFrom(stalenessMsMin),
  words: `a whole number of milliseconds from ${stalenessMsMin}`,
}

/** Of a bound as a request has it; absent: there is none. */
export function stalenessProblem(maxStalenessMs: number | undefined): Problem | undefined {
  if (maxStalenessMs === undefined || stalenessRule.accepts(maxStalenessMs)) return undefined
  const detail = { limit: 'stalenessMsMin', limitValue: stalenessMsMin, actual: maxStalenessMs }
  return problem('invalid', `a bound of staleness is ${stalenessRule.words}`, detail)
}
