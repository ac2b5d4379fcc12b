/** The readings by which leases are judged: this node's clocks, and the bounds on them. */
import type { Timestamp } from '../base/ids.ts'
import type { Limits } from '../base/limits.ts'

export interface ClockReading {
  /** The monotonic clock, milliseconds. */
  readonly now: number
  /** The wall clock, microseconds. */
  readonly wall: Timestamp
}

export type LeaseLimits = Pick<Limits, 'leaseMs' | 'clockDriftPpm' | 'leaseGroupsMax'>
