/**
 * Assertions: always on, constant text that opens with a rule's id, and never caught to go on.
 *
 * What the world may do (a late message, a full disk, a wrong request) is a value or a StoreError;
 * an assertion is for what only a bug can do. A replica that broke a rule must not answer again.
 */

/** Thrown by `assert`; caught only where a process, a simulation or a test ends. */
export class AssertionError extends Error {
  override readonly name = 'AssertionError'
}

/** Stops when `condition` does not hold. `rule` is constant text such as `PAX-2: a promise went back`. */
export function assert(condition: boolean, rule: string): asserts condition {
  if (!condition) throw new AssertionError(rule)
}

/** The value, asserted to be there. */
export function present<T>(value: T | undefined, rule: string): T {
  if (value === undefined) throw new AssertionError(rule)
  return value
}

/** Closes a `switch` over a union: a new member does not compile until it has a case. */
export function unreachable(value: never): never {
  throw new AssertionError(`unreachable: ${JSON.stringify(value)}`)
}
