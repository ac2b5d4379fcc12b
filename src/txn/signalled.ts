/**
 * Calls that an application gives up by an `AbortSignal`. A request that had not left by then is not sent; of
 * one that a node may have carried out, the error says so. The caller gets `closed`, or `unknown-outcome` for
 * a write, with the signal's reason as its cause.
 */
import type { Rule, Rules } from '../base/arguments.ts'
import { StoreError } from '../base/errors.ts'
import type { Pace } from '../ports/pace.ts'

export const signalRule: Rule = {
  accepts: isSignal,
  words: 'an AbortSignal',
}

/** An object that only inherits from one, or a proxy of one, cannot be asked whether it is aborted. */
function isSignal(value: unknown): boolean {
  if (!(value instanceof AbortSignal)) return false
  try {
    return typeof value.aborted === 'boolean'
  } catch {
    return false
  }
}

/** Of calls that have nothing else to be told. */
export interface SignalOptions {
  /** Gives the call up: it rejects with `closed`, or `unknown-outcome` where it may have written. */
  readonly signal?: AbortSignal
}

export const signalRules: Rules<SignalOptions> = { signal: signalRule }

/** For calls that hear when their caller no longer waits for them. */
export function goneBy(signal: AbortSignal | undefined): Pick<Pace, 'onGone'> | undefined {
  if (signal === undefined) return undefined
  return {
    onGone: (end) => {
      if (signal.aborted) throw givenUp(signal)
      signal.addEventListener('abort', end, { once: true })
      return () => signal.removeEventListener('abort', end)
    },
  }
}

/** The result of `work`; nothing is begun when the signal is aborted already. */
export async function signalled<Value>(
  signal: AbortSignal | undefined,
  work: () => Promise<Value>,
): Promise<Value> {
  if (signal === undefined) return work()
  checkSignal(signal)
  try {
    return await work()
  } catch (error) {
    const isEnd = signal.aborted && error instanceof StoreError
    throw isEnd && error.code !== 'unknown-outcome' ? givenUp(signal) : error
  }
}

/** Between two steps of long work. */
export function checkSignal(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw givenUp(signal)
}

export function givenUp(signal: AbortSignal): StoreError {
  const cause: unknown = signal.reason
  return new StoreError('closed', 'this call was given up by its signal', {}, { cause })
}
