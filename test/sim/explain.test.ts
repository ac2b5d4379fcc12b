/** Explanations: the lines that led to a failure, in words, and no others. */
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { describeExplanation, explain } from '../../sim/scenarios/explain.ts'
import { describeRule, findUnknownRule } from '../../sim/scenarios/explain-rules.ts'
import { positionsWith, sliceStory } from '../../sim/scenarios/explain-slice.ts'
import { Letters } from '../../sim/scenarios/explain-values.ts'
import {
  describeFact,
  describeFault,
  describeLine,
  describeOperation,
} from '../../sim/scenarios/explain-words.ts'
import type { StoryLine } from '../../sim/cluster/narrator.ts'
import { rowAt, scenario } from '../../sim/scenarios/scenario-builder.ts'
import { rowKeyBytes } from '../../src/cells/shard.ts'
import { encodeEntry } from '../../src/replication/entry.ts'
import { encodeTransaction } from '../../src/group/transaction.ts'
import { present } from '../../src/base/assert.ts'
import { cellVersion } from '../../src/cells/cell-table.ts'
import { compileSchema } from '../../src/tables/compile.ts'
import { writeRowKey } from '../../src/tables/row-key.ts'
import { nodeId } from '../../src/base/ids.ts'
import { statedRules } from '../architecture-rules.ts'

const group = 'g'
const ballot = { epoch: 1, round: 1, node: 'n1', incarnation: 1 }

type Words = readonly [
  at: number,
  who: string,
  verb: StoryLine['verb'],
  kind: string,
  peer?: string,
]

function line([timeMicros, who, verb, kind, peer]: Words, position = 3, more = {}): StoryLine {
  const fields = verb === 'note' ? {} : { group, position, ballot, ...more }
  return { timeMicros, who, verb, kind, fields, ...(peer === undefined ? {} : { peer }) }
}

const story: readonly StoryLine[] = [
  line([0, 'n1', 'note', 'starts']),
  line([1, 'n1', 'does', 'propose'], 2),
  line([2, 'n1', 'does', 'propose']),
  line([2, 'n1', 'sends', 'accept', 'n2']),
  line([2, 'n1', 'sends', 'accept', 'n3']),
  line([3, 'n2', 'gets', 'accept', 'n1']),
  line([3, 'n2', 'does', 'accept']),
  line([4, 'n2', 'disk', 'accept']),
  line([5, 'n3', 'does', 'propose'], 3, { group: 'another' }),
  line([6, 'n2', 'gets', 'accept', 'n1']),
  line([7, 'c1', 'note', 'asks: something']),
  line([8, 'n1', 'gets', 'accepted', 'n2']),
  line([8, 'n1', 'sends', 'committed', 'n2']),
]

test('a slice has what led to the position, and neither echoes nor other groups nor positions', () => {
  const told = sliceStory(story, { place: { group, positions: [3] }, withCalls: false })
  expect(told.map(({ timeMicros, who, kind }) => `${timeMicros} ${who} ${kind}`)).toEqual([
    '2 n1 propose',
    '3 n2 accept',
    '3 n2 accept',
    '4 n2 accept',
    '7 c1 asks: something',
    '8 n1 accepted',
    // A message that leaves in the last moment may be the wrong one.
    '8 n1 committed',
  ])
})

test('a slice without positions covers the whole group, and has calls only on request', () => {
  const forward = line([2, 'n1', 'gets', 'forward', 'n2'])
  const call: StoryLine = { ...forward, fields: { group, request: 1 } }
  const lines = [...story.slice(0, 4), call, ...story.slice(4)]
  const place = { group, positions: [3] }
  expect(sliceStory(lines, { place, withCalls: false })).not.toContain(call)
  expect(sliceStory(lines, { place, withCalls: true })).toContain(call)
  const all = sliceStory(lines, { place: { group, positions: [] }, withCalls: false })
  expect(all.some(({ fields }) => fields['position'] === 2)).toBe(true)
})

const row = rowAt(0, 0)
const schema = compileSchema(cellVersion)

function entryOf(refKey: number): Uint8Array {
  const values = ['trips', 0, row, 'BASE', refKey]
  const key = writeRowKey(present(schema.tables.get('Cell'), 'cells are a table'), values).bytes
  const intent = { session: 'session-of-c1', sequence: 4, attempt: 1, floor: 1, expiresAt: 9 }
  const transaction = { ...intent, allocations: [], mutations: [{ key, value: key }] }
  return encodeEntry({
    ...{
      position: 3,
      timestamp: 5,
      horizon: 0,
      nextLeader: { node: nodeId('n2'), incarnation: 7 },
    },
    transactions: [encodeTransaction(transaction)],
  })
}

test('the story names values by letters, equal ones by the same, with a legend', () => {
  const letters = new Letters()
  const [first, second] = [entryOf(1), entryOf(2)]
  const told = [first, second, first].map((value) =>
    describeLine(line([1_000, 'n1', 'does', 'propose'], 3, { value }), { letters, position: 3 }),
  )
  expect(told.map((text) => text.trim())).toEqual([
    '1.000 ms  n1   proposes A at 1.n1.1',
    '1.000 ms  n1   proposes B at 1.n1.1',
    '1.000 ms  n1   proposes A at 1.n1.1',
  ])
  const put = `put of row ${row.slice(0, 8)} BASE`
  expect(letters.legend()).toEqual([
    `A  #3: ${put}/1 (intent session-/4); #4 is led by n2 in incarnation 7`,
    `B  #3: ${put}/2 (intent session-/4); #4 is led by n2 in incarnation 7`,
  ])
})

test('the positions that wrote a row are found by its bytes', () => {
  const lines = [
    line([1, 'n1', 'does', 'apply'], 3, { value: entryOf(1) }),
    line([2, 'n2', 'does', 'apply'], 3, { value: entryOf(1) }),
    line([3, 'n1', 'does', 'apply'], 4, { value: Buffer.from('no entry') }),
  ]
  expect(positionsWith(lines, group, rowKeyBytes(row))).toEqual([3])
  expect(positionsWith(lines, group, rowKeyBytes(rowAt(0, 1)))).toEqual([])
})

test('the story puts faults, operations and facts in plain words', () => {
  const moment = { atMicros: 1_500 }
  expect(describeFault({ kind: 'crash', ...moment, node: 'n1', downMicros: 20_000 })).toBe(
    '1.500 ms  crash, n1, down 20.000 ms',
  )
  const ways = [['n1', 'n2'] as const, ['n2', 'n1'] as const]
  const cut = { kind: 'cut', ...moment, lengthMicros: 1_000, ways, resets: false } as const
  expect(describeFault({ ...cut, name: 'split' })).toBe(
    '1.500 ms  cut, length 1.000 ms, ways n1>n2 n2>n1, resets false, drawn as split',
  )
  const put = { kind: 'put', client: 'c1', ...moment, row, column: 'BASE', refKey: 2 } as const
  expect(describeOperation({ ...put, body: { a: 1 } })).toBe(
    `1.500 ms  c1  put of row ${row.slice(0, 8)} BASE/2 = {"a":1}`,
  )
  expect(describeFact('chosenAt', ballot)).toEqual(['chosenAt: 1.n1.1'])
  expect(describeFact('acceptedBy', ['n1', 'n2'])).toEqual(['acceptedBy: n1, n2'])
  expect(describeFact('acceptedBy', [])).toEqual(['acceptedBy: none'])
  const stack = ['at f (file:///home/somebody/dist/src/base/assert.js:14:15)']
  expect(describeFact('stack', stack)).toEqual(['stack:', '  at f (dist/src/base/assert.js:14:15)'])
})

test('the story has words for each rule that a run can break', () => {
  const stated = statedRules(join(import.meta.dirname, '../..'))
  const rules = stated.filter(({ spec }) => !spec.startsWith('schema/')).map(({ rule }) => rule)
  expect(rules.length).toBeGreaterThan(50)
  expect(findUnknownRule(rules)).toBeUndefined()
  expect(findUnknownRule(['META-1', 'META-2', 'META-3', 'LIVE-1', 'LIVE-2'])).toBeUndefined()
  expect(describeRule('PAX-1')).toContain('At most one value')
  expect(findUnknownRule(['PAX-1', 'LIVE-5', 'TXN-1'])).toBeUndefined()
  expect(findUnknownRule(['PAX-1', 'PAX-99'])).toBe('PAX-99')
})

/**
 * A session that sends an intent below its own floor gets `expired`, and its run fails: see shrink.test.ts.
 */
const kept = scenario('kept')
  .link({ tailFactor: 3 })
  .at(20)
  .put('c1')
  .at(40)
  .pause('n2', 10)
  .operation({ kind: 'blind', client: 'blind-1', atMicros: 60_000, group: 'x', sequence: 2 })
  .operation({ kind: 'blind', client: 'blind-1', atMicros: 200_000, group: 'x', sequence: 1 })
  .build()

test('an explanation says which rule broke, where, with what faults, and how it came about', async () => {
  const explanation = await explain(kept)
  if (explanation === undefined) throw new Error('it was to fail')
  const text = describeExplanation(explanation)
  const lines = text.split('\n')
  expect(lines[0]).toMatch(/^META-3: An assertion failed: replica-workload: an intent expired/)
  expect(lines).toContain('The rule: Nothing fails that nobody expects.')
  expect(lines).toContain('Where: group blind/x, position 1.')
  expect(lines).toContain('The run: 3 nodes; 5 events: 1 faults, 3 operations, 1 knobs.')
  expect(lines).toContain('  link.tailFactor 3 instead of 1')
  expect(lines).toContain('  40.000 ms  pause, n2, length 10.000 ms')
  const titles = lines.filter((one) => /^[A-Z].*:$/.test(one)).map((one) => one.split(' (')[0])
  expect(titles).toEqual([
    ...['Options that are not as usual:', 'Faults:', 'Operations:', 'How it came about', 'Values:'],
  ])
  const told = lines.slice(lines.findIndex((one) => one.startsWith('How it came about')) + 1)
  const end = told.findIndex((one) => one.includes('*** ') && one.includes('META-3 is broken'))
  expect(told[end + 1]).toBe('')
  const times = told.slice(0, end).map((one) => Number.parseFloat(one))
  expect(times).toEqual([...times].sort((a, b) => a - b))
  expect(told.some((one) => one.includes('***  strikes: pause, n2'))).toBe(true)
  expect(told.filter((one) => /n\d {3}proposes A at 0\.n\d\.1$/.test(one))).toHaveLength(1)
  // The events of other groups are no part of it.
  expect(explanation.slice.length).toBeLessThan(explanation.lineCount / 2)
})

test('a scenario that does not fail needs no explanation', async () => {
  expect(await explain(scenario('calm').at(20).put('c1').build())).toBeUndefined()
})
