/** Limits of triggers; `TriggerLimits` are options, since tests and the simulator want smaller ones. */
import { assert } from '../base/assert.ts'

/** Triggers of one service. */
export const triggersMax = 32
/** Workers of one service at a time. */
export const workersMax = 1_000
export const nameCharsMax = 64
/** The characters of a failed handler's error that are kept with the cell. */
export const errorCharsMax = 500
/** Marked cells that one listing gives, and cells that are skipped at once. */
export const markedPageMax = 1_000

export const attemptsDefault = 8
export const retryMsDefault = 1_000
export const retryMaxMsDefault = 60_000
export const handlerMsDefault = 60_000
export const handlerMsMax = 3_600_000
export const marksMaxDefault = 100

export interface TriggerLimits {
  /** Between two heartbeats of a worker. */
  readonly heartbeatMs: number
  /** A worker whose heartbeat was not seen to change for this long is taken for dead. */
  readonly leaseMs: number
  /** Handlers at work at once in a process, of one trigger. */
  readonly handlersMax: number
  /** Cells of one shard in an answer, and those that wait for their turn before the worker asks for more. */
  readonly pageCells: number
  /** Answers whose cells wait for their turn: each may be of 4 MiB. */
  readonly answersMax: number
  /**
   * The number of parts into which the shards are divided, each followed by a call of its own, at a node of
   * its own.
   */
  readonly tails: number
  /** Tail calls under way of one part, each of other shards; one, as long as no shard is behind. */
  readonly pollsMax: number
  /** How long a tail call waits for a cell, when it is the only one. */
  readonly waitMs: number
  /** And how long another one does: its shards join the others after that. */
  readonly shortWaitMs: number
  /** Cells handled, or passed over for their column, whose offset is not saved yet. */
  readonly unsavedMax: number
  /** How long offsets are gathered before one is saved; a crash repeats what was handled in it. */
  readonly saveMs: number
  /** The longest time of one try to read or change an offset, or the service's group. */
  readonly callMs: number
  /** Between two tries of what must come about. */
  readonly pauseMs: number
  /** Offsets read at once, when shards are given. */
  readonly opensMax: number
}

export const defaultTriggerLimits: TriggerLimits = {
  heartbeatMs: 1_000,
  leaseMs: 5_000,
  handlersMax: 64,
  pageCells: 100,
  answersMax: 16,
  tails: 3,
  pollsMax: 4,
  waitMs: 10_000,
  shortWaitMs: 300,
  unsavedMax: 1_000,
  saveMs: 0,
  callMs: 5_000,
  pauseMs: 200,
  opensMax: 64,
}

/** Stops when the bounds contradict one another. */
export function checkTriggerLimits(limits: TriggerLimits): void {
  const { heartbeatMs, leaseMs } = limits
  assert(heartbeatMs * 3 <= leaseMs, 'triggers: a worker is taken for dead too soon')
  const counts = [
    limits.handlersMax,
    limits.pageCells,
    limits.answersMax,
    limits.pollsMax,
    limits.tails,
  ]
  assert(
    [...counts, limits.unsavedMax, limits.opensMax].every((count) => count >= 1),
    'triggers: a bound leaves no room',
  )
}

checkTriggerLimits(defaultTriggerLimits)
