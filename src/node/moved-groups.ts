/**
 * Groups that have left a replica set: this node passes requests about one on, takes one up that has come to its own set, and
 * moves one (`../placement/SPEC.md`).
 *
 * MOVE-12  A request is passed on with the position of the set's last entry. A node of the next set has the group's state of there, or
 *          a later one, before it carries the request out. So a request goes to no set twice for one move.
 */
import { assert } from '../base/assert.ts'
import type { GroupId, NodeId, Position } from '../base/ids.ts'
import { isRootGroup } from '../base/placed-group.ts'
import { problem, toStoreError, type Problem } from '../base/problem.ts'
import { StoreError } from '../base/errors.ts'
import { shardOfGroup } from '../cells/cell-table.ts'
import { notAnAnswer } from '../client/call.ts'
import type { Relay } from '../client/relay.ts'
import type { GroupPort } from '../group/group-port.ts'
import type { Worklist } from '../group/replica-port.ts'
import { encodeMove, movedKey, movedNoteKey, movedTopic } from '../group/moved-row.ts'
import type { AfterRow, MovedPage, MovingPort } from '../group/moving-port.ts'
import { setGroupOf } from '../members/set-group.ts'
import type { SharesPort } from '../members/share-requests.ts'
import type { Placement } from '../placement/placement.ts'
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import { pause, remainingOrTimeout, untilDeadline } from '../time/moments.ts'
import {
  readGroup,
  type AdmitGroup,
  type ExportGroup,
  type GroupAnswer,
  type GroupOperation,
  type LocateGroup,
  type MoveGroup,
  type OpenBuckets,
  type PassGroup,
} from '../txn/group-operation.ts'
import type { MovedCounts } from './moved-figures.ts'
import { runTransaction, type TransactionOptions } from '../txn/run.ts'
import type { IntentSource } from '../txn/session.ts'

export interface MovedGroupsParts {
  readonly placement: Placement
  /** The number of this node's set. */
  readonly own: number
  readonly moving: MovingPort
  readonly shares: Pick<SharesPort, 'receive' | 'checkVersion'>
  /** Links to the nodes of another set. */
  relay(set: number): Relay
  /** All groups of the cluster. */
  groups(): GroupPort
  /** A current read at this node, which takes up all that a majority of its set has of the group. */
  read(group: GroupId, timeoutMs: number): Promise<unknown>
  readonly worklist: Worklist
  readonly clock: Clock
  readonly random: Random
  readonly intents: IntentSource
}

/** The place where a group's log goes on. */
interface Moved {
  readonly set: string
  readonly position: Position
  /** The set began none of the group, and has given its bucket away in that term. */
  readonly term?: number
}

/** The bytes of a page of a group, about. */
const pageBytesMax = 1024 * 1024
/** How long the other set has for one of them. */
const pageTimeoutMs = 10_000
/** Groups that are looked at together to be cleared, and how long the next set has for its answer about one. */
const listedMax = 100
const clearTimeoutMs = 5_000
/** Between two looks whether a bucket has come. */
const bucketLookMs = 50

export class MovedGroups {
  readonly #parts: MovedGroupsParts
  readonly #coming = new Map<GroupId, Promise<void>>()
  readonly #counts = { left: 0, taken: 0, cleared: 0, passed: 0 }

  constructor(parts: MovedGroupsParts) {
    this.#parts = parts
  }

  get counts(): MovedCounts {
    return { ...this.#counts }
  }

  /** Where the answer of this node's replica says that the group has gone; undefined: it says that of no group. */
  find(operation: GroupOperation, answer: GroupAnswer): Moved | undefined {
    if (answer.kind === 'commit-group') {
      const { outcome } = answer
      if (outcome.kind !== 'moved') return undefined
      // Another node of the set may know of it before this one does.
      if (outcome.position === 0) return this.here(readGroup(operation)) ?? { ...outcome, term: 0 }
      return outcome
    }
    if (answer.kind !== 'problem' || answer.problem.code !== 'unavailable') return undefined
    return this.here(readGroup(operation))
  }

  /** Where the group has gone, as far as this node knows. */
  here(group: GroupId): Moved | undefined {
    const { moving } = this.#parts
    const set = moving.movedTo(group)
    if (set !== undefined) return { set, position: moving.position(group) }
    const given = moving.givenTo(group)
    return given && { ...given, position: 0 }
  }

  /** The answer of the set that has the group now. */
  pass(
    operation: PassGroup['operation'],
    { set, position, term }: Moved,
    timeoutMs: number,
  ): Promise<GroupAnswer> {
    const number = this.#numberOf(set)
    if (number === undefined || number === this.#parts.own) {
      return Promise.resolve({ kind: 'problem', problem: gone(set) })
    }
    this.#counts.passed += 1
    const passed = { kind: 'pass-group', from: this.#ownName, position, operation } as const
    const of = term === undefined ? passed : { ...passed, term }
    return this.#parts.relay(number).groups.execute(of, timeoutMs)
  }

  /** Resolves when this node has the group as it was when it left that set. Rejects where it does not get it in time. */
  async receive({ from, position, term, operation }: PassGroup, deadlineMs: number): Promise<void> {
    const { moving } = this.#parts
    const group = readGroup(operation)
    if (term !== undefined) return this.#awaitBucket(group, term, deadlineMs)
    if (moving.position(group) >= position) return
    await untilDeadline(this.#parts.clock, this.#ensureComing(group, from), deadlineMs)
    if (moving.position(group) < position) throw notHereYet(group, from)
  }

  /** Resolves when this set has the bucket: the other set has closed it, and its last groups are on their way. */
  async #awaitBucket(group: GroupId, term: number, deadlineMs: number): Promise<void> {
    const { moving, clock, placement, own, read } = this.#parts
    if (moving.hasTerm(group, term)) return
    // This node may be behind its set.
    const timeoutMs = remainingOrTimeout(clock, deadlineMs)
    await read(setGroupOf(placement, own), timeoutMs).catch(passStoreError)
    while (!moving.hasTerm(group, term)) {
      if (clock.monotonicMs() >= deadlineMs) throw bucketNotHere(group)
      await pause({ clock }, bucketLookMs)
    }
  }

  /** Buckets that another set has given to this one: groups begin in them here from now on. */
  async openBuckets({ from, term, buckets }: OpenBuckets): Promise<GroupAnswer> {
    const set = this.#numberOf(from)
    if (set === undefined || set === this.#parts.own)
      return { kind: 'problem', problem: gone(from) }
    await this.#parts.shares.receive({ set: from, buckets }, term)
    return { kind: 'open-buckets' }
  }

  /** It comes as long as pages come: a large group takes longer than the request that began it has. */
  #ensureComing(group: GroupId, from: string): Promise<void> {
    const known = this.#coming.get(group)
    if (known !== undefined) return known
    const coming = this.#take(group, from).finally(() => this.#coming.delete(group))
    // Those that wait for it may have given up.
    coming.catch(() => undefined)
    this.#coming.set(group, coming)
    return coming
  }

  async #take(group: GroupId, from: string): Promise<void> {
    const set = this.#numberOf(from)
    if (set === undefined || set === this.#parts.own) throw toStoreError(gone(from))
    const pages = this.#pages(group, this.#parts.relay(set))
    try {
      if (await this.#parts.moving.take(group, pages)) this.#counts.taken += 1
    } catch (error) {
      if (!(error instanceof StoreError) || error.code !== 'not-found') throw error
      // A majority of this set has it, and a read finds that out.
      await this.#parts.read(group, pageTimeoutMs)
    }
  }

  async *#pages(group: GroupId, relay: Relay): AsyncGenerator<MovedPage> {
    for (let after: AfterRow | undefined; ;) {
      const operation = { kind: 'export-group', group, ...(after && { after }) } as const
      const answer = await relay.groups.execute(operation, pageTimeoutMs)
      if (answer.kind === 'problem') throw toStoreError(answer.problem)
      if (answer.kind !== 'export-group') throw toStoreError(notAnAnswer)
      yield answer.page
      if (answer.page.end !== undefined) return
      const last = answer.page.rows.at(-1)
      // Neither rows nor an end.
      if (last === undefined) throw toStoreError(notAnAnswer)
      after = { subspace: last.subspace, key: last.key }
    }
  }

  /** A page of a group that has left this set. */
  async export({ group, after }: ExportGroup, timeoutMs: number): Promise<GroupAnswer> {
    const { moving, read } = this.#parts
    if (moving.movedTo(group) === undefined) {
      // This node may be behind its set: all that counts is what the read takes up. The read is of this set alone: one of the next
      // set would wait there for the very pages of this request.
      await read(group, timeoutMs).catch(passStoreError)
    }
    const page = await moving.page(group, after, pageBytesMax)
    if (page === 'cleared') return { kind: 'problem', problem: cleared(group) }
    if (page !== undefined) return { kind: 'export-group', page }
    const message = 'the group has not left this set, as far as this node knows; try again'
    return { kind: 'problem', problem: problem('unavailable', message, { group }) }
  }

  /** This node's set; rejects where the group has left it. */
  async locate({ group }: LocateGroup, timeoutMs: number): Promise<GroupAnswer> {
    await this.#parts.read(group, timeoutMs)
    return { kind: 'locate-group', set: this.#ownName }
  }

  /** Whether this node's set takes up a group that is about to leave the other one. */
  async admit({ group, from }: AdmitGroup, timeoutMs: number): Promise<GroupAnswer> {
    const { placement, own, moving } = this.#parts
    const set = this.#numberOf(from)
    if (set === undefined || set === own) return { kind: 'problem', problem: gone(from) }
    const old = moving.findOldNode()
    if (old !== undefined) return { kind: 'problem', problem: tooOld(old) }
    // The mover of buckets names this set's own group: buckets need a later version than a group does.
    if (group === setGroupOf(placement, own)) this.#parts.shares.checkVersion()
    try {
      // A set without a majority would keep the group from everybody.
      await this.#parts.read(setGroupOf(placement, own), timeoutMs)
    } catch (error) {
      if (!(error instanceof StoreError) || error.code !== 'unavailable') throw error
      return { kind: 'problem', problem: noMajority(this.#ownName) }
    }
    return { kind: 'admit-group' }
  }

  /** Moves a group that is in this node's set; ends the move of one that has just come. */
  async move({ group, to, isTrial }: MoveGroup, timeoutMs: number): Promise<GroupAnswer> {
    const refusal = this.#refusalOf(group, to)
    if (refusal !== undefined) return { kind: 'problem', problem: problem('invalid', refusal) }
    const isElsewhere = to !== this.#ownName
    if (isElsewhere) {
      const no = await this.#askTarget(group, to, timeoutMs)
      if (no !== undefined) return { kind: 'problem', problem: no }
    }
    if (isTrial === true) return { kind: 'move-group' }
    await this.#leave(group, isElsewhere ? to : undefined, timeoutMs)
    return { kind: 'move-group' }
  }

  /**
   * Has a group of this set leave for a set that takes it up. Resolves when a majority there has it. Rejects with a StoreError where that
   * is not so in time; the move goes on by itself then, if it has begun.
   */
  leave(group: GroupId, to: string, timeoutMs: number): Promise<void> {
    return this.#leave(group, to, timeoutMs)
  }

  /** `to`: absent where it has just come, and its move is to be ended. */
  async #leave(group: GroupId, to: string | undefined, timeoutMs: number): Promise<void> {
    const { groups, clock, random, intents } = this.#parts
    const deadlineMs = clock.monotonicMs() + timeoutMs
    const options = (): TransactionOptions => {
      return { clock, random, intents, timeoutMs: remainingOrTimeout(clock, deadlineMs) }
    }
    if (to !== undefined) {
      await runTransaction(groups(), group, options(), async (transaction) => {
        // Of two moves at once, the second one finds that the group has left.
        await transaction.get(movedKey)
        transaction.put(movedKey, encodeMove(to))
        transaction.put(movedNoteKey, new Uint8Array())
      })
      this.#counts.left += 1
    }
    await this.#endMove(group, options())
  }

  /** An entry of the next set, if it has none yet: a majority there has the group then. */
  async #endMove(group: GroupId, options: TransactionOptions): Promise<void> {
    await runTransaction(this.#parts.groups(), group, options, async (transaction) => {
      if ((await transaction.get(movedNoteKey)) !== undefined) transaction.delete(movedNoteKey)
    })
  }

  /** Why the group cannot go there now. */
  async #askTarget(group: GroupId, to: string, timeoutMs: number): Promise<Problem | undefined> {
    const old = this.#parts.moving.findOldNode()
    if (old !== undefined) return tooOld(old)
    const target = this.#numberOf(to)
    // A node that has started hears of the sets that have come later in a moment.
    if (target === undefined) return gone(to)
    assert(target !== this.#parts.own, 'MOVE-12: a group leaves for its own set')
    const operation = { kind: 'admit-group', group, from: this.#ownName } as const
    const answer = await this.#parts.relay(target).groups.execute(operation, timeoutMs)
    if (answer.kind === 'problem') return answer.problem
    return answer.kind === 'admit-group' ? undefined : notAnAnswer
  }

  #refusalOf(group: GroupId, to: string): string | undefined {
    if (!isRootGroup(group)) return 'only groups of tables can be moved'
    if (shardOfGroup(group) !== undefined) return 'a shard of a datastore stays in its set'
    if (this.#numberOf(to) !== undefined) return undefined
    const names = this.#parts.placement.sites.map(({ name }) => name)
    return `no replica set has the name "${to}"; there are ${names.join(', ')}`
  }

  /** Deletes the rows of groups that have left this set, where the next set has them. `isOver`: no further group is begun. */
  async clear(isOver: () => boolean): Promise<void> {
    const { worklist } = this.#parts
    for (let after: GroupId | undefined; ;) {
      const listed = await worklist.list(movedTopic, after, listedMax)
      for (const { group, position } of listed) {
        if (isOver()) return
        const moved = this.here(group)
        if (moved === undefined) continue
        // A group that cannot be cleared now keeps no other one from it.
        const topics = await this.#clearOne(group, moved).catch(passStoreError)
        for (const topic of topics ?? []) worklist.unlist(topic, group, position)
      }
      after = listed.at(-1)?.group
      if (after === undefined || listed.length < listedMax) return
    }
  }

  async #clearOne(group: GroupId, moved: Moved): Promise<readonly string[] | undefined> {
    if (!(await this.#isTakenUp(group, moved))) return undefined
    const topics = await this.#parts.moving.clear(group, moved.position)
    if (topics !== undefined) this.#counts.cleared += 1
    return topics
  }

  /** Whether a majority of the next set has a group that has left this one. */
  async isThere(group: GroupId, timeoutMs: number): Promise<boolean> {
    const moved = this.here(group)
    return moved !== undefined && (await this.#hasEntry(group, moved, timeoutMs)) === true
  }

  async #isTakenUp(group: GroupId, moved: Moved): Promise<boolean> {
    const has = await this.#hasEntry(group, moved, clearTimeoutMs)
    if (has !== false) return has === true
    // The mover has ended, and no client has written since. The next look finds the entry.
    const { clock, random, intents } = this.#parts
    await this.#endMove(group, { clock, random, intents, timeoutMs: clearTimeoutMs })
    return false
  }

  /**
   * Whether a majority of the next set has chosen an entry behind the last one of this set, so that each of its nodes has what came before.
   * Undefined: it does not say.
   */
  async #hasEntry(group: GroupId, moved: Moved, timeoutMs: number): Promise<boolean | undefined> {
    const from = { kind: 'current' } as const
    const operation = { kind: 'read-group', group, from, atLeast: 0, keys: [] } as const
    const answer = await this.pass(operation, moved, timeoutMs)
    return answer.kind === 'read-group' ? answer.view.position > moved.position : undefined
  }

  get #ownName(): string {
    const { placement, own } = this.#parts
    return placement.siteOf(own).name
  }

  #numberOf(set: string): number | undefined {
    const number = this.#parts.placement.sites.findIndex(({ name }) => name === set)
    return number < 0 ? undefined : number
  }
}

function passStoreError(error: unknown): undefined {
  if (!(error instanceof StoreError)) throw error
}

function gone(set: string): Problem {
  return problem(
    'unavailable',
    `the group is in replica set ${set}, which this node does not know as another one`,
  )
}

function tooOld(node: NodeId): Problem {
  const text = `${node} runs a build that knows no groups that move: upgrade it first`
  return problem('unavailable', text)
}

function noMajority(set: string): Problem {
  const text = `no majority of replica set ${set} answers: nothing was moved there; try again when its nodes are up`
  return problem('unavailable', text)
}

/** All nodes of the next set that lack the group get it from one another: a majority of them has it. */
function cleared(group: GroupId): Problem {
  const message =
    'the group has left this set, and its rows are deleted here; the next set has them'
  return problem('not-found', message, { group })
}

function bucketNotHere(group: GroupId): StoreError {
  const message =
    "the group's bucket is on its way to this replica set, and is not open here yet; try again"
  return new StoreError('unavailable', message, { group })
}

function notHereYet(group: GroupId, from: string): StoreError {
  const message = `this node has not taken the group up from replica set ${from} yet; try again`
  return new StoreError('unavailable', message, { group })
}
