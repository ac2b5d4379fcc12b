/** Errors of the program itself, where a test expects none. */
import type { NoteBug } from '../src/node/bugs.ts'

export const noteBug: NoteBug = (place, thrown) => {
  throw new Error(`a bug in ${place}`, { cause: thrown })
}
