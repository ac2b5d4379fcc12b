/** A settled table of a real node's log is damaged beneath it, while it runs. */
import { open, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { eventually, runProgram, startCluster, type TestNode } from './harness.ts'
import { contentsAt, writeUntil, type Ledger } from './ledger.ts'

const extraYaml = 'limits: { scrub_pause_ms: 100 }'

function has(count: number): (ledger: Ledger) => boolean {
  return ({ acknowledged }) => acknowledged.length >= count
}

/** One bit in the middle of each table of the log, in place: LevelDB has them open. */
async function damageTables({ dataFolder }: TestNode): Promise<readonly string[]> {
  const folder = join(dataFolder, 'log')
  const names = (await readdir(folder)).filter((name) => name.endsWith('.ldb'))
  for (const name of names) {
    const at = Math.floor((await stat(join(folder, name))).size / 2)
    const file = await open(join(folder, name), 'r+')
    const bytes = Buffer.alloc(1)
    await file.read(bytes, 0, 1, at)
    await file.write(Uint8Array.of((bytes[0] ?? 0) ^ 0x10), 0, 1, at)
    await file.close()
  }
  return names
}

async function figures({ url }: TestNode): Promise<string> {
  return (await fetch(new URL('/metrics', url))).text()
}

test('DISK-16: a node names a damaged table of its log, goes on, and comes back after a restart', async () => {
  const cluster = await startCluster({ extraYaml })
  try {
    const ledger = await writeUntil(cluster.urls, has(300))
    const node = cluster.node('b')
    // The rows of the journal are in a table after a start.
    await node.stop()
    await node.start()
    await eventually(
      'the log was scrubbed',
      async () =>
        /^trilithon_replica_log_scrub_passes_total\{[^}]*\} [1-9]/m.test(await figures(node)) ||
        undefined,
    )
    expect(await figures(node)).toMatch(/^trilithon_replica_log_damages_total\{[^}]*\} 0$/m)
    const names = await damageTables(node)
    expect(names.length).toBeGreaterThan(0)
    for (const name of names) {
      const isTold = (): boolean => node.log().includes(`"what":"${name} at byte `)
      await eventually(`${name} is told`, () => Promise.resolve(isTold() || undefined))
    }
    expect(node.log()).toMatch(/log\/ was found damaged by a scrub; the node goes on/)
    // A pass that has just begun tells no part of the log yet.
    const { stderr } = await eventually(
      'a status tells how much of the log is scrubbed',
      async () => {
        const told = await runProgram(['status', '--url', node.url])
        return /^b .*, log \d+ %/m.test(told.stdout) ? told : undefined
      },
    )
    expect(stderr).toMatch(/b: log\/ was found damaged \(\d+\.ldb at byte \d+: .*keep data\//)
    const count = names.length
    for (const field of ['log_damages_total', 'scrub_log_damages_total']) {
      const line = new RegExp(`^trilithon_replica_${field}\\{[^}]*\\} ${count}$`, 'm')
      // The page may be of a moment before the log's line.
      await eventually(`${field} is ${count}`, async () => {
        return line.test(await figures(node)) || undefined
      })
    }
    // It votes on: with it alone there is a majority.
    await cluster.node('c').stop('SIGKILL')
    const after = await writeUntil([cluster.node('a').url, node.url], has(20))
    await node.stop('SIGKILL')
    await node.start()
    expect(node.log()).toMatch(/log\/ was found damaged by a scrub/)
    const rows = [...ledger.acknowledged, ...after.acknowledged]
    const { bodies } = await contentsAt(node.url, { rows })
    for (const { rowKey, body } of rows) {
      expect(bodies.get(`${rowKey}/BASE/0`)).toEqual(body)
    }
  } finally {
    await cluster.close()
  }
})
