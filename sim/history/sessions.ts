/**
 * What a session has seen or written it sees again, in every later read of the same object, whatever
 * the read's level.
 */
import type { Anomalies } from './anomaly.ts'
import type { Facts } from './edges.ts'
import type { ListFacts } from './lists.ts'
import type { History } from './operation.ts'
import type { RegisterFacts } from './registers.ts'
import { quoted } from './words.ts'

/** How far an operation has seen an object, or taken it, and whether a read showed its end there. */
interface Sight {
  readonly operation: number
  readonly key: string
  /** Elements of a list; of a register the highest version and one more. */
  readonly reached: number
  readonly isWhole: boolean
  readonly what: string
}

export function findBackwards(facts: Facts, anomalies: Anomalies): void {
  const bySession = new Map<string, Sight[]>()
  for (const sight of sightsOf(facts)) {
    const name = JSON.stringify([facts.history[sight.operation]?.client, sight.key])
    const known = bySession.get(name)
    if (known === undefined) bySession.set(name, [sight])
    else known.push(sight)
  }
  for (const sights of bySession.values()) checkSession(facts, sights, anomalies)
}

function checkSession({ history }: Facts, sights: readonly Sight[], anomalies: Anomalies): void {
  const startOf = ({ operation }: Sight): number => history[operation]?.start ?? 0
  const endOf = ({ operation }: Sight): number => history[operation]?.end ?? Infinity
  const ended = sights.toSorted((a, b) => endOf(a) - endOf(b))
  let next = 0
  let highest: Sight | undefined
  for (const sight of sights.toSorted((a, b) => startOf(a) - startOf(b))) {
    for (; next < ended.length; next++) {
      const one = ended[next]
      if (one === undefined || endOf(one) >= startOf(sight)) break
      if (one.reached > (highest?.reached ?? -1)) highest = one
    }
    if (highest === undefined || !sight.isWhole || sight.reached >= highest.reached) continue
    const client = history[sight.operation]?.client ?? ''
    const text = `In the session of ${client}, T1 ${highest.what}; T2 came later and ${sight.what}.`
    const operations = [highest.operation, sight.operation]
    anomalies.add({ name: 'session-backwards', operations, sentences: [text] })
  }
}

function* sightsOf({ history, lists, registers }: Facts): Generator<Sight> {
  for (const list of lists.values()) yield* sightsOfList(history, list)
  for (const register of registers.values()) yield* sightsOfRegister(history, register)
}

function* sightsOfList(history: History, list: ListFacts): Generator<Sight> {
  const { key, views, agreeing, indexByElement, writers } = list
  for (const view of views) {
    const { operation, after, elements, isEnd } = view
    if (!agreeing.has(view) || (!isEnd && elements.length === 0)) continue
    const reached = after + elements.length
    const what = `read ${key} with ${reached} elements`
    yield { operation, key, reached, isWhole: isEnd, what }
  }
  for (const [element, index] of indexByElement) {
    const operation = writers.get(element)?.operation
    if (operation === undefined || history[operation]?.outcome !== 'ok') continue
    const what = `appended ${quoted(element)} to ${key}, at index ${index}`
    yield { operation, key, reached: index + 1, isWhole: false, what }
  }
}

function* sightsOfRegister(history: History, register: RegisterFacts): Generator<Sight> {
  const { key, views, writers } = register
  for (const { operation, latest, asked } of views) {
    const isWhole = latest !== undefined
    const version = latest ?? (asked?.isPresent === true ? asked.version : -1)
    const what = `found ${version < 0 ? 'no version' : `version ${version}`} of ${key}`
    if (isWhole || version >= 0) yield { operation, key, reached: version + 1, isWhole, what }
  }
  for (const [version, operation] of writers) {
    if (operation === undefined || history[operation]?.outcome !== 'ok') continue
    const what = `wrote version ${version} of ${key}`
    yield { operation, key, reached: version + 1, isWhole: false, what }
  }
}
