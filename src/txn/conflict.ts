/** Puts a conflict into words: the transaction and what it read, the other one and where it wrote. */
import { StoreError } from '../base/errors.ts'
import type { GroupId } from '../base/ids.ts'
import type { Intent, Outcome } from '../group/replica-port.ts'
import { formatIntent } from '../group/transaction.ts'

export type Conflict = Outcome & { readonly kind: 'conflict' }

/** The last of `runs` conflicts: no run follows it. */
export function contentionError(
  group: GroupId,
  intent: Intent,
  { position, key, by }: Conflict,
  runs: number,
  nameKey: (key: Uint8Array) => string = describeKey,
): StoreError {
  const writer = by === undefined ? 'another transaction' : `transaction ${formatIntent(by)}`
  const what = key === undefined ? 'what is older than the group remembers' : nameKey(key)
  const since = key === undefined ? `${writer} was committed` : `${writer} wrote it`
  const message = `contention: transaction ${formatIntent(intent)} read ${what}, and ${since} at position ${position}; gave up after ${runs} ${runs === 1 ? 'run' : 'runs'}: try again later, or read less`
  return new StoreError('contention', message, { group, attempts: runs })
}

function describeKey(key: Uint8Array): string {
  return `key ${Buffer.from(key).toString('hex')}`
}
