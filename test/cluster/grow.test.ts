/**
 * Three real processes become five, and three again, under writers: two nodes join with empty folders, then two of the first
 * three are killed and taken away for good. The tests go side by side: a node that is removed waits for seconds until it hears of that.
 */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { eventually, patienceMs, runProgram, startCluster, type TestCluster } from './harness.ts'
import { contentsAt, writeUntil, type Ledger } from './ledger.ts'

const page = readFileSync(new URL('../../src/docs/operating.md', import.meta.url), 'utf8')
/** The address of the new node in that page. */
const shownUrl = 'http://127.0.0.1:4703'
const testTimeoutMs: number = 8 * patienceMs
const changeMs: number = 2 * patienceMs

/** The command, asked at these nodes; its end is to be 0. */
async function nodes(cluster: TestCluster, at: string, ...words: string[]): Promise<string> {
  const urls = at.split(' ').map((id) => cluster.node(id).url)
  const result = await runProgram(['nodes', ...words, '--url', urls.join(',')], {
    timeoutMs: changeMs,
  })
  const logs = cluster.nodes.map(({ id, log }) => `--- ${id}\n${log().slice(-3_000)}`).join('\n')
  expect(result.code, `${words.join(' ')}: ${result.stdout}${result.stderr}\n${logs}`).toBe(0)
  return result.stdout
}

async function listVoters(cluster: TestCluster, at: string): Promise<readonly string[]> {
  const response = await fetch(`${cluster.node(at).url}/members`)
  const text = await response.text()
  return [...text.matchAll(/"node":"(\w+)"[^}]*"standing":"voting"/g)].map(([, id = '']) => id)
}

async function statusOf(cluster: TestCluster, at: string): Promise<string> {
  return (await fetch(`${cluster.node(at).url}/status`)).text()
}

async function join(cluster: TestCluster, id: string, at: string): Promise<string> {
  const node = cluster.node(id)
  const plan = await nodes(cluster, at, 'add', id, '--at', node.url, '--dry-run')
  const said = await nodes(cluster, at, 'add', id, '--at', node.url)
  const [, seat = ''] = /--seat (\d+)/.exec(said) ?? []
  expect(Number(seat), said).toBeGreaterThan(0)
  node.spawn({ environment: { TRILITHON_SEAT: seat } })
  await nodes(cluster, at, 'add', id, '--at', node.url, '--wait')
  await node.ready()
  await eventually(
    `${id} votes`,
    async () => (await listVoters(cluster, id)).includes(id) || undefined,
  )
  const command = `$ trilithon nodes add ${id} --at ${node.url}`
  return `${command} --dry-run\n${plan}${command}\n${said}`.replaceAll(node.url, shownUrl)
}

async function leave(cluster: TestCluster, id: string, at: string): Promise<void> {
  await cluster.node(id).stop('SIGKILL')
  await nodes(cluster, at, 'remove', id, '--wait')
}

test.concurrent(
  'MOVE-6: three nodes become five and three others under writers, and no acknowledged write is lost',
  { timeout: testTimeoutMs },
  async () => {
    const cluster = await startCluster({ ids: ['a', 'b', 'c', 'd', 'e'], joining: ['d', 'e'] })
    try {
      let isOver = false
      const until = (): boolean => isOver
      const early = writeUntil(cluster.urls.slice(0, 3), until, 8)
      const transcript = await join(cluster, 'd', 'a b c')
      expect(page).toContain(transcript)
      await join(cluster, 'e', 'a b c d')
      await eventually('a has heard that all five vote', async () => {
        return (await listVoters(cluster, 'a')).join('') === 'abcde' || undefined
      })
      isOver = true
      const grown = await early
      isOver = false
      const late = writeUntil(cluster.urls.slice(2), until, 8)
      await leave(cluster, 'a', 'c d e')
      await leave(cluster, 'b', 'c d e')
      await pause(1_000)
      isOver = true
      const shrunk = await late
      for (const { failures } of [grown, shrunk]) expect([...failures]).toEqual([])
      for (const id of ['c', 'd', 'e']) {
        expect(await listVoters(cluster, id)).toEqual(['c', 'd', 'e'])
        expect(await statusOf(cluster, id)).toContain('"canLose":1')
        await checkAll(cluster, id, [grown, shrunk])
      }
      await checkRemoved(cluster, 'a')
      await checkRemoved(cluster, 'b')
      // A further failure leaves a majority of those that are there now.
      await cluster.node('c').stop('SIGKILL')
      const last = await writeUntil(cluster.urls.slice(3), ({ acknowledged }) => {
        return acknowledged.length > 50
      })
      expect([...last.failures]).toEqual([])
    } finally {
      await cluster.close()
    }
  },
)

async function checkAll(
  cluster: TestCluster,
  at: string,
  ledgers: readonly Ledger[],
): Promise<void> {
  const rows = ledgers.flatMap(({ acknowledged }) => acknowledged)
  expect(rows.length).toBeGreaterThan(100)
  await eventually(`${at} has all`, async () => {
    const { bodies } = await contentsAt(cluster.node(at).url, { rows })
    return rows.every(({ rowKey }) => bodies.has(`${rowKey}/BASE/0`)) || undefined
  })
}

/** Its old store is refused for good, in words, and the process ends. */
async function checkRemoved(cluster: TestCluster, id: string): Promise<void> {
  const node = cluster.node(id)
  node.spawn()
  const exit = await node.exited()
  expect([exit.code, node.log()]).toEqual([
    1,
    expect.stringMatching(
      /has no vote since epoch \d+; store \S+ had one before; move its data folder away|was removed/,
    ),
  ])
}

test.concurrent(
  'a node hears of its removal as it comes back, though all others used to dial it',
  async () => {
    const cluster = await startCluster()
    try {
      await leave(cluster, 'c', 'a b')
      await checkRemoved(cluster, 'c')
      expect(await listVoters(cluster, 'a')).toEqual(['a', 'b'])
    } finally {
      await cluster.close()
    }
  },
)

test.concurrent.each([
  [['a', 'b', 'c'], 'c', ['a', 'b']],
  [['a', 'b'], 'b', ['a']],
])('of %s, %s is removed while it runs: it ends, and %s go on', async (ids, leaver, left) => {
  const cluster = await startCluster({ ids })
  try {
    await nodes(cluster, left.join(' '), 'remove', leaver, '--wait')
    expect(await cluster.node(leaver).exited()).toMatchObject({ code: 1 })
    expect(cluster.node(leaver).log()).toMatch(
      /was removed from its replica set|has no vote since epoch 2/,
    )
    for (const id of left) expect(await listVoters(cluster, id)).toEqual(left)
    const urls = left.map((id) => cluster.node(id).url)
    const { failures } = await writeUntil(urls, ({ acknowledged }) => acknowledged.length > 10)
    expect([...failures]).toEqual([])
  } finally {
    await cluster.close()
  }
})

test.concurrent(
  'a node that joins, with an empty folder and no seat, is refused at its start, and says the command',
  async () => {
    const cluster = await startCluster({ ids: ['a', 'd'], joining: ['d'] })
    try {
      const { configPath, dataFolder, url } = cluster.node('d')
      const refused = await runProgram(['node', '--config', configPath])
      expect(refused.code).toBe(1)
      expect(refused.stderr).toContain(
        `error: d joins its replica set, and the data folder ${dataFolder} has no store as yet: make d a member first (trilithon nodes add d --at ${url} --url ${cluster.node('a').url}), then start it with the seat that this prints (--seat N)`,
      )
    } finally {
      await cluster.close()
    }
  },
)

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
