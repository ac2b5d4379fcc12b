/** The bounds of a client. */
import { schemaTrustMs } from '../indexes/limits.ts'
import type { QueueLimits } from './call-queue.ts'
import type { RetryLimits } from './retry-budget.ts'
import type { WindowLimits } from './window.ts'

export interface ClientLimits extends RetryLimits, WindowLimits, QueueLimits {
  /** A call that names no time-out of its own ends after this. */
  readonly timeoutMs: number
  /** How long the client waits for one node before it asks another; longer after every third try. */
  readonly tryTimeoutMs: number
  /** How many tries in a row without an answer open a node's breaker: the client then asks other nodes. */
  readonly failuresMax: number
  /** How long it stays open at first, then twice as long after each probe in vain, up to the maximum. */
  readonly avoidMs: number
  readonly avoidMaxMs: number
  /** Before the second retry; doubled at each further one up to the maximum, half of it by chance. */
  readonly backoffMs: number
  readonly backoffMaxMs: number
  /** Calls under way. */
  readonly callsMax: number
  /** Bodies of the puts under way. */
  readonly putBytesMax: number
  /** How long a client goes by a schema that it opened: it looks at it again before a later write. */
  readonly schemaTrustMs: number
}

/**
 * Calls that one client of an application has under way, those included that wait in it for room at a node: as
 * many as programs begin at once. They wait for three quarters of their time at most; nodes have no more than
 * `windowMax` of them each.
 */
export const applicationCallsMax = 65_536

export const defaultClientLimits: ClientLimits = {
  timeoutMs: 10_000,
  tryTimeoutMs: 2_000,
  failuresMax: 1,
  avoidMs: 2_000,
  avoidMaxMs: 16_000,
  backoffMs: 20,
  backoffMaxMs: 1_000,
  callsMax: 4_096,
  putBytesMax: 64 * 1024 * 1024,
  schemaTrustMs,
  retriesPerAnswer: 0.2,
  retriesMax: 1_024,
  retriesFree: 16,
  freeEveryMs: 10_000,
  windowStart: 64,
  windowMax: 4_096,
  standingMs: 500,
  fewStandingMs: 1_000,
  fewMax: 8,
  burstMs: 500,
  loadMs: 2_000,
}
