/**
 * The pure core of several nodes with nothing around it: messages wait in a list until a test
 * delivers, drops or repeats them; "disks" are in-memory folds that a crash leaves as they are
 * durable. For directed tests of one race at a time; the simulator does everything else.
 */
import { Leases } from '../../src/lease/leases.ts'
import { defaultLimits, type Limits } from '../../src/base/limits.ts'
import { groupOfBytes, nodeId, type GroupId, type NodeId } from '../../src/base/ids.ts'
import { encodeTuple } from '../../src/base/tuple.ts'
import { staticPlacement, type Placement } from '../../src/placement/placement.ts'
import type { Acceptor } from '../../src/paxos/acceptor.ts'
import type { Ballot } from '../../src/paxos/ballot.ts'
import { silentTrace, type TraceEvent } from '../../src/ports/trace.ts'
import type { GroupRecord, RecordSource } from '../../src/replica/group-record.ts'
import { Replica } from '../../src/replica/replica.ts'
import type { LookedUp } from '../../src/replication/acceptance.ts'
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

export interface InFlight {
  readonly from: NodeId
  readonly to: NodeId
  readonly message: GroupMessage
}

export class CoreNode implements RecordSource {
  readonly node: NodeId
  readonly durable: Map<number, Folded> = new Map()
  readonly rows: Map<string, Uint8Array> = new Map()
  readonly verdicts: Map<number, Verdict> = new Map()
  readonly served: Map<number, number> = new Map()
  /** Wake-ups that were asked for; a test may let them come, one by one. */
  readonly wakes: number[] = []
  /** Persists whose disk write has not happened. */
  pendingPersists: (Effect & { kind: 'persist' })[] = []
  incarnation = 1
  stateBytes: Uint8Array | undefined
  replica: Replica
  isHeld = false
  hasRoom = true
  readonly #cluster: CoreCluster

  constructor(node: NodeId, cluster: CoreCluster) {
    this.node = node
    this.#cluster = cluster
    this.replica = this.#fresh()
  }

  #fresh(): Replica {
    const { placement, limits } = this.#cluster
    const trace = {
      ...silentTrace,
      emit: (event: TraceEvent) => this.#cluster.events.push({ node: this.node, ...event }),
      mark: (name: string) => this.#cluster.marks.add(name),
    }
    const { node, incarnation } = this
    const nodes = placement.nodes
    // It has run for long, so no peer holds a lease of an earlier life of it.
    const startedMs = Number.NEGATIVE_INFINITY
    const leases = new Leases({ node, nodes, incarnation, limits, startedMs })
    const own = { node, incarnation, placement, limits, trace, source: this, leases }
    return new Replica({ ...own, fetchPatienceMs: () => 0 })
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

  lookup(_group: GroupId, position: number): LookedUp {
    const found = this.durable.get(position)
    if (found === undefined) return { kind: 'absent' }
    const { chosen, ...acceptor } = found
    return { kind: 'present', acceptor, chosen: chosen !== undefined }
  }

  isSettled(): boolean {
    return false
  }

  step(event: GroupEvent): void {
    const { group, now, wallStepMs } = this.#cluster
    const wall = 1_000_000 + (now + wallStepMs) * 1000
    const reading = {
      wall,
      stamp: wall,
      now,
      mayPropose: this.hasRoom,
      isAdmitted: true,
    }
    for (const effect of this.replica.step(group, event, reading)) this.#carryOut(effect)
  }

  #sendAccepted(effect: Effect & { readonly kind: 'send-accepted' }): void {
    const message = this.replica.accepted(effect, this.#cluster.now)
    if (effect.to === this.node) this.step({ kind: 'message', from: this.node, message })
    else this.#cluster.inFlight.push({ from: this.node, to: effect.to, message })
  }

  #apply(effect: Effect & { readonly kind: 'apply' }): void {
    for (const { key, value } of effect.writes) {
      const name = Buffer.from(key).toString('latin1')
      if (value === undefined) this.rows.delete(name)
      else this.rows.set(name, value)
    }
    this.stateBytes = effect.encodeState()
  }

  #carryOut(effect: Effect): void {
    switch (effect.kind) {
      case 'send':
        this.#cluster.inFlight.push({ from: this.node, to: effect.to, message: effect.message })
        return
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
      case 'supply':
        return this.#supply(effect)
      case 'wake':
        this.wakes.push(effect.at)
        return
      case 'renew':
      case 'slow':
        return
    }
  }

  #supply(effect: Effect & { kind: 'supply' }): void {
    const entries = []
    for (let position = effect.from; position <= effect.through; position++) {
      const chosen = this.durable.get(position)?.chosen
      if (chosen === undefined) break
      entries.push({ position, ...chosen })
    }
    const { group, epoch, from, committed } = effect
    const message = { kind: 'entries', group, epoch, from, entries, committed } as const
    this.#cluster.inFlight.push({ from: this.node, to: effect.to, message })
  }

  /** The disk catches up. */
  flush(): void {
    const persists = this.pendingPersists
    this.pendingPersists = []
    for (const { records } of persists) for (const record of records) this.#fold(record)
    for (const { after } of persists) for (const effect of after) this.#carryOut(effect)
  }

  #fold(record: LogRecord): void {
    const folded = this.durable.get(record.position) ?? {}
    this.durable.set(record.position, folded)
    if (record.kind === 'promise') folded.promised = record.ballot
    if (record.kind === 'accept') {
      folded.promised = record.ballot
      folded.accepted = { ballot: record.ballot, value: record.value }
    }
    if (record.kind === 'chosen') {
      const value = record.value ?? folded.accepted?.value
      if (value !== undefined) folded.chosen = { ballot: record.ballot, value }
    }
  }

  /** Power loss and restart: what was not on the disk is gone, the incarnation is another. */
  crash(): void {
    this.pendingPersists = []
    this.isHeld = false
    this.incarnation += 1
    this.replica = this.#fresh()
  }

  wake(): void {
    this.step({ kind: 'wake' })
  }

  /** The earliest wake-up that was asked for comes. */
  wakeNext(): void {
    this.wakes.sort((a, b) => a - b)
    const at = this.wakes.shift()
    if (at === undefined) throw new Error('no wake-up was asked for')
    this.#cluster.now = at
    if (this.replica.isAwaitingTime(this.#cluster.group, at)) this.wake()
  }
}

export class CoreCluster {
  readonly group: GroupId
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

  constructor(options: { readonly nodes?: number; readonly limits?: Partial<Limits> } = {}) {
    const names = Array.from({ length: options.nodes ?? 3 }, (_, i) => nodeId(`n${i + 1}`))
    this.placement = staticPlacement(names)
    this.limits = { ...defaultLimits, ...options.limits }
    this.group = groupOfBytes(encodeTuple(['test', 1]))
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
      target?.step({ kind: 'message', from: next.from, message: next.message })
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
