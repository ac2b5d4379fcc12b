/**
 * The scopes with a node that has no vote: it reads, and forwards what clients write there (RDR-1, RDR-2). It becomes a voter,
 * or was one. As much as a search of seconds allows; *reader-replaces* is searched as far as there is time.
 */
import { nothing, submission, type Scope } from './scope.ts'

const read = { ...nothing, hasReaders: true, isEachForItself: false } as const

/** Small ones first. */
export const readerScopes: readonly Scope[] = [
  {
    ...read,
    name: 'reader',
    title: 'a reader forwards a write, and reads while the leader writes',
    submissions: [submission(0, 'a'), submission(3, 'b')],
    reads: [3],
  },
  {
    ...read,
    name: 'reader-forward',
    title: 'a reader reads, and forwards a write that it may send again',
    submissions: [submission(3, 'b')],
    reads: [3],
    timeouts: 1,
    timers: ['catch-up', 'retry'],
  },
  {
    ...read,
    name: 'reader-twice',
    title: 'two reads at a reader, one of which may wait for what one voter alone has accepted',
    submissions: [submission(0, 'a')],
    reads: [3, 3],
  },
  {
    ...read,
    name: 'reader-crash',
    title: 'a write, a read at a reader, and one crash',
    submissions: [submission(0, 'a')],
    reads: [3],
    crashes: 1,
    timers: [],
  },
  {
    ...read,
    name: 'reader-promoted',
    title: 'a reader beside two voters reads, and becomes a voter while the leader writes',
    voters: 2,
    submissions: [submission(0, 'a')],
    reads: [2],
    change: { kind: 'add' },
    isEachForItself: true,
  },
  {
    ...read,
    name: 'reader-promoted-write',
    title: 'a reader beside two voters forwards a write, and becomes a voter',
    voters: 2,
    submissions: [submission(2, 'b')],
    change: { kind: 'add' },
  },
  {
    ...read,
    name: 'reader-demoted',
    title: 'a voter that forwards a write and reads becomes a reader',
    submissions: [submission(1, 'b')],
    reads: [1],
    change: { kind: 'remove', at: 1 },
  },
  {
    ...read,
    name: 'reader-demoted-leader',
    title: 'the leader becomes a reader while it writes and reads',
    submissions: [submission(0, 'a')],
    reads: [0],
    change: { kind: 'remove', at: 0 },
  },
  {
    ...read,
    name: 'reader-replaces',
    title: 'a reader and a voter change places while the leader writes',
    submissions: [submission(0, 'a')],
    change: { kind: 'replace', at: 2 },
    isEachForItself: true,
  },
]
