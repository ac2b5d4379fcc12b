/**
 * One node's stores are damaged while it is down: a flipped bit, a truncated file. Afterwards the
 * node has repaired itself, or refuses to start and says why; nobody is ever served wrong.
 */
import { readdir, readFile, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runProgram, startCluster, type TestCluster, type TestNode } from './harness.ts'
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
  expect(metrics).toMatch(/^trilithon_replica_log_damages\{[^}]*\} 1$/m)
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

/** So many puts were acknowledged. */
function has(count: number): (ledger: Ledger) => boolean {
  return ({ acknowledged }) => acknowledged.length >= count
}

async function expectTruth(
  cluster: TestCluster,
  ids: readonly string[],
  ledger: Ledger,
): Promise<void> {
  for (const id of ids) {
    const { bodies } = await contentsAt(cluster.node(id).url)
    for (const { rowKey, body } of ledger.acknowledged) {
      const found = bodies.get(`${rowKey}/BASE/0`)
      if (found !== undefined) expect(found).toEqual(body)
    }
  }
}

test.each<readonly ['log' | 'data', Damage, number]>([
  // The checksum of the first record, with which LevelDB would pass over a block of 32 KiB.
  ['log', 'a flipped bit', 0],
  ['log', 'a flipped bit', 0.5],
  ['log', 'a truncated file', 0.6],
  ['data', 'a flipped bit', 0.5],
  ['data', 'a truncated file', 0.6],
])(
  'DISK-6: in the %s store of one node, %s is repaired or refused, never served',
  { timeout: 120_000 },
  async (store, kind, share) => {
    const cluster = await startCluster()
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
      const { bodies } = await contentsAt(cluster.node('a').url)
      for (const { rowKey } of ledger.acknowledged)
        expect(bodies.has(`${rowKey}/BASE/0`)).toBe(true)
    } finally {
      await cluster.close()
    }
  },
)
