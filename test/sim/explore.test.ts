import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { nodeId } from '../../src/base/ids.ts'
import type { LogRecord } from '../../src/replication/effect.ts'
import { LogIndex } from '../../src/log/log-index.ts'
import { canonicalText, Interner } from '../../sim/explore/canonical.ts'
import { describeReport, describeTotals, explore } from '../../sim/explore/explore.ts'
import { Frontier } from '../../sim/explore/frontier.ts'
import {
  isExpiryDue,
  newLeasePairs,
  PairedLeases,
  restartedPairs,
  tickMs,
} from '../../sim/explore/lease-pairs.ts'
import { lookUp, written } from '../../sim/explore/log-disk.ts'
import { isRestoredBy, noTargets } from '../../sim/explore/lost-data.ts'
import { Model } from '../../sim/explore/model.ts'
import { copyLog, newNode, textOfNode } from '../../sim/explore/node-state.ts'
import { compareSchedules, walk } from '../../sim/explore/pct.ts'
import type { Scope } from '../../sim/explore/scope.ts'
import { scopeNamed, scopes } from '../../sim/explore/scopes.ts'
import { buildSetting } from '../../sim/explore/setting.ts'
import { flightAt, packAction, packBudget } from '../../sim/explore/state-vector.ts'
import { unpackAction, unpackBudget } from '../../sim/explore/state-vector.ts'
import { Visited } from '../../sim/explore/visited.ts'
import { SeededRandom } from '../../sim/world/random.ts'
import { isNightly } from '../nightly-tests.ts'

/** Of the scopes that no test searches whole. */
const statesMax = isNightly ? 20_000 : 5_000

function scope(name: string): Scope {
  const found = scopeNamed(name)
  if (found === undefined) throw new Error(`no scope ${name}`)
  return found
}

/** Searched whole with every change; the others take half a minute each. */
const small = ['crash', 'second', 'phantom']

test.each(isNightly ? [...small, 'one-shot', 'forward', 'retry'] : small)(
  'PAX-1: every order of events within the scope %s keeps every rule',
  (name) => {
    const report = explore({ scope: scope(name) })
    expect(report.breach).toBeUndefined()
    expect(report.isComplete).toBe(true)
    expect(report.states).toBeGreaterThan(500)
  },
)

test('SNAP-1: a replica that is behind takes in a snapshot beside proposals and a crash, in every order', () => {
  const report = explore({ scope: scope('snapshot') })
  expect(report.breach).toBeUndefined()
  expect(report.isComplete).toBe(true)
  const without = explore({ scope: { ...scope('snapshot'), snapshots: undefined } })
  // A search in which no snapshot is ever sent would be clean as well.
  expect(report.states).toBeGreaterThan(5 * without.states)
})

test.each(isNightly ? ['lost-data-read', 'lost-data'] : ['lost-data-read'])(
  'LOG-19: no order of events within the scope %s takes back what was chosen',
  (name) => {
    const report = explore({ scope: scope(name) })
    expect(report.breach).toBeUndefined()
    expect(report.isComplete).toBe(true)
    const without = explore({ scope: { ...scope(name), losses: undefined } })
    // A search in which no node ever loses its data would be clean as well.
    expect(report.states).toBeGreaterThan(5 * without.states)
  },
)

test('LOG-19: a data store is restored by a majority of the others, each as far as it was when it first answered', () => {
  const [a, b] = [nodeId('n2'), nodeId('n3')]
  expect(isRestoredBy(noTargets([nodeId('n1'), a, b], nodeId('n1')), 9)).toBe(false)
  const one = new Map([
    [a, 2],
    [b, undefined],
  ])
  expect(isRestoredBy(one, 9)).toBe(false)
  const both = new Map([
    [a, 2],
    [b, 3],
  ])
  expect([isRestoredBy(both, 2), isRestoredBy(both, 3)]).toEqual([false, true])
})

test('MOVE-3: a voter is replaced while the leader writes, in every order of events', () => {
  const report = explore({ scope: scope('change') })
  expect(report.breach).toBeUndefined()
  expect(report.isComplete).toBe(true)
  const without = explore({ scope: { ...scope('change'), change: undefined } })
  // A search in which no voter ever seals would be clean as well.
  expect(report.states).toBeGreaterThan(1000 * without.states)
})

const wholeMoves = ['move', 'move-read', 'arrive', 'arrive-crash']

test.each(isNightly ? [...wholeMoves, 'move-twice'] : wholeMoves)(
  'MOVE-9, MOVE-10: a group leaves its set or comes to it, in every order of events within the scope %s',
  (name) => {
    const report = explore({ scope: scope(name) })
    expect(report.breach).toBeUndefined()
    expect(report.isComplete).toBe(true)
    expect(report.states).toBeGreaterThan(1_500)
  },
)

test.each(isNightly ? ([2, undefined] as const) : ([2] as const))(
  'MOVE-14: a bucket closes while its group begins, in every order of events among %s nodes, or three',
  (voters) => {
    const report = explore({ scope: { ...scope('close'), ...(voters && { voters }) } })
    expect(report.breach).toBeUndefined()
    expect(report.isComplete).toBe(true)
    const open = scope('close')
    const without = explore({ scope: { ...open, submissions: [], ...(voters && { voters }) } })
    // A search in which no group ever begins would be clean as well.
    expect(report.states).toBeGreaterThan(3 * without.states)
  },
)

test('MOVE-14: a bucket closes beside a second proposer or a crash, as far as there is time', () => {
  for (const name of ['close-rival', 'close-crash']) {
    const report = explore({ scope: scope(name), statesMax })
    expect(report.breach).toBeUndefined()
    expect(report.states).toBeGreaterThan(0.8 * statesMax)
  }
})

test('MOVE-1, MOVE-2: a change beside a second proposer, a lease or a crash, as far as there is time', () => {
  for (const name of ['change-leader', 'change-lagging', 'change-read', 'change-crash']) {
    const report = explore({ scope: scope(name), statesMax })
    expect(report.breach).toBeUndefined()
    expect(report.states).toBeGreaterThan(0.8 * statesMax)
  }
})

test.each(
  isNightly
    ? ['reader', 'reader-promoted-write', 'reader-demoted-leader']
    : ['reader-promoted-write'],
)(
  'RDR-1, RDR-2: no order of events within the scope %s has a reader vote, propose or miss a commit',
  (name) => {
    const report = explore({ scope: scope(name) })
    expect(report.breach).toBeUndefined()
    expect(report.isComplete).toBe(true)
    expect(report.states).toBeGreaterThan(40_000)
  },
)

test('RDR-1: two reads, a crash and changes beside a reader, as far as there is time', () => {
  for (const name of ['reader-twice', 'reader-crash', 'reader-promoted', 'reader-demoted']) {
    const report = explore({ scope: scope(name), statesMax })
    expect(report.breach).toBeUndefined()
    expect(report.states).toBeGreaterThan(0.8 * statesMax)
  }
})

test('LEASE-3: a read elsewhere sees what was acknowledged, in every order of events', () => {
  const report = explore({ scope: { ...scope('read'), timeouts: 2 } })
  expect(report.breach).toBeUndefined()
  expect(report.isComplete).toBe(true)
  expect(report.states).toBeGreaterThan(500)
})

test.each(['lease', 'lease-cold', 'lease-revoked', 'lease-retried', 'lease-grantors'])(
  'LEASE-1, LEASE-2: no order of events within the scope %s lets a node serve what is not current',
  (name) => {
    const report = explore({ scope: scope(name) })
    expect(report.breach).toBeUndefined()
    expect(report.isComplete).toBe(true)
    expect(report.states).toBeGreaterThan(1000)
  },
)

test('LEASE-1: two positions under leases, and a crash, as far as there is time', () => {
  for (const name of ['lease-second', 'lease-crash', 'lease-ticks']) {
    const report = explore({ scope: scope(name), statesMax })
    expect(report.breach).toBeUndefined()
    expect(report.states).toBeGreaterThan(0.8 * statesMax)
  }
})

test("LEASE-2: a grantor's clock follows its holder's, or the holder's death", () => {
  const setting = buildSetting(scope('lease-ticks'))
  const [, grantor, holder] = setting.names
  if (grantor === undefined || holder === undefined) throw new Error('no names')
  const lender = new PairedLeases(setting, grantor, 1, newLeasePairs(setting, 1))
  const reader = new PairedLeases(setting, holder, 1, newLeasePairs(setting, 2))
  const isDue = (incarnation: number): boolean => {
    const lent = lender.pairs.lent.get(holder)
    const now = reader.pairs.borrowed.get(grantor)?.now ?? 0
    return lent !== undefined && isExpiryDue(lent, 2, { incarnation, now })
  }
  reader.lapse(grantor)
  for (const [, message] of reader.ask(grantor)) {
    for (const [, answer] of lender.take(holder, message, () => undefined)) {
      reader.take(grantor, answer, () => undefined)
    }
  }
  expect(reader.confirmLive(grantor)).toBe(true)
  expect(isDue(1)).toBe(true)
  lender.expire(holder)
  // Asked at 1, for two ticks.
  expect(isDue(1)).toBe(false)
  expect(isDue(2)).toBe(true)
  reader.lapse(grantor)
  expect(reader.confirmLive(grantor)).toBe(true)
  expect(isDue(1)).toBe(false)
  reader.lapse(grantor)
  expect(reader.confirmLive(grantor)).toBe(false)
  expect(isDue(1)).toBe(true)
})

test('after a restart a grantor lists each possible holder of its grants until they expire', () => {
  const setting = buildSetting(scope('lease-crash'))
  const [, grantor, holder] = setting.names
  if (grantor === undefined || holder === undefined) throw new Error('no names')
  const before = new PairedLeases(setting, grantor, 1, newLeasePairs(setting, 1))
  const reader = new PairedLeases(setting, holder, 1, newLeasePairs(setting, 2))
  for (const [, message] of reader.ask(grantor)) before.take(holder, message, () => undefined)
  expect(before.holders(setting.group, 1)).toEqual([])
  const after = restartedPairs(setting, before.pairs, 2)
  const lender = new PairedLeases(setting, grantor, 2, after)
  expect(lender.holders(setting.group, 1).map(({ node }) => node)).toEqual([holder])
  const lent = lender.pairs.lent.get(holder)
  expect(lent && isExpiryDue(lent, 1, { incarnation: 1, now: 0 })).toBe(false)
  expect(lent && isExpiryDue(lent, 1, { incarnation: 1, now: tickMs })).toBe(true)
  lender.expire(holder)
  expect(lender.holders(setting.group, 1)).toEqual([])
})

test('the same scope searched twice has the same states and transitions', () => {
  const first = explore({ scope: scope('crash') })
  const second = explore({ scope: scope('crash') })
  expect(second).toEqual(first)
})

test('a scope is searched as far as it may be, and says that it was cut short', () => {
  const report = explore({ scope: scope('one-shot'), statesMax: 1000 })
  expect(report).toMatchObject({ isComplete: false })
  expect(report.states).toBeLessThan(1100)
  expect(describeReport(report)).toContain('CUT SHORT')
})

test('META-2: the report names scopes cut short or not begun, and never as searched whole', () => {
  const whole = explore({ scope: scope('resend') })
  const cut = explore({ scope: scope('one-shot'), statesMax: 10 })
  const breach = { rule: 'PAX-1', sentence: 'Two.', path: [] }
  const broken = { ...cut, scope: 'duel', breach }
  expect(describeReport(whole)).toContain('searched whole, clean')
  expect(describeTotals([whole, cut, broken], ['duel-2'])).toBe(
    '1 of 4 scopes searched whole, ' +
      `${whole.states + 2 * cut.states} states in all; broken: duel; ` +
      'cut short: one-shot; not begun: duel-2',
  )
})

test('scopes have names of their own', () => {
  const names = scopes.map(({ name }) => name)
  expect(new Set(names).size).toBe(names.length)
})

test('a step leaves the state it began with as it was', () => {
  const setting = buildSetting(scope('duel'))
  const model = new Model(setting.scope)
  const texts = new Map<number, string>()
  for (let seed = 0; seed < 30; seed++) {
    let vector = model.initial
    const random = new SeededRandom(`copy ${seed}`)
    for (;;) {
      for (const at of [0, 1, 2]) {
        const node = vector[at] ?? 0
        const text = textOfNode(model.node(node))
        expect(texts.get(node) ?? text).toBe(text)
        texts.set(node, text)
      }
      const codes = model.actions(vector)
      if (codes.length === 0) break
      vector = model.successor(vector, random.pick(codes)).vector
    }
  }
  expect(texts.size).toBeGreaterThan(50)
})

test('a copy of a log is equal and shares no map with it', () => {
  const setting = buildSetting(scope('duel'))
  const node = newNode(setting)
  const log = copyLog(node, setting)
  expect(textOfNode({ ...node, log })).toBe(textOfNode(node))
  log.records.set(1, { kind: 'faulty' })
  expect(node.log.records.size).toBe(0)
})

const ballots = fc.record({
  epoch: fc.integer({ min: 1, max: 2 }),
  round: fc.integer({ min: 0, max: 3 }),
  node: fc.constantFrom(nodeId('n1'), nodeId('n2')),
  incarnation: fc.integer({ min: 1, max: 2 }),
})

test("LOG-1: the explorer's disk folds records as the log's index does", () => {
  const { group } = buildSetting(scope('duel'))
  const records = fc.array(
    fc.record({
      kind: fc.constantFrom('promise', 'accept', 'chosen'),
      position: fc.integer({ min: 1, max: 2 }),
      ballot: ballots,
      value: fc.uint8Array({ minLength: 1, maxLength: 2 }),
    }),
    { maxLength: 12 },
  )
  fc.assert(
    fc.property(records, (drawn) => {
      const index = new LogIndex()
      let disk: ReturnType<typeof written> = new Map()
      const values: Uint8Array[] = []
      for (const { kind, position, ballot, value } of drawn) {
        const record: LogRecord =
          kind === 'promise'
            ? { kind, group, position, ballot }
            : { kind: kind === 'accept' ? 'accept' : 'chosen', group, position, ballot, value }
        try {
          const place = kind === 'promise' ? undefined : { flush: 1, index: values.length }
          index.fold(record, place, 1)
        } catch {
          // It refuses a promise that goes back; the explorer reports that elsewhere.
          return
        }
        values.push(value)
        disk = written(disk, [record])
      }
      for (const header of index.above(group, 0)) {
        const held = disk.get(header.position)
        expect(held?.promised).toEqual(header.promised)
        expect(held?.accepted).toEqual(header.accepted)
        expect(held?.chosen).toEqual(header.chosen)
        const place = index.place(group, header.position)
        const value = typeof place === 'object' ? values[place.index] : undefined
        expect(held?.value).toEqual(value)
      }
    }),
    { seed: 11, numRuns: 500 },
  )
})

test('a position whose disk holds a promise alone is present and has accepted nothing', () => {
  const ballot = { epoch: 1, round: 1, node: nodeId('n1'), incarnation: 1 }
  expect(lookUp(undefined)).toEqual({ kind: 'absent' })
  expect(lookUp({ promised: ballot })).toEqual({
    ...{ kind: 'present', acceptor: { promised: ballot }, chosen: false },
  })
})

test('equal values have one number, and the order counts only in maps that the code iterates', () => {
  const one = {
    records: new Map([
      [1, 'a'],
      [2, 'b'],
    ]),
    queue: new Map([
      ['x', 1],
      ['y', 2],
    ]),
  }
  const same = {
    queue: one.queue,
    records: new Map([
      [2, 'b'],
      [1, 'a'],
    ]),
  }
  const other = {
    records: one.records,
    queue: new Map([
      ['y', 2],
      ['x', 1],
    ]),
  }
  expect(canonicalText(same)).toBe(canonicalText(one))
  expect(canonicalText(other)).not.toBe(canonicalText(one))
  expect(canonicalText({ a: undefined })).toBe(canonicalText({}))
  const numbers = new Interner<string>()
  expect(numbers.number('one', 'first')).toBe(0)
  expect(numbers.number('two', 'second')).toBe(1)
  expect(numbers.number('one', 'third')).toBe(0)
  expect(numbers.at(0)).toBe('first')
})

test('objects that are more than data are refused, not taken for equal', () => {
  expect(() => canonicalText(new Date(0))).toThrow('of a class')
  expect(() => canonicalText(() => 1)).toThrow('function')
})

test('texts of different values differ', () => {
  fc.assert(
    fc.property(fc.anything({ maxDepth: 2 }), fc.anything({ maxDepth: 2 }), (a, b) => {
      const plain = (value: unknown): string => JSON.stringify(value)
      const [left, right] = [plain(a), plain(b)]
      if (left === undefined || right === undefined || left === right) return
      const [x, y]: unknown[] = [JSON.parse(left), JSON.parse(right)]
      expect(canonicalText(sorted(x)) === canonicalText(sorted(y))).toBe(
        JSON.stringify(sorted(x)) === JSON.stringify(sorted(y)),
      )
    }),
    { seed: 5, numRuns: 300 },
  )
})

/** Keys in order, and nothing that counts as absent. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((one: unknown) => sorted(one))
  if (typeof value !== 'object' || value === null) return value ?? 'null'
  const rows = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(rows.map(([key, one]) => [`k${key}`, sorted(one)]))
}

test('actions and budgets come out of their numbers as they went in', () => {
  const action = { kind: 'crash', node: 2, argument: 77 } as const
  expect(unpackAction(packAction('crash', 2, 77))).toEqual(action)
  const budget = {
    ...{ timeouts: 9, crashes: 2, duplicates: 1, submitted: 5, answered: 4, read: 3 },
    ...{ renewals: 7, lapses: 7, snapshots: 1, losses: 1 },
  }
  expect(unpackBudget(packBudget(budget))).toEqual(budget)
})

test('a state is new once, whatever came between, and its way back is kept', () => {
  const visited = new Visited()
  const count = 20_000
  for (let at = 0; at < count; at++) expect(visited.add([at, at % 7], at - 1)).toBe(at)
  for (let at = 0; at < count; at += 97) {
    expect(visited.add([at, at % 7], 3)).toBe(-1)
    expect(visited.find([at, at % 7])).toBe(at)
  }
  expect(visited.find([1, 7])).toBe(-1)
  expect(visited.pathTo(3)).toEqual([0, 1, 2, 3])
})

test('a frontier gives back what was put in', () => {
  const frontier = new Frontier()
  const vectors = Array.from({ length: 3000 }, (_, at) => [at, ...Array<number>(at % 5).fill(at)])
  for (const [at, vector] of vectors.entries()) frontier.push(at, vector)
  expect([...frontier]).toEqual(vectors.map((vector, ordinal) => ({ ordinal, vector })))
  expect(frontier.count).toBe(3000)
})

test('META-1: walks are functions of their seed, and end with nothing left to happen', () => {
  const one = (seed: string): readonly number[] => {
    const model = new Model(scope('duel'))
    const { path, breach } = walk(
      model,
      new SeededRandom(seed),
      { kind: 'pct', depth: 3 },
      { steps: 40 },
    )
    expect(breach).toBeUndefined()
    let vector = model.initial
    for (const code of path) vector = model.successor(vector, code).vector
    expect(model.actions(vector)).toEqual([])
    expect(vector.slice(flightAt)).toEqual([])
    return path
  }
  expect(one('a')).toEqual(one('a'))
  expect(one('a')).not.toEqual(one('b'))
})

test('PAX-1: random walks by every kind of schedule keep every rule', () => {
  const schedules = [{ kind: 'uniform' }, { kind: 'pos' }, { kind: 'pct', depth: 4 }] as const
  const model = new Model(scope('duel-crash'))
  const found = compareSchedules(model, new SeededRandom('walks'), schedules, { walks: 100 })
  expect(found.map((one) => one.found)).toEqual([0, 0, 0])
})
