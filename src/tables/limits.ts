/** Limits of reading tables and of indexes. What a transaction may hold is in `../txn/limits.ts`. */
import { transactionBytesMax } from '../base/limits.ts'

/** Rows or entries in one page, when no limit is given. */
export const scanRowsDefault = 1000
/** And at most. */
export const scanRowsMax = 20_000
/** Entries that appear in one row as a virtual property. */
export const inlineEntriesMax = 10_000

/** Rows below another one that are deleted with it, in one transaction. */
export const cascadeRowsMax = 5_000
/** Where they are more, they are counted up to this. */
export const countedBelowMax = 100_000
/** Keys of each table that a refusal names. */
export const namedBelowMax = 3

/** Of the removal of expired rows. */
export const expiryBounds = {
  /** Rows of a group that are looked at together; those of them that have expired are one transaction. */
  rowsAtOnce: 200,
  /** Between two looks through a group. */
  sweepMs: 5_000,
  /** No timer is set for longer. */
  sleepMsMax: 86_400_000,
  /** Groups of which is remembered when they are to be looked through next. */
  groupsKnownMax: 100_000,
  callMs: 5_000,
} as const

/** Of the relay of global indexes. */
export const relayBounds = {
  /** Rows of one group's worklist looked at together. */
  changesLookedAtMax: 1_000,
  /** Changes in one transaction on a group of an index, unless one group alone brings more. */
  changesAtOnceMax: 2_000,
  /** Groups served at once at a node. */
  groupsAtOnceMax: 256,
  /** Groups of which it is remembered what is relayed and could not be taken off. */
  groupsLeftOnMax: 1_000,
  /** For one step; and for the read that others wait for who go to the same group. */
  callMs: 5_000,
  sourceMs: 2_000,
  rerunsMax: 10,
} as const

/** Bytes of changes in one transaction of the relay, unless one alone has more; there is room for what goes with them. */
export const relayBytesAtOnceMax: number = transactionBytesMax / 2
/** Bytes of one group's worklist looked at together, and the row that makes them more. */
export const relayPageBytesMax: number = transactionBytesMax

/** Entries of a global index in one page: each of its groups may be asked for as many. */
export const globalEntriesMax = 1_000
/** Groups that one read of a global index asks at a time. */
export const groupsReadAtOnceMax = 16
