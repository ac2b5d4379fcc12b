/** How long programs go by what they know of indexes, and what a build or a drop does at once. */
import { clockDriftPpmMax } from '../base/limits.ts'
import { intentLifetimeMsMax } from '../txn/bounds.ts'

/** So long a program goes by a schema that it has read, before it looks again. */
export const schemaTrustMs = 10_000
/**
 * So long after an index was declared nothing that a program without it has begun takes effect: it has
 * looked again, and what it sent before has ended.
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
  /** Between two looks at an agenda, and two steps of a long wait. */
  lookMs: 50,
  waitStepMs: 1_000,
  /** What is wrong is looked at again so often, while changes are on their way. */
  looksMax: 100,
} as const
