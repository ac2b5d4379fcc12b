/**
 * Scenario files: a written scenario reads back the same, and a file that holds none is refused with one
 * reason.
 */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Fault } from '../../sim/faults/fault.ts'
import { drawPlan } from '../../sim/run.ts'
import { rowAt, scenario } from '../../sim/scenarios/scenario-builder.ts'
import { calmed, calmOptions, listKnobs, optionAt } from '../../sim/scenarios/scenario-calm.ts'
import { faultShapes } from '../../sim/scenarios/scenario-fault.ts'
import type { Operation } from '../../sim/scenarios/scenario-operation.ts'
import {
  decodeScenario,
  encodeScenario,
  isAsExpected,
  runScenario,
  buildScenario,
  measureScenario,
  type Scenario,
} from '../../sim/scenarios/scenario.ts'

const row = rowAt(0, 0)
const place = { row, column: 'BASE' }
const cell = { ...place, refKey: 1 }
const asked = { client: 'c1', atMicros: 5_000 }
const read = { ...asked, isCurrent: true }
const page = { from: 0, limit: 5, reverse: true }

/** One of each kind. */
const operations: readonly Operation[] = [
  { kind: 'put', ...asked, ...cell, body: { text: 'ä\n"', list: [1, null, true] } },
  { kind: 'get', ...read, ...cell },
  { kind: 'latest', ...read, ...place },
  { kind: 'row', ...read, row },
  { kind: 'versions', ...read, ...place, ...page },
  { kind: 'log', ...read, shard: 0, after: 0, limit: 10 },
  { kind: 'since', ...read, shard: 0, time: 7, limit: 2 },
  { kind: 'gets', ...read, rows: [row], column: 'BASE' },
  { kind: 'logs', ...read, shards: [0, 1], after: [0, 3], limit: 2 },
  { kind: 'blind', client: 'blind-1', atMicros: 7_000, group: 'x', sequence: 1 },
  {
    ...{ kind: 'lists', client: 'list-1', atMicros: 8_000, group: 'p', isCurrent: true },
    micro: [
      { kind: 'append', list: 'a', element: 'e1' },
      { kind: 'read', list: 'b' },
    ],
  },
]

const sample: Scenario = {
  ...scenario('a sample')
    .at(10)
    .crash('n2', 30)
    .later(5)
    .partition(['n1', 'c1'], 40)
    .fault({
      ...{ kind: 'clock-jump', atMicros: 1, node: 'n3' },
      ...{ wallMicros: -5, monotonicMicros: 0 },
    })
    .expect({ outcome: 'safety', rule: 'PAX-1', sentence: 'Two values.', hash: '00' })
    .build(),
  rules: ['PAX-1', 'LOG-1'],
}
const whole: Scenario = {
  ...sample,
  plan: { ...sample.plan, operations, nodesByClient: { c1: ['n1', 'n2'] } },
}

test('a scenario file says all that the scenario is, and nothing else', () => {
  expect(decodeScenario(encodeScenario(whole))).toEqual({ ok: true, scenario: whole })
})

test('whatever a seed draws can be written to a file and read again', () => {
  fc.assert(
    fc.property(fc.nat(1_000_000), (seed) => {
      const plan = drawPlan(seed)
      const drawn: Scenario = { name: `seed ${seed}`, plan, expect: { outcome: 'clean' } }
      expect(decodeScenario(encodeScenario(drawn))).toEqual({ ok: true, scenario: drawn })
    }),
    { numRuns: 40 },
  )
})

test('a plan in which what may be absent was turned off can be written to a file and read again', () => {
  const plans = Array.from({ length: 60 }, (_, seed) => drawPlan(seed))
  const drawn = plans.filter(({ options }) => options.relay !== undefined)
  expect(drawn).not.toEqual([])
  for (const { options } of drawn) {
    const plan = { options: calmed(options, ['relay']), faults: [] }
    const text = encodeScenario({ name: 'calm', plan, expect: { outcome: 'clean' } })
    expect(decodeScenario(text)).toMatchObject({ ok: true })
  }
})

test('every kind of fault that seeds draw can be in a file', () => {
  const kinds = new Set<Fault['kind']>()
  for (let seed = 0; seed < 60; seed++) {
    for (const { kind } of drawPlan(seed).faults) kinds.add(kind)
  }
  expect([...kinds].sort()).toEqual(Object.keys(faultShapes).sort())
})

/** A part of the file's text, what stands there instead, and a part of the reason given. */
const refusals: readonly (readonly [from: string, to: string, reason: string])[] = [
  ['"format": "trilithon-scenario"', '"format": "other"', '"format" is not'],
  ['"version": 1', '"version": 2', 'its version is 2, and only 1 is known'],
  ['"name": "a sample"', '"name": 7', 'scenario.name: expected a string'],
  ['"outcome":"safety"', '"outcome":"odd"', 'scenario.expect.outcome: expected one of clean'],
  ['"PAX-1","LOG-1"', '"PAX-1","PAX-0"', 'scenario.rules: there is no PAX-0'],
  ['"plan"', '"plans"', 'scenario.plans: is not known'],
  ['"seed": 1', '"seeds": 1', 'plan.options.seeds: is not known'],
  ['"drop":0', '"drop":"often"', 'plan.options.link.drop: expected a whole number'],
  ['"drop":0', '"drop":0.5', 'plan.options.link.drop: expected a whole number'],
  ['"drop":0,', '', 'plan.options.link.drop: is missing'],
  ['"delayMinMicros":1000', '"delayMinMicros":-1', 'link.delayMinMicros: is below zero'],
  ['"nodeCount": 3', '"nodeCount": 0', 'plan.options.nodeCount: expected 1 to 9'],
  ['"nodeCount": 3', '"nodeCount": 4', 'plan.options.skews: expected one a node'],
  ['"rest":"down"', '"rest":"lost"', 'healing.rest: expected one of down, cut'],
  ['"coreOrder":[]', '"coreOrder":["n7"]', 'healing.coreOrder: there is no n7'],
  ['"costFactor":0', '"costFactor":1001', 'times.costFactor: expected at most 1000'],
  ['"waits":0', '"waits":1000001', 'times.waits: expected at most 1000000'],
  ['"base":1,', '"base":0,', 'plan.options.priorities.base: expected 1 to 10'],
  ['"base":1,', '', 'plan.options.priorities.base: is missing'],
  ['"changesAtMicros":[]', '"changesAtMicros":[-1]', 'changesAtMicros.0: is below zero'],
  [
    '"changesAtMicros":[]',
    `"changesAtMicros":[${'1,'.repeat(100)}1]`,
    'priorities.changesAtMicros: expected at most 100',
  ],
  ['"heartbeatMs":200', '"heartbeatMs":900', 'plan.options.limits: a peer is suspected too'],
  ['"kind":"crash"', '"kind":"crush"', 'plan.faults[0].kind: expected one of crash, stop'],
  ['"node":"n2","downMicros"', '"node":"n9","downMicros"', 'plan.faults[0]: there is no n9'],
  ['"node":"n2","downMicros"', '"node":"c1","downMicros"', 'plan.faults[0]: not a node'],
  ['"downMicros":30000', '"downMicros":-1', 'plan.faults[0].downMicros: is below zero'],
  ['"downMicros":30000', '"downMicro":30000', 'plan.faults[0].downMicro: is not known'],
  ['["n1","n2"]', '["n1"]', 'plan.faults[1].pair 1: expected two different names'],
  ['["n1","n2"]', '["n1","n1"]', 'plan.faults[1].pair 1: expected two different names'],
  ['"client":"c1"', '"client":"c99"', 'plan.operations[0]: there is no c99'],
  ['"client":"blind-1"', '"client":"c1"', 'plan.operations[9]: there is no c1'],
  [`"row":"${row}"`, '"row":"r"', 'plan.operations[0].row: expected a UUID'],
  ['"refKey":1', '"refKey":-1', 'plan.operations[0].refKey: is below zero'],
  ['"shard":0', '"shard":4096', 'plan.operations[5].shard: expected below 4096'],
  ['"group":"x"', '"group":"z"', 'plan.operations[9].group: expected one of x, y'],
  ['"list":"a"', '"list":"z"', 'plan.operations[10].micro[0].list: expected one of a, b'],
  [',"element":"e1"', '', 'plan.operations[10].micro[0].element: is missing'],
  ['"c1":["n1","n2"]', '"c1":[]', 'plan.nodesByClient: a client knows one node or more'],
  ['"faults": [', '"faults": [null,', 'plan.faults[0].kind: expected one of'],
]

test('a file that is no scenario is refused, and the reason names the place', () => {
  const text = encodeScenario(whole)
  for (const [from, to, reason] of refusals) {
    expect(text, from).toContain(from)
    const read = decodeScenario(text.replace(from, () => to))
    expect(read, `${from} -> ${to}`).toMatchObject({ ok: false })
    expect(read.ok ? '' : read.reason).toContain(reason)
  }
})

test('a text that is not JSON, or not an object, is refused', () => {
  expect(decodeScenario('{"format":')).toEqual({ ok: false, reason: 'it is not JSON' })
  for (const text of ['[]', 'null', '7', '{}']) expect(decodeScenario(text).ok).toBe(false)
})

test('META-1: a replayed file takes the same course, hash for hash, and knows when it does not', async () => {
  const built = scenario('replayed').at(50).put('c1').at(60).crash('n1', 20).at(70).latest('c2')
  const first = await runScenario(built.build())
  const kept = buildScenario('replayed', built.build().plan, first)
  const read = decodeScenario(encodeScenario(kept))
  if (!read.ok) throw new Error(read.reason)
  const second = await runScenario(read.scenario)
  expect(second.hash).toBe(kept.expect.hash)
  expect(isAsExpected(kept.expect, second)).toBe(true)
  expect(isAsExpected({ outcome: 'safety', rule: 'PAX-1' }, second)).toBe(false)
  expect(isAsExpected({ outcome: 'clean', rule: 'PAX-1' }, second)).toBe(false)
})

test('a calm world has no knobs; each option that is otherwise is one, and can be calmed alone', () => {
  const calm = calmOptions(5)
  expect(listKnobs(calm)).toEqual([])
  const odd = { ...calm, link: { ...calm.link, drop: 7, tail: 3 }, endsWithRestart: true }
  expect(listKnobs(odd)).toEqual(['endsWithRestart', 'link.tail', 'link.drop'])
  expect(optionAt(odd, 'link.drop')).toBe('7')
  expect(listKnobs(calmed(odd, ['link.drop']))).toEqual(['endsWithRestart', 'link.tail'])
  expect(calmed(odd, listKnobs(odd))).toEqual(calm)
  const size = measureScenario({ options: odd, faults: sample.plan.faults, operations })
  expect(size).toEqual({ faults: 3, operations: 11, knobs: 3, events: 17 })
})
