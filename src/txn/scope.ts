/**
 * Knows whether code runs inside the function of a transaction, so that the outer handle throws
 * when it is used there by mistake: the call is not taken for an independent one. An adapter
 * follows asynchronous calls.
 */
import { StoreError } from '../base/errors.ts'

export interface TransactionScope {
  /** Calls `run`; whatever it starts is inside until it ends. */
  inside<Value>(run: () => Promise<Value>): Promise<Value>
  isInside(): boolean
}

/** `call` is what was called: `db.transaction`. */
export function checkOutside(scope: TransactionScope | undefined, call: string): void {
  if (scope?.isInside() !== true) return
  const message = `${call} was called inside the function of a transaction, and would not be part of it; use the handle that the function is given`
  throw new StoreError('invalid', message)
}
