/**
 * Judges a history by itself (Kingsbury and Alvaro, "Elle", VLDB 2020). From the reads of lists it
 * infers the order of their writes, and from that the order of operations. It then looks for reads
 * that contradict their writers, and for cycles.
 *
 * Sound, not complete: an anomaly that it names is wrong whatever the database did inside. It
 * cannot judge data without reads.
 */
import { Anomalies, type Anomaly, type AnomalyName } from './anomaly.ts'
import { findCycles, type Cycle } from './cycles.ts'
import { findDirect } from './direct.ts'
import { buildGraph, type Facts, type Promised } from './edges.ts'
import { edgeKinds } from './graph.ts'
import { readLists } from './lists.ts'
import type { History, HistoryOperation } from './operation.ts'
import { readRegisters } from './registers.ts'
import { findBackwards } from './sessions.ts'
import { buildViews } from './views.ts'
import { operationText } from './words.ts'

export interface CheckOptions {
  /** Default: `strict-serializable`. */
  readonly promised?: Promised
}

export interface Verdict {
  readonly anomalies: readonly Anomaly[]
  readonly operationCount: number
  readonly acknowledgedCount: number
}

export function checkHistory(history: History, options: CheckOptions = {}): Verdict {
  const { promised = 'strict-serializable' } = options
  const anomalies = new Anomalies()
  const views = buildViews(history, anomalies)
  const lists = readLists(history, views, anomalies)
  const facts: Facts = { history, lists, registers: readRegisters(history, anomalies) }
  findDirect(facts, promised, anomalies)
  if (promised !== 'serializable') findBackwards(facts, anomalies)
  for (const cycle of findCycles(buildGraph(facts, promised))) {
    anomalies.add(toAnomaly(cycle, history))
  }
  return {
    anomalies: anomalies.list(),
    operationCount: history.length,
    acknowledgedCount: history.filter(({ outcome }) => outcome === 'ok').length,
  }
}

/** T1 is the operation at which the cycle begins, T2 the next one, and so on. */
function toAnomaly({ name, steps }: Cycle, history: History): Anomaly {
  const operations = steps.map(({ from }) => from)
  const label = (operation: number): string => `T${operations.indexOf(operation) + 1}`
  const sentences = steps.map(({ from, to, edge }) => {
    const [a, b] = [label(from), label(to)]
    const before = history[from]
    if (edge.bit === edgeKinds.realtime) return orderText(before, history[to], a, b)
    if (edge.bit === edgeKinds.session) {
      return `${a} came before ${b} in the session of ${before?.client ?? ''}.`
    }
    return `${a} is before ${b}: ${edge.reason.replaceAll('{a}', a).replaceAll('{b}', b)}`
  })
  return { name, operations, sentences: [...sentences, 'So each of them must come before itself.'] }
}

function orderText(
  before: HistoryOperation | undefined,
  after: HistoryOperation | undefined,
  a: string,
  b: string,
): string {
  return `${a} had ended (at ${before?.end ?? '?'}) before ${b} began (at ${after?.start ?? '?'}).`
}

/** An anomaly for a person: its name, why it cannot be, and the operations concerned. */
export function explain(anomaly: Anomaly, history: History): string {
  const lines = anomaly.operations.map((index, i) => {
    const operation = history[index]
    return operation === undefined ? '' : `    T${i + 1} = ${operationText(operation)}`
  })
  return [
    `${anomaly.name}: ${meanings[anomaly.name]}`,
    ...anomaly.sentences.map((sentence) => `  ${sentence}`),
    ...lines,
  ].join('\n')
}

const suffixes = { session: ', once sessions count', realtime: ', once real time counts' }
const shapes = {
  G0: 'writes of several operations are interleaved',
  G1c: 'operations see each other’s writes in a circle',
  'G-single': 'an operation saw the state before a write that it must come after',
  'G2-item': 'operations each saw the state before another’s write, in a circle',
}

const meanings: Readonly<Record<AnomalyName, string>> = {
  ...shapes,
  'G0-session': shapes.G0 + suffixes.session,
  'G1c-session': shapes.G1c + suffixes.session,
  'G-single-session': shapes['G-single'] + suffixes.session,
  'G2-item-session': shapes['G2-item'] + suffixes.session,
  'G0-realtime': shapes.G0 + suffixes.realtime,
  'G1c-realtime': shapes.G1c + suffixes.realtime,
  'G-single-realtime': shapes['G-single'] + suffixes.realtime,
  'G2-item-realtime': shapes['G2-item'] + suffixes.realtime,
  G1a: 'an operation saw what a failed one wrote',
  G1b: 'an operation saw the middle of another one',
  'dirty-update': 'an operation wrote on top of what a failed one wrote',
  'lost-update': 'a write is lost, or was made without sight of another',
  'incompatible-order': 'a list was seen in two ways that cannot both be',
  'duplicate-elements': 'what happened once is there twice',
  unwritten: 'something was seen that nobody wrote',
  'changed-value': 'a version has two values',
  internal: 'an operation contradicts itself',
  'stale-read': 'a current read misses what was acknowledged before it began',
  'session-backwards': 'a session saw less than it had seen',
}
