/**
 * The judge of histories against one that tries every order: of small histories, most of them made
 * wrong on purpose, both must say the same, and what a serial store does must never be called wrong.
 */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { checkHistory, explain } from '../../sim/history/check.ts'
import { historyText } from '../../sim/history/lines.ts'
import { parseHistory } from '../../sim/history/parse.ts'
import type {
  Element,
  History,
  HistoryOperation,
  MicroOperation,
  Outcome,
} from '../../sim/history/operation.ts'

const keys = ['x', 'y'] as const

/** An operation, before it is known what it reads. */
interface Drawn {
  readonly micro: readonly { readonly isAppend: boolean; readonly key: 'x' | 'y' }[]
  readonly start: number
  readonly length: number
  readonly outcome: Outcome
}

const drawnOperation: fc.Arbitrary<Drawn> = fc.record({
  micro: fc.array(fc.record({ isAppend: fc.boolean(), key: fc.constantFrom(...keys) }), {
    minLength: 1,
    maxLength: 3,
  }),
  start: fc.integer({ min: 0, max: 9 }),
  length: fc.integer({ min: 0, max: 5 }),
  outcome: fc.constantFrom<Outcome>('ok', 'ok', 'ok', 'ok', 'unknown', 'fail'),
})

type Lists = Map<string, Element[]>

/** Does an operation's appends and reads, in order, on lists that are changed. */
function carriedOut(micro: readonly MicroOperation[], lists: Lists): readonly MicroOperation[] {
  return micro.map((one): MicroOperation => {
    if (one.kind === 'append') {
      lists.set(one.key, [...(lists.get(one.key) ?? []), one.element])
      return one
    }
    if (one.kind !== 'read') return one
    return { ...one, elements: lists.get(one.key) ?? [] }
  })
}

function asked({ micro }: Drawn, number: number): readonly MicroOperation[] {
  return micro.map(({ isAppend, key }, i): MicroOperation => {
    if (isAppend) return { kind: 'append', key, element: 10 * number + i }
    return { kind: 'read', key, after: 0, isEnd: true }
  })
}

function withoutAnswers(micro: readonly MicroOperation[]): readonly MicroOperation[] {
  return micro.map((one) =>
    one.kind === 'read' ? { kind: 'read', key: one.key, after: 0, isEnd: true } : one,
  )
}

const last = { client: 'last', start: 100, end: 101, outcome: 'ok', level: 'current' } as const
const wholeRead = keys.map((key): MicroOperation => ({ kind: 'read', key, after: 0, isEnd: true }))

/** The history of operations that took effect in this order, whatever their times say. */
function historyIn(order: readonly number[], drawn: readonly Drawn[], lost: number): History {
  const lists: Lists = new Map()
  const answers = new Map<number, readonly MicroOperation[]>()
  for (const number of order) {
    const one = drawn[number]
    if (one === undefined || one.outcome === 'fail') continue
    if (one.outcome === 'unknown' && number === lost) continue
    answers.set(number, carriedOut(asked(one, number), lists))
  }
  const operations = drawn.map((one, number): HistoryOperation => {
    const { start, length, outcome } = one
    const common = { client: `c${number}`, level: 'current', start, outcome } as const
    if (outcome === 'ok') {
      return { ...common, end: start + length, micro: answers.get(number) ?? [] }
    }
    const micro = withoutAnswers(asked(one, number))
    return outcome === 'fail' ? { ...common, end: start + length, micro } : { ...common, micro }
  })
  return [...operations, { ...last, micro: carriedOut(wholeRead, lists) }]
}

/** One read is changed: its last element is gone, or two of them are the other way round. */
function spoilt(history: History, place: number, isSwap: boolean): History {
  const reads = history.flatMap(({ micro, outcome }, operation) =>
    outcome !== 'ok'
      ? []
      : micro.flatMap((one, at) =>
          one.kind === 'read' && (one.elements?.length ?? 0) > (isSwap ? 1 : 0)
            ? [{ operation, at, one }]
            : [],
        ),
  )
  const chosen = reads[place % Math.max(reads.length, 1)]
  const { elements = [] } = chosen?.one ?? {}
  if (chosen === undefined) return history
  const [a, b] = elements.slice(-2)
  const isPair = isSwap && a !== undefined && b !== undefined
  const changed = isPair ? [...elements.slice(0, -2), b, a] : elements.slice(0, -1)
  return history.map((operation, index) => {
    if (index !== chosen.operation) return operation
    const micro = operation.micro.map((one, at) =>
      at === chosen.at ? { ...chosen.one, elements: changed } : one,
    )
    return { ...operation, micro }
  })
}

/** Whether some order of all that happened, and of some that may have, explains every answer. */
function isExplained(history: History): boolean {
  const sure = history.filter(({ outcome }) => outcome === 'ok')
  const unsure = history.filter(({ outcome }) => outcome === 'unknown')
  for (let bits = 0; bits < 1 << unsure.length; bits++) {
    const some = unsure.filter((_, i) => ((bits >> i) & 1) === 1)
    if (hasOrder([...sure, ...some], new Map())) return true
  }
  return false
}

function hasOrder(left: History, lists: Lists): boolean {
  if (left.length === 0) return true
  const earliestEnd = Math.min(...left.map(({ end }) => end ?? Infinity))
  return left.some((operation) => {
    if (operation.start > earliestEnd) return false
    const after: Lists = new Map(lists)
    const answers = carriedOut(operation.micro, after)
    const isRight = operation.outcome !== 'ok' || textOf(answers) === textOf(operation.micro)
    return (
      isRight &&
      hasOrder(
        left.filter((one) => one !== operation),
        after,
      )
    )
  })
}

function textOf(micro: readonly MicroOperation[]): string {
  return JSON.stringify(micro.map((one) => (one.kind === 'read' ? one.elements : one)))
}

const histories = fc
  .array(drawnOperation, { minLength: 1, maxLength: 5 })
  .chain((drawn) =>
    fc.record({
      drawn: fc.constant(drawn),
      order: fc.shuffledSubarray([...drawn.keys()], { minLength: drawn.length }),
      lost: fc.integer({ min: 0, max: drawn.length }),
      spoil: fc.constantFrom('no', 'drop', 'swap'),
      place: fc.nat({ max: 20 }),
    }),
  )
  .map(({ drawn, order, lost, spoil, place }) => {
    const history = historyIn(order, drawn, lost)
    return spoil === 'no' ? history : spoilt(history, place, spoil === 'swap')
  })

test('TXN-1, LEASE-3: a history is called wrong when no order explains it, and only then', () => {
  const counts = { right: 0, wrong: 0 }
  fc.assert(
    fc.property(histories, (history) => {
      const { anomalies } = checkHistory(history)
      const isRight = isExplained(history)
      counts[isRight ? 'right' : 'wrong'] += 1
      const told = anomalies.map((one) => explain(one, history)).join('\n')
      expect(anomalies.length === 0, `${historyText(history)}${told}`).toBe(isRight)
    }),
    { numRuns: 4_000 },
  )
  expect(counts.right).toBeGreaterThan(500)
  expect(counts.wrong).toBeGreaterThan(500)
})

/** One step of a store that does one thing after another, and how its client sees it. */
const step = fc.record({
  kind: fc.constantFrom('put', 'page', 'latest', 'get'),
  client: fc.nat({ max: 2 }),
  before: fc.nat({ max: 25 }),
  after: fc.nat({ max: 25 }),
  place: fc.nat({ max: 6 }),
  length: fc.nat({ max: 4 }),
  age: fc.nat({ max: 3 }),
  isAny: fc.boolean(),
  outcome: fc.constantFrom<Outcome>('ok', 'ok', 'ok', 'unknown', 'fail'),
})

interface Cellar {
  readonly elements: readonly Element[]
  /** Values by version. */
  readonly versions: ReadonlyMap<number, Element>
}

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

/** As cells are recorded: a list with places, a register whose versions come in any order. */
function serialHistory(steps: readonly Step[]): History {
  const states: Cellar[] = [{ elements: [], versions: new Map() }]
  const sessions = new Map<number, { life: number; seen: number; end: number }>()
  return steps.map((one, number): HistoryOperation => {
    const atMoment = 100 + 10 * number
    const start = atMoment - one.before
    const end = atMoment + one.after
    const last = sessions.get(one.client) ?? { life: 0, seen: 0, end: -1 }
    // One call at a time: a session that still waits is left, and another one begins.
    const session = last.end < start ? last : { life: last.life + 1, seen: 0, end: -1 }
    const now = states.length - 1
    const { elements, versions } = states[now] ?? { elements: [], versions: new Map() }
    if (one.kind === 'put') {
      const version = one.place + 7 * number
      const element = `e${number}`
      const index = elements.length
      const outcome = versions.has(version) ? 'fail' : one.outcome
      const isDone = outcome === 'ok' || (outcome === 'unknown' && one.isAny)
      if (isDone) {
        const next = new Map(versions).set(version, element)
        states.push({ elements: [...elements, element], versions: next })
      }
      const seen = outcome === 'ok' ? states.length - 1 : session.seen
      sessions.set(one.client, { ...session, seen, end })
      return {
        ...{ client: `c${one.client}.${session.life}`, level: 'current', start, outcome },
        ...(outcome === 'unknown' ? {} : { end }),
        micro: [
          { kind: 'append', key: 'x', element, ...(outcome === 'ok' ? { index } : {}) },
          { kind: 'write', key: 'r', version, value: element },
        ],
      }
    }
    const from = one.isAny ? Math.max(session.seen, now - one.age) : now
    sessions.set(one.client, { ...session, seen: Math.max(from, session.seen), end })
    return {
      ...{ client: `c${one.client}.${session.life}`, start, end, outcome: 'ok' },
      level: one.isAny ? 'snapshot' : 'current',
      micro: readOf(one, states[from] ?? { elements, versions }),
    }
  })
}

function readOf({ kind, place, length }: Step, state: Cellar): readonly MicroOperation[] {
  const { elements, versions } = state
  const highest = Math.max(-1, ...versions.keys())
  const value = versions.get(highest)
  switch (kind) {
    case 'page': {
      const after = Math.min(place, elements.length)
      const isEnd = after + length >= elements.length
      const read = { kind: 'read', key: 'x', after, isEnd } as const
      return [{ ...read, elements: elements.slice(after, after + length) }]
    }
    case 'latest':
      if (value === undefined) return [{ kind: 'latest', key: 'r' }]
      return [{ kind: 'latest', key: 'r', version: highest, value }]
    default: {
      const found = [...versions][place]
      if (found === undefined) return [{ kind: 'get', key: 'r', version: 999, isPresent: false }]
      return [{ kind: 'get', key: 'r', version: found[0], isPresent: true, value: found[1] }]
    }
  }
}

const serialHistories = fc.array(step, { minLength: 1, maxLength: 40 }).map(serialHistory)

test('the checker accepts every history of a serial store: pages, registers, old reads, lost answers', () => {
  fc.assert(
    fc.property(serialHistories, (history) => {
      const { anomalies } = checkHistory(history)
      expect(anomalies.map((one) => explain(one, history)).join('\n')).toBe('')
    }),
    { numRuns: 2_000 },
  )
})

test('a history comes back from its lines as it was', () => {
  fc.assert(
    fc.property(fc.oneof(histories, serialHistories), (history) => {
      expect(parseHistory(historyText(history))).toEqual({ ok: true, history })
    }),
    { numRuns: 300 },
  )
})
