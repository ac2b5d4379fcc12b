/**
 * Carries out what clients ask of entity groups at this node, over its replica. Nothing is kept
 * between two requests of a transaction: each read names its timestamp, the commit all it rests on.
 */
import { unreachable } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import type { GroupId, Timestamp } from '../base/ids.ts'
import { keyBytesMax, listedGroupsMax } from '../base/limits.ts'
import { outcomeNow, captureOutcome, problem, type Problem } from '../base/problem.ts'
import type { Clock } from '../ports/clock.ts'
import type { Pace } from '../ports/pace.ts'
import {
  sizeInBytes,
  type LocalReplica,
  type BoundedStaleness,
  type ReplicaReadLevel,
  type Row,
  type Submission,
} from '../group/replica-port.ts'
import { answerBytesMax } from './limits.ts'
import {
  readGroup,
  type CommitGroup,
  type GroupAnswer,
  type GroupOperation,
  type LockGroup,
  type ReadGroup,
} from './group-operation.ts'
import { intentsProblem, timeoutProblem } from './intents.ts'
import type { ReadFrom, View } from '../group/group-port.ts'
import { checkNotPurged, LocalGroups } from './local-groups.ts'
import { AdvisoryLocks, lockHoldMsMax } from './locks.ts'
import { remainingMs } from '../time/moments.ts'

/** Rows that are read without a pause; more of them let others have a turn first. */
const rowsNowMax = 16
/** The cost of a row that is read, and of a page of a range, in units of `ports/slices.ts`. */
const rowWork = 2
const pageWork = 100

export interface GroupServicePorts {
  readonly replica: LocalReplica
  readonly clock: Clock
}

export class GroupService {
  readonly #ports: GroupServicePorts
  readonly #groups: LocalGroups
  readonly #locks: AdvisoryLocks
  #isStopped = false

  constructor(ports: GroupServicePorts) {
    this.#ports = ports
    this.#groups = new LocalGroups(ports.replica)
    this.#locks = new AdvisoryLocks(ports.clock)
  }

  /** Resolves with the answer; a failure is a problem in it. */
  async execute(operation: GroupOperation, timeoutMs: number, pace?: Pace): Promise<GroupAnswer> {
    const answered = await captureOutcome(() => this.#execute(operation, timeoutMs, pace))
    return answered.kind === 'ok' ? answered.value : answered
  }

  /**
   * The same of rows by their keys, when this node can answer at once and without another node; else
   * undefined.
   */
  answerNow(operation: GroupOperation): GroupAnswer | undefined {
    if (operation.kind !== 'read-group' || operation.range !== undefined) return undefined
    const { group, from, atLeast, keys } = operation
    const at = toReadPoint(from)
    if (at === undefined || keys.length > rowsNowMax) return undefined
    if (this.#isStopped || groupProblem(group) !== undefined) return undefined
    const { replica } = this.#ports
    const found = outcomeNow(() => {
      const read = replica.rowsNow(group, at, atLeast, keys)
      if (read !== undefined && typeof at === 'number') checkNotPurged(replica, group, at)
      return read
    })
    if (found.kind === 'problem') return found
    if (found.value === undefined) return undefined
    const { point, rows } = found.value
    const view = { position: point.position, asOf: point.timestamp }
    return { kind: 'read-group', view, rows: untilFull(rows) }
  }

  /** Takes nothing more. Operations at work come to their end, and every wait for a lock ends. */
  stop(): void {
    this.#isStopped = true
    this.#locks.stop()
  }

  async #execute(
    operation: GroupOperation,
    timeoutMs: number,
    pace: Pace | undefined,
  ): Promise<GroupAnswer> {
    if (this.#isStopped) throw new StoreError('closed', 'this node is stopping; ask another one')
    const refused = timeoutProblem(timeoutMs)
    if (refused !== undefined) return { kind: 'problem', problem: refused }
    const groupRefused = groupProblem(readGroup(operation))
    if (groupRefused !== undefined) return { kind: 'problem', problem: groupRefused }
    return this.#answer(operation, timeoutMs, pace)
  }

  async #answer(
    operation: GroupOperation,
    timeoutMs: number,
    pace: Pace | undefined,
  ): Promise<GroupAnswer> {
    switch (operation.kind) {
      case 'read-group':
        return this.#read(operation, timeoutMs, pace)
      case 'commit-group':
        return this.#commit(operation, timeoutMs)
      case 'outcome-group': {
        const { group, intent } = operation
        const outcome = await this.#ports.replica.outcome(group, intent, timeoutMs)
        return { kind: 'outcome-group', outcome }
      }
      case 'lock-group':
        return this.#lock(operation, timeoutMs, pace)
      case 'unlock-group': {
        const { group, name, token } = operation
        return { kind: 'unlock-group', wasHeld: this.#locks.release(group, name, token) }
      }
      case 'list-groups': {
        const { group, after, limit } = operation
        const most = Math.min(limit, listedGroupsMax)
        const groups = await this.#ports.replica.groups(group, after, most, timeoutMs)
        return { kind: 'list-groups', groups }
      }
      case 'pass-group':
        return this.#execute(operation.operation, timeoutMs, pace)
      case 'export-group':
      case 'move-group':
      case 'admit-group':
      case 'open-buckets':
      case 'locate-group':
        throw new StoreError('invalid', 'this program has one replica set: no group can move')
      default:
        return unreachable(operation)
    }
  }

  async #lock(
    operation: LockGroup,
    timeoutMs: number,
    pace: Pace | undefined,
  ): Promise<GroupAnswer> {
    const { group, name, holdMs, waitMs } = operation
    const leader = this.#ports.replica.leaderElsewhere(group)
    if (leader !== undefined) return { kind: 'lock-group', leader }
    const longestMs = Math.min(holdMs, lockHoldMsMax)
    const longestWaitMs = Math.min(waitMs, timeoutMs)
    const token = await this.#locks.acquire(group, name, longestMs, longestWaitMs, pace)
    // It came to be had in the turn in which its link broke.
    if (pace?.isGone === true && token !== undefined) this.#locks.release(group, name, token)
    return token === undefined ? { kind: 'lock-group' } : { kind: 'lock-group', token }
  }

  async #read(
    operation: ReadGroup,
    timeoutMs: number,
    pace: Pace | undefined,
  ): Promise<GroupAnswer> {
    const { group, from, atLeast, keys, range } = operation
    const view = await this.#groups.view(group, from, timeoutMs, atLeast)
    const rows = await this.#rowsAt(group, view, keys, pace)
    // Also after the rows: both are of one answer.
    const turn = range && pace?.spend(pageWork)
    if (turn !== undefined) await turn
    if (range === undefined) return { kind: 'read-group', view, rows }
    const page = await this.#groups.scan(group, view, range)
    pace?.take(page.rows.reduce((bytes, row) => bytes + sizeInBytes(row), 0))
    return { kind: 'read-group', view, rows, page }
  }

  /** Some keys at a time: no more is held than an answer has room for, and others have turns. */
  async #rowsAt(
    group: GroupId,
    view: View,
    keys: readonly Uint8Array[],
    pace: Pace | undefined,
  ): Promise<readonly (Row | undefined)[]> {
    const full = new FullRows(pace)
    for (let at = 0; at < keys.length; at += rowsNowMax) {
      if (at > 0) await (pace === undefined ? this.#pause() : pace.spend(rowsNowMax * rowWork))
      const some = await this.#groups.get(group, view, keys.slice(at, at + rowsNowMax))
      if (!full.add(some)) break
    }
    return full.rows
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => this.#ports.clock.defer(resolve))
  }

  async #commit(operation: CommitGroup, timeoutMs: number): Promise<GroupAnswer> {
    const { submission } = operation
    const { clock, replica } = this.#ports
    const deadlineMs = clock.monotonicMs() + timeoutMs
    const refused = intentProblem(submission, clock.wallMicros())
    if (refused !== undefined) return { kind: 'problem', problem: refused }
    const outcome = await replica.submit(submission, remainingMs(clock, deadlineMs))
    const leader = replica.leaderElsewhere(submission.group)
    if (leader === undefined) return { kind: 'commit-group', outcome }
    return { kind: 'commit-group', outcome, leader }
  }
}

/** Where rows that are read at once are of; undefined: of no moment. */
function toReadPoint(from: ReadFrom): ReplicaReadLevel | BoundedStaleness | Timestamp | undefined {
  switch (from.kind) {
    case 'bounded':
      return { maxStalenessMs: from.maxStalenessMs }
    case 'current':
      return 'current'
    case 'snapshot':
      return 'snapshot'
    case 'at':
      return from.timestamp
    case 'inconsistent':
      return undefined
    default:
      return unreachable(from)
  }
}

/** Whole rows up to the bound of an answer, and at least one. */
class FullRows {
  readonly rows: (Row | undefined)[] = []
  readonly #pace: Pace | undefined
  #bytes = 0

  constructor(pace?: Pace) {
    this.#pace = pace
  }

  /** False: no room was left for all of them. */
  add(rows: readonly (Row | undefined)[]): boolean {
    for (const row of rows) {
      if (row !== undefined) this.#bytes += sizeInBytes(row)
      if (this.#bytes > answerBytesMax && this.rows.length > 0) return false
      if (row !== undefined) this.#pace?.take(sizeInBytes(row))
      this.rows.push(row)
    }
    return true
  }
}

function untilFull(rows: readonly (Row | undefined)[]): readonly (Row | undefined)[] {
  const full = new FullRows()
  full.add(rows)
  return full.rows
}

function groupProblem(group: GroupId): Problem | undefined {
  if (group.length >= 1 && group.length <= keyBytesMax) return undefined
  const detail = { limit: 'keyBytesMax', limitValue: keyBytesMax, actual: group.length }
  return problem('invalid', `a group's name is from 1 to ${keyBytesMax} bytes`, detail)
}

function intentProblem({ intent }: Submission, wallMicros: number): Problem | undefined {
  const { session, sequence, floor, expiresAt } = intent
  const intents = { session, sequences: [sequence], floor, expiresAt }
  return intentsProblem(intents, 1, wallMicros)
}
