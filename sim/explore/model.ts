/**
 * The searched graph. A state is a short vector of numbers: one for each node's state, one for the
 * observer's book, one for the budgets, then the messages in flight in ascending order (a set: a
 * message sent again while it is in flight is the same one). Equal parts have equal numbers, and
 * what a node does with an action is worked out once, so that most of a search is arithmetic.
 *
 * What is left out, and why nothing is lost by it:
 * - No action loses a message: one that is never delivered is lost, and time-outs wait for nothing.
 * - A restart comes with its crash: a node that is down does what one does that gets no message.
 * - A message is dropped when its delivery does nothing, now and later (`isDead`).
 * - When no crash can come any more, a write whose answers all go to other nodes is done at once: it
 *   commutes with whatever else can happen, at its node and elsewhere.
 */
import { present } from '../../src/base/assert.ts'
import type { LogRecord } from '../../src/replication/effect.ts'
import type { GroupMessage } from '../../src/replication/message.ts'
import { newNode, setTimers, textOfNode, withoutCrashes, type NodeState } from './node-state.ts'
import { emptyBook, writeDown, type Book } from './book.ts'
import { canonicalText, Interner } from './canonical.ts'
import { stepNode, type NodeAction, type NodeOutcome, type Sent } from './node-step.ts'
import type { Breach, Observation } from './observation.ts'
import {
  bookAt,
  budgetAt,
  flightAt,
  packAction,
  packBudget,
  unpackAction,
  unpackBudget,
  type Action,
  type ActionCode,
  type ActionKind,
  type Budget,
} from './state-vector.ts'
import { timerNames, type Scope } from './scope.ts'
import { settingOf, type Setting } from './setting.ts'

export interface Flight {
  readonly from: number
  readonly to: number
  readonly message: GroupMessage
}

/** What a node does with an action, in numbers. */
interface Transition {
  readonly node: number
  readonly sent: readonly number[]
  readonly observations: number
  readonly breaches: readonly Breach[]
  readonly isHalted: boolean
}

/** A node's state with what was worked out about it. */
interface NodeCell {
  readonly state: NodeState
  readonly transitions: Map<ActionCode, Transition>
  /** Everything but deliveries, submissions and reads. */
  readonly actions: readonly ActionCode[]
  readonly crashes: readonly ActionCode[]
}

/** What an action leads to. `vector` is valid until the next one is asked for. */
export interface Successor {
  readonly vector: number[]
  readonly breaches: readonly Breach[]
  readonly isHalted: boolean
}

const none: readonly Breach[] = []

export class Model {
  readonly setting: Setting
  readonly initial: readonly number[]
  readonly #nodes: Interner<NodeCell>
  readonly #flights = new Interner<Flight>()
  readonly #books = new Interner<Book>()
  readonly #observations = new Interner<readonly Observation[]>()
  readonly #bookSteps = new Map<
    number,
    { readonly next: number; readonly breaches: readonly Breach[] }
  >()
  readonly #calm = new Map<number, number>()
  /** For each node's number: messages to it that do nothing there. */
  readonly #dead = new Map<number, boolean>()

  constructor(scope: Scope) {
    this.setting = settingOf(scope)
    this.#nodes = new Interner()
    const node = this.#numberOfNode(newNode(this.setting), scope.crashes)
    const book = this.#books.number(canonicalText(emptyBook), emptyBook)
    this.#observations.number(canonicalText([]), [])
    const { timeouts, crashes, duplicates } = scope
    const budget = { timeouts, crashes, duplicates, submitted: 0, answered: 0, read: 0 }
    this.initial = this.#afterPrologue([node, node, node, book, packBudget(budget)])
  }

  /** Where the search begins: the first submissions are made, and everything settles after each. */
  #afterPrologue(first: readonly number[]): readonly number[] {
    let vector = first
    for (let at = 0; at < this.setting.scope.prologue; at++) {
      const { node = 0 } = this.setting.scope.submissions[at] ?? {}
      let next: ActionCode | undefined = packAction('submit', node, at)
      while (next !== undefined) {
        vector = this.successor(vector, next).vector
        next = this.actions(vector).find((code) => settling.has(unpackAction(code).kind))
      }
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
    return this.#nodes.number(text, cellOf(kept, this.setting.scope))
  }

  /** Every action that may come next. */
  actions(vector: readonly number[]): readonly ActionCode[] {
    const packed = vector[budgetAt] ?? 0
    const budget = unpackBudget(packed)
    const list: ActionCode[] = []
    this.#pushDeliveries(list, vector, budget)
    for (let at = 0; at < bookAt; at++) {
      const cell = this.#nodes.at(vector[at] ?? 0)
      for (const code of cell.actions) {
        if (code % 8 === timerKind && budget.timeouts === 0) continue
        list.push(code + 8 * at)
      }
      if (budget.crashes > 0) for (const code of cell.crashes) list.push(code + 8 * at)
    }
    this.#pushRequests(list, budget)
    return list
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
    const crashes = action.kind === 'crash' ? before.crashes - 1 : before.crashes
    const transition = this.#transition(vector[action.node] ?? 0, code, crashes)
    if (transition.isHalted) return { vector: [], breaches: transition.breaches, isHalted: true }
    const noted = this.#note(vector[bookAt] ?? 0, action.node, transition.observations)
    const budget = this.#spend(before, action, transition.observations)
    const next = [...vector.slice(0, bookAt), noted.next, packBudget(budget)]
    next[action.node] = transition.node
    if (action.kind === 'crash' && crashes === 0) {
      for (let at = 0; at < bookAt; at++) next[at] = this.#calmed(next[at] ?? 0)
    }
    this.#refill(next, vector, action, transition.sent, crashes)
    const breaches =
      transition.breaches.length + noted.breaches.length === 0
        ? none
        : [...transition.breaches, ...noted.breaches]
    return { vector: next, breaches, isHalted: false }
  }

  #spend(before: Budget, { kind, argument }: Action, observations: number): Budget {
    let { answered } = before
    for (const seen of this.#observations.at(observations)) {
      if (seen.kind === 'verdict') answered |= 1 << seen.request
    }
    return {
      timeouts: before.timeouts - (kind === 'timer' ? 1 : 0),
      crashes: before.crashes - (kind === 'crash' ? 1 : 0),
      duplicates: before.duplicates - (kind === 'repeat' ? 1 : 0),
      submitted: before.submitted | (kind === 'submit' ? 1 << argument : 0),
      answered,
      read: before.read | (kind === 'read' ? 1 << argument : 0),
    }
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

  /** What leaves a node, ascending, once each; what is beyond the scope is lost at once. */
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
    while (!outcome.isHalted && isNextWriteFree(outcome.next)) {
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

  /** What an action does to its node, worked out anew: for telling. */
  happening(
    vector: readonly number[],
    code: ActionCode,
  ): { readonly before: NodeState; readonly outcome: NodeOutcome } {
    const { kind, node } = unpackAction(code)
    const { crashes } = unpackBudget(vector[budgetAt] ?? 0)
    const before = this.#nodes.at(vector[node] ?? 0).state
    const left = kind === 'crash' ? crashes - 1 : crashes
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
   * Whether delivering it does nothing, and never will. Answers to a proposal or a read that is over
   * (no ballot and no round is taken up twice: checked as PAX-5), and, without crashes, notices of
   * what is applied and requests that the proposer itself no longer needs an answer to.
   */
  #isDead(vector: readonly number[], number: number, crashes: number): boolean {
    const flight = this.#flights.at(number)
    const { message, to } = flight
    const node = vector[to] ?? 0
    switch (message.kind) {
      case 'promised':
      case 'accepted':
      case 'refused':
      case 'highest':
      case 'faulty':
        return this.#doesNothing(node, to, number, crashes)
      case 'committed': {
        if (crashes > 0 || !this.#doesNothing(node, to, number, crashes)) return false
        return message.position <= this.#nodes.at(node).state.log.state.position
      }
      case 'prepare':
      case 'accept': {
        const proposer = vector[flight.from] ?? 0
        const applied = this.#nodes.at(proposer).state.log.state.position
        if (crashes > 0 || applied < message.position) return false
        return this.#isIdle(vector, node, to, number)
      }
      default:
        return false
    }
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

const settling: ReadonlySet<ActionKind> = new Set(['deliver', 'flush'])
const timerKind = packAction('timer', 0, 0)

function cellOf(state: NodeState, scope: Scope): NodeCell {
  const actions: ActionCode[] = []
  const isWithin = ({ position }: LogRecord): boolean => position <= scope.positions
  const next = state.pending.find((write) => write.isForced)
  if (next?.records.some(isWithin) === true) actions.push(packAction('flush', 0, 0))
  const isDone = state.log.state.position >= scope.positions
  for (const timer of isDone ? [] : setTimers(state.log)) {
    if (!scope.timers.includes(timer)) continue
    actions.push(packAction('timer', 0, timerNames.indexOf(timer)))
  }
  const crashes: ActionCode[] = []
  for (let writes = 0; writes <= state.pending.length; writes++) {
    for (let at = 0; at < state.states.length; at++) {
      crashes.push(packAction('crash', 0, at * 32 + writes))
    }
  }
  return { state, transitions: new Map(), actions, crashes }
}

/** All that waits for the next write are messages to other nodes. */
function isNextWriteFree(state: NodeState): boolean {
  const next = state.pending.find((write) => write.isForced)
  return next !== undefined && next.after.every((effect) => effect.kind === 'send')
}

/** The action as its node takes it. */
export function nodeAction(model: Model, code: ActionCode): NodeAction {
  const { kind, argument } = unpackAction(code)
  switch (kind) {
    case 'deliver':
    case 'repeat': {
      const { from, message } = model.flight(argument)
      const name = present(model.setting.names[from], 'explore: no such node')
      return { kind: 'deliver', from: name, message }
    }
    case 'flush':
      return { kind }
    case 'timer':
      return { kind, timer: present(timerNames[argument], 'explore: no such timer') }
    case 'crash':
      return { kind, writes: argument % 32, state: Math.floor(argument / 32) }
    case 'submit':
      return { kind, submission: argument }
    case 'read':
      return { kind, read: argument }
  }
}
