/**
 * Read-only members in real processes: one joins with an empty folder under writers, serves reads and writes, dies and comes
 * back, gets a vote, loses it, and leaves.
 */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { eventually, patienceMs, runProgram, startCluster, type TestCluster } from './harness.ts'
import { contentsAt, writeUntil, type Ledger } from './ledger.ts'

const page = readFileSync(new URL('../../src/docs/operating.md', import.meta.url), 'utf8')
const shownUrl = 'http://127.0.0.1:4703'
const testTimeoutMs: number = 8 * patienceMs

async function trilithon(at: string, ...words: string[]): ReturnType<typeof runProgram> {
  return runProgram(['nodes', ...words, '--url', at], { timeoutMs: 2 * patienceMs })
}

async function nodes(cluster: TestCluster, at: string, ...words: string[]): Promise<string> {
  const result = await trilithon(cluster.node(at).url, ...words)
  const logs = cluster.nodes.map(({ id, log }) => `--- ${id}\n${log().slice(-2_000)}`).join('\n')
  expect(result.code, `${words.join(' ')}: ${result.stdout}${result.stderr}\n${logs}`).toBe(0)
  return result.stdout
}

async function standings(cluster: TestCluster, at: string): Promise<Record<string, string>> {
  const text = await (await fetch(`${cluster.node(at).url}/members`)).text()
  const told = text.matchAll(/"node":"(\w+)"[^}]*"standing":"([\w-]+)"/g)
  return Object.fromEntries([...told].map(([, id = '', standing = '']) => [id, standing]))
}

async function untilStands(cluster: TestCluster, id: string, standing: string): Promise<void> {
  for (const at of new Set([id, 'a'])) {
    await eventually(`${at} says that ${id} is ${standing}`, async () => {
      return (await standings(cluster, at))[id] === standing || undefined
    })
  }
}

/** Every acknowledged write is in what the node shows by itself. */
async function untilHasAll(cluster: TestCluster, at: string, ledger: Ledger): Promise<void> {
  await eventually(`${at} has all`, async () => {
    const { bodies } = await contentsAt(cluster.node(at).url, { rows: ledger.acknowledged })
    return ledger.acknowledged.every(({ rowKey }) => bodies.has(`${rowKey}/BASE/0`)) || undefined
  })
}

async function writeAt(urls: readonly string[], count = 40): Promise<Ledger> {
  const ledger = await writeUntil(urls, ({ acknowledged }) => acknowledged.length > count)
  expect([...ledger.failures]).toEqual([])
  return ledger
}

test(
  'RDR-3: a node joins without a vote, serves, dies, comes back, gets a vote, loses it, and leaves',
  { timeout: testTimeoutMs },
  async () => {
    const cluster = await startCluster({ ids: ['a', 'b', 'c', 'd'], joining: ['d'] })
    try {
      const d = cluster.node('d')
      let isOver = false
      const voters = cluster.urls.slice(0, 3)
      const early = writeUntil(voters, () => isOver, 4)
      const add = ['add', 'd', '--at', d.url, '--read-only']
      const plan = await nodes(cluster, 'a', ...add, '--dry-run')
      const said = await nodes(cluster, 'a', ...add)
      const command = `$ trilithon nodes add d --at ${d.url} --read-only`
      const shown = `${command} --dry-run\n${plan}${command}\n${said}`.replaceAll(d.url, shownUrl)
      expect(page).toContain(shown)
      const [, seat = ''] = /--seat (\d+)/.exec(said) ?? []
      d.spawn({ environment: { TRILITHON_SEAT: seat } })
      await nodes(cluster, 'a', ...add.slice(0, 4), '--read-only', '--wait').catch(() => undefined)
      await d.ready()
      await untilStands(cluster, 'd', 'read-only')
      const epoch = await (await fetch(`${d.url}/members`)).text()
      expect(epoch).toMatch(/^\{"epoch":1,"standing":"read-only"/)
      isOver = true
      const before = await early
      expect([...before.failures]).toEqual([])
      await untilHasAll(cluster, 'd', before)

      // A client that knows the member alone writes and reads.
      const there = await writeAt([d.url])
      await untilHasAll(cluster, 'd', there)
      // Its death delays no write, and it catches up.
      await d.stop('SIGKILL')
      const meanwhile = await writeAt(voters, 200)
      d.spawn()
      await d.ready()
      await untilStands(cluster, 'd', 'read-only')
      await untilHasAll(cluster, 'd', meanwhile)

      await nodes(cluster, 'a', 'promote', 'd', '--wait')
      await untilStands(cluster, 'd', 'voting')
      // With its vote the set survives the loss of another node.
      await cluster.node('b').stop('SIGKILL')
      await writeAt([d.url, ...voters.slice(2)])
      cluster.node('b').spawn()
      await cluster.node('b').ready()
      await untilStands(cluster, 'b', 'voting')

      await nodes(cluster, 'a', 'demote', 'd', '--wait')
      await untilStands(cluster, 'd', 'read-only')
      await untilHasAll(cluster, 'd', await writeAt([d.url]))
      await nodes(cluster, 'a', 'remove', 'd', '--wait')
      expect(await d.exited()).toMatchObject({ code: 1 })
      d.spawn()
      expect([(await d.exited()).code, d.log()]).toEqual([
        1,
        expect.stringMatching(
          /was removed from its replica set|has no part in the replica set|has no vote since/,
        ),
      ])
      await writeAt(voters)
    } finally {
      await cluster.close()
    }
  },
)

test('RDR-3: wrong requests about read-only members are refused in words', async () => {
  const cluster = await startCluster()
  try {
    const at = cluster.node('a').url
    for (const [words, code, text] of [
      [['promote', 'c'], 1, 'c is no read-only member: it has a vote already, or joins'],
      [['promote', 'x'], 2, 'there is no node "x", only a, b, c'],
      [['demote', 'x'], 2, 'there is no node "x", only a, b, c'],
      [
        ['add', 'b', '--at', 'http://127.0.0.1:1', '--read-only'],
        1,
        'b is a node of this replica set already',
      ],
    ] as const) {
      const result = await trilithon(at, ...words)
      expect([result.code, result.stderr]).toEqual([code, expect.stringContaining(text)])
    }
    // A voter that runs becomes a member without a restart; of its set two vote on.
    await nodes(cluster, 'a', 'demote', 'c', '--wait')
    await untilStands(cluster, 'c', 'read-only')
    const again = await trilithon(at, 'demote', 'c')
    expect([again.code, again.stderr]).toEqual([
      1,
      expect.stringContaining('is a read-only member already'),
    ])
    const listed = await nodes(cluster, 'a', 'list')
    expect(listed).toMatch(/epoch 2: can lose 0 more voters/)
    expect(listed).toMatch(/c +read-only +2 +yes/)
    const status = await runProgram(['status', '--url', at], { timeoutMs: patienceMs })
    expect(status.stdout).toMatch(/c +read-only /)
    const ledger = await writeAt([cluster.node('c').url])
    await untilHasAll(cluster, 'a', ledger)
  } finally {
    await cluster.close()
  }
})
