/** Bounds of calls and of intents, whatever is called; those users meet most are in `base/limits.ts`. */
import { assert } from '../base/assert.ts'

/** Contents of one answer, together; a page ends before, a batch's later items are refused. */
export const answerBytesMax: number = 4 * 1024 * 1024
/** A call may take so long at most. */
export const callTimeoutMsMax: number = 5 * 60 * 1000
/** An intent that has not taken effect so long after it was made never will. */
export const intentLifetimeMs: number = 10 * 60 * 1000
/** Intents that claim to live longer are refused: groups would have to remember them. */
export const intentLifetimeMsMax: number = 60 * 60 * 1000

assert(callTimeoutMsMax < intentLifetimeMs, 'limits: an intent ends before its call')
