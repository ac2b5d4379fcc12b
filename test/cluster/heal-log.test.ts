/**
 * Real nodes whose `log/` is damaged, cut or of the past: each begins anew by itself, where its folder says that it is its own.
 * One cluster serves all tests, one after another: node b keeps its log in segment files, and the others keep theirs in LevelDB.
 */
import { cp, readdir, rm, stat, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFailed, test } from 'vitest'
import { eventually, startCluster, type TestCluster, type TestNode } from './harness.ts'
import { settleUnknown, writeUntil, type Ledger } from './ledger.ts'
import { membersAt, untilChanged, untilHasAll } from './members.ts'
import { isNightly } from '../nightly-tests.ts'

let cluster: TestCluster
let a: TestNode
let b: TestNode
let c: TestNode

beforeAll(async () => {
  cluster = await startCluster({ extraYaml: (id) => (id === 'b' ? 'log_store: files' : '') })
  ;[a, b, c] = [cluster.node('a'), cluster.node('b'), cluster.node('c')]
  await eventually('each folder says whose it is', async () => {
    const all = await Promise.all(cluster.nodes.map(({ dataFolder }) => readdir(dataFolder)))
    return all.every((names) => names.includes('store.json')) || undefined
  })
})
afterAll(() => cluster.close())

function tellLogs(): void {
  onTestFailed(() => {
    for (const { id, log } of cluster.nodes) console.error(id, log().slice(-3_000))
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
  const folder = join(dataFolder, 'log')
  const names = (await readdir(folder)).filter((name) => /^CURRENT$|\.segment$/.test(name))
  for (const name of names) await rm(join(folder, name))
}

function has(count: number): (ledger: Ledger) => boolean {
  return ({ acknowledged }) => acknowledged.length >= count
}

/** Empty while no process listens, or the one that listened ends. */
async function textAt({ url }: TestNode, page: string): Promise<string> {
  try {
    return await (await fetch(`${url}/${page}`)).text()
  } catch {
    return ''
  }
}

async function changesSoFar(): Promise<number> {
  return (await membersAt(a)).change?.number ?? 0
}

/** The node votes with another store, and one change more is done. */
async function untilHealed(node: TestNode, before: number): Promise<void> {
  await untilChanged(a, before + 1)
  await node.ready()
  expect(await readdir(node.dataFolder)).toEqual(expect.arrayContaining(['log.damaged']))
  expect(await readdir(node.dataFolder)).not.toContain('seat.json')
  expect(node.log()).toMatch(/asking the others for a seat/)
}

type Cut = readonly [node: string, kind: string, other: string]
const inFiles: Cut = ['b', 'in segment files', 'c']
const inLevelDb: Cut = ['c', 'in LevelDB', 'b']

test.each(isNightly ? [inFiles, inLevelDb] : [inFiles])(
  'SEAT-1: node %s, whose log %s was cut, begins anew under load, votes, and nothing acknowledged is lost',
  async (id, _, other) => {
    tellLogs()
    const node = cluster.node(id)
    const number = await changesSoFar()
    const before = await writeUntil(cluster.urls, has(200))
    let isOver = false
    const writing = writeUntil([a.url, cluster.node(other).url], () => isOver, 8)
    await node.stop('SIGKILL')
    await cutLog(node)
    node.spawn()
    await untilHealed(node, number)
    isOver = true
    const during = await writing
    for (const ledger of [before, during]) await settleUnknown(cluster.urls, ledger)
    const status = await (await fetch(`${node.url}/status`)).text()
    expect(status).toMatch(/an empty store has taken the place of this one/)
    const metrics = await (await fetch(`${node.url}/metrics`)).text()
    expect(metrics).toMatch(/^trilithon_log_replaced_total\{[^}]*\} 1$/m)
    expect(metrics).toMatch(/^trilithon_log_unfit\{[^}]*\} 0$/m)
    // The other two are no majority of three without it.
    await cluster.node(other).stop('SIGKILL')
    await untilHasAll(node, before)
    await untilHasAll(node, during)
    expect((await writeUntil([node.url], has(20))).acknowledged.length).toBeGreaterThan(0)
    // The next start is one as any other.
    await Promise.all([cluster.node(other).start(), node.stop().then(() => node.start())])
    expect(node.log()).not.toMatch(/seat/)
  },
)

test('SEAT-1: a node that gets a folder of the past begins anew, where it has begun anew before', async () => {
  tellLogs()
  const number = await changesSoFar()
  const old = join(cluster.folder, 'old')
  await c.stop()
  await cp(c.dataFolder, old, { recursive: true })
  await c.start()
  const ledger = await writeUntil(cluster.urls, has(100))
  await settleUnknown(cluster.urls, ledger)
  await c.stop('SIGKILL')
  await rm(c.dataFolder, { recursive: true })
  await cp(old, c.dataFolder, { recursive: true })
  c.spawn()
  await untilHealed(c, number)
  expect(c.log()).toMatch(/stale-disk/)
  await untilHasAll(c, ledger)
})

test('SEAT-2: two of three nodes with damaged logs go on asking, say so, and give nothing up', async () => {
  tellLogs()
  const number = await changesSoFar()
  const ledger = await writeUntil(cluster.urls, has(100))
  await settleUnknown(cluster.urls, ledger)
  await Promise.all([b.stop('SIGKILL'), c.stop('SIGKILL')])
  // From the changes before.
  for (const node of [b, c]) await rm(join(node.dataFolder, 'log.damaged'), { recursive: true })
  const whole = join(cluster.folder, 'whole')
  await cp(join(b.dataFolder, 'log'), whole, { recursive: true })
  await Promise.all([breakLog(b), breakLog(c)])
  b.spawn()
  c.spawn()
  for (const node of [b, c]) {
    await eventually('it says what it waits for', async () => {
      // Before it asks, the node has ended one start, and its listener with it.
      const said = await Promise.all(['readyz?verbose', 'status'].map((page) => textAt(node, page)))
      const [readiness = '', status = ''] = said
      const isAsking = /asking the others for a seat/.test(readiness)
      return (isAsking && /asking the others for a seat \(a: /.test(status)) || undefined
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
  // The operator's request finds no majority either.
  expect((await fetch(`${a.url}/members/renew`, { method: 'POST' })).ok).toBe(false)
  b.spawn()
  await untilHealed(c, number)
  for (const node of cluster.nodes) await untilHasAll(node, ledger)
})

test('SEAT-1: heal_log: false, a folder without its note and an emptied one end the node, and ask for no seat', async () => {
  tellLogs()
  const before = await membersAt(a)
  await c.stop('SIGKILL')
  await rm(join(c.dataFolder, 'log.damaged'), { recursive: true, force: true })
  await breakLog(c)
  const refusal = / is damaged, and what this node promised the others stands only there/
  c.spawn({ environment: { TRILITHON_HEAL_LOG: 'false' } })
  expect(await c.exited()).toMatchObject({ code: 1 })
  expect(c.log()).toMatch(refusal)
  await rm(join(c.dataFolder, 'store.json'))
  c.spawn()
  expect(await c.exited()).toMatchObject({ code: 1 })
  expect(c.log()).toMatch(refusal)
  expect(await readdir(c.dataFolder)).not.toContain('log.damaged')
  await rm(c.dataFolder, { recursive: true })
  c.spawn()
  expect(await c.exited()).toMatchObject({ code: 1 })
  expect(c.log()).toMatch(/unknown-store/)
  expect(c.log()).not.toMatch(/asking the others/)
  expect(await readdir(c.dataFolder)).not.toContain('store.json')
  expect(await membersAt(a)).toMatchObject({ change: before.change })
})
