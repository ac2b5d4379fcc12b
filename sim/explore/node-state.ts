/**
 * One node between two steps: its group's log, its disks, and the writes on their way to them. No
 * step changes it: each works on a copy. Time has no length here: each deadline is either set or not, and
 * whether it has come is for the search to say.
 */
import { assert, present } from '../../src/base/assert.ts'
import type { NodeId, Position } from '../../src/base/ids.ts'
import type { Effect, LogRecord } from '../../src/replication/effect.ts'
import {
  noDeadline,
  nextDeadline,
  restoreLog,
  type GroupLog,
  type LogHome,
} from '../../src/replication/log.ts'
import { emptyState } from '../../src/replication/state.ts'
import { ValidationWindow, type EntryWriteSets } from '../../src/replication/window.ts'
import { homeOf } from './bucket.ts'
import { newChange, takeUpEpoch, type ChangeState } from './change.ts'
import { canonicalText } from './canonical.ts'
import { written, type LogDisk } from './log-disk.ts'
import { newLeasePairs, type LeasePairs } from './lease-pairs.ts'
import type { RestoringTargets } from './lost-data.ts'
import type { TimerName } from './scope.ts'
import type { Setting } from './setting.ts'

/** Records given to the log and not durable yet. A note alone forces no write. */
export interface PendingWrite {
  readonly records: readonly LogRecord[]
  readonly isForced: boolean
  readonly after: readonly Effect[]
  /** The seal of the first epoch. */
  readonly isSeal?: boolean
}

/** A state record that the data store may hold. */
export interface AppliedState {
  readonly position: Position
  /** Absent before the first position. */
  readonly bytes: Uint8Array | undefined
}

/** The last ballot this node took up, in this incarnation. */
export interface BallotDraw {
  readonly position: Position
  /** Epoch and round, in one number. */
  readonly round: number
  readonly phase: string
}

export interface NodeState {
  readonly incarnation: number
  readonly log: GroupLog
  readonly windowFrom: Position
  /** The sets that the validation window is made of. */
  readonly windowSets: readonly EntryWriteSets[]
  readonly disk: LogDisk
  readonly pending: readonly PendingWrite[]
  /** The data store holds one of these: the first for sure, later ones as far as it got. */
  readonly states: readonly AppliedState[]
  readonly drawn: number
  /** Values proposed so far: it makes the clock's readings differ between them. */
  readonly proposed: number
  readonly lastDraw: BallotDraw | undefined
  readonly pairs: LeasePairs
  /** A node that is being restored: how far each peer's log was when it first answered. Absent: it is restored. */
  readonly restoring?: RestoringTargets | undefined
  readonly change: ChangeState
}

export function newNode(setting: Setting, at = 0, home?: LogHome): NodeState {
  const { group, limits, names } = setting
  const log = restoreLog(group, setting.set, emptyState(), new Map(), limits, home)
  const change = newChange(setting, present(names[at], 'explore: no such node'))
  takeUpEpoch(setting, log, change)
  log.home =
    homeOf(setting, present(names[at], 'explore: no such node'), { change, log }) ?? log.home
  return {
    incarnation: 1,
    windowFrom: 0,
    windowSets: [],
    disk: new Map(),
    pending: [],
    log,
    change,
    states: [{ position: 0, bytes: undefined }],
    drawn: 0,
    proposed: 0,
    lastDraw: undefined,
    pairs: newLeasePairs(setting, at),
  }
}

/** A copy that a step may change. Bytes and the replica set are shared: no step writes to them. */
export function copyLog(node: NodeState, setting: Setting): GroupLog {
  const { window: _, set, ...rest } = node.log
  const window = new ValidationWindow(node.windowFrom, setting.limits)
  for (const entry of node.windowSets) window.add(entry)
  return { ...structuredClone(rest), set, window }
}

const set = 1
const due = 0

/** The moment of every step: a deadline that is `due` has come, one that is `set` has not. */
export const nowMs = 0

export function setTimers(log: GroupLog): readonly TimerName[] {
  const names: TimerName[] = []
  if (log.proposal !== undefined && log.proposal.deadline !== noDeadline) {
    names.push(log.proposal.awaiting === undefined ? 'proposal' : 'holders')
  }
  if (log.readRound !== undefined && log.readRound.deadline !== noDeadline) names.push('read')
  if (log.catchUp !== undefined && log.catchUp.deadline !== noDeadline) names.push('catch-up')
  if (log.retryDeadline !== noDeadline) names.push('retry')
  if (log.sweepDeadline !== noDeadline) names.push('sweep')
  if (log.idleDeadline !== noDeadline) names.push('idle')
  return names
}

/** Lets one deadline come. */
export function expire(log: GroupLog, timer: TimerName): void {
  setDeadline(log, timer, due)
  if (timer === 'idle' && log.lease !== undefined) log.lease.usedMs = Number.NEGATIVE_INFINITY
}

function setDeadline(log: GroupLog, timer: TimerName, at: number): void {
  const { proposal, readRound, catchUp } = log
  const isProposal = timer === 'proposal' || timer === 'holders'
  if (isProposal && proposal !== undefined) proposal.deadline = at
  if (timer === 'read' && readRound !== undefined) readRound.deadline = at
  if (timer === 'catch-up' && catchUp !== undefined) catchUp.deadline = at
  if (timer === 'retry') log.retryDeadline = at
  if (timer === 'sweep') log.sweepDeadline = at
  if (timer === 'idle') log.idleDeadline = at
}

/** Takes out what only says how long something waits. */
export function forgetDurations(log: GroupLog): void {
  for (const timer of setTimers(log)) setDeadline(log, timer, set)
  // The number of tries decides about delays alone.
  if (log.proposal !== undefined) log.proposal.attempt = 0
  forgetUrges(log)
  log.wakes.length = 0
  const next = nextDeadline(log)
  assert(next === set || next === noDeadline, 'explore: a deadline of a kind unknown here')
}

/** Beyond the first, and a time of its own, nothing depends on them. */
function forgetUrges({ proposal, lease }: GroupLog): void {
  if (proposal?.awaiting !== undefined) {
    proposal.awaiting.retries = Math.min(proposal.awaiting.retries, 1)
  }
  if (lease !== undefined) lease.usedMs = nowMs
}

/** When no crash can come any more, what would survive one need not be told apart. */
export function withoutCrashes(node: NodeState): NodeState {
  const last = node.states.at(-1)
  const free = node.pending.findIndex((write) => write.after.length > 0 || write.isSeal)
  const count = free < 0 ? node.pending.length : free
  const records = node.pending.slice(0, count).flatMap((write) => write.records)
  return {
    ...node,
    states: last === undefined ? node.states : [last],
    disk: written(node.disk, records),
    pending: node.pending.slice(count),
  }
}

export function textOfNode(node: NodeState): string {
  const { log, ...rest } = node
  const { window: _window, set, group: _group, ...logRest } = log
  return canonicalText({ ...rest, log: { ...logRest, epoch: set.epoch } })
}

/** All that waits for the next write are messages to other nodes. */
export function isNextWriteFree({ pending }: NodeState, node: NodeId): boolean {
  const next = pending.find((write) => write.isForced)
  return next?.after.every((effect) => leaves(effect, node)) === true
}

function leaves(effect: Effect, node: NodeId): boolean {
  return effect.kind === 'send' || (effect.kind === 'send-accepted' && effect.to !== node)
}
