/**
 * One node's stores are damaged while it is down: a flipped bit, a truncated file. Afterwards the
 * node has repaired itself, or refuses to start and says why; it never serves wrong data.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { readdir, readFile, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { connect } from '../../src/client/connect.ts'
import {
  eventually,
  patienceMs,
  runProgram,
  startCluster,
  type TestCluster,
  type TestNode,
} from './harness.ts'
import { contentsAt, writeUntil, type Ledger } from './ledger.ts'

type Damage = 'a flipped bit' | 'a truncated file'

/** The largest file of a store: the one that holds most of what it knows. */
async function largestFile(folder: string): Promise<string> {
  const names = (await readdir(folder)).filter((name) => /\.(ldb|log)$/.test(name))
  const sized = await Promise.all(
    names.map(async (name) => ({ name, size: (await stat(join(folder, name))).size })),
  )
  const [first] = sized.sort((a, b) => b.size - a.size)
  if (first === undefined) throw new Error(`${folder} holds no files of a store`)
  return join(folder, first.name)
}

async function damage(file: string, kind: Damage, share: number): Promise<void> {
  const { size } = await stat(file)
  if (kind === 'a truncated file') return truncate(file, Math.floor(size * share))
  const bytes = await readFile(file)
  const at = Math.floor(size * share)
  bytes[at] = (bytes[at] ?? 0) ^ 0x10
  await writeFile(file, bytes)
}

/** The node has mended its log, and says so wherever an operator looks. */
async function expectTold(node: TestNode): Promise<void> {
  const { stderr } = await runProgram(['status', '--url', node.url])
  expect(stderr).toMatch(/b: log\/ was found damaged \(\d+\.log at byte \d+: /)
  const metrics = await (await fetch(new URL('/metrics', node.url))).text()
  expect(metrics).toMatch(/^trilithon_replica_log_damages_total\{[^}]*\} 1$/m)
  expect(node.log()).toMatch(/log\/ was found damaged/)
  expect(await readdir(join(node.dataFolder, 'log.damaged'))).toContain('mended')
}

/** Starts the node again. True when it serves; false when it ended with a reason. */
async function restart(node: TestNode): Promise<boolean> {
  const program = node.spawn()
  const ended = program.exited(30_000).catch(() => undefined)
  const started = await Promise.race([
    node.ready().then(() => true),
    ended.then(() => false),
  ]).catch(() => false)
  return started
}

/** This number of puts was acknowledged. */
function has(count: number): (ledger: Ledger) => boolean {
  return ({ acknowledged }) => acknowledged.length >= count
}

async function expectTruth(
  cluster: TestCluster,
  ids: readonly string[],
  ledger: Ledger,
): Promise<void> {
  for (const id of ids) {
    const { bodies } = await contentsAt(cluster.node(id).url, { rows: ledger.acknowledged })
    for (const { rowKey, body } of ledger.acknowledged) {
      const found = bodies.get(`${rowKey}/BASE/0`)
      if (found !== undefined) expect(found).toEqual(body)
    }
  }
}

/** One for as long as all its nodes serve: a node that has repaired itself is damaged again. */
let whole: TestCluster | undefined
afterAll(() => whole?.close())

test.each<readonly ['log' | 'data', Damage, number]>([
  ['data', 'a flipped bit', 0.5],
  ['data', 'a truncated file', 0.6],
  // The checksum of the first record, with which LevelDB would pass over a block of 32 KiB.
  ['log', 'a flipped bit', 0],
  ['log', 'a flipped bit', 0.5],
  ['log', 'a truncated file', 0.6],
])(
  'in the %s store of one node, %s is repaired or refused, never served',
  async (store, kind, share) => {
    const cluster = whole ?? (await startCluster())
    whole = undefined
    let mayGoOn = false
    try {
      const ledger = await writeUntil(cluster.urls, has(500))
      const node = cluster.node('b')
      await node.stop('SIGKILL')
      await damage(await largestFile(join(node.dataFolder, store)), kind, share)
      const serves = await restart(node)
      if (!serves) {
        expect(await node.exited()).toMatchObject({ code: 1 })
        expect(node.log()).toMatch(/damaged|corrupt|stale|flush/i)
        expect(node.log()).not.toMatch(/^\s+at /m)
      }
      if (store === 'log' && share === 0) {
        expect(serves).toBe(true)
        await expectTold(node)
      }
      process.stdout.write(`damage: ${store}, ${kind}: ${serves ? 'repaired' : 'refused'}\n`)
      await expectTruth(cluster, serves ? ['a', 'b', 'c'] : ['a', 'c'], ledger)
      // The others go on, and through them nothing that was acknowledged is missing.
      const after = await writeUntil(cluster.urls, has(50))
      expect(after.acknowledged.length).toBeGreaterThanOrEqual(50)
      const { bodies } = await contentsAt(cluster.node('a').url, { rows: ledger.acknowledged })
      for (const { rowKey } of ledger.acknowledged)
        expect(bodies.has(`${rowKey}/BASE/0`)).toBe(true)
      mayGoOn = serves
    } finally {
      if (mayGoOn) whole = cluster
      else await cluster.close()
    }
  },
)

/** Overwrites rows of all larger tables: whole keys, so that they are out of order. */
async function damageKeys(folder: string): Promise<number> {
  let tables = 0
  for (const name of (await readdir(folder)).filter((one) => one.endsWith('.ldb'))) {
    const file = join(folder, name)
    const bytes = await readFile(file)
    if (bytes.length < 100_000) continue
    tables += 1
    // The bytes that votes rest on lie at the ends, and would be found before LevelDB comes to them.
    for (let at = bytes.length * 0.3; at < bytes.length * 0.7; at += 1_500) {
      bytes.fill(0xff, Math.floor(at), Math.floor(at) + 40)
    }
    await writeFile(file, bytes)
  }
  return tables
}

/** Empty where the node has ended: a merge may come to the damage as soon as the node is ready, or while it answers. */
function statusUnlessEnded(node: TestNode): Promise<string> {
  return eventually('it answers, or has ended', () =>
    node.pid === undefined
      ? Promise.resolve('')
      : fetch(`${node.url}/status`)
          .then((answer) => answer.text())
          .catch(() => undefined),
  )
}

test('DISK-17: the next start finds and mends damage that ended LevelDB in a merge of data/', async () => {
  // So slow a scrub finds nothing before LevelDB does.
  const cluster = await startCluster({ extraYaml: 'limits: { scrub_bytes_per_second: 1024 }' })
  const client = await connect({ endpoints: cluster.urls, timeoutMs: patienceMs })
  const fill = async (count: number): Promise<void> => {
    for (let from = 0; from < count; from += 20) {
      const cells = Array.from({ length: 20 }, () => ({
        ...{ rowKey: randomUUID(), column: 'BASE', refKey: 0 },
        body: randomBytes(1_500).toString('hex'),
      }))
      for (const { kind } of await client.cells('fill').putMany(cells)) expect(kind).toBe('ok')
    }
  }
  try {
    const ledger = await writeUntil(cluster.urls, has(100))
    const node = cluster.node('b')
    for (let table = 0; table < 4; table++) {
      await fill(200)
      await eventually('it has all', async () => {
        const status = await (await fetch(`${node.url}/status`)).text()
        return /"lackingGroups":0,/.test(status) || undefined
      })
      await node.stop('SIGTERM')
      if (table < 3) await node.start()
    }
    expect(await damageKeys(join(node.dataFolder, 'data'))).toBeGreaterThan(0)
    const ends: string[] = []
    for (let starts = 0; starts < 8 && ends.at(-1) !== 'mended'; starts++) {
      if (!(await restart(node))) {
        ends.push((await node.exited()).signal ?? 'refused')
        continue
      }
      if (/data\/ was damaged and has been rebuilt/.test(await statusUnlessEnded(node))) {
        ends.push('mended')
        break
      }
      await fill(20)
      await node.stop('SIGTERM')
      ends.push((await node.exited()).signal ?? 'served')
    }
    process.stdout.write(`damage: keys of data/: ${ends.join(', ')}\n`)
    expect(ends.at(-1)).toBe('mended')
    expect(ends.filter((end) => end === 'SIGABRT').length).toBeLessThanOrEqual(1)
    await expectTruth(cluster, ['b'], ledger)
  } finally {
    await client.close()
    await cluster.close()
  }
})
