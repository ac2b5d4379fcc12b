/** Real nodes whose wall clocks are hours off: they notice, say so, and no client is refused for it. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createCluster, eventually, type TestCluster, type TestNode } from './harness.ts'
import { writeUntil, type Ledger } from './ledger.ts'

const hourMs = 3_600_000

/** Starts the node with a wall clock that is so far ahead. */
async function startWith(cluster: TestCluster, node: TestNode, aheadMs: number): Promise<void> {
  const path = join(cluster.folder, `clock-${node.id}.cjs`)
  await writeFile(path, `const now = Date.now\nDate.now = () => now() + ${aheadMs}\n`)
  const others = process.env['NODE_OPTIONS'] ?? ''
  node.spawn({ environment: { NODE_OPTIONS: `${others} --require "${path}"` } })
}

async function statusOf({ url }: TestNode): Promise<string> {
  return (await fetch(`${url}/status`)).text()
}

async function metricOf({ url }: TestNode, name: string): Promise<number> {
  const page = await (await fetch(`${url}/metrics`)).text()
  return Number(new RegExp(`^${name}\\{[^}]*\\} (\\S+)$`, 'm').exec(page)?.[1])
}

/** Puts by HTTP at this node, and reads what it put. */
async function putAt({ id, url }: TestNode): Promise<unknown> {
  const cell = `${url}/v1/datastores/clocks/cells/0b5c1a52-1f5e-4d0c-8d2b-3c6a0d1e7f0${id}/BASE`
  const put = await fetch(`${cell}/1`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ by: id }),
  })
  const said = await put.text()
  expect(put.ok, `${id}: ${put.status} ${said}`).toBe(true)
  return (await fetch(cell)).json()
}

test('CLOCK-1, CLOCK-2, CLOCK-3: nodes whose clocks are hours behind and ahead say so, and refuse no client for it', async () => {
  const cluster = await createCluster()
  try {
    const [behind, , ahead] = cluster.nodes
    if (behind === undefined || ahead === undefined) throw new Error('there are three nodes')
    const aheadMs: Readonly<Record<string, number>> = { a: -2 * hourMs, c: 2 * hourMs }
    for (const node of cluster.nodes) await startWith(cluster, node, aheadMs[node.id] ?? 0)
    await Promise.all(cluster.nodes.map((node) => node.ready()))
    // CLOCK-3: as soon as they are ready; of each node by itself, and of all.
    const enough = ({ acknowledged, failures }: Ledger): boolean =>
      acknowledged.length >= 100 || failures.size > 0
    const urlsOf = cluster.nodes.map(({ url }) => [url])
    const ledgers = await Promise.all(
      [...urlsOf, cluster.urls].map((urls) => writeUntil(urls, enough, 4)),
    )
    for (const { failures } of ledgers) expect([...failures]).toEqual([])
    for (const node of cluster.nodes)
      expect(await putAt(node)).toMatchObject({ body: { by: node.id } })
    const told = await eventually('both have noticed', async () => {
      const [a, c] = [await statusOf(behind), await statusOf(ahead)]
      return a.includes('"isClockBehind":true') && c.includes('"isClockAhead":true')
        ? { a, c }
        : undefined
    })
    expect(told.a).toMatch(/wall clock is 7\d\d\d\.\d s behind most others': set it/)
    expect(told.c).toMatch(/wall clock is 7\d\d\d\.\d s ahead of most others': set it/)
    const lagMs = await metricOf(behind, 'trilithon_replica_clock_lag_ms')
    const leadMs = await metricOf(ahead, 'trilithon_replica_clock_lead_ms')
    for (const ms of [lagMs, leadMs]) expect(Math.abs(ms - 2 * hourMs)).toBeLessThan(60_000)
    expect(behind.log()).toContain('the wall clock is behind: set it')
    expect(ahead.log()).toContain('the wall clock is ahead: set it')
    const right = await statusOf(cluster.node('b'))
    expect(right).toContain('"messages":[]')
    expect(cluster.node('b').log()).not.toContain('wall clock')
    // Once more, now that they go by the others' clocks.
    const later = await Promise.all(urlsOf.map((urls) => writeUntil(urls, enough, 4)))
    for (const { failures } of later) expect([...failures]).toEqual([])
    for (const node of cluster.nodes)
      expect(await putAt(node)).toMatchObject({ body: { by: node.id } })
  } finally {
    await cluster.close()
  }
})
