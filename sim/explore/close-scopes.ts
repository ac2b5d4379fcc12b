/**
 * The scopes in which a set closes the bucket of a group as it begins (MOVE-14): the entry that begins the second epoch does, and the
 * nodes tell behind their gates whether the group may have begun.
 */
import { nothing, submission, type Scope } from './scope.ts'

const closing = { ...nothing, closes: true, change: { kind: 'renew' } } as const

/** Small ones first. */
export const closeScopes: readonly Scope[] = [
  {
    ...closing,
    name: 'close',
    title: 'the leader begins the group while its bucket is closed',
    submissions: [submission(0, 'a')],
  },
  {
    ...closing,
    name: 'close-rival',
    title: 'two nodes begin the group while its bucket is closed',
    submissions: [submission(0, 'a'), submission(1, 'b')],
  },
  {
    ...closing,
    name: 'close-crash',
    title: 'the leader begins the group while its bucket is closed, and one crash',
    submissions: [submission(0, 'a')],
    crashes: 1,
  },
]
