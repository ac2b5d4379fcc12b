/** Names of planted bugs as a command line has them. */
import { mutants } from '../mutants/mutants.ts'
import { knownName } from './flags.ts'

const ids: readonly string[] = mutants.map(({ id }) => id)

export function parseMutant(text: string): string {
  knownName('mutant', text, ids)
  return text
}

/** One argument each. */
export function parseMutants(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, parseMutant(text)]
}
