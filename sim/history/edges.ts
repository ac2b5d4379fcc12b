/**
 * The order that a history demands of its operations: by data (Adya's dependencies, with version
 * orders known from reads), by sessions, and by real time.
 *
 * In an edge's reason {a} and {b} stand for the operations at its ends. Operations that did not
 * happen, or whose effects no read shows, are no part of it.
 */
import { Graph, type EdgeKind } from './graph.ts'
import { knownLength, type ListFacts } from './lists.ts'
import type { Element, History } from './operation.ts'
import type { RegisterFacts } from './registers.ts'
import type { ListView } from './views.ts'
import { quoted } from './words.ts'

/** The promise: only one order, one that keeps sessions, or one that keeps real time. */
export type Promised = 'serializable' | 'strong-session' | 'strict-serializable'

export interface Facts {
  readonly history: History
  readonly lists: ReadonlyMap<string, ListFacts>
  readonly registers: ReadonlyMap<string, RegisterFacts>
}

/** Operations that happened: acknowledged, or seen by one that was. */
export function happened({ history, lists, registers }: Facts): ReadonlySet<number> {
  const known = new Set<number>()
  for (const [index, { outcome }] of history.entries()) if (outcome === 'ok') known.add(index)
  const see = (writer: number | undefined): void => {
    if (writer !== undefined && history[writer]?.outcome === 'unknown') known.add(writer)
  }
  for (const { writers, indexByElement, agreeing, views } of lists.values()) {
    for (const element of indexByElement.keys()) see(writers.get(element)?.operation)
    for (const view of views) {
      if (agreeing.has(view)) continue
      for (const element of view.elements) see(writers.get(element)?.operation)
    }
  }
  for (const { writers, views } of registers.values()) {
    for (const { latest, asked } of views) {
      if (latest !== undefined) see(writers.get(latest))
      if (asked?.isPresent === true) see(writers.get(asked.version))
    }
  }
  return known
}

export function buildGraph(facts: Facts, promised: Promised): Graph {
  const { history, lists, registers } = facts
  const graph = new Graph(history.length)
  const alive = happened(facts)
  for (const list of lists.values()) new ListEdges(graph, list, alive).add()
  for (const register of registers.values()) addRegister(graph, register, alive)
  if (promised !== 'serializable') addSessions(graph, history, alive)
  if (promised === 'strict-serializable') {
    const all = [...alive].toSorted((a, b) => a - b)
    addTimeline(graph, history, all, 'realtime', (one) => history[one]?.level === 'current')
  }
  graph.seal()
  return graph
}

class ListEdges {
  readonly #graph: Graph
  readonly #list: ListFacts
  readonly #alive: ReadonlySet<number>
  /** The next index from each one on at which the element's writer is known and has happened. */
  readonly #next: readonly (number | undefined)[]

  constructor(graph: Graph, list: ListFacts, alive: ReadonlySet<number>) {
    this.#graph = graph
    this.#list = list
    this.#alive = alive
    const { order } = list
    const next: (number | undefined)[] = Array.from({ length: order.length + 1 })
    for (let index = order.length - 1; index >= 0; index--) {
      next[index] = this.#writerAt(index) === undefined ? next[index + 1] : index
    }
    this.#next = next
  }

  add(): void {
    this.#addWrites()
    const { views, agreeing } = this.#list
    for (const view of views) {
      this.#addSeen(view)
      if (view.isEnd && agreeing.has(view)) this.#addUnseen(view)
    }
    this.#addNeverSeen()
  }

  #findWriter(element: Element | undefined): number | undefined {
    const writer = element === undefined ? undefined : this.#list.writers.get(element)?.operation
    return writer !== undefined && this.#alive.has(writer) ? writer : undefined
  }

  #writerAt(index: number): number | undefined {
    return this.#findWriter(this.#list.order[index])
  }

  #addWrites(): void {
    const { order, key } = this.#list
    for (let index = this.#next[0]; index !== undefined;) {
      const after: number | undefined = this.#next[index + 1]
      if (after === undefined) return
      const [from, to] = [this.#writerAt(index), this.#writerAt(after)]
      const [one, two] = [textAt(order, index), textAt(order, after)]
      if (from !== undefined && to !== undefined) {
        const reason = `{a} appended ${one} to ${key} before {b} appended ${two}: ${key} shows them in this order.`
        this.#graph.addEdge(from, to, 'ww', reason)
      }
      index = after
    }
  }

  /** The writer of the last element seen: the writers of the others come before that. */
  #addSeen({ elements, operation }: ListView): void {
    const { key } = this.#list
    for (let place = elements.length - 1; place >= 0; place--) {
      const writer = this.#findWriter(elements[place])
      if (writer === undefined) continue
      const reason = `{b} saw ${textAt(elements, place)} in ${key}, which {a} had appended.`
      return this.#graph.addEdge(writer, operation, 'wr', reason)
    }
  }

  /** The writer of the first element that was not there yet. */
  #addUnseen({ after, elements, operation }: ListView): void {
    const { key, order } = this.#list
    const end = after + elements.length
    const index = end > order.length ? undefined : this.#next[end]
    const writer = index === undefined ? undefined : this.#writerAt(index)
    if (index === undefined || writer === undefined) return
    const reason = `{a} read ${key} as ${endText(elements)} without ${textAt(order, index)}, which {b} appended.`
    this.#graph.addEdge(operation, writer, 'rw', reason)
  }

  /**
   * An element that no read shows was appended after the longest read of all, or into a gap, if at
   * all.
   */
  #addNeverSeen(): void {
    const { writers, indexByElement, views, agreeing, order, key } = this.#list
    if (knownLength(this.#list) < order.length) return
    const hidden = [...writers.keys()].filter((element) => !indexByElement.has(element))
    const unseen = new Set(hidden.map((element) => this.#findWriter(element)))
    unseen.delete(undefined)
    if (unseen.size === 0) return
    const longest = views.filter(
      (view) =>
        view.isEnd && agreeing.has(view) && view.after + view.elements.length === order.length,
    )
    if (longest.length === 0) return
    const writersUnseen = [...unseen].filter((writer) => writer !== undefined)
    const helper = helperTo(this.#graph, writersUnseen)
    for (const { operation, elements } of longest) {
      const reason = `{a} read ${key} as ${endText(elements)} without what {b} appended to it.`
      addToAll(this.#graph, operation, { helper, targets: writersUnseen }, 'rw', reason)
    }
    const last = this.#lastWriter()
    const reason = `{a} appended to ${key} before {b} did: the longest read shows the one and not the other.`
    if (last === undefined) return
    addToAll(this.#graph, last, { helper, targets: writersUnseen }, 'ww', reason)
  }

  #lastWriter(): number | undefined {
    const { order } = this.#list
    for (let index = order.length - 1; index >= 0; index--) {
      const writer = this.#writerAt(index)
      if (writer !== undefined) return writer
    }
    return undefined
  }
}

/** Operations that one helper leads to. */
interface Fan {
  readonly helper: number
  readonly targets: readonly number[]
}

/** An operation that is itself in a fan gets edges to at most this many of its targets. */
const ownTargetsMax = 100

function helperTo(graph: Graph, targets: readonly number[]): number {
  const helper = graph.addHelper()
  for (const target of targets) graph.addVia(helper, target)
  return helper
}

/** By way of the helper, unless that would lead back to the operation itself. */
function addToAll(
  graph: Graph,
  operation: number,
  { helper, targets }: Fan,
  kind: EdgeKind,
  reason: string,
): void {
  if (!targets.includes(operation)) return graph.addEdge(operation, helper, kind, reason)
  for (const target of targets.slice(0, ownTargetsMax)) {
    graph.addEdge(operation, target, kind, reason)
  }
}

function textAt(elements: readonly (Element | undefined)[], index: number): string {
  const element = elements[index]
  return element === undefined ? '?' : quoted(element)
}

function endText(elements: readonly Element[]): string {
  if (elements.length === 0) return 'empty'
  if (elements.length <= 3) return `[${elements.map(quoted).join(', ')}]`
  return `[… ${textAt(elements, elements.length - 1)}], ${elements.length} elements,`
}

/** Versions have an order of their own, but are written in any order. */
function addRegister(graph: Graph, register: RegisterFacts, alive: ReadonlySet<number>): void {
  const { key, views, writers } = register
  const findWriter = (version: number): number | undefined => {
    const writer = writers.get(version)
    return writer !== undefined && alive.has(writer) ? writer : undefined
  }
  const versions = [...writers.keys()]
    .toSorted((a, b) => a - b)
    .flatMap((version) => {
      const writer = findWriter(version)
      return writer === undefined ? [] : [[version, writer] as const]
    })
  const helpers = versions.map(([, writer]) => {
    const helper = graph.addHelper()
    graph.addVia(helper, writer)
    return helper
  })
  for (const [index, helper] of helpers.entries()) {
    const next = helpers[index + 1]
    if (next !== undefined) graph.addVia(helper, next)
  }
  const saw = (version: number, operation: number): void => {
    const writer = findWriter(version)
    if (writer === undefined) return
    graph.addEdge(writer, operation, 'wr', `{b} saw version ${version} of ${key}, which {a} wrote.`)
  }
  for (const { operation, latest, asked } of views) {
    if (latest !== undefined) {
      saw(latest, operation)
      const first = versions.findIndex(([version]) => version > latest)
      const helper = helpers[first]
      const what = latest < 0 ? 'none' : String(latest)
      const reason = `{a} read the latest version of ${key} as ${what}, without a higher one that {b} wrote.`
      if (helper === undefined) continue
      const targets = versions.slice(first).map(([, writer]) => writer)
      addToAll(graph, operation, { helper, targets }, 'rw', reason)
    } else if (asked?.isPresent === true) saw(asked.version, operation)
    else if (asked !== undefined) {
      const writer = findWriter(asked.version)
      const reason = `{a} did not find version ${asked.version} of ${key}, which {b} wrote.`
      if (writer !== undefined) graph.addEdge(operation, writer, 'rw', reason)
    }
  }
}

/** A session's current operations see all that came before in it; others what is of their group. */
function addSessions(graph: Graph, history: History, alive: ReadonlySet<number>): void {
  const byClient = new Map<string, number[]>()
  const byGroup = new Map<string, number[]>()
  for (const index of alive) {
    const operation = history[index]
    if (operation === undefined) continue
    const { client, group = '' } = operation
    push(byClient, client, index)
    push(byGroup, JSON.stringify([client, group]), index)
  }
  const isCurrent = (index: number): boolean => history[index]?.level === 'current'
  for (const indexes of byClient.values()) {
    addTimeline(graph, history, indexes, 'session', isCurrent)
  }
  for (const indexes of byGroup.values()) {
    if (indexes.every(isCurrent)) continue
    addTimeline(graph, history, indexes, 'session', (index) => !isCurrent(index))
  }
}

function push(lists: Map<string, number[]>, key: string, value: number): void {
  const list = lists.get(key)
  if (list === undefined) lists.set(key, [value])
  else list.push(value)
}

/**
 * "Ended before the other began", without an edge for each pair: ends stand in a row of helpers,
 * and each operation that is promised something comes after the last end before its start.
 */
function addTimeline(
  graph: Graph,
  history: History,
  indexes: readonly number[],
  kind: EdgeKind & ('session' | 'realtime'),
  isPromised: (index: number) => boolean,
): void {
  const ends = indexes
    .flatMap((index) => {
      const end = history[index]?.end
      return end === undefined ? [] : [{ index, end }]
    })
    .toSorted((a, b) => a.end - b.end || a.index - b.index)
  const starts = indexes
    .filter(isPromised)
    .map((index) => ({ index, start: history[index]?.start ?? 0 }))
    .toSorted((a, b) => a.start - b.start || a.index - b.index)
  let last: number | undefined
  let ended = 0
  for (const { index, start } of starts) {
    for (; ended < ends.length; ended++) {
      const one = ends[ended]
      if (one === undefined || one.end >= start) break
      const helper = graph.addHelper()
      graph.addEdge(one.index, helper, kind)
      if (last !== undefined) graph.addVia(last, helper)
      last = helper
    }
    if (last !== undefined) graph.addVia(last, index)
  }
}
