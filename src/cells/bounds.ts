/** Bounds of what cells are asked and answered; those users meet most are in `base/limits.ts`. */
import { assert } from '../base/assert.ts'
import { cellBytesMax, frameBytesMax } from '../base/limits.ts'
import { packedBodyBytesMax } from './body.ts'

/** Bodies of one answer, together; a page ends before, a batch's later items are refused. */
export const answerBytesMax: number = 4 * 1024 * 1024
/** Bodies of one batch of puts, together. */
export const batchBytesMax: number = 8 * 1024 * 1024
/** Items of a batch that are at work at once. */
export const batchConcurrencyMax = 256
/** A put that meets entries it has not seen is validated anew so often. */
export const putRerunsMax = 10
/** The first such rerun is at once; later ones wait, twice as long each time. */
export const putRerunDelayMs = 5
/** Shards that calls at one node wait for, together. */
export const watchedShardsMax = 100_000
/** A call may take so long at most. */
export const callTimeoutMsMax: number = 5 * 60 * 1000
/** An intent that has not taken effect so long after it was made never will. */
export const intentLifetimeMs: number = 10 * 60 * 1000
/** Intents that claim to live longer are refused: groups would have to remember them. */
export const intentLifetimeMsMax: number = 60 * 60 * 1000

assert(packedBodyBytesMax < answerBytesMax, 'limits: a cell does not fit an answer')
assert(
  answerBytesMax + packedBodyBytesMax < frameBytesMax,
  'limits: an answer does not fit a frame',
)
assert(batchBytesMax + cellBytesMax < frameBytesMax, 'limits: a batch does not fit a frame')
assert(callTimeoutMsMax < intentLifetimeMs, 'limits: an intent ends before its call')
