/** Entity groups over the network: what transactions of an application stand on. */
import type { GroupId, Position } from '../base/ids.ts'
import { checkArgument, checkOptions, flag, text } from '../base/arguments.ts'
import { asPromise } from '../base/as-promise.ts'
import { StoreError } from '../base/errors.ts'
import { toStoreError } from '../base/problem.ts'
import type {
  IntentName,
  IntentOutcome,
  Outcome,
  Row,
  RowRange,
  Submission,
} from '../group/replica-port.ts'
import { pageRowsMax } from '../txn/limits.ts'
import type { GroupAnswer, GroupOperation, ReadGroup } from '../txn/group-operation.ts'
import type {
  FirstAsked,
  FirstRead,
  GroupPort,
  ReadFrom,
  RowPage,
  View,
} from '../group/group-port.ts'
import type { LockOptions, LockSource } from '../txn/locks.ts'
import { signalled, signalRules, type SignalOptions } from '../txn/signalled.ts'
import { notAnAnswer } from './call.ts'
import {
  checkAsked,
  checkGroup,
  checkIntent,
  checkKeys,
  checkLock,
  checkPrefix,
  checkRange,
  checkSubmission,
  checkView,
  fromOf,
} from './group-arguments.ts'
import type { SeenPositions } from './seen-positions.ts'

/** Sends an operation to one node after another, until there is an answer or the time is up. */
export type AskGroup = (
  operation: GroupOperation,
  timeoutMs: number,
  signal?: AbortSignal,
) => Promise<GroupAnswer>

/** Beyond the wait itself, for the answer. */
const lockAnswerMs = 1_000
/** Nodes asked for a lock, each named by the one before. */
const lockHopsMax = 3

type GroupRows = GroupAnswer & { readonly kind: 'read-group' }

export interface MoveOptions extends SignalOptions {
  /** Only to see whether the move would be refused: nothing moves. */
  readonly isTrial?: boolean
}

export interface GroupMove {
  /** The name of the replica set that had the group. */
  readonly from: string
  readonly to: string
  /** False: it was in that set already, or the call was a trial. */
  readonly hasMoved: boolean
}

const moveRules = { ...signalRules, isTrial: flag }

export class Groups implements GroupPort, LockSource {
  readonly #ask: AskGroup
  readonly #seen: SeenPositions
  /** Of what is to be done all the same when the calls of this are given up. */
  readonly #askAnyway: AskGroup
  /** Throws when the client is closed. */
  readonly checkOpen: () => void

  constructor(
    ask: AskGroup,
    seen: SeenPositions,
    checkOpen: () => void = () => undefined,
    askAnyway: AskGroup = ask,
  ) {
    this.#ask = ask
    this.#seen = seen
    this.#askAnyway = askAnyway
    this.checkOpen = checkOpen
  }

  until(signal: AbortSignal): Groups {
    const ask: AskGroup = (operation, ms, own = signal) => this.#ask(operation, ms, own)
    return new Groups(ask, this.#seen, this.checkOpen, this.#askAnyway)
  }

  async view(
    group: GroupId,
    from: ReadFrom,
    timeoutMs: number,
    atLeast: Position = 0,
  ): Promise<View> {
    checkGroup('groups.view', group)
    const place = fromOf('groups.view', from)
    return (await this.#begin(group, place, { keys: [] }, timeoutMs, atLeast)).view
  }

  begin(
    group: GroupId,
    from: ReadFrom,
    asked: FirstAsked,
    timeoutMs: number,
    atLeast: Position = 0,
  ): Promise<FirstRead> {
    return asPromise(() => {
      checkGroup('groups.begin', group)
      const place = fromOf('groups.begin', from)
      checkAsked('groups.begin', asked)
      return this.#begin(group, place, asked, timeoutMs, atLeast)
    })
  }

  #begin(
    group: GroupId,
    from: ReadFrom,
    asked: FirstAsked,
    timeoutMs: number,
    atLeast: Position,
  ): Promise<FirstRead> {
    const seen = this.#seen.of(group)
    const isSure = seen !== undefined || from.kind === 'current' || from.kind === 'at'
    // The client no longer knows what this session has seen: a current read sees all of it.
    const sure: ReadFrom = isSure ? from : { kind: 'current' }
    const least = Math.max(atLeast, seen ?? 0)
    const read = { kind: 'read-group', group, from: sure, atLeast: least, ...asked } as const
    return this.#read(read, timeoutMs)
  }

  async get(
    group: GroupId,
    view: View,
    keys: readonly Uint8Array[],
    timeoutMs: number,
  ): Promise<readonly (Row | undefined)[]> {
    checkGroup('groups.get', group)
    checkView('groups.get', view)
    checkKeys('groups.get', keys)
    this.checkOpen()
    const rows: (Row | undefined)[] = []
    while (rows.length < keys.length) {
      const some = keys.slice(rows.length, rows.length + pageRowsMax)
      const answer = await this.#read({ keys: some, ...toPlace(group, view) }, timeoutMs)
      rows.push(...answer.rows)
    }
    return rows
  }

  async scan(group: GroupId, view: View, range: RowRange, timeoutMs: number): Promise<RowPage> {
    checkGroup('groups.scan', group)
    checkView('groups.scan', view)
    checkRange('groups.scan', range)
    const { page } = await this.#read({ keys: [], range, ...toPlace(group, view) }, timeoutMs)
    return page ?? { rows: [], isWhole: true }
  }

  async commit(submission: Submission, timeoutMs: number): Promise<Outcome> {
    checkSubmission('groups.commit', submission)
    return this.#ask({ kind: 'commit-group', submission }, timeoutMs).then((answer) => {
      if (answer.kind === 'problem') throw toStoreError(answer.problem)
      if (answer.kind !== 'commit-group') return { kind: 'unknown' }
      const { outcome } = answer
      if (outcome.kind === 'committed') this.#seen.see(submission.group, outcome.position)
      return outcome
    })
  }

  /**
   * The outcome of an intent, as `error.detail.intent` names it, by a current read. To have a transaction
   * take effect once, send it again under its intent; this is for a caller that only wants to know.
   */
  async outcome(
    group: GroupId,
    intent: IntentName,
    timeoutMs: number,
    options: SignalOptions = {},
  ): Promise<IntentOutcome> {
    const call = 'groups.outcome'
    checkOptions(call, options, signalRules)
    checkGroup(call, group)
    checkIntent(call, intent)
    const { session, sequence, expiresAt } = intent
    if (session === undefined || sequence === undefined) {
      throw new StoreError('invalid', `${call}: an intent has session and sequence`)
    }
    const asked = { session, sequence, ...(expiresAt !== undefined && { expiresAt }) }
    const operation = { kind: 'outcome-group', group, intent: asked } as const
    const answer = await this.#answer(operation, timeoutMs, options)
    if (answer.kind === 'outcome-group') return answer.outcome
    throw toStoreError(notAnAnswer)
  }

  /**
   * Names of groups that begin so, a page behind `after`: all with a commit that was acknowledged before,
   * and maybe some that have nothing yet. Rejects with `unavailable` without a majority of a set.
   */
  async list(
    prefix: GroupId,
    after: GroupId | undefined,
    limit: number,
    timeoutMs: number,
    options: SignalOptions = {},
  ): Promise<readonly GroupId[]> {
    checkPrefix('groups.list', prefix)
    if (after !== undefined) checkGroup('groups.list', after)
    checkOptions('groups.list', options, signalRules)
    const from = after === undefined ? {} : { after }
    const operation = { kind: 'list-groups', group: prefix, limit, ...from } as const
    const answer = await this.#answer(operation, timeoutMs, options)
    if (answer.kind === 'list-groups') return answer.groups
    throw toStoreError(notAnAnswer)
  }

  /**
   * Moves the group of a root entity to the replica set of that name, with all that it has: its rows, their past and the outcomes that it
   * remembers. Writes wait meanwhile, and reads too. Resolves when a majority of the set has the group; repeated, the call goes on
   * where another one has ended. Rejects with `invalid` where there is no such set, or the group is not one of tables, and with
   * `unavailable` where the sets cannot do it now. `isTrial`: only to see whether it would be refused.
   */
  async move(
    group: GroupId,
    to: string,
    timeoutMs: number,
    options: MoveOptions = {},
  ): Promise<GroupMove> {
    const call = 'groups.move'
    checkGroup(call, group)
    checkArgument(call, 'the set', to, text)
    checkOptions(call, options, moveRules)
    const { isTrial = false, ...rest } = options
    // Of a call that is tried again the nodes would not know what the first try has moved.
    const from = await this.locate(group, timeoutMs, rest)
    const trial = isTrial ? ({ isTrial } as const) : {}
    const operation = { kind: 'move-group', group, to, ...trial } as const
    const answer = await this.#answer(operation, timeoutMs, rest)
    if (answer.kind !== 'move-group') throw toStoreError(notAnAnswer)
    return { from, to, hasMoved: !isTrial && from !== to }
  }

  /** The name of the replica set that has the group now, by a current read there. */
  async locate(group: GroupId, timeoutMs: number, options: SignalOptions = {}): Promise<string> {
    checkGroup('groups.locate', group)
    checkOptions('groups.locate', options, signalRules)
    const answer = await this.#answer({ kind: 'locate-group', group }, timeoutMs, options)
    if (answer.kind !== 'locate-group') throw toStoreError(notAnAnswer)
    return answer.set
  }

  /**
   * Runs `work` while this client holds the group's lock of this name, or without it: the lock is
   * advice, which spares those who would be in conflict a rerun, and not having it in `waitMs` is no
   * reason not to go on. Rejects with `invalid` for a name that no lock has.
   */
  async withLock<Value>(
    group: GroupId,
    lock: LockOptions,
    work: () => Promise<Value>,
  ): Promise<Value> {
    checkLock('groups.withLock', group, lock, work)
    const { name, holdMs, waitMs } = lock
    this.checkOpen()
    const token = await this.#lock(group, name, wholeMs(holdMs, 1), wholeMs(waitMs, 0))
    try {
      return await work()
    } finally {
      if (token !== undefined) this.#unlock(group, name, token)
    }
  }

  async #lock(
    group: GroupId,
    name: string,
    holdMs: number,
    waitMs: number,
  ): Promise<number | undefined> {
    const lock = { kind: 'lock-group', group, name, holdMs, waitMs } as const
    // The first node may name the leader; the leader's answer then counts.
    for (let hops = 0; hops < lockHopsMax; hops++) {
      const answer = await this.#ask(lock, waitMs + lockAnswerMs)
      if (answer.kind !== 'lock-group') return undefined
      if (answer.token !== undefined || answer.leader === undefined) return answer.token
    }
    return undefined
  }

  /** The caller does not wait for it: a lock that is not given back ends by itself. */
  #unlock(group: GroupId, name: string, token: number): void {
    void this.#askAnyway({ kind: 'unlock-group', group, name, token }, lockAnswerMs)
  }

  #answer(
    operation: GroupOperation,
    timeoutMs: number,
    { signal }: SignalOptions,
  ): Promise<GroupAnswer> {
    return signalled(signal, async () => {
      const answer = await this.#ask(operation, timeoutMs, signal)
      if (answer.kind === 'problem') throw toStoreError(answer.problem)
      return answer
    })
  }

  #read(operation: ReadGroup, timeoutMs: number): Promise<GroupRows> {
    return this.#ask(operation, timeoutMs).then((answer) => {
      if (answer.kind === 'problem') throw toStoreError(answer.problem)
      if (answer.kind !== 'read-group') throw toStoreError(notAnAnswer)
      this.#seen.see(operation.group, answer.view.position)
      return answer
    })
  }
}

/** A node takes no part of a millisecond. */
function wholeMs(ms: number, min: number): number {
  return Math.max(min, Math.ceil(ms))
}

/** A view again, maybe at another node. */
function toPlace(group: GroupId, view: View): Omit<ReadGroup, 'keys' | 'range'> {
  const { position, asOf } = view
  const from: ReadFrom =
    asOf === undefined ? { kind: 'inconsistent' } : { kind: 'at', timestamp: asOf }
  return { kind: 'read-group', group, from, atLeast: position }
}
