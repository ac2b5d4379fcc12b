/** How long programs go by what they know of indexes, and what a build or a drop does at once. */
import { clockDriftPpmMax } from '../base/limits.ts'
import { intentLifetimeMsMax } from '../txn/limits.ts'

/** For this time a program goes by a schema that it has read, before it looks again. */
export const schemaTrustMs = 10_000
/**
 * The time after which no transaction of a program that ignores a known index takes effect: the program
 * has looked at the schema again, and its earlier transactions have ended.
 */
export const schemaGraceMs: number =
  schemaTrustMs * (1 + clockDriftPpmMax / 1_000_000) + intentLifetimeMsMax

/** Of building, comparing and clearing indexes. */
export const upkeepBounds = {
  groupsAtOnceMax: 16,
  /** Rows whose entries one transaction writes, if it can hold these; each may have many. */
  rowsAtOnceMax: 50,
  changesAtOnceMax: 1_000,
  /** Of one row that has more entries than a transaction holds. */
  entriesAtOnceMax: 1_000,
  /** Between two looks at a worklist, and two steps of a long wait. */
  lookMs: 50,
  waitStepMs: 1_000,
  /** Looks at an entry that seems wrong, while changes of it are on their way. */
  looksMax: 100,
} as const
