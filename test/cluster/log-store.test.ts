/** Nodes that keep their logs in segment files, as real processes: kills, and the way there and back. */
import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { journalKindOf } from '../../src/adapters/journal-kind.ts'
import { eventually, runProgram, startCluster, type TestCluster, type TestNode } from './harness.ts'
import { contentsAt, writeUntil, type Ledger } from './ledger.ts'

let cluster: TestCluster
const acknowledged = new Set<string>()
beforeAll(async () => {
  cluster = await startCluster({ cluster: 'trips', extraYaml: 'log_store: files' })
}, 60_000)
afterAll(() => cluster?.close())

/** Writes for a while to all nodes; keeps what was acknowledged. */
async function writeFor(ms: number): Promise<Ledger> {
  const endMs = performance.now() + ms
  const ledger = await writeUntil(cluster.urls, () => performance.now() > endMs)
  for (const { rowKey } of ledger.acknowledged) acknowledged.add(`${rowKey}/BASE/0`)
  return ledger
}

/** Each node by itself shows all that was acknowledged. */
async function expectAllRows(): Promise<void> {
  for (const { id, url } of cluster.nodes) {
    await eventually(`node ${id} has all ${acknowledged.size} rows`, async () => {
      const rows = [...acknowledged].map((cell) => ({ rowKey: cell.split('/')[0] ?? '' }))
      const { bodies } = await contentsAt(url, { rows })
      return [...acknowledged].every((cell) => bodies.has(cell)) || undefined
    })
  }
}

function nodeAt(index: number): TestNode {
  return cluster.nodes[index] ?? expect.fail(`there is a node ${index}`)
}

async function setLogStore({ configPath }: TestNode, kind: string): Promise<void> {
  const text = await readFile(configPath, 'utf8')
  await writeFile(configPath, text.replace(/log_store: .*/, `log_store: ${kind}`))
}

test(
  'nodes with segment files that are killed, one and then all, lose nothing acknowledged',
  { timeout: 120_000 },
  async () => {
    for (const { dataFolder } of cluster.nodes) {
      expect(await journalKindOf(join(dataFolder, 'log'))).toBe('files')
    }
    const writing = writeFor(4_000)
    await new Promise((resolve) => setTimeout(resolve, 1_000))
    await nodeAt(1).stop('SIGKILL')
    await nodeAt(1).start()
    const ledger = await writing
    expect(ledger.acknowledged.length).toBeGreaterThan(10)
    const more = writeFor(1_500)
    await new Promise((resolve) => setTimeout(resolve, 700))
    await Promise.all(cluster.nodes.map((node) => node.stop('SIGKILL')))
    for (const node of cluster.nodes) node.spawn()
    await more
    await Promise.all(cluster.nodes.map((node) => node.ready()))
    await expectAllRows()
  },
)

test(
  'a node of another kind than its log is refused, and the command that it names converts the log',
  { timeout: 120_000 },
  async () => {
    const node = nodeAt(2)
    const { dataFolder } = node
    const running = await runProgram(['store', 'convert', dataFolder, '--to', 'leveldb'])
    expect(running.code).toBe(4)
    expect(running.stderr).toMatch(/ is in use by process \d+ on .*; stop that node first/)
    await node.stop('SIGKILL')
    await setLogStore(node, 'leveldb')
    const refused = await node.spawn().exited()
    expect(refused.code).toBe(1)
    const [, words = ''] =
      /holds a log in segment files, .*run: trilithon (store convert \S+ --to leveldb)/.exec(
        node.log(),
      ) ?? expect.fail(node.log())
    const there = await runProgram(words.split(' '))
    expect([there.code, there.stdout]).toEqual([
      0,
      expect.stringMatching(
        /^log\/ is in LevelDB now: [\d,]+ flushes \(\d+ to \d+\) and \d+ records, .*; each was read back and compared\n$/,
      ),
    ])
    expect(there.stderr).toMatch(/^set log_store: leveldb for this node before you start it$/m)
    await node.start()
    await writeFor(500)
    await expectAllRows()
    await node.stop()
    const verified = await runProgram(['store', 'verify', dataFolder, '--json'])
    expect([verified.code, verified.stderr]).toEqual([0, ''])
    const args = ['store', 'convert', dataFolder, '--to', 'files', '--json']
    const back = await runProgram(args)
    expect(JSON.parse(back.stdout)).toMatchObject({ converted: true, to: 'files', first: 1 })
    const again = await runProgram(args)
    expect([again.code, again.stdout]).toEqual([0, '{"converted":false,"to":"files"}\n'])
    await setLogStore(node, 'files')
    await node.start()
    await writeFor(500)
    await expectAllRows()
  },
)

test(
  'a conversion that is killed again and again comes to its end, and the node then has all rows',
  { timeout: 120_000 },
  async () => {
    const node = nodeAt(0)
    const { dataFolder } = node
    await node.stop()
    for (const [round, to] of ['leveldb', 'files'].entries()) {
      for (const ms of [200, 350, 500]) {
        await runProgram(['store', 'convert', dataFolder, '--to', to], {
          timeoutMs: ms + 20 * round,
        }).catch((error: unknown) => {
          // The harness kills a program that is late.
          expect(String(error)).toMatch(/no end after/)
        })
      }
      const { code } = await runProgram(['store', 'convert', dataFolder, '--to', to])
      expect(code).toBe(0)
      expect(await journalKindOf(join(dataFolder, 'log'))).toBe(to)
    }
    // A node notes its store once it has had a link for a moment.
    const names = (await readdir(dataFolder)).filter((one) => one !== 'store.json').toSorted()
    expect(names).toEqual(['data', 'log', 'replica-sets'])
    expect((await stat(join(dataFolder, 'log'))).isDirectory()).toBe(true)
    await node.start()
    await expectAllRows()
  },
)

test('a command that converts wants a kind that there is', async () => {
  const { code, stderr } = await runProgram(['store', 'convert', '/nowhere', '--to', 'file'])
  expect([code, stderr]).toEqual([2, 'error: --to: unknown kind "file"; did you mean "files"?\n'])
})
