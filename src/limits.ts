/** Limits of calls of the library, for programs that cut their work to them. */
import * as base from './base/limits.ts'
import * as cells from './cells/limits.ts'
import { bodyDepthMax } from './cells/body.ts'
import * as queues from './queues/limits.ts'
import * as txn from './txn/limits.ts'

export interface LibraryLimits {
  /** Of a cell's body, as JSON in UTF-8. */
  readonly cellBytesMax: number
  /** How deep a body nests. */
  readonly bodyDepthMax: number
  readonly columnNameCharsMax: number
  readonly datastoreNameCharsMax: number
  /** Items of `putMany`, `getMany` and `shardLogs`, and the bytes of the bodies of one `putMany`. */
  readonly batchItemsMax: number
  readonly batchBytesMax: number
  /** Cells or entries of one page. */
  readonly pageItemsMax: number
  /** Bytes of one answer: a page ends before it has more. */
  readonly answerBytesMax: number
  /** Milliseconds that a call may be given. */
  readonly callTimeoutMsMax: number
  /** Seconds that one poll of a log may wait. */
  readonly tailWaitSecondsMax: number
  /** Of a message's body, as JSON in UTF-8. */
  readonly messageBytesMax: number
  /** Messages that one transaction sends, and that one takes. */
  readonly sentMessagesMax: number
  readonly batchMessagesMax: number
  /** Milliseconds by which a message may be delayed. */
  readonly delayMsMax: number
}

export const limits: LibraryLimits = Object.freeze({
  cellBytesMax: base.cellBytesMax,
  bodyDepthMax,
  columnNameCharsMax: base.columnNameCharsMax,
  datastoreNameCharsMax: base.datastoreNameCharsMax,
  batchItemsMax: base.batchItemsMax,
  batchBytesMax: cells.batchBytesMax,
  pageItemsMax: base.pageItemsMax,
  answerBytesMax: txn.answerBytesMax,
  callTimeoutMsMax: txn.callTimeoutMsMax,
  tailWaitSecondsMax: base.tailWaitSecondsMax,
  messageBytesMax: queues.messageBytesMax,
  sentMessagesMax: queues.sentMessagesMax,
  batchMessagesMax: queues.batchMessagesMax,
  delayMsMax: queues.delayMsMax,
})
