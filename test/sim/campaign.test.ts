import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { outcomeOf, summarise } from '../../sim/campaign.ts'
import { expectedCounts } from '../../sim/coverage.ts'
import { ruleNames } from '../../sim/scenarios/explain-rules.ts'
import { judgedRules } from '../../sim/judged-rules.ts'
import type { RunResult } from '../../sim/result.ts'

const everything = [...expectedCounts(), 'leader changed', "adopted another's"]

function result(seed: number, more: Partial<RunResult> = {}): RunResult {
  return {
    ...{ seed, outcome: 'clean', violations: [], hash: 'x', events: 10, commits: 300 },
    ...{ simulatedSeconds: 1, wallSeconds: 1, swarm: '' },
    judgements: Object.fromEntries(judgedRules.map((rule) => [rule, 1])),
    coverage: Object.fromEntries(everything.map((name) => [name, 1])),
    ...more,
  }
}

function results(count: number, more: Partial<RunResult> = {}): RunResult[] {
  return Array.from({ length: count }, (_, seed) => result(seed, more))
}

test('META-2: a campaign in which everything happened is clean', () => {
  const summary = summarise(results(200), 1)
  expect(summary.shortfalls).toEqual([])
  expect(outcomeOf(summary)).toBe('clean')
})

test('META-2: a campaign in which a kind of fault never struck fails', () => {
  const coverage = Object.fromEntries(
    everything.filter((name) => name !== 'one-way').map((name) => [name, 1]),
  )
  const summary = summarise(results(200, { coverage }), 1)
  expect(summary.shortfalls).toEqual(['the fault "one-way" never struck'])
  expect(outcomeOf(summary)).toBe('crash')
})

test('META-2: a campaign whose median seed commits too little fails', () => {
  const summary = summarise(results(200, { commits: 199 }), 1)
  expect(summary.shortfalls).toEqual(['the median seed committed 199 transactions, not 200'])
})

test('META-2: a campaign in which writes are lost too rarely fails', () => {
  const rare = Object.fromEntries(
    everything.filter((name) => name !== 'lost-write').map((name) => [name, 1]),
  )
  const summary = summarise([...results(150, { coverage: rare }), ...results(50)], 1)
  expect(summary.shortfalls).toEqual(['"lost-write" in 250 of 1,000 seeds, not in 300'])
})

test('a handful of seeds need not have met everything', () => {
  expect(summarise(results(199, { coverage: {}, commits: 1 }), 1).shortfalls).toEqual([])
})

test('META-2: a campaign fails by whose rules nothing was judged', () => {
  const { 'TRIG-5': _, ...judgements } = result(1).judgements
  const said = ['nothing was judged by TRIG-5']
  const seeds = [...results(150, { judgements }), ...results(50, { judgements })]
  expect(summarise(seeds, 1).shortfalls).toEqual(said)
  expect(summarise([...seeds, result(200)], 1).shortfalls).toEqual([])
  // A campaign of a few seeds judges only the rules that its caller names.
  expect(summarise(results(3, { judgements }), 1).shortfalls).toEqual([])
  const asked = summarise(results(3, { judgements }), 1, { rules: ['TRIG-5', 'PAX-1', 'TAB-1'] })
  expect(asked.shortfalls).toEqual(said)
  expect(outcomeOf(asked)).toBe('crash')
  expect(summarise([], 1).shortfalls).toEqual(['no seed was run'])
})

test('META-2: each rule that a checker of the simulator names is among those that are counted', async () => {
  const root = join(import.meta.dirname, '../../sim')
  const all = (await readdir(root, { recursive: true })).filter((name) => name.endsWith('.ts'))
  // The searches judge each state that they come to: a campaign counts nothing of theirs.
  const checking = all.filter((name) => {
    return !/^mutants|explain-rules|^judged-rules|^explore/.test(name)
  })
  const named = new Set<string>()
  for (const name of checking) {
    const text = await readFile(join(root, name), 'utf8')
    for (const [, rule] of text.matchAll(/'([A-Z]+-\d+)'/g)) named.add(rule ?? '')
  }
  // Of these the verdict itself is: of two runs that differ, and of an error.
  const counted = [...named].filter((rule) => ruleNames.includes(rule) && !rule.startsWith('META-'))
  expect(counted.sort()).toEqual([...judgedRules].sort())
})

test('the worst outcome of a campaign is its outcome: safety before all else', () => {
  const mixed = [
    result(1),
    result(2, { outcome: 'liveness' }),
    result(3, { outcome: 'safety' }),
    result(4, { outcome: 'crash' }),
  ]
  const summary = summarise(mixed, 1)
  expect(outcomeOf(summary)).toBe('safety')
  expect(summary.failed.map((one) => one.seed)).toEqual([2, 3, 4])
})
