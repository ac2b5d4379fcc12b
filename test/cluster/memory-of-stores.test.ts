/** Real nodes that lose their `data/`, are killed idle, or come back with an old folder. */
import { cp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { eventually, startCluster, type TestCluster, type TestNode } from './harness.ts'

async function put(url: string, body: string): Promise<number> {
  const response = await fetch(`${url}/v1/datastores/kept/cells/${crypto.randomUUID()}/BASE/0`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ body }),
  })
  await response.arrayBuffer()
  return response.status
}

async function putSome(url: string, count: number): Promise<void> {
  for (let n = 0; n < count; n++) expect(await put(url, `number ${n}`)).toBe(201)
}

/** One bit of what the data store says of itself: the store is put aside and made anew. */
async function hurtData({ dataFolder }: TestNode): Promise<void> {
  const folder = join(dataFolder, 'data')
  const names = await readdir(folder)
  const manifest = names.find((name) => name.startsWith('MANIFEST')) ?? expect.fail('a manifest')
  const bytes = await readFile(join(folder, manifest))
  bytes[40] = (bytes[40] ?? 0) ^ 1
  await writeFile(join(folder, manifest), bytes)
}

async function withCluster(use: (cluster: TestCluster) => Promise<void>): Promise<void> {
  // A node whose store the others refuse ends, and tells their words.
  const cluster = await startCluster({ extraYaml: 'heal_log: false' })
  try {
    await use(cluster)
  } finally {
    await cluster.close()
  }
}

async function stopAll({ nodes }: TestCluster): Promise<void> {
  await Promise.all(nodes.map((node) => node.stop('SIGKILL')))
}

async function replaceFolder(to: string, from?: string): Promise<void> {
  await rm(to, { recursive: true, force: true })
  if (from !== undefined) await cp(from, to, { recursive: true })
}

test('LOG-10: after a reset of its data a node still refuses an emptied store, even alone', async () => {
  await withCluster(async (cluster) => {
    const [b, c] = [cluster.node('b'), cluster.node('c')]
    await putSome(b.url, 3)
    await stopAll(cluster)
    await hurtData(b)
    await replaceFolder(join(c.dataFolder, 'log'))
    await replaceFolder(join(c.dataFolder, 'data'))
    b.spawn()
    c.spawn()
    await c.exited()
    expect(c.log()).toContain('unknown-store')
    expect(b.log()).toContain('rebuilt from the log')
    expect((await fetch(`${b.url}/readyz`)).status).not.toBe(200)
  })
})

test('LOG-10: nodes killed while idle know how far each other’s logs were: an old folder is refused by the one that is left', async () => {
  await withCluster(async (cluster) => {
    const [a, b, c] = [cluster.node('a'), cluster.node('b'), cluster.node('c')]
    await putSome(a.url, 3)
    await c.stop('SIGKILL')
    const old = join(cluster.folder, 'old')
    await cp(c.dataFolder, old, { recursive: true })
    await c.start()
    await putSome(a.url, 5)
    // Nothing is written from here on: the last claims are kept within a heartbeat all the same.
    await new Promise((resolve) => setTimeout(resolve, 2_000))
    await stopAll(cluster)
    await replaceFolder(c.dataFolder, old)
    b.spawn()
    c.spawn()
    await c.exited()
    expect(c.log()).toContain('stale-disk')
    await a.start()
    await b.ready()
    await eventually('two write on', async () => (await put(b.url, 'after')) === 201 || undefined)
  })
})
