/**
 * The facts about each list from its reads: the writers of its elements, and their order. A list
 * only grows, so every read shows the order of all its elements. The longest reads come first, and
 * a read that contradicts them is an anomaly.
 */
import { present } from '../../src/base/assert.ts'
import type { Anomalies } from './anomaly.ts'
import type { Element, History, HistoryOperation, Outcome } from './operation.ts'
import type { ListView, Views } from './views.ts'
import { listText, quoted } from './words.ts'

export interface Writer {
  /**
   * Undefined when several operations may have appended the same element, and none was
   * acknowledged.
   */
  readonly operation: number | undefined
  /** Of the elements that its operation appended to the list. */
  readonly isLast: boolean
}

export interface ListFacts {
  readonly key: string
  readonly writers: Map<Element, Writer>
  /** By index; unknown where no read reached. */
  readonly order: (Element | undefined)[]
  readonly indexByElement: Map<Element, number>
  /** The operation that told what stands at each index. */
  readonly toldBy: (number | undefined)[]
  readonly views: ListView[]
  /** Views that agree with the order. */
  readonly agreeing: Set<ListView>
}

/** The length of the known front; an element that no read shows may stand at the next index. */
export function knownLength({ order }: ListFacts): number {
  const hole = order.findIndex((element) => element === undefined)
  return hole < 0 ? order.length : hole
}

export function readLists(
  history: History,
  views: Views,
  anomalies: Anomalies,
): ReadonlyMap<string, ListFacts> {
  const lists = new Map<string, ListFacts>()
  const ensureList = (key: string): ListFacts => {
    const known = lists.get(key)
    if (known !== undefined) return known
    const facts = emptyFacts(key)
    lists.set(key, facts)
    return facts
  }
  for (const index of history.keys()) noteAppends(history, index, ensureList, anomalies)
  const rawByKey = new Map<string, ListView[]>()
  for (const view of views.raw) {
    const known = rawByKey.get(view.key)
    if (known === undefined) rawByKey.set(view.key, [view])
    else known.push(view)
  }
  for (const [key, raw] of rawByKey) learnOrder(ensureList(key), raw, anomalies)
  for (const view of views.outer) {
    const facts = ensureList(view.key)
    facts.views.push(view)
    if (agrees(facts, view)) facts.agreeing.add(view)
  }
  placeTold(history, ensureList, anomalies)
  return lists
}

function emptyFacts(key: string): ListFacts {
  return {
    key,
    writers: new Map<Element, Writer>(),
    order: [],
    indexByElement: new Map(),
    toldBy: [],
    views: [],
    agreeing: new Set<ListView>(),
  }
}

/** An operation that ended well is believed before one that did not, and the first one of those. */
function noteAppends(
  history: History,
  index: number,
  ensureList: (key: string) => ListFacts,
  anomalies: Anomalies,
): void {
  const { micro, outcome } = operationAt(history, index)
  for (const [place, one] of micro.entries()) {
    if (one.kind !== 'append') continue
    const { key, element } = one
    const { writers } = ensureList(key)
    const isLast = !micro.slice(place + 1).some((two) => two.kind === 'append' && two.key === key)
    const known = writers.get(element)
    const rival = findOutcome(history, known)
    if (rival === undefined || rank(outcome) > rank(rival)) {
      writers.set(element, { operation: index, isLast })
    } else if (outcome === 'unknown' && rival === 'unknown') {
      // Which of them it was cannot be known; a guess would give edges between strangers.
      writers.set(element, { operation: undefined, isLast: isLast || known?.isLast === true })
    } else if (outcome === 'ok' && rival === 'ok' && known?.operation !== undefined) {
      anomalies.add({
        name: 'duplicate-elements',
        operations: [known.operation, index],
        sentences: [
          `T1 and T2 were both told that they appended ${quoted(element)} to ${key}, which only one can have done.`,
        ],
      })
    }
  }
}

function findOutcome(history: History, known: Writer | undefined): Outcome | undefined {
  if (known === undefined) return undefined
  return known.operation === undefined ? 'unknown' : operationAt(history, known.operation).outcome
}

function rank(outcome: Outcome): number {
  return { ok: 2, unknown: 1, fail: 0 }[outcome]
}

function learnOrder(facts: ListFacts, raw: ListView[], anomalies: Anomalies): void {
  const computeEnd = (view: ListView): number => view.after + view.elements.length
  const longestFirst = raw.toSorted(
    (a, b) => computeEnd(b) - computeEnd(a) || a.operation - b.operation,
  )
  for (const view of longestFirst) {
    const { after, elements, operation } = view
    for (const [i, element] of elements.entries()) {
      const at = after + i
      const known = facts.order[at]
      if (known === element) continue
      if (known !== undefined) {
        tellIncompatible(facts, view, at, anomalies)
        break
      }
      const other = facts.indexByElement.get(element)
      if (other !== undefined) {
        tellDuplicate(facts, view, element, [other, at], anomalies)
        break
      }
      facts.order[at] = element
      facts.toldBy[at] = operation
      facts.indexByElement.set(element, at)
    }
  }
}

function tellIncompatible(
  facts: ListFacts,
  view: ListView,
  at: number,
  anomalies: Anomalies,
): void {
  const { key, operation, elements, after } = view
  const one = facts.order[at]
  const other = elements[at - after]
  const earlier = facts.toldBy[at]
  if (one === undefined || other === undefined || earlier === undefined) return
  if (new Set(elements).size < elements.length) {
    return tellDuplicate(facts, view, firstRepeated(elements), undefined, anomalies)
  }
  anomalies.add({
    name: 'incompatible-order',
    operations: [earlier, operation],
    sentences: [
      `T1 read ${key} with ${quoted(one)} at index ${at}, where T2 read ${quoted(other)} (${listText(elements.slice(0, at - after + 1))}).`,
      'A list only grows at its end, so not both can be.',
    ],
  })
}

function tellDuplicate(
  { key }: ListFacts,
  { operation, elements }: ListView,
  element: Element | undefined,
  places: readonly [number, number] | undefined,
  anomalies: Anomalies,
): void {
  if (element === undefined) return
  const where = places === undefined ? 'twice' : `at index ${places[0]} and at index ${places[1]}`
  anomalies.add({
    name: 'duplicate-elements',
    operations: [operation],
    sentences: [
      `${quoted(element)} was appended to ${key} once and stands in it ${where}; T1 read ${listText(elements)}.`,
    ],
  })
}

function firstRepeated(elements: readonly Element[]): Element | undefined {
  const seen = new Set<Element>()
  return elements.find((element) => seen.size === seen.add(element).size)
}

function agrees(facts: ListFacts, { after, elements }: ListView): boolean {
  return elements.every((element, i) => facts.order[after + i] === element)
}

/** Acknowledged places fill the indexes that no read reached. They must agree with the reads. */
function placeTold(
  history: History,
  ensureList: (key: string) => ListFacts,
  anomalies: Anomalies,
): void {
  for (const [operation, { micro, outcome }] of history.entries()) {
    if (outcome !== 'ok') continue
    for (const one of micro) {
      if (one.kind !== 'append' || one.index === undefined) continue
      const { key, element, index } = one
      const { order, toldBy, indexByElement } = ensureList(key)
      const there = order[index]
      if (there === undefined && !indexByElement.has(element)) {
        order[index] = element
        toldBy[index] = operation
        indexByElement.set(element, index)
      } else if (there !== element) {
        const stands = indexByElement.get(element)
        const place = stands === undefined ? 'nowhere' : `at index ${stands}`
        anomalies.add({
          name: 'incompatible-order',
          operations: [operation, toldBy[stands ?? index] ?? operation],
          sentences: [
            `T1 was told that it appended ${quoted(element)} to ${key} at index ${index}; by what T2 was told it stands ${place}.`,
          ],
        })
      }
    }
  }
}

function operationAt(history: History, index: number): HistoryOperation {
  return present(history[index], 'history: an index is out of range')
}
