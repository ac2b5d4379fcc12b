/** Limits of reading tables and of indexes. What a transaction may hold is in `../txn/limits.ts`. */
import { clockDriftPpmMax, transactionBytesMax } from '../base/limits.ts'
import { intentLifetimeMsMax } from '../txn/limits.ts'

/** Rows or entries in one page, when no limit is given. */
export const scanRowsDefault = 1000
/** And at most. */
export const scanRowsMax = 20_000
/** Entries that appear in one row as a virtual property. */
export const inlineEntriesMax = 10_000

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

/** How long a program goes by a schema that it has read, before it looks again. */
export const schemaTrustMs = 10_000
/**
 * Once this has passed since an index was declared, no call takes effect that a program without it
 * began. The program has looked again, and its earlier calls have ended.
 */
export const schemaGraceMs: number =
  schemaTrustMs * (1 + clockDriftPpmMax / 1_000_000) + intentLifetimeMsMax

/** Of building and comparing global indexes. */
export const upkeepBounds = {
  groupsAtOnceMax: 16,
  /** Rows whose entries one transaction puts on a worklist, if it can hold these; each may have many. */
  rowsAtOnceMax: 50,
  changesAtOnceMax: 1_000,
  /** Of one row that has more entries than a transaction holds. */
  entriesAtOnceMax: 1_000,
  /** Between two looks at a worklist, and two steps of a long wait. */
  lookMs: 50,
  waitStepMs: 1_000,
  /** How many times the check looks again at a fault, while changes are on their way. */
  looksMax: 100,
} as const
