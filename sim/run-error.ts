/** The name of an error that ended a run, in the verdict of the run. */
import { AssertionError } from '../src/base/assert.ts'

/** An assertion's text opens with its rule. */
export function findRule(error: unknown): string {
  const isAssertion = error instanceof AssertionError
  return isAssertion ? (/^[A-Z]+-\d+/.exec(error.message)?.[0] ?? 'META-3') : 'META-3'
}

export function describeError(error: unknown): string {
  if (error instanceof AssertionError) return `An assertion failed: ${error.message}`
  return `An error that nobody handles: ${error instanceof Error ? error.message : String(error)}`
}

/** Lines of a stack that a verdict has. */
export const stackLinesMax = 6

export function readStack(error: unknown): readonly string[] {
  const stack = error instanceof Error ? (error.stack ?? '') : ''
  return stack
    .split('\n')
    .slice(1, 1 + stackLinesMax)
    .map((line) => line.trim())
}
