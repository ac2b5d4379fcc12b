/**
 * A node's part in the present epoch of its replica set, in memory and in its log, and so the part of each of its groups: a
 * group that is not in memory gets its part as it is opened.
 *
 * MOVE-2  A node that has heard of an epoch acts in no earlier one, over restarts, too. From the turn in which it takes the
 *         epoch up it votes nowhere, until the gate; it tells of that only when it is durable.
 * RDR-3   A read-only member acts in the epoch of the row that names it so, and gives nothing in it.
 */
import { assert, present } from '../base/assert.ts'
import type { GroupId, NodeId } from '../base/ids.ts'
import type { OwnEpochs } from '../log/own-epochs.ts'
import type { PeerMemory } from '../log/peer-memory.ts'
import { recoveredEpochs, recoveryVotersMax, type Recovery } from '../log/quorum-loss.ts'
import type { ReplicaSet } from '../placement/placement.ts'
import { OwnShares } from '../placement/shares.ts'
import type { SetNodes } from '../placement/set-nodes.ts'
import type { Trace } from '../ports/trace.ts'
import type { VotersTold } from '../ports/transport.ts'
import type { Standing } from '../replication/log.ts'
import { isUnderWay, isVoter, type SetRow } from './change.ts'
import { isReader } from './reader-change.ts'

export interface EpochsParts {
  readonly node: NodeId
  readonly storeId: string
  /** Of the store; 0: it is its node's first. */
  readonly seat: number
  readonly trace: Trace
  /** The list that all parts of the node share: it is changed here alone. */
  readonly nodes: SetNodes
  /** The nodes that the set began with. */
  readonly first: readonly NodeId[]
  /** The epoch that an operator has begun, if one has. */
  readonly recovery?: Recovery
  readonly log: {
    readonly memory: PeerMemory
    /** The flush that records go into now. */
    readonly lastFlush: number
    readonly durableFlush: number
    /** Has the news in `memory` made durable. */
    remember(): void
    /** Has the records written that wait for a flush of others. */
    force(): void
  }
}

export class Epochs {
  /** The buckets that the set has given away, and got. */
  readonly shares: OwnShares = new OwnShares()
  readonly #parts: EpochsParts
  /** The replica sets of the present epoch, by those of the configuration. */
  #sets = new Map<ReplicaSet, ReplicaSet>()
  /** Of a node without a vote: whether it is a read-only member of its epoch. */
  #isReader = false
  #blocked: ReadonlySet<GroupId>
  /** All that this run accepted before its last seal is in flushes through this one. */
  #sealFlush = 0
  /** The voters of the latest epoch that a peer has told of. */
  #told: VotersTold

  constructor(parts: EpochsParts) {
    this.#parts = parts
    const { recovery } = parts
    if (recovery !== undefined && this.#isNews(recovery)) this.#recover(recovery)
    const { voters = parts.first, blocked } = this.own
    this.#blocked = new Set(blocked)
    this.#told = { epoch: 0, nodes: voters }
    this.shares.enter(this.own.epoch)
    parts.nodes.set(voters, [], [])
  }

  #isNews({ storeId, epoch }: Recovery): boolean {
    return storeId === this.#parts.storeId && epoch > this.own.epoch
  }

  /** The record goes into the log with the first write: no vote leaves before that is durable, as behind any seal. */
  #recover(recovery: Recovery): void {
    const { node, log, trace } = this.#parts
    const { memory } = log
    assert(recovery.voters.includes(node), 'MOVE-7: a store without a vote recovers its set')
    assert(recovery.voters.length <= recoveryVotersMax, 'MOVE-3: a recovery leaves a seal out')
    // The nodes that could tell which stores vote are lost.
    if (!memory.isWhole) memory.restore(0, 0)
    memory.setEpochs(recoveredEpochs(memory.epochs, recovery))
    log.remember()
    trace.mark('quorum_loss_recovered')
    trace.emit({ kind: 'epoch', epoch: recovery.epoch, isMember: true, isSound: true })
  }

  get own(): OwnEpochs {
    return this.#parts.log.memory.epochs
  }

  /** Whether all of it is durable. */
  get isKept(): boolean {
    return this.#parts.log.memory.keptEpochs === this.own
  }

  /** Whether the seal of the epoch before, and all that was accepted before it, is durable. */
  get isSealDurable(): boolean {
    return this.isKept && this.#parts.log.durableFlush >= this.#sealFlush
  }

  /** The node votes in the groups that are not blocked. */
  get isVoting(): boolean {
    const { isMember, gated, epoch } = this.own
    return isMember && gated === epoch
  }

  /** The nodes that vote in the epoch in which this node acts. */
  get voters(): readonly NodeId[] {
    const { nodes, first } = this.#parts
    // The list of `nodes` may be of a later epoch at a read-only member: it says with which nodes to have links.
    return this.#isReader ? (this.own.voters ?? first) : nodes.voters
  }

  /** The nodes whose seals count at the gate of the present epoch. */
  get before(): readonly NodeId[] {
    return this.own.before ?? this.#parts.first
  }

  /** Whether this node has a replica of each group, and no vote. */
  get isReader(): boolean {
    return this.#isReader
  }

  /** The epoch in which this node needs directories of the voters to list groups; 0: digests do. */
  get directoriesOf(): number {
    const { epoch } = this.own
    return this.#isReader && epoch > 1 ? epoch : 0
  }

  /** The voters in the present epoch, given those that the set began with. */
  setOf(configured: ReplicaSet): ReplicaSet {
    const known = this.#sets.get(configured)
    if (known !== undefined) return known
    const { epoch } = this.own
    const { nodes, first } = this.#parts
    const rotated = rotate(this.voters, first.indexOf(configured.firstFull))
    const set = { epoch, ...rotated, readers: nodes.readers }
    this.#sets.set(configured, set)
    return set
  }

  /** Takes up which nodes the row names: a newcomer goes by it, and all have links with a node that is coming. */
  look(row: SetRow): void {
    const { nodes, first } = this.#parts
    const { epoch, voters } = this.own
    const told = row.epoch < this.#told.epoch ? this.#told.nodes : row.voters
    const now = (this.#knowsVoters ? voters : told) ?? first
    const coming = row.epoch > epoch ? (row.voters ?? first) : []
    if (!isSame(nodes.voters, now)) this.#sets = new Map()
    const readers = [...row.readers.keys()]
    nodes.set([...now], [...coming, ...changing(row), ...readers], readers)
  }

  /** The last epoch that this node has heard of. */
  get lastHeard(): number {
    return Math.max(this.own.epoch, this.#told.epoch)
  }

  /** Whether the record in the log names the voters of the epoch in which the node acts. */
  get #knowsVoters(): boolean {
    const { isMember, isDoubted } = this.own
    return isMember && !isDoubted
  }

  /**
   * A peer tells which nodes vote. That counts where this node does not know them, and until it has a row of that epoch: those
   * that the set began with may be gone. Returns whether it is news; `look` takes it up.
   */
  hear(told: VotersTold): boolean {
    if (this.#knowsVoters) return false
    if (told.epoch <= this.#told.epoch || told.epoch < this.own.epoch) return false
    this.#told = told
    this.#parts.trace.mark('voters_heard_of')
    return true
  }

  standingOf(group: GroupId): Standing {
    const { isMember, gated, epoch } = this.own
    // A newcomer acts in no epoch before the one that makes it a voter, or the row that makes it a read-only member.
    if (!isMember) return this.#isReader ? 'reading' : 'sealed'
    return gated < epoch || this.#blocked.has(group) ? 'before-gate' : 'voting'
  }

  /**
   * This node's seal of the epoch before: it acts in the row's epoch alone from now on. `then` is called when that is
   * durable.
   */
  enter(row: SetRow, then: () => void): void {
    const { own } = this
    assert(row.epoch > own.epoch, 'MOVE-2: a node enters an epoch that it has sealed')
    const { log, trace } = this.#parts
    for (const [one, { store }] of row.stores) this.#exchange(one, store)
    const hadVote = own.isMember && own.gated === row.epoch - 1
    const isMember = this.isNamed(row)
    assert(own.isMember || !hadVote, 'MOVE-7: a store without a vote tells a seal')
    this.#isReader = this.#isNamedReader(row)
    assert(!(isMember && this.#isReader), 'RDR-3: a store votes that is a read-only member')
    this.#sealFlush = log.lastFlush
    this.#set({
      ...{ epoch: row.epoch, gated: own.gated, isMember, isDoubted: false },
      ...nodesOf(row),
      soundFor: hadVote ? row.epoch : 0,
      ...{ blocked: [], unsound: hadVote ? own.blocked : [] },
    })
    this.look(row)
    trace.mark('epoch_sealed')
    trace.emit({ kind: 'epoch', epoch: row.epoch, isMember, isSound: hadVote })
    log.memory.whenKept(then)
    // Else the seal waits, where nothing else is written, until a checkpoint syncs the log.
    if (log.durableFlush < this.#sealFlush) log.force()
  }

  /**
   * Whether the row makes this node's store a read-only member, and the node has not taken that up. A voter has to seal its
   * epoch first (`enter`).
   */
  mayFollow(row: SetRow): boolean {
    const { isMember, isDoubted, epoch } = this.own
    if (!this.#isNamedReader(row) || (isMember && !isDoubted)) return false
    if (row.epoch < epoch) return false
    return row.epoch > epoch || isDoubted || !this.#isReader
  }

  /** The node is a read-only member of the row's epoch from now on. `then` is called when that is durable. */
  follow(row: SetRow, then: () => void): void {
    assert(this.mayFollow(row), 'RDR-3: a voter becomes a read-only member before its seal')
    const { own } = this
    for (const [one, { store }] of row.stores) this.#exchange(one, store)
    this.#isReader = true
    this.#sets = new Map()
    // After a start in the same epoch the record is right: its seal of the epoch before may be needed still.
    const isRight = row.epoch === own.epoch && !own.isMember && !own.isDoubted
    const { soundFor, unsound } = isRight ? own : { soundFor: 0, unsound: [] }
    this.#set({
      ...{ epoch: row.epoch, gated: own.gated, isMember: false, isDoubted: false, soundFor },
      ...nodesOf(row),
      ...{ blocked: [], unsound },
    })
    this.look(row)
    const { trace, log } = this.#parts
    trace.mark('reader_follows')
    const isSound = soundFor === row.epoch
    trace.emit({ kind: 'epoch', epoch: row.epoch, isMember: false, isSound })
    log.memory.whenKept(then)
  }

  #isNamedReader(row: SetRow): boolean {
    return isReader(row, this.#parts.node, this.#parts.storeId)
  }

  /** Whether this node's store votes in the row's epoch. */
  isNamed(row: SetRow): boolean {
    const { node, storeId, seat } = this.#parts
    return isVoter(row, node, storeId, seat)
  }

  /**
   * The record was lost, and a majority of the others has told the row since: it is of the last epoch. In the first one there
   * is no gate to pass. `then` is called when that is durable; not where the row is of another epoch.
   */
  confirm(row: SetRow, then: () => void): void {
    const { own } = this
    assert(own.isDoubted, 'MOVE-2: an epoch is confirmed that was not in doubt')
    if (row.epoch !== own.epoch) return
    for (const [one, { store }] of row.stores) this.#exchange(one, store)
    const gated = row.epoch === 1 ? 1 : own.gated
    this.#set({ ...own, ...nodesOf(row), isMember: this.isNamed(row), isDoubted: false, gated })
    this.look(row)
    this.#parts.trace.mark('epoch_confirmed')
    this.#parts.log.memory.whenKept(then)
  }

  /** The gate is passed, but for these groups. `then` is called when that is durable; the node votes from then on. */
  pass(blocked: readonly GroupId[], then: () => void): void {
    const { own } = this
    assert(own.isMember, 'MOVE-7: a store without a vote passes a gate')
    this.#set({ ...own, gated: own.epoch, blocked })
    this.#parts.trace.emit({ kind: 'gate', epoch: own.epoch, blocked: blocked.length })
    this.#parts.log.memory.whenKept(then)
  }

  #set(next: OwnEpochs): void {
    const { log } = this.#parts
    // Of one epoch a group has one set: it takes another for another epoch.
    if (next.epoch !== this.own.epoch) this.#sets = new Map()
    log.memory.setEpochs(next)
    this.shares.enter(next.epoch)
    this.#blocked = new Set(next.blocked)
    log.remember()
  }

  /** From now on the store of the row is the peer's, whose links tell how far its log is. */
  #exchange(node: NodeId, store: string): void {
    const { node: own, log } = this.#parts
    const { memory } = log
    if (node === own || memory.of(node)?.storeId === store) return
    memory.exchange({ node, storeId: store, durableFlush: 0, incarnation: 0, run: 0 })
  }
}

/** A node that is being added; or one that leaves, and tells its seal until the others are past their gates. */
function changing({ change }: SetRow): readonly NodeId[] {
  const { kind, node } = change ?? {}
  if (change === undefined || node === undefined || !isUnderWay(change)) return []
  return kind === 'renew' || kind === 'recover' ? [] : [node]
}

/** The voters of the row's epoch, and of the one before. */
function nodesOf({ voters, before }: SetRow): Pick<OwnEpochs, 'voters' | 'before'> {
  return { ...(voters !== undefined && { voters }), ...(before !== undefined && { before }) }
}

function isSame(some: readonly NodeId[], others: readonly NodeId[]): boolean {
  return some.length === others.length && some.every((one, at) => one === others[at])
}

/** Their order begins with another one for each turn. */
function rotate(nodes: readonly NodeId[], turn: number): Omit<ReplicaSet, 'epoch'> {
  const at = Math.max(0, turn) % nodes.length
  const voters = [...nodes.slice(at), ...nodes.slice(0, at)]
  return { voters, firstFull: present(voters[0], 'MOVE-6: a replica set without voters') }
}
