/**
 * Errors of the program itself: in a daemon each ends what met it alone (OWN-1); in a simulation it
 * is a find.
 */
import { AssertionError } from '../../src/base/assert.ts'
import type { Bug } from '../../src/node/bugs.ts'

/** A failed assertion keeps the rule that it names; any other error breaks OWN-1. */
export function ownError({ place, error }: Bug): AssertionError {
  if (error instanceof AssertionError) return error
  const text = `OWN-1: an error of the program in ${place}: ${error.message}`
  return new AssertionError(text, { cause: error })
}
