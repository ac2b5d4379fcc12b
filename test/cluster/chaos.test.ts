/**
 * Real processes under load while random ones are killed with SIGKILL: every acknowledged write is
 * on every replica afterwards, and all replicas agree. CHAOS_SECONDS lengthens the run.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventually, startCluster, type TestCluster } from './harness.ts'
import { contentsAt, writeUntil, type Contents, type Ledger } from './ledger.ts'

const seconds = Number(process.env['CHAOS_SECONDS'] ?? 9)

let cluster: TestCluster
beforeAll(async () => {
  cluster = await startCluster()
})
afterAll(() => cluster?.close())

/** A fixed sequence of victims and pauses: the same plan in every run, whatever the machine does. */
function* plan(): Generator<{
  readonly victim: number
  readonly upMs: number
  readonly downMs: number
}> {
  let state = 20_261
  const next = (below: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return (state >>> 8) % below
  }
  for (;;) yield { victim: next(3), upMs: 200 + next(1_500), downMs: next(1_500) }
}

/** A slow machine gets the time for two kills, however long they take. */
const killsMin = 2

async function killAtRandom(end: number): Promise<number> {
  let kills = 0
  for (const { victim, upMs, downMs } of plan()) {
    await pause(upMs)
    if (performance.now() >= end && kills >= killsMin) return kills
    const node = cluster.nodes[victim]
    await node?.stop('SIGKILL')
    kills += 1
    await pause(downMs)
    await node?.start()
  }
  return kills
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

test(
  'LOG-4: every replica has all writes acknowledged during kills, and all replicas agree',
  { timeout: (seconds + 180) * 1000 },
  async () => {
    const end = performance.now() + seconds * 1000
    let isOver = false
    const killing = killAtRandom(end).finally(() => (isOver = true))
    const ledger = await writeUntil(cluster.urls, () => isOver)
    const kills = await killing
    expect(kills).toBeGreaterThanOrEqual(killsMin)
    expect(ledger.acknowledged.length).toBeGreaterThan(100)
    for (const { id, url } of cluster.nodes) {
      await eventually(`replica ${id} has all`, () => hasAll(url, ledger), 90_000)
    }
    const contents = await Promise.all(cluster.nodes.map(({ url }) => contentsAt(url)))
    for (const one of contents) {
      expect(one.logs).toEqual(contents[0]?.logs)
      expect(strangers(one, ledger)).toEqual([])
    }
    const told = [...ledger.failures].map(([code, count]) => `${count} ${code}`).join(', ')
    process.stdout.write(
      `chaos: ${seconds} s, ${kills} kills, ${ledger.acknowledged.length} acknowledged, failures: ${told || 'none'}\n`,
    )
  },
)

async function hasAll(url: string, ledger: Ledger): Promise<true | undefined> {
  const { bodies } = await contentsAt(url, { rows: ledger.acknowledged })
  for (const { rowKey, body } of ledger.acknowledged) {
    const found = bodies.get(`${rowKey}/BASE/0`)
    if (found === undefined) return undefined
    expect(found).toEqual(body)
  }
  return true
}

/** Cells that no writer wrote. */
function strangers(contents: Contents, ledger: Ledger): string[] {
  const known = new Set(
    [...ledger.acknowledged, ...ledger.unknown].map(({ rowKey }) => `${rowKey}/BASE/0`),
  )
  return [...contents.bodies.keys()].filter((name) => !known.has(name))
}
