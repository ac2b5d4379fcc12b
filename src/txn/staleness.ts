/** The bound of a read with bounded staleness, as programs and requests give it. */
import { wholeFrom, type Rule } from '../base/arguments.ts'
import { stalenessMsMin } from '../base/limits.ts'

/** Of `maxStalenessMs`. */
export const stalenessRule: Rule = {
  ...wholeFrom(stalenessMsMin),
  words: `a whole number of milliseconds from ${stalenessMsMin}`,
}
