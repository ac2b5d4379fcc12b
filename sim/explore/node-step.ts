/**
 * One node's step, with the real core: an event goes in, effects are carried out as the driver does
 * ("durable, then visible"; what a step delivers to its own node is stepped at once), and what an
 * observer sees comes out. A function of (state, action): it is worked out once and remembered.
 *
 * PAX-4 on the answers that leave, PAX-6 on position 1; `step-checks.ts` has the others.
 */
import { AssertionError, assert, present } from '../../src/base/assert.ts'
import { numbersFrom } from '../../src/base/drawn-numbers.ts'
import type { NodeId, Position } from '../../src/base/ids.ts'
import { silentTrace } from '../../src/ports/trace.ts'
import { jitter, type Context, type Effect, type LogRecord } from '../../src/replication/effect.ts'
import { stepGroup, type GroupEvent } from '../../src/replication/group.ts'
import { resume } from '../../src/replication/learn.ts'
import {
  highestKnown,
  restoreLog,
  type GroupLog,
  type Proposal,
} from '../../src/replication/log.ts'
import { acceptedAsItLeaves } from '../../src/replication/acceptance.ts'
import type { ChosenEntry, GroupMessage } from '../../src/replication/message.ts'
import { leasedPosition } from '../../src/replication/read-lease.ts'
import { decodeState, emptyState, encodeState } from '../../src/replication/state.ts'
import type { EntryWriteSets } from '../../src/replication/window.ts'
import { PairedLeases, restartedPairs, type LeasePairs, type LeaseTold } from './lease-pairs.ts'
import type { LeaseView } from './lease-rules.ts'
import { recordsAbove, written, type LogDisk } from './log-disk.ts'
import { cutThrough, namedBy, noTargets, type RestoringTargets } from './lost-data.ts'
import {
  copyLog,
  expire,
  forgetDurations,
  nowMs,
  type AppliedState,
  type BallotDraw,
  type NodeState,
  type PendingWrite,
} from './node-state.ts'
import { takeUpEpoch } from './change.ts'
import { answerBreaches, readerBreaches } from './answer-checks.ts'
import { observedIn, type Breach, type Observation } from './observation.ts'
import { isOfLeases, type DigestSent, type NodeAction } from './node-action.ts'
import type { Sent, SentMessage, SnapshotSent } from './node-action.ts'
import { OwnBucket } from './own-bucket.ts'
import { Seals } from './seals.ts'
import type { Setting } from './setting.ts'
import { adoptionBreaches, drawBreaches, makeDurable } from './step-checks.ts'

export interface NodeOutcome {
  readonly next: NodeState
  readonly sent: readonly Sent[]
  readonly observations: readonly Observation[]
  readonly breaches: readonly Breach[]
  /** An assertion of the code under test stopped the node. */
  readonly isHalted: boolean
}

export function stepNode(
  setting: Setting,
  name: NodeId,
  node: NodeState,
  action: NodeAction,
): NodeOutcome {
  return new NodeStep(setting, name, node).take(action)
}

/** This node's view of its leases. */
export function viewLeases(setting: Setting, name: NodeId, node: NodeState): LeaseView {
  const { leased, counted, seen, listed } = new NodeStep(setting, name, node)
  return { leased, counted, seen, listed }
}

class NodeStep {
  readonly #setting: Setting
  readonly #name: NodeId
  #pairs: LeasePairs
  #leases: PairedLeases
  #incarnation: number
  #log: GroupLog
  #windowFrom: Position
  #windowSets: EntryWriteSets[]
  #disk: LogDisk
  #pending: PendingWrite[]
  #states: readonly AppliedState[]
  #drawn: number
  #proposed: number
  #lastDraw: BallotDraw | undefined
  #restoring: RestoringTargets | undefined
  readonly #seals: Seals
  readonly #bucket: OwnBucket
  #effects: Effect[] = []
  readonly #inbox: GroupEvent[] = []
  #isStepping = false
  readonly #sent: Sent[] = []
  readonly #observations: Observation[] = []
  readonly #breaches: Breach[] = []

  constructor(setting: Setting, name: NodeId, node: NodeState) {
    this.#setting = setting
    this.#name = name
    this.#pairs = node.pairs
    this.#seals = new Seals(node.change, {
      ...{ setting, name, log: () => this.#log, step: (event) => this.#step(event) },
      send: (to, message) => this.#sent.push({ to, message }),
    })
    this.#bucket = new OwnBucket({
      ...{ setting, name, seals: this.#seals, log: () => this.#log, sync: () => this.#sync() },
      ...{ observations: this.#observations, breaches: this.#breaches },
    })
    this.#leases = this.#pairedLeases(node.incarnation)
    this.#incarnation = node.incarnation
    this.#log = copyLog(node, setting)
    this.#windowFrom = node.windowFrom
    this.#windowSets = [...node.windowSets]
    this.#disk = node.disk
    this.#pending = [...node.pending]
    this.#states = node.states
    this.#drawn = node.drawn
    this.#proposed = node.proposed
    this.#lastDraw = node.lastDraw
    this.#restoring = node.restoring
  }

  take(action: NodeAction): NodeOutcome {
    let isHalted = false
    try {
      this.#act(action)
      this.#seals.passGate(this.next.pending)
    } catch (error) {
      if (!(error instanceof AssertionError)) throw error
      const [rule = 'META-3', ...words] = error.message.split(': ')
      this.#breaches.push({ rule, sentence: `Asserted: ${words.join(': ')}.` })
      isHalted = true
    }
    if (!isHalted) forgetDurations(this.#log)
    const { next } = this
    const seen = { observations: this.#observations, breaches: this.#breaches }
    return { next, sent: this.#sent, ...seen, isHalted }
  }

  get next(): NodeState {
    return {
      ...{ incarnation: this.#incarnation, log: this.#log, windowFrom: this.#windowFrom },
      ...{ windowSets: this.#windowSets, disk: this.#disk, pending: this.#pending },
      ...{ states: this.#states, drawn: this.#drawn, proposed: this.#proposed },
      ...{ lastDraw: this.#lastDraw, pairs: this.#leases.pairs, restoring: this.#restoring },
      change: this.#seals.change,
    }
  }

  #act(action: NodeAction): void {
    switch (action.kind) {
      case 'deliver':
        return this.#deliver(action.from, action.message)
      case 'flush':
        return this.#flush()
      case 'timer':
        expire(this.#log, action.timer)
        return this.#step({ kind: 'wake' })
      case 'crash':
        return this.#crash(action.writes, action.state)
      case 'lose':
        return this.#lose(action.writes, action.state)
      case 'restore':
        this.#states = this.#states.slice(action.state)
        this.#restoring = undefined
        return this.#step({ kind: 'wake' })
      case 'hear':
        this.#tell(this.#leases.giveUp())
        return this.#seals.hear()
      case 'seal':
        this.#step({ kind: 'seal' })
        this.#pending.push({ records: [], isForced: true, after: [], isSeal: true })
        return this.#bucket.apply(this.#setting.closed)
      case 'submit': {
        const request = action.submission
        const submitted = present(this.#setting.submissions[request], 'explore: no submission')
        this.#observations.push({ kind: 'submitted', request })
        return this.#step({ kind: 'submit', arrived: [{ request, submitted }] })
      }
      case 'read':
        this.#observations.push({ kind: 'read', read: action.read })
        return this.#step({ kind: 'read', read: action.read })
      case 'snapshot':
        return this.#sendSnapshot(action.peer, action.state)
      case 'renew':
        return this.#tell(this.#leases.ask(action.peer))
      case 'lapse':
        return this.#leases.lapse(action.peer)
      case 'expire':
        return this.#leases.expire(action.peer)
      default:
        this.#bucket.act(action)
        return this.#step({ kind: 'wake' })
    }
  }

  #deliver(from: NodeId, message: SentMessage): void {
    if (isOfLeases(message)) {
      const drop = (): void => this.#step({ kind: 'revoked', peer: from })
      return this.#tell(this.#leases.take(from, message, drop))
    }
    if (message.kind === 'snapshot') return this.#install(message)
    if (message.kind === 'digest-request') return this.#nameTo(from, message.asked)
    if (message.kind === 'digest') return this.#takeDigest(from, message)
    if (message.kind === 'sealed') return this.#seals.take(from, message)
    if (message.kind === 'seal-request') return this.#seals.answer(from)
    this.#step({ kind: 'message', from, message })
  }

  /** A node sends only durable states (SNAP-2): its store has written that record, so an earlier one is gone. */
  #sendSnapshot(to: NodeId, state: number): void {
    const { position, bytes } = present(this.#states[state], 'explore: no such state record')
    assert(bytes !== undefined, 'explore: a snapshot of nothing')
    this.#states = this.#states.slice(state)
    this.#disk = cutThrough(this.#disk, position)
    this.#sent.push({ to, message: { kind: 'snapshot', position, bytes } })
  }

  /** Before the crash the log has given up all that the data store durably holds; then that is gone. */
  #lose(writes: number, state: number): void {
    const { position } = present(this.#states[state], 'explore: no such state record')
    this.#states = [{ position: 0, bytes: undefined }]
    this.#restoring = new Map()
    this.#crash(writes, 0, position)
  }

  #nameTo(to: NodeId, asked: number): void {
    if (this.#restoring !== undefined) return
    const through = namedBy(this.#disk, this.#states[0]?.position ?? 0)
    this.#sent.push({ to, message: { kind: 'digest', asked, through } })
  }

  /** The first answer of a peer to what this run of the node has asked says how far the node has to come. */
  #takeDigest(from: NodeId, { asked, through }: DigestSent): void {
    const known = this.#restoring
    if (asked !== this.#incarnation || known === undefined || known.get(from) !== undefined) return
    this.#restoring = new Map([...known, [from, through]])
    if (through <= this.#log.state.position) return
    this.#step({ kind: 'exists', position: through, informer: from })
  }

  /** The driver passes over a snapshot that is not further; else the store has it first. */
  #install({ position, bytes }: SnapshotSent): void {
    if (position <= this.#log.state.position) return
    const state = present(decodeState(bytes), 'LOG-6: a state record is of no known format')
    ;[this.#windowFrom, this.#windowSets] = [position, []]
    this.#states = [{ position, bytes }]
    this.#step({ kind: 'install', state })
  }

  #tell(told: readonly LeaseTold[]): void {
    for (const [to, message] of told) this.#sent.push({ to, message })
  }

  /** The highest position that a current read must see if it begins now, at this node alone. */
  get leased(): Position | undefined {
    return leasedPosition(this.#log, this.#context())
  }

  /** Peers whose registrations this node counts on. */
  get counted(): readonly NodeId[] {
    const grants = [...(this.#log.lease?.grants ?? [])]
    return grants
      .filter(([peer, term]) => this.#leases.confirmHeld(peer, term))
      .map(([peer]) => peer)
  }

  /** The position that a current read here would have to see if the registrations were enough. */
  get seen(): Position {
    return Math.max(highestKnown(this.#log), this.#log.minReadPosition)
  }

  /** Peers that this node counts as holders who may lack a position, for each one from 0. */
  get listed(): readonly (readonly NodeId[])[] {
    const { group, scope } = this.#setting
    return Array.from({ length: scope.positions + 2 }, (_, position) =>
      this.#leases.holders(group, position).map(({ node }) => node),
    )
  }

  /** As the driver: one step at a time; its messages to this node itself wait their turn. */
  #step(event: GroupEvent): void {
    this.#inbox.push(event)
    if (this.#isStepping) return
    this.#isStepping = true
    for (let next = this.#inbox.shift(); next !== undefined; next = this.#inbox.shift()) {
      this.#stepOnce(next)
    }
    this.#isStepping = false
  }

  #stepOnce(event: GroupEvent, before: () => void = () => undefined): void {
    const position = this.#log.state.position
    const proposal = this.#log.proposal && { ...this.#log.proposal }
    this.#effects = []
    before()
    stepGroup(this.#log, this.#context(), event)
    this.#checkProposal(proposal, event)
    this.#run(this.#effects)
    if (this.#log.state.position > position) this.#keepState()
  }

  #context(): Context {
    return {
      ...{ node: this.#name, incarnation: this.#incarnation, limits: this.#setting.limits },
      ...{ trace: silentTrace, wall: 1 + this.#proposed, stamp: 1 + this.#proposed, now: nowMs },
      ...{ mayPropose: true, isAdmitted: true, leases: this.#leases },
      isRestored: this.#restoring === undefined,
      isSuspected: () => this.#setting.scope.isEachForItself,
      fetchPatienceMs: () => 0,
      drawNumber: () => numbersFrom(this.#incarnation) + (this.#drawn += 1),
      emit: (effect) => this.#effects.push(effect),
    }
  }

  #keepState(): void {
    const { position } = this.#log.state
    const bytes = encodeState(this.#log.state)
    this.#states = [...this.#states, { position, bytes }]
    this.#observations.push({ kind: 'state', position, bytes })
  }

  #run(effects: readonly Effect[]): void {
    for (const effect of effects) this.#carryOut(effect)
  }

  #carryOut(effect: Effect): void {
    switch (effect.kind) {
      case 'send':
        return this.#send(effect.to, effect.message)
      case 'deliver':
        return this.#deliverOwn(effect.message)
      case 'send-accepted': {
        const message = acceptedAsItLeaves(effect, this.#leases, nowMs)
        return effect.to === this.#name ? this.#deliverOwn(message) : this.#send(effect.to, message)
      }
      case 'persist':
        return this.#append(effect.records, effect.after)
      case 'note':
        this.#pending.push({ records: [effect.record], isForced: false, after: [] })
        return undefined
      case 'apply': {
        const { position, value } = effect
        const entry = [...this.#log.window.entries()].find((one) => one.position === position)
        const { timestamp, sets } = present(entry, 'explore: an entry is not in the window')
        this.#windowSets.push({ position, timestamp, sets })
        this.#observations.push({ kind: 'applied', position, value })
        return undefined
      }
      case 'verdict': {
        const { request, verdict } = effect
        this.#bucket.judge(verdict)
        this.#observations.push({ kind: 'verdict', request, verdict })
        return undefined
      }
      case 'serve': {
        const { read, position } = effect
        this.#observations.push({ kind: 'served', read, position })
        return undefined
      }
      case 'send-entries':
        return this.#sendEntries(effect)
      case 'renew':
        return this.#tell(this.#leases.ask(effect.to))
      case 'wake':
      case 'slow':
        return undefined
    }
  }

  #deliverOwn(message: GroupMessage): void {
    this.#checkAnswer(message)
    this.#step({ kind: 'message', from: this.#name, message })
  }

  #send(to: NodeId, message: GroupMessage): void {
    this.#checkAnswer(message)
    this.#observations.push(...observedIn(message))
    this.#sent.push({ to, message })
  }

  #append(records: readonly LogRecord[], after: readonly Effect[]): void {
    if (records.length > 0) {
      this.#pending.push({ records, after, isForced: true })
      return
    }
    const at = this.#pending.findLastIndex((write) => write.isForced)
    const last = this.#pending[at]
    if (last === undefined) return this.#run(after)
    this.#pending[at] = { ...last, after: [...last.after, ...after] }
  }

  #sendEntries(effect: Effect & { kind: 'send-entries' }): void {
    const { to, group, epoch, from, through, committed } = effect
    const records = this.#pending.flatMap((write) => write.records)
    const view = written(this.#disk, records)
    const entries: ChosenEntry[] = []
    for (let position = from; position <= through; position++) {
      const { chosen: ballot, value } = view.get(position) ?? {}
      if (ballot === undefined || value === undefined) break
      entries.push({ position, ballot, value })
    }
    this.#send(to, { kind: 'entries', group, epoch, from, entries, committed })
  }

  #flush(): void {
    const at = this.#pending.findIndex((write) => write.isForced)
    assert(at >= 0, 'explore: nothing is to be written')
    const writes = this.#pending.slice(0, at + 1)
    this.#pending = this.#pending.slice(at + 1)
    for (const { records } of writes) this.#makeDurable(records)
    for (const { after } of writes) this.#run(after)
    if (writes.some(({ isSeal }) => isSeal)) this.#seals.onDurable()
  }

  /** All that waits for the disk is durable, notes as well. */
  #sync(): void {
    while (this.#pending.some((write) => write.isForced)) this.#flush()
    for (const { records } of this.#pending.splice(0)) this.#makeDurable(records)
  }

  #makeDurable(records: readonly LogRecord[]): void {
    const made = makeDurable(this.#name, this.#disk, records)
    this.#disk = made.disk
    this.#observations.push(...made.observations)
    this.#breaches.push(...made.breaches)
  }

  /** `cut`: the log gives up the flushes of the positions through here. */
  #crash(writes: number, state: number, cut: Position = 0): void {
    const survive = this.#pending.slice(0, writes)
    for (const { records } of survive) this.#makeDurable(records)
    this.#seals.restart(survive.some(({ isSeal }) => isSeal))
    if (cut > 0) this.#disk = cutThrough(this.#disk, cut)
    this.#pending = []
    this.#incarnation += 1
    this.#pairs = restartedPairs(this.#setting, this.#pairs, this.#incarnation)
    this.#leases = this.#pairedLeases(this.#incarnation)
    this.#drawn = 0
    this.#lastDraw = undefined
    const found = present(this.#states[state], 'explore: no such state record')
    this.#states = [found]
    ;[this.#windowFrom, this.#windowSets] = [found.position, []]
    const { group, set, limits } = this.#setting
    const stored = found.bytes === undefined ? emptyState() : decodeState(found.bytes)
    const { records, decisions } = recordsAbove(this.#disk, found.position)
    const applied = present(stored, 'LOG-6: a state record is of no known format')
    this.#log = restoreLog(group, set, applied, records, limits, this.#log.home)
    takeUpEpoch(this.#setting, this.#log, this.#seals.change)
    this.#bucket.restore()
    for (const [position, decision] of decisions) this.#log.decisions.set(position, decision)
    this.#stepOnce({ kind: 'wake' }, () => this.#open())
    this.#step({ kind: 'wake' })
    this.#askPeers()
    this.#seals.ask()
  }

  /** A run that begins unrestored asks anew, and goes by no answer to an earlier one. */
  #askPeers(): void {
    if (this.#restoring === undefined) return
    this.#restoring = noTargets(this.#setting.names, this.#name)
    const message = { kind: 'digest-request', asked: this.#incarnation } as const
    for (const to of this.#restoring.keys()) this.#sent.push({ to, message })
  }

  /** Does what the table of groups does with a group that it has just fetched. */
  #open(): void {
    const context = this.#context()
    resume(this.#log, context)
    if (highestKnown(this.#log) <= this.#log.state.position) return
    const delay = jitter(context, context.limits.sweepMs, this.#log.state.position, 0)
    this.#log.sweepDeadline = context.now + delay
  }

  #pairedLeases(incarnation: number): PairedLeases {
    const { isEnding, isSealed } = this.#seals.change
    const isOver = isEnding || isSealed
    return new PairedLeases(this.#setting, this.#name, incarnation, this.#pairs, isOver)
  }

  #checkAnswer(message: GroupMessage): void {
    this.#breaches.push(...answerBreaches(this.#disk, message))
    this.#breaches.push(...readerBreaches(this.#setting, this.#name, message))
  }

  #checkProposal(before: Proposal | undefined, event: GroupEvent): void {
    const { proposal } = this.#log
    if (proposal?.phase === before?.phase || proposal === undefined) return
    const { draw, breaches } = drawBreaches(proposal, this.#lastDraw)
    this.#lastDraw = draw
    this.#breaches.push(...breaches)
    if (proposal.phase.kind !== 'accepting') return
    if (before?.phase.kind === 'accepting' && before.position === proposal.position) return
    this.#proposed += 1
    this.#breaches.push(...adoptionBreaches(before, event, proposal.phase))
  }
}
