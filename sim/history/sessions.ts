/**
 * A session sees again what it has seen or written, in every later read of the same object, whatever the
 * read's level.
 */
import type { Anomalies } from './anomaly.ts'
import type { Facts } from './edges.ts'
import type { ListFacts } from './lists.ts'
import type { History } from './operation.ts'
import type { RegisterFacts } from './registers.ts'
import { quoted } from './words.ts'

/**
 * How far an object had come, as an operation says: elements of a list; of a register the highest version and
 * one more. A read of a list from a place on that showed nothing says that there was nothing behind it, and
 * not that there was anything before it.
 */
interface Sight {
  readonly operation: number
  readonly key: string
  readonly atLeast: number
  readonly atMost: number
  readonly what: string
}

export function findBackwards(facts: Facts, anomalies: Anomalies): void {
  const bySession = new Map<string, Sight[]>()
  for (const sight of listSights(facts)) {
    const name = JSON.stringify([facts.history[sight.operation]?.client, sight.key])
    const known = bySession.get(name)
    if (known === undefined) bySession.set(name, [sight])
    else known.push(sight)
  }
  for (const sights of bySession.values()) checkSession(facts, sights, anomalies)
}

function checkSession({ history }: Facts, sights: readonly Sight[], anomalies: Anomalies): void {
  const findStart = ({ operation }: Sight): number => history[operation]?.start ?? 0
  const findEnd = ({ operation }: Sight): number => history[operation]?.end ?? Infinity
  const ended = sights.toSorted((a, b) => findEnd(a) - findEnd(b))
  let next = 0
  let highest: Sight | undefined
  for (const sight of sights.toSorted((a, b) => findStart(a) - findStart(b))) {
    for (; next < ended.length; next++) {
      const one = ended[next]
      if (one === undefined || findEnd(one) >= findStart(sight)) break
      if (one.atLeast > (highest?.atLeast ?? 0)) highest = one
    }
    if (highest === undefined || sight.atMost >= highest.atLeast) continue
    const client = history[sight.operation]?.client ?? ''
    const text = `In the session of ${client}, T1 ${highest.what}; T2 came later and ${sight.what}.`
    const operations = [highest.operation, sight.operation]
    anomalies.add({ name: 'session-backwards', operations, sentences: [text] })
  }
}

function* listSights({ history, lists, registers }: Facts): Generator<Sight> {
  for (const list of lists.values()) yield* sightsOfList(history, list)
  for (const register of registers.values()) yield* sightsOfRegister(history, register)
}

function* sightsOfList(history: History, list: ListFacts): Generator<Sight> {
  const { key, views, agreeing, indexByElement, writers } = list
  for (const view of views) {
    const { operation, after, elements, isEnd } = view
    if (!agreeing.has(view) || (!isEnd && elements.length === 0)) continue
    const length = after + elements.length
    const isShown = elements.length > 0
    const what = `read ${key} with ${isShown ? '' : 'no more than '}${length} elements`
    const atMost = isEnd ? length : Infinity
    yield { operation, key, atLeast: isShown ? length : 0, atMost, what }
  }
  for (const [element, index] of indexByElement) {
    const operation = writers.get(element)?.operation
    if (operation === undefined || history[operation]?.outcome !== 'ok') continue
    const what = `appended ${quoted(element)} to ${key}, at index ${index}`
    yield { operation, key, atLeast: index + 1, atMost: Infinity, what }
  }
}

function* sightsOfRegister(history: History, register: RegisterFacts): Generator<Sight> {
  const { key, views, writers } = register
  for (const { operation, latest, asked } of views) {
    const isWhole = latest !== undefined
    const version = latest ?? (asked?.isPresent === true ? asked.version : -1)
    const what = `found ${version < 0 ? 'no version' : `version ${version}`} of ${key}`
    const atMost = isWhole ? version + 1 : Infinity
    if (isWhole || version >= 0) yield { operation, key, atLeast: version + 1, atMost, what }
    if (asked !== undefined) yield sightOfVersion(key, operation, asked)
  }
  for (const [version, operation] of writers) {
    if (operation === undefined || history[operation]?.outcome !== 'ok') continue
    const what = `wrote version ${version} of ${key}`
    yield { operation, key, atLeast: version + 1, atMost: Infinity, what }
    yield { operation, key: versionKey(key, version), atLeast: 1, atMost: Infinity, what }
  }
}

/** One version, which once seen stays. */
function sightOfVersion(
  key: string,
  operation: number,
  { version, isPresent }: { readonly version: number; readonly isPresent: boolean },
): Sight {
  const what = `found version ${version} of ${key}${isPresent ? '' : ' absent'}`
  const [atLeast, atMost] = isPresent ? [1, Infinity] : [0, 0]
  return { operation, key: versionKey(key, version), atLeast, atMost, what }
}

function versionKey(key: string, version: number): string {
  return `${key}\n${version}`
}
