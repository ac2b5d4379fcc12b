/**
 * Once a bucket is settled, the nodes end each entry that one of them has begun (MOVE-14, LIVE-1). The check takes such a state, and loses
 * all messages. All nodes are left, or all but one, and each of their deadlines comes again and again. Then a chosen first entry, and one that may have been
 * chosen, is applied at each of these nodes that has something of it, and no transaction waits.
 */
import { isListed } from './bucket.ts'
import type { Book } from './book.ts'
import type { Graph } from './graph.ts'
import type { NodeState } from './node-state.ts'
import type { Breach } from './observation.ts'
import {
  budgetAt,
  flightAt,
  isOfKind,
  packBudget,
  unpackAction,
  unpackBudget,
  type ActionCode,
  type ActionKind,
} from './state-vector.ts'

const roundsMax = 12
const stepsMax = 2_000
const restless: ReadonlySet<ActionKind> = new Set(['deliver', 'flush', 'seal', 'learn'])

export function unendedBreaches(model: Graph, first: readonly number[]): readonly Breach[] {
  const all = model.setting.names.map((_, at) => at)
  const fewer = all.map((silent) => all.filter((at) => at !== silent))
  const companies = [all, ...fewer].filter((alive) => alive.length > all.length / 2)
  const failed = companies.find((alive) => !doesEnd(model, first, alive))
  if (failed === undefined) return []
  const names = failed.map((at) => model.setting.names[at]).join(' and ')
  return [
    {
      rule: 'MOVE-14',
      sentence: `The nodes ${names} do not end an entry that one of them has begun.`,
    },
  ]
}

function doesEnd(model: Graph, first: readonly number[], alive: readonly number[]): boolean {
  let vector = settled(model, left(model, first), alive)
  // A seal that came before the node had sealed is lost here; in a program the node asks for it again.
  if (!alive.every((at) => model.node(vector[at] ?? 0).change.isPastGate)) return true
  for (let round = 0; round < roundsMax; round++) {
    if (isEnded(model, vector, alive)) return true
    for (const at of alive) {
      const timers = model.actions(refilled(vector)).filter((code) => {
        const { kind, node } = unpackAction(code)
        return kind === 'timer' && node === at
      })
      for (const timer of timers) vector = settled(model, after(model, vector, timer), alive)
    }
  }
  return isEnded(model, vector, alive)
}

/** Without requests to come, and without messages but seals: a node asks for a seal until it has it. */
function left(model: Graph, vector: readonly number[]): readonly number[] {
  const seals = vector.slice(flightAt).filter((number) => {
    const { kind } = model.flight(number).message
    return kind === 'sealed' || kind === 'seal-request'
  })
  return refilled([...vector.slice(0, flightAt), ...seals])
}

/** With as many time-outs as it takes, and nothing else that may happen by itself. */
function refilled(vector: readonly number[]): readonly number[] {
  const budget = unpackBudget(vector[budgetAt] ?? 0)
  const none = { crashes: budget.crashes, duplicates: 0, submitted: 31, read: 31, timeouts: 15 }
  return [
    ...vector.slice(0, budgetAt),
    packBudget({ ...budget, ...none }),
    ...vector.slice(budgetAt + 1),
  ]
}

/** A deadline that is not set any more does nothing. */
function after(model: Graph, vector: readonly number[], timer: ActionCode): readonly number[] {
  const refreshed = refilled(vector)
  if (!model.actions(refreshed).includes(timer)) return vector
  return model.successor(refreshed, timer).vector
}

/** When nothing moves any more at these nodes. */
function settled(
  model: Graph,
  first: readonly number[],
  alive: readonly number[],
): readonly number[] {
  let vector = first
  for (let steps = 0; steps < stepsMax; steps++) {
    const mayCome = model.actions(vector).filter((code) => {
      const { kind, node } = unpackAction(code)
      return restless.has(kind) && alive.includes(node)
    })
    const next = mayCome.find((code) => isOfKind(code, 'seal')) ?? mayCome[0]
    if (next === undefined) break
    vector = model.successor(vector, next).vector
  }
  return vector
}

function isEnded(model: Graph, vector: readonly number[], alive: readonly number[]): boolean {
  const book = model.book(vector)
  const nodes = alive.map((at) => model.node(vector[at] ?? 0))
  return nodes.some(givesSnapshot) || nodes.every((node) => isEndedAt(node, model, book))
}

/** Its data store has the first entry, and its log gives that to no peer: each of them takes a snapshot instead. */
function givesSnapshot({ states, disk }: NodeState): boolean {
  return (states[0]?.position ?? 0) > 0 && disk.get(1)?.chosen === undefined
}

function isEndedAt({ log }: NodeState, { setting }: Graph, { row, chosen }: Book): boolean {
  if (log.state.position > 0) return true
  if (log.waiting.size + log.forwarded.size > 0) return false
  const record = log.records.get(1)
  const hasAccepted = record?.kind === 'present' && record.acceptor.accepted !== undefined
  // An acceptance of a value that was not chosen, and is not, stays.
  const ends = chosen.has(1) || isListed(setting, row)
  return !(hasAccepted && ends)
}
