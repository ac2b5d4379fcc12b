/**
 * The searched graph. A state is a short vector of numbers: one for each node's state, one for the
 * observer's book, one for the budgets, then the messages in flight in ascending order (a set: a
 * message sent again while it is in flight is the same one). Equal parts have equal numbers, and
 * the search computes a node's step for an action once, so that most of a search is arithmetic.
 *
 * The omissions, and why the search loses nothing by them:
 * - No action loses a message: one that is never delivered is lost, and time-outs wait for nothing.
 * - A restart comes with its crash: a node that is down behaves like one that gets no message.
 * - A message is dropped when its delivery does nothing, now and later (`isDead`). That a number
 *   means one question over all restarts is taken for granted in scopes with leases alone;
 *   elsewhere it is found out.
 * - When no crash can come any more, and no node can lose its data store, a write whose answers all go to other nodes is done at once:
 *   it commutes with whatever else can happen, at its node and elsewhere.
 */
import { present } from '../../src/base/assert.ts'
import type { Position } from '../../src/base/ids.ts'
import { equalBallots } from '../../src/paxos/ballot.ts'
import type { SharesRow } from '../../src/placement/shares.ts'
import type { Accepted } from '../../src/replication/message.ts'
import { closingBreaches } from './close-checks.ts'
import { Closing } from './closing.ts'
import { arrivedNodes, firstNodes } from './arrival.ts'
import { isExpiryDue } from './lease-pairs.ts'
import { leaseBreaches, type LeaseView } from './lease-rules.ts'
import { buildNodeCell, type NodeCell, type Transition } from './node-cell.ts'
import { isNextWriteFree, textOfNode, withoutCrashes, type NodeState } from './node-state.ts'
import { isOfSealedEpoch } from './change.ts'
import { emptyBook, writeDown, type Book } from './book.ts'
import { canonicalText, Interner } from './canonical.ts'
import { nodeAction, type NodeAction, type Sent } from './node-action.ts'
import { stepNode, viewLeases, type NodeOutcome } from './node-step.ts'
import type { Breach, Observation } from './observation.ts'
import { answers, restarts, settling, type Flight, type Successor } from './flight.ts'
import {
  actionAt,
  bookAt,
  budgetAt,
  flightAt,
  isOfKind,
  packAction,
  packBudget,
  restartsLeft,
  spend,
  unpackAction,
  unpackBudget,
  wholeBudget,
  type Action,
  type ActionCode,
  type Budget,
} from './state-vector.ts'
import type { Scope } from './scope.ts'
import { buildSetting, type Setting } from './setting.ts'

const none: readonly Breach[] = []

export class Model {
  readonly setting: Setting
  readonly initial: readonly number[]
  readonly #nodes: Interner<NodeCell>
  readonly #flights = new Interner<Flight>()
  readonly #books = new Interner<Book>()
  readonly #closing: Closing
  readonly #observations = new Interner<readonly Observation[]>()
  readonly #bookSteps = new Map<
    number,
    { readonly next: number; readonly breaches: readonly Breach[] }
  >()
  readonly #calm = new Map<number, number>()
  /** For each node's number: messages to it that do nothing there. */
  readonly #dead = new Map<number, boolean>()

  constructor(scope: Scope) {
    this.setting = buildSetting(scope)
    this.#nodes = new Interner()
    this.#closing = new Closing(this.setting)
    const crashes = scope.crashes + (scope.losses ?? 0)
    const number = (state: NodeState): number => this.#numberOfNode(state, crashes)
    const found = firstNodes(this.setting).map(number)
    const nodes = [...found, ...Array<number>(bookAt - found.length).fill(0)]
    const book = this.#books.number(canonicalText(emptyBook), emptyBook)
    this.#observations.number(canonicalText([]), [])
    const budget = packBudget(wholeBudget(scope))
    const begun = this.#afterPrologue([...nodes, book, budget])
    const arrived = arrivedNodes(this.setting, (at) => this.node(begun[at] ?? 0)).map(number)
    this.initial = this.#warm([...arrived, ...begun.slice(arrived.length)])
  }

  /** Where the search begins: the first submissions are made, and everything settles after each. */
  #afterPrologue(first: readonly number[]): readonly number[] {
    let vector = first
    for (let at = 0; at < this.setting.scope.prologue; at++) {
      const { node = 0 } = this.setting.scope.submissions[at] ?? {}
      vector = this.#settled(vector, packAction('submit', node, at))
    }
    return vector
  }

  #settled(first: readonly number[], code: ActionCode): readonly number[] {
    let vector = first
    let next: ActionCode | undefined = code
    while (next !== undefined) {
      vector = this.successor(vector, next).vector
      next = this.actions(vector).find((one) => settling.has(unpackAction(one).kind))
    }
    return vector
  }

  /** Every holder gets its lease, if the search begins so. */
  #warm(first: readonly number[]): readonly number[] {
    const { leases } = this.setting.scope
    if (leases?.isWarm !== true) return first
    let vector = first
    for (const [grantor, holder] of leases.pairs) {
      const budget = unpackBudget(vector[budgetAt] ?? 0)
      const whole = packBudget({ ...budget, renewals: leases.renewals + 1 })
      const before = [...vector.slice(0, budgetAt), whole, ...vector.slice(flightAt)]
      vector = this.#settled(before, packAction('renew', holder, grantor))
    }
    return vector
  }

  get counts(): { readonly nodeStates: number; readonly messages: number; readonly books: number } {
    const [nodeStates, messages] = [this.#nodes.count, this.#flights.count]
    return { nodeStates, messages, books: this.#books.count }
  }

  flight(number: number): Flight {
    return this.#flights.at(number)
  }

  node(number: number): NodeState {
    return this.#nodes.at(number).state
  }

  #numberOfNode(state: NodeState, crashesLeft: number): number {
    const kept = crashesLeft === 0 ? withoutCrashes(state) : state
    const text = textOfNode(kept)
    return this.#nodes.number(text, buildNodeCell(kept, this.setting))
  }

  /** Every action that may come next. */
  actions(vector: readonly number[]): readonly ActionCode[] {
    const packed = vector[budgetAt] ?? 0
    const budget = unpackBudget(packed)
    const list: ActionCode[] = []
    this.#pushDeliveries(list, vector, budget)
    for (let at = 0; at < this.setting.names.length; at++) {
      const cell = this.#nodes.at(vector[at] ?? 0)
      for (const code of cell.actions) {
        if (this.#mayCome(vector, code, at, budget)) list.push(actionAt(code, at))
      }
      if (budget.crashes > 0) for (const code of cell.crashes) list.push(actionAt(code, at))
      if (budget.losses > 0) for (const code of cell.losses) list.push(actionAt(code, at))
    }
    if (this.setting.closed !== undefined) list.push(...this.#closing.actions(this, vector))
    this.#pushRequests(list, budget)
    return list
  }

  #mayCome(vector: readonly number[], code: ActionCode, at: number, budget: Budget): boolean {
    if (isOfKind(code, 'timer')) return budget.timeouts > 0
    if (isOfKind(code, 'renew')) return budget.renewals > 0
    if (isOfKind(code, 'lapse')) return budget.lapses > 0
    if (isOfKind(code, 'snapshot')) return budget.snapshots > 0 && this.#isBehind(vector, code, at)
    return !isOfKind(code, 'expire') || this.#isExpiryDue(vector, code, at)
  }

  /** Whether the snapshot goes to another node, which has not applied as much. */
  #isBehind(vector: readonly number[], code: ActionCode, at: number): boolean {
    const { argument } = unpackAction(code)
    const peer = argument % 4
    const { states } = this.node(vector[at] ?? 0)
    const { position } = present(states[Math.floor(argument / 4)], 'explore: no such state')
    return peer !== at && this.#readPosition(vector[peer] ?? 0) < position
  }

  #isExpiryDue(vector: readonly number[], code: ActionCode, at: number): boolean {
    const { argument } = unpackAction(code)
    const { names, scope } = this.setting
    const [grantor, holder] = [present(names[at], 'explore'), present(names[argument], 'explore')]
    const lent = this.node(vector[at] ?? 0).pairs.lent.get(holder)
    const { incarnation, pairs } = this.node(vector[argument] ?? 0)
    const borrowed = pairs.borrowed.get(grantor)
    if (lent === undefined || borrowed === undefined) return false
    return isExpiryDue(lent, scope.leases?.ticks ?? 0, { incarnation, now: borrowed.now })
  }

  /** Each node's view of its leases, in the order of the names. */
  #leaseViews(vector: readonly number[]): readonly LeaseView[] {
    return this.setting.names.map((name, at) => {
      const cell = this.#nodes.at(vector[at] ?? 0)
      cell.leases ??= viewLeases(this.setting, name, cell.state)
      return cell.leases
    })
  }

  row(number: number): SharesRow {
    return this.#closing.row(number)
  }
  book(vector: readonly number[]): Book {
    return this.#books.at(vector[bookAt] ?? 0)
  }

  nodes(vector: readonly number[]): readonly NodeState[] {
    return this.setting.names.map((_, at) => this.node(vector[at] ?? 0))
  }
  endBreaches(vector: readonly number[]): readonly Breach[] {
    return this.#closing.endBreaches(this, vector)
  }

  #pushDeliveries(list: ActionCode[], vector: readonly number[], budget: Budget): void {
    for (let at = flightAt; at < vector.length; at++) {
      const number = vector[at] ?? 0
      const { to } = this.#flights.at(number)
      list.push(packAction('deliver', to, number))
      if (budget.duplicates > 0) list.push(packAction('repeat', to, number))
    }
  }

  #pushRequests(list: ActionCode[], budget: Budget): void {
    const { submissions, reads } = this.setting.scope
    for (const [at, { node, after }] of submissions.entries()) {
      if (((budget.submitted >> at) & 1) === 1) continue
      if (after !== undefined && ((budget.answered >> after) & 1) === 0) continue
      list.push(packAction('submit', node, at))
    }
    for (const [at, node] of reads.entries()) {
      if (((budget.read >> at) & 1) === 0) list.push(packAction('read', node, at))
    }
  }

  /** Takes an action of `actions`. */
  successor(vector: readonly number[], code: ActionCode): Successor {
    const action = unpackAction(code)
    const before = unpackBudget(vector[budgetAt] ?? 0)
    const crashes = restartsLeft(before) - (restarts.has(action.kind) ? 1 : 0)
    const transition = this.#transition(vector[action.node] ?? 0, code, crashes)
    if (transition.isHalted) return { vector: [], breaches: transition.breaches, isHalted: true }
    const noted = this.#note(vector[bookAt] ?? 0, action.node, transition.observations)
    const answered = this.#answered(before, transition.observations)
    const budget = spend({ ...before, answered }, action)
    const next = [...vector.slice(0, bookAt), noted.next, packBudget(budget)]
    next[action.node] = transition.node
    if (restarts.has(action.kind) && crashes === 0) {
      for (let at = 0; at < this.setting.names.length; at++) next[at] = this.#calmed(next[at] ?? 0)
    }
    this.#refill(next, vector, action, transition.sent, crashes)
    const breaches = [...transition.breaches, ...noted.breaches]
    if (this.setting.scope.leases !== undefined) {
      const views = this.#leaseViews(next)
      breaches.push(...leaseBreaches(this.setting, views, this.#books.at(noted.next)))
    }
    if (this.setting.closed !== undefined) {
      breaches.push(...closingBreaches(this.setting, this.nodes(next), this.book(next)))
    }
    return { vector: next, breaches, isHalted: false }
  }

  #answered({ answered: before }: Budget, observations: number): number {
    let answered = before
    for (const seen of this.#observations.at(observations)) {
      if (seen.kind === 'verdict') answered |= 1 << seen.request
    }
    return answered
  }

  /** The messages that are in flight afterwards and may still do something. */
  #refill(
    next: number[],
    vector: readonly number[],
    { kind, argument }: Action,
    sent: readonly number[],
    crashes: number,
  ): void {
    const gone = kind === 'deliver' ? argument : -1
    let sentAt = 0
    const keep = (number: number): void => {
      if (!this.#isDead(next, number, crashes)) next.push(number)
    }
    for (let at = flightAt; at < vector.length; at++) {
      const number = vector[at] ?? 0
      for (; (sent[sentAt] ?? Number.POSITIVE_INFINITY) < number; sentAt++) keep(sent[sentAt] ?? 0)
      const isSent = sent[sentAt] === number
      if (isSent) sentAt += 1
      if (number !== gone || isSent) keep(number)
    }
    for (; sentAt < sent.length; sentAt++) keep(sent[sentAt] ?? 0)
  }

  #transition(node: number, code: ActionCode, crashes: number): Transition {
    const cell = this.#nodes.at(node)
    const key = crashes === 0 ? code : code + 0.5
    const known = cell.transitions.get(key)
    if (known !== undefined) return known
    const { node: at } = unpackAction(code)
    const outcome = this.#outcome(at, cell.state, nodeAction(this, code), crashes)
    const transition: Transition = {
      node: outcome.isHalted ? -1 : this.#numberOfNode(outcome.next, crashes),
      sent: this.#numbersOfFlights(at, outcome.sent),
      observations: this.#observations.number(
        canonicalText(outcome.observations),
        outcome.observations,
      ),
      breaches: outcome.breaches,
      isHalted: outcome.isHalted,
    }
    cell.transitions.set(key, transition)
    return transition
  }

  /** The messages that leave a node within the scope, ascending, once each. */
  #numbersOfFlights(from: number, sent: readonly Sent[]): readonly number[] {
    const numbers = new Set<number>()
    for (const { to, message } of sent) {
      if ('position' in message && message.position > this.setting.scope.positions) continue
      const flight = { from, to: this.setting.names.indexOf(to), message }
      numbers.add(this.#flights.number(canonicalText(flight), flight))
    }
    return [...numbers].sort((a, b) => a - b)
  }

  /** The action's outcome, and that of the writes which then need not wait. */
  #outcome(at: number, state: NodeState, action: NodeAction, crashes: number): NodeOutcome {
    const name = present(this.setting.names[at], 'explore: no such node')
    let outcome = stepNode(this.setting, name, state, action)
    if (crashes > 0) return outcome
    while (!outcome.isHalted && isNextWriteFree(outcome.next, name)) {
      const then = stepNode(this.setting, name, outcome.next, { kind: 'flush' })
      outcome = {
        next: then.next,
        sent: [...outcome.sent, ...then.sent],
        observations: [...outcome.observations, ...then.observations],
        breaches: [...outcome.breaches, ...then.breaches],
        isHalted: then.isHalted,
      }
    }
    return outcome
  }

  /** The effect of an action on its node, worked out anew: for telling. */
  happening(
    vector: readonly number[],
    code: ActionCode,
  ): { readonly before: NodeState; readonly outcome: NodeOutcome } {
    const { kind, node } = unpackAction(code)
    const budget = unpackBudget(vector[budgetAt] ?? 0)
    const before = this.#nodes.at(vector[node] ?? 0).state
    const left = restartsLeft(budget) - (restarts.has(kind) ? 1 : 0)
    return { before, outcome: this.#outcome(node, before, nodeAction(this, code), left) }
  }

  #note(
    book: number,
    node: number,
    observations: number,
  ): { readonly next: number; readonly breaches: readonly Breach[] } {
    // The empty list was numbered first.
    if (observations === 0) return { next: book, breaches: none }
    const key = (observations * 2 ** 26 + book) * 4 + node
    const known = this.#bookSteps.get(key)
    if (known !== undefined) return known
    const seen = this.#observations.at(observations)
    const { next, breaches } = writeDown(this.setting, this.#books.at(book), node, seen)
    const step = { next: this.#books.number(canonicalText(next), next), breaches }
    this.#bookSteps.set(key, step)
    return step
  }

  #calmed(node: number): number {
    const known = this.#calm.get(node)
    if (known !== undefined) return known
    const calm = this.#numberOfNode(this.#nodes.at(node).state, 0)
    this.#calm.set(node, calm)
    return calm
  }

  /**
   * Whether delivering it does nothing, and never will. Answers to a proposal or a read that is
   * over (no ballot and no round is taken up twice: checked as PAX-5), and, without crashes,
   * notices of applied positions, and requests whose answer the proposer no longer needs.
   */
  #isDead(vector: readonly number[], number: number, crashes: number): boolean {
    const flight = this.#flights.at(number)
    const { message, to } = flight
    const node = vector[to] ?? 0
    if (message.kind === 'highest' && this.#mayAskAnew(vector, to)) return false
    if (answers.has(message.kind)) return this.#isDeadAnswer(node, to, number, crashes)
    if (message.kind === 'digest') return !this.#isRestoring(node, message.asked)
    if (message.kind === 'sealed') return this.node(node).change.isPastGate
    const isSealed = isOfSealedEpoch(this.setting, this.node(node), message)
    if (isSealed && this.#isIdle(vector, node, to, number)) return true
    return this.#isDeadQuestion(vector, flight, number, crashes)
  }

  /** The same of a message that is no answer. */
  #isDeadQuestion(
    vector: readonly number[],
    { message, from, to }: Flight,
    number: number,
    crashes: number,
  ): boolean {
    const node = vector[to] ?? 0
    switch (message.kind) {
      case 'query':
        if (this.#mayAskAnew(vector, from)) return false
        return this.#isForgotten(vector[from] ?? 0, to, message.read)
      case 'snapshot':
        return this.#isPassed(vector, node, message.position, crashes)
      case 'seal-request':
        return this.node(vector[from] ?? 0).change.isPastGate
      case 'digest-request':
        return !this.#isRestoring(vector[from] ?? 0, message.asked)
      case 'prepare':
      case 'accept': {
        const applied = this.#readPosition(vector[from] ?? 0)
        if (crashes > 0 || applied < message.position) return false
        return this.#isIdle(vector, node, to, number)
      }
      default:
        return false
    }
  }

  /** Whether the node is as far, and stays so. */
  #isPassed(vector: readonly number[], node: number, position: Position, crashes: number): boolean {
    if (unpackBudget(vector[budgetAt] ?? 0).losses > 0) return false
    const { states, log } = this.node(node)
    // A crash may take the node back to the first of these.
    const least = (crashes > 0 ? states[0] : undefined) ?? log.state
    return least.position >= position
  }

  /** Whether this run of the node goes by what peers answer of their logs. */
  #isRestoring(node: number, incarnation: number): boolean {
    const { restoring, incarnation: own } = this.node(node)
    return restoring !== undefined && own === incarnation
  }

  /**
   * Whether the node may restart, or has, and will ask again: what answers its old questions is
   * dead only as long as no new one has the number of an old one.
   */
  #mayAskAnew(vector: readonly number[], node: number): boolean {
    const { crashes, losses = 0, reads, leases } = this.setting.scope
    if (crashes + losses === 0 || leases !== undefined) return false
    const { read } = unpackBudget(vector[budgetAt] ?? 0)
    return reads.some((at, nth) => at === node && ((read >> nth) & 1) === 0)
  }

  #isDeadAnswer(node: number, to: number, number: number, crashes: number): boolean {
    const { message } = this.#flights.at(number)
    if (message.kind === 'invalidated' || message.kind === 'revoked') {
      return crashes === 0 && message.position <= this.#readPosition(node)
    }
    if (message.kind === 'committed') {
      if (crashes > 0 || message.position > this.#readPosition(node)) return false
    }
    // Come again, it may list a holder whose registration has ended meanwhile.
    if (message.kind === 'accepted' && this.#isAwaited(node, message)) return false
    return this.#doesNothing(node, to, number, crashes)
  }

  #readPosition(node: number): number {
    return this.node(node).log.state.position
  }

  #isAwaited(node: number, { position, ballot }: Accepted): boolean {
    const { proposal } = this.node(node).log
    if (this.setting.scope.leases === undefined || proposal?.position !== position) return false
    return proposal.phase.kind === 'accepting' && equalBallots(proposal.phase.ballot, ballot)
  }

  /** Whether no answer to this round can matter: the asker waits for none, nor registers any. */
  #isForgotten(asker: number, voter: number, read: number): boolean {
    const { log, pairs } = this.node(asker)
    const name = present(this.setting.names[voter], 'explore: no such node')
    return log.readRound?.round !== read && !pairs.borrowed.has(name)
  }

  #doesNothing(node: number, to: number, number: number, crashes: number): boolean {
    const key = (node * 2 ** 22 + number) * 4 + to
    const known = this.#dead.get(key)
    if (known !== undefined) return known
    const transition = this.#transition(node, packAction('deliver', to, number), crashes)
    const { sent, observations } = transition
    const isNothing =
      transition.node === node && sent.length === 0 && observations === 0 && !transition.isHalted
    this.#dead.set(key, isNothing)
    return isNothing
  }

  /** Its delivery changes nothing, and its answers are dead where they go. */
  #isIdle(vector: readonly number[], node: number, to: number, number: number): boolean {
    const transition = this.#transition(node, packAction('deliver', to, number), 0)
    if (transition.node !== node || transition.observations !== 0) return false
    return transition.sent.every((answer) => this.#isDead(vector, answer, 0))
  }
}
