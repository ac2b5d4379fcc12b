/** `bench ycsb`: the numbers it draws are YCSB's, and a run on a few records. */
import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { uniformInt } from 'pure-rand/distribution/uniformInt'
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus'
import { expect, test } from 'vitest'
import { describeYcsb } from '../../bench/describe.ts'
import {
  scrambledZipfian,
  computeZeta,
  zipfian,
  type Uniform,
} from '../../bench/ycsb/generators.ts'
import { authorCount, postName, userId } from '../../bench/ycsb/records.ts'
import type { YcsbReport } from '../../bench/ycsb/ycsb.ts'
import { eventually, withFolder } from '../cluster/harness.ts'
import { isNightly } from '../nightly-tests.ts'
import { runBench } from './program.ts'

const timeoutMs = 60_000
const draws = 50_000

function seeded(seed: number): Uniform {
  const generator = xoroshiro128plus(seed)
  return () => uniformInt(generator, 0, 2 ** 31 - 1) / 2 ** 31
}

/** The shares of the numbers that are drawn, the most frequent first. */
function sharesOf(draw: () => number): (readonly [number, number])[] {
  const counts = new Map<number, number>()
  for (let i = 0; i < draws; i++) {
    const drawn = draw()
    counts.set(drawn, (counts.get(drawn) ?? 0) + 1)
  }
  const shares = [...counts].map(([drawn, count]) => [drawn, count / draws] as const)
  return shares.sort(([, a], [, b]) => b - a)
}

function isReport(report: unknown): report is YcsbReport {
  return typeof report === 'object' && report !== null && 'workloads' in report
}

test('records have the keys that YCSB gives them', () => {
  expect([0, 1, 2].map(userId)).toEqual([
    'user6284781860667377211',
    'user8517097267634966620',
    'user1820151046732198393',
  ])
})

test("numbers come as often as Zipf's law says", () => {
  const zeta = computeZeta(1_000)
  const shares = new Map(sharesOf(zipfian(1_000, zeta, seeded(7))))
  expect(Math.max(...shares.keys())).toBeLessThan(1_000)
  for (const rank of [1, 2, 10]) {
    // Gray's method is exact for the first two only.
    const exact = 1 / rank ** 0.99 / zeta
    expect((shares.get(rank - 1) ?? 0) / exact).toBeGreaterThan(0.8)
    expect((shares.get(rank - 1) ?? 0) / exact).toBeLessThan(1.2)
  }
})

test('the records asked for most are scattered, and as hot as those of YCSB', () => {
  const shares = sharesOf(scrambledZipfian(100_000, seeded(7)))
  const [first, second] = shares
  expect(first?.[1]).toBeCloseTo(1 / 26.469, 2)
  expect(Math.abs((first?.[0] ?? 0) - (second?.[0] ?? 0))).toBeGreaterThan(1)
  expect(shares.every(([n]) => Number.isSafeInteger(n) && n >= 0 && n < 100_000)).toBe(true)
})

test('posts are spread over their authors, about a thousand each', () => {
  expect([1, 1_499, 20_000].map(authorCount)).toEqual([1, 1, 20])
  const counts = new Map<number, number>()
  const names = Array.from({ length: 20_000 }, (_, n) => postName(n, 20))
  for (const { author } of names) counts.set(author, (counts.get(author) ?? 0) + 1)
  expect(counts.size).toBe(20)
  expect(Math.min(...counts.values())).toBeGreaterThan(800)
  expect(new Set(names.map(({ postId }) => postId)).size).toBe(20_000)
})

test.runIf(isNightly)(
  'three workloads run, each with its own operations',
  { timeout: timeoutMs },
  async () => {
    const tiny = ['--records', '200', '--seconds', '1', '--warm-up', '0', '--clients', '8']
    const { code, stdout, stderr } = await runBench([
      'ycsb',
      '--workloads',
      'e,A,b',
      ...tiny,
      '--json',
    ])
    expect(code, stderr).toBe(0)
    const report: unknown = JSON.parse(stdout)
    if (!isReport(report)) throw new Error('the output is no report')
    const [e, a, b] = report.workloads
    expect(report.loaded.map(({ table, rows }) => [table, rows])).toEqual([
      ['User', 200],
      ['Post', 200],
    ])
    expect(report.workloads.map(({ workload, failures }) => [workload, failures])).toEqual([
      ['e', 0],
      ['a', 0],
      ['b', 0],
    ])
    expect(Object.keys(a?.kinds ?? {})).toEqual(['read', 'update'])
    expect(b?.kinds.read?.operations).toBeGreaterThan(b?.kinds.update?.operations ?? 0)
    expect(e?.kinds.scan?.p99Ms).toBeGreaterThan(0)
    // Of one to a hundred rows, fewer where a group ends.
    expect(e?.rowsPerScan).toBeGreaterThan(10)
    expect(e?.rowsPerScan).toBeLessThan(60)
    expect(e?.cpuPer1000.nodes).toHaveLength(3)
    expect(describeYcsb(report)).toMatch(/workload E +\d+/)
  },
)

test('Ctrl-C ends the nodes, and leaves no folder', { timeout: timeoutMs }, () =>
  withFolder(async (folder) => {
    const result = await runBench(['ycsb', '--records', '1000000'], {
      folder,
      meanwhile: async (child) => {
        await eventually('the third node is there', async () => {
          const [cluster] = await readdir(folder)
          const log = join(folder, cluster ?? '', 'n3', 'log', 'CURRENT')
          return existsSync(log) || undefined
        })
        child.kill('SIGINT')
      },
    })
    expect(result).toMatchObject({ code: 130, stdout: '' })
    expect(result.stderr).toContain('stopped; nothing is reported')
    expect(await readdir(folder)).toEqual([])
  }),
)

test('bench ycsb refuses unusable options in a sentence', async () => {
  expect(await runBench(['ycsb', '--workloads', 'a,c'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('unknown workload'),
  })
  expect(await runBench(['ycsb', '--clients', '5000'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('a whole number from 1 to 4096 is wanted'),
  })
})
