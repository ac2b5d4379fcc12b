/** Failures of `data/`, which a start rebuilds from the log and the peers. */
import { StoreError } from '../base/errors.ts'

export function isOfData(error: unknown): boolean {
  return error instanceof StoreError && error.detail.store === 'data'
}

export function damagedData(cause: Error): StoreError {
  const text =
    'data/ is damaged, and is put aside as data.damaged; start the node again: it is rebuilt from the log and the peers'
  return new StoreError('corrupt', text, { store: 'data' }, { cause })
}
