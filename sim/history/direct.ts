/**
 * Contradictions in single reads, without a search for cycles: the anomalies with names of their
 * own, because a person understands them at once.
 */
import type { Anomalies } from './anomaly.ts'
import type { Facts, Promised } from './edges.ts'
import { knownLength, type ListFacts } from './lists.ts'
import type { Element, HistoryOperation } from './operation.ts'
import type { RegisterFacts } from './registers.ts'
import { listText, quoted } from './words.ts'
import type { ListView } from './views.ts'

export function findDirect(facts: Facts, promised: Promised, anomalies: Anomalies): void {
  for (const list of facts.lists.values()) {
    for (const view of list.views) {
      checkElements(facts, list, view, anomalies)
      checkMiddle(list, view, anomalies)
    }
    checkDirtyUpdate(facts, list, anomalies)
    checkSameState(list, facts, anomalies)
    if (promised === 'strict-serializable') {
      checkGone(facts, list, anomalies)
      checkStale(facts, list, anomalies)
    }
  }
  for (const register of facts.registers.values()) checkVersions(facts, register, anomalies)
}

function checkVersions(
  { history }: Facts,
  { key, views, writers }: RegisterFacts,
  anomalies: Anomalies,
): void {
  for (const { operation, latest, asked } of views) {
    const version = latest ?? (asked?.isPresent === true ? asked.version : -1)
    if (version < 0) continue
    const writer = writers.get(version)
    if (!writers.has(version)) {
      const text = `T1 saw version ${version} of ${key}, which nobody wrote.`
      anomalies.add({ name: 'unwritten', operations: [operation], sentences: [text] })
    } else if (writer !== undefined && history[writer]?.outcome === 'fail') {
      const text = `T1 saw version ${version} of ${key}, which T2 wrote, and T2 failed.`
      anomalies.add({ name: 'G1a', operations: [operation, writer], sentences: [text] })
    }
  }
}

/** Every element that a read shows has a writer that did not fail. */
function checkElements(
  { history }: Facts,
  list: ListFacts,
  view: ListView,
  anomalies: Anomalies,
): void {
  const { key, writers, toldBy } = list
  const isAgreeing = list.agreeing.has(view)
  for (const [i, element] of view.elements.entries()) {
    const writer = writers.get(element)?.operation
    const isWritten = writers.has(element)
    const isGood = isWritten && (writer === undefined || history[writer]?.outcome !== 'fail')
    if (writer === view.operation) {
      const text = `T1 saw ${quoted(element)} in ${key} before it appended it.`
      anomalies.add({ name: 'internal', operations: [view.operation], sentences: [text] })
    }
    // Told once, of the operation that showed it first.
    if (isGood || (isAgreeing && toldBy[view.after + i] !== view.operation)) continue
    if (writer === undefined) {
      const text = `T1 saw ${quoted(element)} in ${key}, which nobody appended.`
      anomalies.add({ name: 'unwritten', operations: [view.operation], sentences: [text] })
    } else {
      const text = `T1 saw ${quoted(element)} in ${key}, which T2 appended, and T2 failed.`
      anomalies.add({ name: 'G1a', operations: [view.operation, writer], sentences: [text] })
    }
  }
}

function checkMiddle(
  { key, writers }: ListFacts,
  { operation, elements, isEnd }: ListView,
  anomalies: Anomalies,
): void {
  const last = elements.at(-1)
  const writer = last === undefined ? undefined : writers.get(last)
  if (!isEnd || last === undefined || writer === undefined || writer.isLast) return
  if (writer.operation === operation || writer.operation === undefined) return
  anomalies.add({
    name: 'G1b',
    operations: [operation, writer.operation],
    sentences: [
      `T1 read ${key} as ${listText(elements)}; ${quoted(last)} is of T2, which appended more to ${key} that T1 did not see.`,
    ],
  })
}

function checkDirtyUpdate({ history }: Facts, list: ListFacts, anomalies: Anomalies): void {
  const { order, writers, key } = list
  let failed: { readonly element: Element; readonly operation: number } | undefined
  for (const element of order) {
    if (element === undefined) continue
    const writer = writers.get(element)?.operation
    if (writer === undefined) continue
    const outcome = history[writer]?.outcome
    if (outcome === 'fail') failed = { element, operation: writer }
    else if (failed !== undefined) {
      const text = `T1 failed, and what it appended to ${key}, ${quoted(failed.element)}, stands before ${quoted(element)}, which T2 appended on top of it.`
      const operations = [failed.operation, writer]
      return anomalies.add({ name: 'dirty-update', operations, sentences: [text] })
    }
  }
}

/** Of two that append, one must have seen what the other appended, if both read. */
function checkSameState(list: ListFacts, { history }: Facts, anomalies: Anomalies): void {
  const { key, views, agreeing } = list
  const firstByEnd = new Map<number, number>()
  for (const view of views) {
    if (!view.isEnd || !agreeing.has(view)) continue
    const operation = history[view.operation]
    const own = operation?.micro.some((one) => one.kind === 'append' && one.key === key)
    if (own !== true) continue
    const end = view.after + view.elements.length
    const first = firstByEnd.get(end)
    if (first === undefined) firstByEnd.set(end, view.operation)
    else {
      const text = `T1 and T2 both read ${key} as ${listText(view.elements)} and both appended to it: whichever came second did not see what the other had appended.`
      const operations = [first, view.operation]
      anomalies.add({ name: 'lost-update', operations, sentences: [text] })
    }
  }
}

interface Appended {
  readonly element: Element
  readonly operation: number
  readonly end: number
}

/** An acknowledged append that no read ever showed, although one began after it. */
function checkGone({ history }: Facts, list: ListFacts, anomalies: Anomalies): void {
  const { writers, indexByElement, views, key } = list
  const gone = [...writers].filter(([element]) => !indexByElement.has(element))
  const known = knownLength(list)
  for (const [element, { operation }] of gone) {
    if (anomalies.isFull('lost-update')) return
    if (operation === undefined) continue
    const end = findEnd(history[operation])
    if (end === undefined) continue
    const read = views.find(
      (view) =>
        view.isEnd &&
        view.after + view.elements.length <= known &&
        isCurrentAfter(history[view.operation], end),
    )?.operation
    if (read === undefined) continue
    const text = `T1 appended ${quoted(element)} to ${key} and was told so; T2 began after that and read ${key} without it, and no read ever showed it.`
    anomalies.add({ name: 'lost-update', operations: [operation, read], sentences: [text] })
  }
}

/** A current read shows every append that was acknowledged before it began. */
function checkStale(facts: Facts, list: ListFacts, anomalies: Anomalies): void {
  const { history } = facts
  const { views, agreeing, key } = list
  const earliest = earliestFrom(facts, list)
  for (const view of views) {
    if (!view.isEnd || !agreeing.has(view)) continue
    const missed = earliest[view.after + view.elements.length]
    const read = history[view.operation]
    if (missed === undefined || read === undefined || !isCurrentAfter(read, missed.end)) continue
    const text = `T1 appended ${quoted(missed.element)} to ${key} and was told so at ${missed.end}; T2 began at ${read.start} and read ${key} as ${listText(view.elements)}, without it.`
    const operations = [missed.operation, view.operation]
    anomalies.add({ name: 'stale-read', operations, sentences: [text] })
  }
}

/** Of the elements from each index on, the one that was acknowledged first. */
function earliestFrom(
  { history }: Facts,
  { order, writers }: ListFacts,
): readonly (Appended | undefined)[] {
  const earliest: (Appended | undefined)[] = Array.from({ length: order.length + 1 })
  for (let index = order.length - 1; index >= 0; index--) {
    const later = earliest[index + 1]
    earliest[index] = later
    const element = order[index]
    const operation = element === undefined ? undefined : writers.get(element)?.operation
    if (element === undefined || operation === undefined) continue
    const end = findEnd(history[operation])
    if (end !== undefined && end < (later?.end ?? Infinity)) {
      earliest[index] = { element, operation, end }
    }
  }
  return earliest
}

/** When an operation that ended well ended. */
function findEnd(operation: HistoryOperation | undefined): number | undefined {
  return operation?.outcome === 'ok' ? operation.end : undefined
}

function isCurrentAfter(operation: HistoryOperation | undefined, end: number): boolean {
  return operation !== undefined && operation.level === 'current' && operation.start > end
}
