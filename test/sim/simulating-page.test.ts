/** The page on simulating says what the kept campaigns say. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { grouped } from '../../src/cli/output.ts'

interface Sums {
  readonly seeds: number
  readonly events: number
  readonly commits: number
  readonly simulatedSeconds: number
  readonly violations: number
}

interface KeptSeeds {
  readonly seeds: string
  readonly total: Sums & { readonly withLeases: number }
  readonly campaigns: readonly (Sums & { readonly failures: readonly unknown[] })[]
}

function textOf(path: string): string {
  return readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
}

const kept: KeptSeeds = JSON.parse(textOf('bench/results/seeds-5000.json'))

function sumOf(name: keyof Sums): number {
  return kept.campaigns.reduce((sum, campaign) => sum + campaign[name], 0)
}

test('the total of the long campaign is that of its parts', () => {
  const [first = Number.NaN, last = Number.NaN] = kept.seeds.split('..').map(Number)
  expect(kept.total.seeds).toBe(last - first + 1)
  for (const name of ['seeds', 'events', 'commits', 'violations'] as const)
    expect(kept.total[name]).toBe(sumOf(name))
  expect(kept.total.simulatedSeconds).toBe(Math.round(sumOf('simulatedSeconds')))
})

test('the page tells the total of the long campaign', () => {
  const [first, last] = kept.seeds.split('..')
  const { events, commits, simulatedSeconds, withLeases } = kept.total
  const days = (simulatedSeconds / 86_400).toFixed(1)
  expect(textOf('src/docs/simulating.md')).toContain(
    `Seeds ${first} to ${last} ([\`seeds-5000.json\`](../../bench/results/seeds-5000.json)): ` +
      `${grouped(events)} events, ${grouped(commits)} commits, ${days} simulated days; ` +
      `${grouped(withLeases)} of them with leases on.`,
  )
})

test('the long campaign found nothing', () => {
  expect(kept.campaigns.flatMap(({ failures }) => failures)).toEqual([])
  expect(kept.total.violations).toBe(0)
})
