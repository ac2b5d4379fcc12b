/**
 * The pure core of several nodes with nothing around it: messages wait in a list until a test
 * delivers, drops or repeats them; "disks" are in-memory folds that a crash leaves as they are
 * durable. For directed tests of one race at a time; the simulator does everything else.
 *
 * Nodes hold read leases where a test wants them (`hasLeases`). An observer may look on.
 */
import { Leases, type OutgoingMessage } from '../../src/lease/leases.ts'
import type { LeaseMessage } from '../../src/lease/message.ts'
import { defaultLimits, type Limits } from '../../src/base/limits.ts'
import { groupOfBytes, nodeId, type GroupId, type NodeId } from '../../src/base/ids.ts'
import { encodeTuple } from '../../src/base/tuple.ts'
import {
  placementOver,
  staticPlacement,
  type Placement,
  type ReplicaSet,
} from '../../src/placement/placement.ts'
import type { Standing } from '../../src/replication/log.ts'
import type { Acceptor } from '../../src/paxos/acceptor.ts'
import { compareBallots, type Ballot } from '../../src/paxos/ballot.ts'
import { silentTrace, type TraceEvent } from '../../src/ports/trace.ts'
import type { GroupRecord, RecordSource } from '../../src/replica/group-record.ts'
import { OwnShares } from '../../src/placement/shares.ts'
import { Replica, type Reading } from '../../src/replica/replica.ts'
import type { Effect, LogRecord } from '../../src/replication/effect.ts'
import type { GroupEvent } from '../../src/replication/group.ts'
import type { Verdict } from '../../src/group/outcome.ts'
import type { GroupMessage } from '../../src/replication/message.ts'
import { decodeState, emptyState } from '../../src/replication/state.ts'
import { encodeTransaction, type Mutation } from '../../src/group/transaction.ts'

interface Folded {
  promised?: Ballot
  accepted?: { readonly ballot: Ballot; readonly value: Uint8Array }
  chosen?: { readonly ballot: Ballot; readonly value: Uint8Array }
}

export type CoreMessage = GroupMessage | LeaseMessage

export interface InFlight {
  readonly from: NodeId
  readonly to: NodeId
  readonly message: CoreMessage
}

/** Hears of each event, and changes nothing. */
export interface CoreObserver {
  sent(one: InFlight): void
  durable(node: NodeId, record: LogRecord): void
  /** An effect that no other node sees. */
  carriedOut(node: NodeId, effect: Effect): void
  marked(node: NodeId, name: string): void
}

export class CoreNode implements RecordSource {
  readonly node: NodeId
  readonly durable: Map<number, Folded> = new Map()
  readonly rows: Map<string, Uint8Array> = new Map()
  readonly verdicts: Map<number, Verdict> = new Map()
  readonly served: Map<number, number> = new Map()
  /** Wake-ups that the replica has set; a test may let them come, one by one. */
  readonly wakes: number[] = []
  /** Persists whose disk write has not happened. */
  pendingPersists: (Effect & { kind: 'persist' })[] = []
  incarnation = 1
  stateBytes: Uint8Array | undefined
  replica: Replica
  /** The buckets of its set, as this node knows them. */
  readonly shares: OwnShares = new OwnShares()
  isHeld = false
  hasRoom = true
  isRestored = true
  #leases: Leases
  readonly #cluster: CoreCluster
  readonly #inbox: GroupEvent[] = []
  #isStepping = false
  /** The node's part in the epoch, as the events of the test have made it. */
  #set: ReplicaSet | undefined
  #standing: Standing = 'voting'

  constructor(node: NodeId, cluster: CoreCluster) {
    this.node = node
    this.#cluster = cluster
    this.#leases = this.#freshLeases()
    this.shares.take([], 1)
    this.replica = this.#fresh()
  }

  #freshLeases(): Leases {
    const { placement, limits, now, hasLeases } = this.#cluster
    const { node, incarnation } = this
    // Where there are no leases, no peer holds one of an earlier life of this node.
    const startedMs = hasLeases ? now : Number.NEGATIVE_INFINITY
    const leases = new Leases({
      ...{ node, nodes: placement.nodes, incarnation, limits, startedMs },
    })
    leases.onRevoking = (holder, message) => this.#tell([[holder, message]])
    return leases
  }

  #fresh(): Replica {
    const { placement, limits, observer } = this.#cluster
    const trace = {
      ...silentTrace,
      emit: (event: TraceEvent) => this.#cluster.events.push({ node: this.node, ...event }),
      mark: (name: string) => {
        this.#cluster.marks.add(name)
        observer?.marked(this.node, name)
      },
    }
    const { node, incarnation } = this
    const leases = this.#leases
    const own = { node, incarnation, placement, limits, trace, source: this, leases }
    const epochs = {
      setOf: (configured: ReplicaSet) => this.#setOf(configured),
      standingOf: () => this.#standing,
      shares: this.shares,
    }
    return new Replica({ ...own, fetchPatienceMs: () => 0, epochs })
  }

  #setOf(configured: ReplicaSet): ReplicaSet {
    return (this.#set ??= configured)
  }

  /** The node enters the epoch, with the same voters, and passes its gate. The group hears of that with its next step. */
  enter(epoch: number): void {
    const { placement, group } = this.#cluster
    this.#set = { ...this.#setOf(placement.replicasOf(group)), epoch }
    this.#standing = 'voting'
    this.shares.enter(epoch)
  }

  #noteEpoch(event: GroupEvent): void {
    if (event.kind === 'seal') this.#standing = 'sealed'
    if (event.kind === 'gate') this.#standing = 'voting'
    if (event.kind !== 'epoch' && event.kind !== 'follow') return
    this.#set = event.set
    this.#standing = event.kind === 'epoch' ? 'before-gate' : 'reading'
  }

  load(): GroupRecord {
    const state = this.stateBytes === undefined ? undefined : decodeState(this.stateBytes)
    const applied = state?.position ?? 0
    const records = new Map<number, { readonly kind: 'present'; readonly acceptor: Acceptor }>()
    const decisions = new Map<number, { readonly ballot: Ballot; readonly value: Uint8Array }>()
    for (const [position, { chosen, ...acceptor }] of this.durable) {
      if (position <= applied) continue
      records.set(position, { kind: 'present', acceptor })
      if (chosen !== undefined) decisions.set(position, chosen)
    }
    return { state: state ?? emptyState(), records, decisions, isPart: false }
  }

  isSettled(): boolean {
    return false
  }

  /** One step at a time: what a step delivers to its own node waits until that step is over. */
  step(event: GroupEvent): void {
    this.#inbox.push(event)
    if (this.#isStepping) return
    this.#isStepping = true
    try {
      for (let next = this.#inbox.shift(); next !== undefined; next = this.#inbox.shift()) {
        const effects = this.replica.step(this.#cluster.group, next, this.#reading())
        this.#noteEpoch(next)
        for (const effect of effects) this.#carryOut(effect)
      }
    } finally {
      this.#inbox.length = 0
      this.#isStepping = false
    }
  }

  #reading(): Reading {
    const { now, wallStepMs } = this.#cluster
    const wall = 1_000_000 + Math.floor((now + wallStepMs) * 1000)
    const { hasRoom: mayPropose, isRestored } = this
    return { wall, stamp: wall, now, mayPropose, isAdmitted: true, isRestored }
  }

  take(from: NodeId, message: CoreMessage): void {
    if ('group' in message) return this.step({ kind: 'message', from, message })
    const drop = (): void => this.step({ kind: 'revoked', peer: from })
    this.#tell(this.#leases.onMessage(from, message, this.#reading(), drop))
  }

  /** As the edge of a node does: under a lease at once, otherwise by a step. Returns whether at once. */
  read(read: number): boolean {
    const point = this.replica.leased(this.#cluster.group, this.#reading())
    if (point === undefined) this.step({ kind: 'read', read })
    else this.served.set(read, point.position)
    return point !== undefined
  }

  #send(to: NodeId, message: CoreMessage): void {
    const one = { from: this.node, to, message }
    this.#cluster.inFlight.push(one)
    this.#cluster.observer?.sent(one)
  }

  #tell(told: readonly OutgoingMessage[]): void {
    for (const [to, message] of told) this.#send(to, message)
  }

  #carryOut(effect: Effect): void {
    this.#cluster.observer?.carriedOut(this.node, effect)
    switch (effect.kind) {
      case 'send':
        return this.#send(effect.to, effect.message)
      case 'deliver':
        return this.step({ kind: 'message', from: this.node, message: effect.message })
      case 'send-accepted':
        return this.#sendAccepted(effect)
      case 'persist':
        this.pendingPersists.push(effect)
        if (!this.isHeld) this.flush()
        return
      case 'note':
        return this.#fold(effect.record)
      case 'apply':
        return this.#apply(effect)
      case 'verdict':
        this.verdicts.set(effect.request, effect.verdict)
        return
      case 'serve':
        this.served.set(effect.read, effect.position)
        return
      case 'send-entries':
        return this.#sendEntries(effect)
      case 'wake':
        this.wakes.push(effect.at)
        return
      case 'renew':
        return this.#renew(effect.to)
      case 'slow':
        return this.#tellSlow(effect.holder)
    }
  }

  #sendAccepted(effect: Effect & { kind: 'send-accepted' }): void {
    const message = this.replica.accepted(effect, this.#cluster.now)
    if (effect.to === this.node) this.step({ kind: 'message', from: this.node, message })
    else this.#send(effect.to, message)
  }

  #apply({ writes, encodeState }: Effect & { kind: 'apply' }): void {
    for (const { key, value } of writes) {
      const name = Buffer.from(key).toString('latin1')
      if (value === undefined) this.rows.delete(name)
      else this.rows.set(name, value)
    }
    this.stateBytes = encodeState()
  }

  #renew(to: NodeId): void {
    if (this.#cluster.hasLeases) this.#tell(this.#leases.ask(to, this.#reading()))
  }

  #tellSlow(holder: NodeId): void {
    if (!this.#cluster.hasLeases) return
    for (const { node } of this.#cluster.nodes) {
      if (node !== this.node) this.#send(node, { kind: 'slow', holder })
    }
  }

  #sendEntries(effect: Effect & { kind: 'send-entries' }): void {
    const entries = []
    for (let position = effect.from; position <= effect.through; position++) {
      const chosen = this.durable.get(position)?.chosen
      if (chosen === undefined) break
      entries.push({ position, ...chosen })
    }
    const { group, epoch, from, committed } = effect
    this.#send(effect.to, { kind: 'entries', group, epoch, from, entries, committed })
  }

  /** The disk catches up. */
  flush(): void {
    const persists = this.pendingPersists
    this.pendingPersists = []
    for (const { records } of persists) for (const record of records) this.#fold(record)
    for (const { after } of persists) for (const effect of after) this.#carryOut(effect)
  }

  #fold(record: LogRecord): void {
    this.#cluster.observer?.durable(this.node, record)
    const folded = this.durable.get(record.position) ?? {}
    this.durable.set(record.position, folded)
    if (record.kind === 'promise') folded.promised = record.ballot
    if (record.kind === 'accept') {
      folded.promised = record.ballot
      folded.accepted = { ballot: record.ballot, value: record.value }
    }
    if (record.kind === 'copied') {
      const { promised } = folded
      const isPromised = promised !== undefined && compareBallots(promised, record.ballot) > 0
      if (!isPromised) folded.promised = record.ballot
      folded.accepted = { ballot: record.ballot, value: record.value }
    }
    if (record.kind === 'chosen') {
      const value = record.value ?? folded.accepted?.value
      if (value !== undefined) folded.chosen = { ballot: record.ballot, value }
    }
  }

  /** Power loss and restart: all that was not on the disk is gone, the incarnation is another. */
  crash(): void {
    this.pendingPersists = []
    this.isHeld = false
    this.incarnation += 1
    this.wakes.length = 0
    this.#leases = this.#freshLeases()
    this.replica = this.#fresh()
  }

  /** All of it is lost but the numbers that were drawn; it starts again, and is to be restored (LOG-19). */
  loseAll(): void {
    this.durable.clear()
    this.rows.clear()
    this.stateBytes = undefined
    this.isRestored = false
    this.crash()
  }

  wake(): void {
    this.step({ kind: 'wake' })
  }

  /** The earliest wake-up that the replica has set comes. */
  wakeNext(): void {
    this.wakes.sort((a, b) => a - b)
    const at = this.wakes.shift()
    if (at === undefined) throw new Error('no wake-up was asked for')
    const now = Math.max(this.#cluster.now, at)
    this.#cluster.now = now
    if (this.replica.isAwaitingTime(this.#cluster.group, now)) this.wake()
  }
}

export interface CoreClusterOptions {
  readonly nodes?: number
  readonly limits?: Partial<Limits>
  /** Messages of leases are carried, and acceptances name their holders. No node renews by itself. */
  readonly hasLeases?: boolean
  readonly observer?: CoreObserver
  /** The group's number: it decides which node leads position 1. */
  readonly number?: number
  /** There is another set, to which the group may go. */
  readonly mayMove?: boolean
}

/** A group of tables that begins in the first set. */
function movableGroup(placement: Placement): GroupId {
  for (let number = 1; ; number++) {
    const group = groupOfBytes(encodeTuple(['tables', 'Test', number]))
    if (placement.setOf(group) === 0) return group
  }
}

export class CoreCluster {
  readonly group: GroupId
  readonly observer: CoreObserver | undefined
  readonly hasLeases: boolean
  readonly placement: Placement
  readonly limits: Limits
  readonly nodes: readonly CoreNode[]
  readonly events: (TraceEvent & { readonly node: NodeId })[] = []
  readonly marks: Set<string> = new Set()
  inFlight: InFlight[] = []
  now = 0
  /** How far wall clocks were set forward, or back. */
  wallStepMs = 0
  #sequence = 0

  constructor(options: CoreClusterOptions = {}) {
    this.observer = options.observer
    this.hasLeases = options.hasLeases ?? false
    const names = Array.from({ length: options.nodes ?? 3 }, (_, i) => nodeId(`n${i + 1}`))
    const isMovable = options.mayMove === true
    this.placement = isMovable ? placementOver([names, [nodeId('m1')]]) : staticPlacement(names)
    this.limits = { ...defaultLimits, ...options.limits }
    this.group = isMovable
      ? movableGroup(this.placement)
      : groupOfBytes(encodeTuple(['test', options.number ?? 1]))
    const { firstFull } = this.placement.replicasOf(this.group)
    // The leader of position 1 comes first, so that tests can speak of nodes by their role.
    const ordered = [firstFull, ...names.filter((name) => name !== firstFull)]
    this.nodes = ordered.map((name) => new CoreNode(name, this))
  }

  at(index: number): CoreNode {
    const node = this.nodes[index]
    if (node === undefined) throw new Error(`no node ${index}`)
    return node
  }

  /** Submits a transaction that writes `key`; returns its request number. */
  submit(
    index: number,
    options: {
      readonly key: string
      readonly value?: string
      readonly sequence?: number
      readonly attempt?: number
      readonly readPosition?: number
      readonly reads?: readonly string[]
      /** Ranges, from the one on and below the other. */
      readonly ranges?: readonly (readonly [string, string])[]
      readonly session?: string
      readonly expiresAt?: number
      readonly floor?: number
      readonly allocations?: readonly number[]
      readonly mutations?: readonly Mutation[]
    },
  ): number {
    const request = (this.#sequence += 1)
    const key = Buffer.from(options.key)
    const mutations = options.mutations ?? [{ key, value: Buffer.from(options.value ?? 'v') }]
    const transaction = {
      session: options.session ?? 's',
      sequence: options.sequence ?? request,
      attempt: options.attempt ?? request,
      floor: options.floor ?? 0,
      expiresAt: options.expiresAt ?? 2 ** 50,
      allocations: options.allocations ?? [],
      mutations,
    }
    const submitted = {
      transaction,
      bytes: encodeTransaction(transaction),
      readPosition: options.readPosition ?? 0,
      reads: (options.reads ?? []).map((one) => Buffer.from(one)),
      ranges: (options.ranges ?? []).map(([gte, lt]) => ({
        ...{ gte: Buffer.from(gte), lt: Buffer.from(lt) },
      })),
    }
    this.at(index).step({ kind: 'submit', arrived: [{ request, submitted }] })
    return request
  }

  /** Delivers what is in flight, and what that causes, where `pass` lets it through; drops the rest. */
  deliver(pass: (one: InFlight) => boolean = () => true): void {
    for (let rounds = 0; this.inFlight.length > 0; rounds++) {
      if (rounds > 10_000) throw new Error('messages never end')
      const next = this.inFlight.shift()
      if (next === undefined || !pass(next)) continue
      const target = this.nodes.find((node) => node.node === next.to)
      target?.take(next.from, next.message)
    }
  }

  /** Takes matching messages out of flight; they can be delivered later with `redeliver`. */
  hold(matches: (one: InFlight) => boolean): InFlight[] {
    const held = this.inFlight.filter(matches)
    this.inFlight = this.inFlight.filter((one) => !matches(one))
    return held
  }

  redeliver(held: readonly InFlight[]): void {
    this.inFlight.push(...held)
  }

  /** Time passes and every node looks at its deadlines. */
  elapse(ms: number): void {
    this.now += ms
    for (const node of this.nodes) node.wake()
  }

  /** Time and messages until nothing moves any more. */
  settle(pass: (one: InFlight) => boolean = () => true, rounds = 60): void {
    for (let i = 0; i < rounds; i++) {
      this.deliver(pass)
      this.elapse(200)
    }
    this.deliver(pass)
  }
}
