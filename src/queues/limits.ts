/** Limits and delays of queues. Options of delivery and of handlers may be smaller. */
import { assert } from '../base/assert.ts'
import { transactionBytesMax } from '../base/limits.ts'
import { worklistBounds, type WorklistBounds } from '../worklist/worklist-worker.ts'

/** Letters, digits and `_ . -`. */
export const queueNameCharsMax = 128
export const messageBytesMax: number = 256 * 1024
/** Messages that one transaction sends. */
export const sentMessagesMax = 5_000
/** From the commit to when a message may be handled. */
export const delayMsMax: number = 366 * 24 * 60 * 60 * 1000
/** The longest wait between two attempts of a message; also when that falls due is written down. */
export const retryMsMax: number = delayMsMax
/** Messages that one transaction takes, and their bytes; one alone may be larger. */
export const batchMessagesMax = 1_000
export const batchBytesMax: number = 1024 * 1024
/** Messages looked at for one batch: those behind a failing one of the same sender are passed over. */
export const lookedAtMax = 1_000
/** The length of the part of an error that is kept, in characters. */
export const errorCharsMax = 1_000
/** Dead letters in one page, or redriven by one transaction. */
export const deadLettersMax = 1_000

/** How a node delivers. */
export interface DeliveryBounds {
  readonly worklist: WorklistBounds
  /** Rows of an outbox read at once. */
  readonly pageRows: number
  /** Receivers of one page that are served side by side. */
  readonly receiversAtOnce: number
  /** Messages received by one transaction, and their bytes; one alone may be larger. */
  readonly receivedMax: number
  readonly receivedBytesMax: number
  /** For each transaction of a delivery. */
  readonly timeoutMs: number
}

export const deliveryBounds: DeliveryBounds = {
  worklist: worklistBounds,
  pageRows: 1_000,
  receiversAtOnce: 128,
  receivedMax: 1_000,
  receivedBytesMax: 1024 * 1024,
  timeoutMs: 10_000,
}

/** How messages of a queue are handled; each has a default. */
export interface ConsumeOptions {
  /** Messages in one transaction at most. */
  readonly batch?: number
  /** Groups handled at once. */
  readonly concurrency?: number
  /** A message is dead once its handler has failed this many times. */
  readonly attemptsMax?: number
  /** The wait after a failure, doubled by each further one up to the most; `retryMsMax` at most. */
  readonly retryMs?: number
  readonly retryMaxMs?: number
  /** A transaction that takes longer has failed. */
  readonly timeoutMs?: number
}

export type HandleBounds = Required<ConsumeOptions>

export const consumeDefaults: HandleBounds = {
  batch: 20,
  concurrency: 32,
  attemptsMax: 10,
  retryMs: 500,
  retryMaxMs: 60_000,
  timeoutMs: 10_000,
}

assert(messageBytesMax <= batchBytesMax, 'limits: a message does not fit a batch')
assert(
  2 * batchBytesMax + messageBytesMax < transactionBytesMax,
  'limits: a batch of messages does not fit a transaction',
)
