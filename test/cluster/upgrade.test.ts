/**
 * A cluster of real processes that act as the build before is upgraded node by node under writers, and the next cluster version is put in
 * force. The page on upgrades shows the commands and what they say.
 */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import {
  eventually,
  patienceMs,
  runProgram,
  startProgram,
  createCluster,
  type ProgramResult,
  type TestCluster,
} from './harness.ts'
import { contentsAt, writeUntil, type Ledger } from './ledger.ts'

const page = readFileSync(new URL('../../src/docs/upgrading.md', import.meta.url), 'utf8')
const before = { environment: { TRILITHON_ACT_AS_VERSION: '1' } }
const testTimeoutMs: number = 8 * patienceMs

async function trilithon(cluster: TestCluster, ...words: string[]): Promise<ProgramResult> {
  return runProgram([...words, '--url', cluster.urls[0] ?? ''], { timeoutMs: 2 * patienceMs })
}

/** As the page shows it: other ports, and the version of the program as it is. */
function asShown(text: string, cluster: TestCluster): string {
  const shown = cluster.nodes.map(
    ({ url }, place) => [url, `http://127.0.0.1:${4700 + place}`] as const,
  )
  return shown.reduce((all, [url, at]) => all.replaceAll(url, at), text)
}

/** The page has it. */
function expectShown(text: string): void {
  expect(page.includes(text) ? text : 'the page shows something else').toBe(text)
}

async function untilHasAll(cluster: TestCluster, { acknowledged }: Ledger): Promise<void> {
  for (const { id, url } of cluster.nodes) {
    await eventually(`${id} has all`, async () => {
      const { bodies } = await contentsAt(url, { rows: acknowledged })
      return acknowledged.every(({ rowKey }) => bodies.has(`${rowKey}/BASE/0`)) || undefined
    })
  }
}

/** Each has links with all others, so none of them counts as down. */
async function untilLinked(cluster: TestCluster): Promise<void> {
  for (const { id, url } of cluster.nodes) {
    await eventually(`${id} has links with all`, async () => {
      const text = await (await fetch(`${url}/members`)).text()
      return !text.includes('"isAlive":false') || undefined
    })
  }
}

test(
  'UPG-1, UPG-2: nodes of two builds serve, finalize waits for the last one, and no earlier build starts behind it',
  { timeout: testTimeoutMs },
  async () => {
    const cluster = await createCluster()
    const [a, c] = [cluster.node('a'), cluster.node('c')]
    let isOver = false
    let early: Promise<Ledger> | undefined
    try {
      for (const node of cluster.nodes) node.spawn(before)
      for (const node of cluster.nodes) await node.ready()
      // A build of before knows no such request, nor the number of a change.
      expect((await fetch(`${a.url}/upgrade`)).status).toBe(404)
      const numbered = await fetch(`${a.url}/members/cancel?number=1`, { method: 'POST' })
      expect([numbered.status, await numbered.text()]).toEqual([
        400,
        'this request takes no parameters\n',
      ])
      early = writeUntil(cluster.urls, () => isOver, 4)
      const roll = async (node: TestCluster['nodes'][number]): Promise<void> => {
        await node.stop('SIGTERM')
        node.spawn()
        await node.ready()
        await untilLinked(cluster)
      }
      for (const node of cluster.nodes.slice(0, 2)) await roll(node)
      const status = await trilithon(cluster, 'upgrade', 'status')
      expect(status.code, status.stderr).toBe(0)
      expectShown(asShown(`$ trilithon upgrade status\n${status.stdout}`, cluster))
      const refused = await trilithon(cluster, 'upgrade', 'finalize')
      expect(refused.code, refused.stdout).toBe(1)
      expectShown(`$ trilithon upgrade finalize\n${refused.stderr}`)
      // A node refuses by itself, too.
      const direct = await fetch(`${a.url}/upgrade/finalize?to=2`, { method: 'POST' })
      expect([direct.status, await direct.text()]).toEqual([
        503,
        expect.stringContaining('c runs a build that supports cluster version 1: upgrade it first'),
      ])

      // Before it is put in force, a node may go back.
      await a.stop('SIGTERM')
      a.spawn(before)
      await a.ready()
      await untilLinked(cluster)
      await roll(a)
      await c.stop('SIGTERM')
      const down = await trilithon(cluster, 'upgrade', 'finalize')
      expect([down.code, down.stderr]).toEqual([4, expect.stringContaining('c does not answer')])
      c.spawn()
      await c.ready()
      await untilLinked(cluster)

      const plan = await trilithon(cluster, 'upgrade', 'finalize', '--dry-run')
      const done = await trilithon(cluster, 'upgrade', 'finalize')
      expect([plan.code, done.code], plan.stderr + done.stderr).toEqual([0, 0])
      const shown = `$ trilithon upgrade finalize --dry-run\n${plan.stdout}$ trilithon upgrade finalize\n${done.stdout}`
      expectShown(shown)
      const again = await trilithon(cluster, 'upgrade', 'finalize', '--json')
      expect(JSON.parse(again.stdout)).toEqual({ version: 2, sets: [{ set: 'main', from: 2 }] })

      // No way back: the node says so as it starts, and as itself it serves on.
      await c.stop('SIGTERM')
      c.spawn(before)
      expect(await c.exited()).toMatchObject({ code: 1 })
      expect(c.log()).toContain(
        'A later cluster version is in force in this replica set, and this build supports cluster version 1',
      )
      // Nothing is left to be done, whichever nodes are down.
      const without = await trilithon(cluster, 'upgrade', 'finalize')
      expect([without.code, without.stdout]).toEqual([
        0,
        'cluster version 2 is in force in each replica set; c does not answer: start it\n',
      ])
      c.spawn()
      await c.ready()
      isOver = true
      const ledger = await early
      expect(ledger.acknowledged.length).toBeGreaterThan(100)
      await untilHasAll(cluster, ledger)
    } finally {
      isOver = true
      await early?.catch(() => undefined)
      await cluster.close()
    }
  },
)

test(
  'UPG-2: two replica sets come to the next version together, an earlier build has no links behind it',
  { timeout: testTimeoutMs },
  async () => {
    const cluster = await createCluster({
      ids: ['a', 'b', 'c', 'd'],
      setOf: (id) => (id === 'd' ? 'far' : 'near'),
    })
    try {
      for (const node of cluster.nodes) node.spawn(node.id === 'd' ? before : {})
      for (const node of cluster.nodes) await node.ready()
      await untilLinked(cluster)
      const refused = await trilithon(cluster, 'upgrade', 'finalize')
      expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('d runs build')])
      expect((await trilithon(cluster, 'upgrade', 'status')).stdout).toContain(
        'cluster version 1 in force, 2 can follow',
      )
      await cluster.node('d').stop('SIGTERM')
      cluster.node('d').spawn()
      await cluster.node('d').ready()
      const done = await trilithon(cluster, 'upgrade', 'finalize', '--json')
      expect(done.code, done.stderr).toBe(0)
      expect(JSON.parse(done.stdout)).toEqual({
        version: 2,
        sets: [
          { set: 'near', from: 1 },
          { set: 'far', from: 1 },
        ],
      })
      const status = await trilithon(cluster, 'upgrade', 'status', '--json')
      const { nodes }: { readonly nodes: readonly { readonly version: number }[] } = JSON.parse(
        status.stdout,
      )
      expect(nodes.map(({ version }) => version)).toEqual([2, 2, 2, 2])
      // An odd number is refused before anything is done.
      const odd = startProgram(['node', '--config', cluster.node('a').configPath], {
        environment: { TRILITHON_ACT_AS_VERSION: '7' },
      })
      expect((await odd.exited()).code).toBe(2)
    } finally {
      await cluster.close()
    }
  },
)
