/** Real nodes whose `log/` is damaged, cut or of the past: each begins anew by itself, where its folder says that it is its own. */
import { cp, readdir, rm, stat, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { eventually, startCluster, type TestCluster, type TestNode } from './harness.ts'
import { contentsAt, writeUntil, type Ledger } from './ledger.ts'

interface Told {
  readonly canLose: number
  readonly change?: { readonly phase: string; readonly number: number }
}

async function membersAt({ url }: TestNode): Promise<Told> {
  const told: Told = JSON.parse(await (await fetch(`${url}/members`)).text())
  return told
}

async function withCluster(
  use: (cluster: TestCluster) => Promise<void>,
  extraYaml = '',
): Promise<void> {
  const cluster = await startCluster({ extraYaml })
  try {
    await untilNoted(cluster)
    await use(cluster)
  } catch (error) {
    for (const { id, log } of cluster.nodes) console.error(id, log().slice(-3_000))
    throw error
  } finally {
    await cluster.close()
  }
}

/** Each folder says whose it is. */
async function untilNoted({ nodes }: TestCluster): Promise<void> {
  await eventually('each folder has its note', async () => {
    const all = await Promise.all(nodes.map(({ dataFolder }) => readdir(dataFolder)))
    return all.every((names) => names.includes('store.json')) || undefined
  })
}

/** The journal of LevelDB, or the last segment, without its second half: as a disk that lost what it had acknowledged. */
async function cutLog({ dataFolder }: TestNode): Promise<void> {
  const folder = join(dataFolder, 'log')
  const names = (await readdir(folder)).filter((name) => /\.(?:log|segment)$/.test(name))
  const last = names.toSorted().at(-1) ?? expect.fail('a journal')
  await truncate(join(folder, last), Math.floor((await stat(join(folder, last))).size / 2))
}

async function breakLog({ dataFolder }: TestNode): Promise<void> {
  await rm(join(dataFolder, 'log', 'CURRENT'))
}

function has(count: number): (ledger: Ledger) => boolean {
  return ({ acknowledged }) => acknowledged.length >= count
}

/** The node votes with another store, and the change of the number is done. */
async function untilHealed(asked: TestNode, node: TestNode, number = 1): Promise<void> {
  await eventually('the change is done', async () => {
    const { change, canLose } = await membersAt(asked)
    return (change?.number === number && change.phase === 'done' && canLose === 1) || undefined
  })
  await node.ready()
  expect(await readdir(node.dataFolder)).toEqual(expect.arrayContaining(['log.damaged']))
  expect(await readdir(node.dataFolder)).not.toContain('seat.json')
  expect(node.log()).toMatch(/asking the others for a seat/)
}

async function expectAll(node: TestNode, { acknowledged }: Ledger): Promise<void> {
  await eventually(`${node.id} has all that was acknowledged`, async () => {
    const { bodies } = await contentsAt(node.url, { rows: acknowledged })
    return acknowledged.every(({ rowKey }) => bodies.has(`${rowKey}/BASE/0`)) || undefined
  })
}

test.each([
  ['cut', '', cutLog],
  ['damaged', '', breakLog],
  ['cut, in segment files,', 'log_store: files', cutLog],
] as const)(
  'SEAT-1: a node whose log was %s begins anew under load, votes, and nothing acknowledged is lost',
  async (_, extraYaml, hurt) => {
    await withCluster(async (cluster) => {
      const node = cluster.node('b')
      let isOver = false
      const urls = [cluster.node('a').url, cluster.node('c').url]
      const before = await writeUntil(cluster.urls, has(200))
      const writing = writeUntil(urls, () => isOver)
      await node.stop('SIGKILL')
      await hurt(node)
      node.spawn()
      await untilHealed(cluster.node('a'), node)
      isOver = true
      const during = await writing
      expect([...during.failures]).toEqual([])
      const status = await (await fetch(`${node.url}/status`)).text()
      expect(status).toMatch(/an empty store has taken the place of this one/)
      const metrics = await (await fetch(`${node.url}/metrics`)).text()
      expect(metrics).toMatch(/^trilithon_log_replaced_total\{[^}]*\} 1$/m)
      expect(metrics).toMatch(/^trilithon_log_unfit\{[^}]*\} 0$/m)
      // The other two are no majority of three without it.
      await cluster.node('c').stop('SIGKILL')
      await expectAll(node, before)
      await expectAll(node, during)
      expect((await writeUntil([node.url], has(20))).acknowledged.length).toBeGreaterThan(0)
      // The next start is one as any other.
      await node.stop()
      await node.start()
      expect(node.log()).not.toMatch(/seat/)
    }, extraYaml)
  },
)

test('SEAT-1: a node that gets a folder of the past begins anew, twice', async () => {
  await withCluster(async (cluster) => {
    const [a, c] = [cluster.node('a'), cluster.node('c')]
    const old = join(cluster.folder, 'old')
    for (const number of [1, 2]) {
      await c.stop()
      await rm(old, { recursive: true, force: true })
      await cp(c.dataFolder, old, { recursive: true })
      await c.start()
      const ledger = await writeUntil(cluster.urls, has(100))
      await c.stop('SIGKILL')
      await rm(c.dataFolder, { recursive: true })
      await cp(old, c.dataFolder, { recursive: true })
      c.spawn()
      await untilHealed(a, c, number)
      expect(c.log()).toMatch(/stale-disk/)
      await expectAll(c, ledger)
    }
  })
})

test('SEAT-2: two of three nodes with cut logs go on asking, say so, and give nothing up', async () => {
  await withCluster(async (cluster) => {
    const [a, b, c] = [cluster.node('a'), cluster.node('b'), cluster.node('c')]
    const ledger = await writeUntil(cluster.urls, has(100))
    await Promise.all([b.stop('SIGKILL'), c.stop('SIGKILL')])
    const whole = join(cluster.folder, 'whole')
    await cp(join(b.dataFolder, 'log'), whole, { recursive: true })
    await Promise.all([breakLog(b), breakLog(c)])
    b.spawn()
    c.spawn()
    for (const node of [b, c]) {
      await eventually('it says what it waits for', async () => {
        const page = await fetch(`${node.url}/readyz?verbose`).catch(() => undefined)
        if (page === undefined) return undefined
        const isTold = /asking the others for a seat/.test(await page.text())
        const status = await (await fetch(`${node.url}/status`)).text()
        return (isTold && /asking the others for a seat \(a: /.test(status)) || undefined
      })
      const metrics = await (await fetch(`${node.url}/metrics`)).text()
      expect(metrics).toMatch(/^trilithon_log_unfit\{[^}]*\} 1$/m)
      const names = await readdir(node.dataFolder)
      expect(names).toEqual(expect.arrayContaining(['log', 'data']))
      expect(names).not.toContain('log.damaged')
    }
    // With the log of one of them the other one has its majority.
    await b.stop('SIGKILL')
    await rm(join(b.dataFolder, 'log'), { recursive: true })
    await cp(whole, join(b.dataFolder, 'log'), { recursive: true })
    b.spawn()
    await eventually('one change is done', async () => {
      const { change, canLose } = await membersAt(a)
      return (change?.phase === 'done' && canLose === 1) || undefined
    })
    for (const node of cluster.nodes) await expectAll(node, ledger)
  })
})

test('heal_log: false ends the node, and leaves its folder as it is', async () => {
  await withCluster(async (cluster) => {
    const node = cluster.node('b')
    await writeUntil(cluster.urls, has(50))
    await node.stop('SIGKILL')
    await breakLog(node)
    node.spawn()
    expect(await node.exited()).toMatchObject({ code: 1 })
    expect(node.log()).toMatch(
      / is damaged, and what this node promised the others stands only there/,
    )
    expect(await readdir(node.dataFolder)).not.toContain('log.damaged')
    expect((await membersAt(cluster.node('a'))).change).toBeUndefined()
  }, 'heal_log: false')
})

test('SEAT-1: an emptied folder, and a damaged one without its note, ask for no seat', async () => {
  await withCluster(async (cluster) => {
    const node = cluster.node('b')
    await node.stop('SIGKILL')
    await rm(join(node.dataFolder, 'store.json'))
    await breakLog(node)
    node.spawn()
    expect(await node.exited()).toMatchObject({ code: 1 })
    await rm(node.dataFolder, { recursive: true })
    node.spawn()
    expect(await node.exited()).toMatchObject({ code: 1 })
    expect(node.log()).toMatch(/unknown-store/)
    expect(node.log()).not.toMatch(/asking the others/)
    expect(await readdir(node.dataFolder)).not.toContain('store.json')
    expect((await membersAt(cluster.node('a'))).change).toBeUndefined()
  })
})
