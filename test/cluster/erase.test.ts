/**
 * Deletion that deletes, on real processes: a row that was deleted or purged, or that has expired, is in no file of any node once
 * `trilithon erase status` says so, and it is there for as long as a peer holds the log up.
 */
import { randomBytes } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { defineSchema } from '../../schema/define.ts'
import { t } from '../../schema/property.ts'
import { table } from '../../schema/table.ts'
import { connect } from '../../src/client/connect.ts'
import type { EraseFigures } from '../../src/replica/erase-report.ts'
import { rootKey } from '../../src/tables/tables.ts'
import {
  eventually,
  patienceMs,
  runProgram,
  startCluster,
  type ProgramResult,
  type TestCluster,
} from './harness.ts'

const rowKey = 'c1d3a5e7-0000-4000-8000-000000000001'
const User = table('User', { user: t.int64(), name: t.string() }).key('user').root()
const letterTable = { user: t.int64(), letter: t.int32(), text: t.string() }
const Letter = table('Letter', letterTable).key('user', 'letter').in(User)
const noteTable = { user: t.int64(), note: t.int32(), text: t.string() }
const Note = table('Note', noteTable).key('user', 'note').in(User, { ttl: '4 seconds' })
const letters = defineSchema('Letters', [User, Letter, Note])
const ann = rootKey(User, { user: 1n })
/** All that a round of deletions waits for, in milliseconds. */
const limits =
  'limits: { history_ms: 300, snapshot_hold_ms: 300, erase_within_ms: 1500, digest_ms: 100, checkpoint_ms: 100 }'

let cluster: TestCluster
beforeAll(async () => {
  // Logs of both kinds.
  const kindOf = (id: string): string => (id === 'b' ? 'files' : 'leveldb')
  const extraYaml = (id: string): string => `${limits}\nlog_store: ${kindOf(id)}`
  cluster = await startCluster({ extraYaml })
})
afterAll(() => cluster?.close())

/** Found as it is in files: no compression makes it shorter. */
function marker(): string {
  return randomBytes(32).toString('hex')
}

async function filesIn(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  return entries.filter((one) => one.isFile()).map(({ parentPath, name }) => join(parentPath, name))
}

/** Of these texts those that some file of the folder has, each with the files, from within the folder. */
async function filesWith(
  folder: string,
  texts: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const found = new Map<string, string[]>()
  for (const path of await filesIn(folder)) {
    // LevelDB deletes files at any time.
    const bytes = await readFile(path).catch(() => Buffer.alloc(0))
    for (const text of texts.filter((one) => bytes.includes(one))) {
      found.set(text, [...(found.get(text) ?? []), path.slice(folder.length + 1)])
    }
  }
  return found
}

function eraseStatus(cluster: TestCluster, ...flags: readonly string[]): Promise<ProgramResult> {
  const url = ['--url', cluster.urls.slice(0, 1).join('')]
  return runProgram(['erase', 'status', ...url, ...flags])
}

function isFigures(body: unknown): body is EraseFigures {
  return typeof body === 'object' && body !== null && 'requests' in body
}

/** The `/erase` of each node; undefined: one does not answer. */
async function figuresOf(urls: readonly string[]): Promise<readonly EraseFigures[] | undefined> {
  const answers = await Promise.all(
    urls.map(async (url) => {
      const response = await fetch(`${url}/erase`).catch(() => undefined)
      const body: unknown = response?.ok === true ? await response.json() : undefined
      return isFigures(body) ? body : undefined
    }),
  )
  const figures = answers.filter((one) => one !== undefined)
  return figures.length === urls.length ? figures : undefined
}

/** Why bytes are left at these nodes. */
async function whyLeft(urls: readonly string[]): Promise<readonly string[]> {
  const figures = (await figuresOf(urls)) ?? []
  return figures.flatMap(({ requests }) => requests.flatMap(({ why }) => why))
}

async function isErased({ urls }: TestCluster): Promise<true | undefined> {
  await new Promise((resolve) => setTimeout(resolve, 200))
  const figures = await figuresOf(urls)
  return figures?.every(({ requests, isBehind }) => !isBehind && requests.length === 0) || undefined
}

/** Rows that a node has removed for their age. */
async function hasExpired({ urls }: TestCluster): Promise<true | undefined> {
  const statuses = await Promise.all(urls.map(async (url) => (await fetch(`${url}/status`)).text()))
  return statuses.some((text) => /"expiry":\{"removed":[1-9]/.test(text)) || undefined
}

/** Writes all markers, sees them in files, and has them deleted, purged, or left to expire. */
async function writeAndDelete(cluster: TestCluster, markers: readonly string[]): Promise<void> {
  const [deleted = '', purged = '', expired = '', cell = ''] = markers
  const client = await connect({ endpoints: cluster.urls, timeoutMs: patienceMs })
  await client.applySchema(letters)
  const db = await client.tables(letters)
  await db.transaction(ann, async (tx) => {
    await tx.put(Letter, { user: 1n, letter: 1, text: deleted })
    await tx.put(Letter, { user: 1n, letter: 2, text: purged })
    await tx.put(Letter, { user: 1n, letter: 3, text: 'it stays' })
    await tx.put(Note, { user: 1n, note: 1, text: expired })
  })
  const cells = client.cells('trips')
  await cells.put({ rowKey, column: 'BASE', refKey: 1, body: { text: cell } })
  for (const { id, dataFolder } of cluster.nodes) {
    await eventually(`node ${id} has the texts in its files`, async () => {
      return (await filesWith(dataFolder, markers)).size === markers.length || undefined
    })
  }
  await db.transaction(ann, (tx) => tx.delete(Letter, { user: 1n, letter: 1 }))
  await db.transaction(ann, (tx) => tx.purge(Letter, { user: 1n, letter: 2 }))
  await cells.purgeCell({ rowKey, column: 'BASE', refKey: 1 })
  await client.close()
}

async function lettersAt(cluster: TestCluster): Promise<readonly unknown[]> {
  const client = await connect({ endpoints: cluster.urls, timeoutMs: patienceMs })
  try {
    const db = await client.tables(letters)
    const { value } = await db.read(ann, 'current', (view) => view.scan(Letter, { user: 1n }))
    return value.items
  } finally {
    await client.close()
  }
}

test(
  'ERASE-1: a row that was deleted or purged, or that has expired, is in no byte of any file, whatever kind the log is of',
  { timeout: 2 * patienceMs },
  async () => {
    const markers = [marker(), marker(), marker(), marker()]
    await writeAndDelete(cluster, markers)
    await eventually('the row that has expired is removed', () => hasExpired(cluster))
    // By then every node has taken the removal in.
    await new Promise((resolve) => setTimeout(resolve, 1_000))
    await eventually('every node says that nothing is left', () => isErased(cluster))
    for (const { id, dataFolder } of cluster.nodes) {
      expect(await filesWith(dataFolder, markers), id).toEqual(new Map())
    }
    expect(await lettersAt(cluster)).toEqual([expect.objectContaining({ text: 'it stays' })])
    const { stdout, code } = await eraseStatus(cluster)
    expect([stdout, code]).toEqual([
      'nothing that was deleted is left in the files of any node\n',
      0,
    ])
  },
)

test(
  'ERASE-1: while a node is down, the status says that its mark is missing, and the text is there',
  { timeout: 2 * patienceMs },
  async () => {
    const text = marker()
    const client = await connect({ endpoints: cluster.urls, timeoutMs: patienceMs })
    const cells = client.cells('trips')
    await eventually('each node has taken in what the others had at its start', async () => {
      const figures = await figuresOf(cluster.urls)
      return figures?.every(({ isBehind }) => !isBehind) || undefined
    })
    await cluster.node('c').stop('SIGKILL')
    // It needs the flush with the text when it is back.
    await cells.put({ rowKey, column: 'BASE', refKey: 2, body: { text } })
    await cells.purgeCell({ rowKey, column: 'BASE', refKey: 2 })
    await client.close()
    const { dataFolder, url } = cluster.node('a')
    await eventually('the erasure is late for want of a mark', async () => {
      const metrics = await (await fetch(`${url}/metrics`)).text()
      const why = await whyLeft([url])
      const isMark = why.length > 0 && why.every((one) => one.startsWith('log/: node c needs'))
      return (isMark && /^trilithon_erase_overdue\{[^}]*\} 1$/m.test(metrics)) || undefined
    })
    const { stdout, stderr, code } = await eraseStatus(cluster)
    expect(stdout).toMatch(/^a .* log .*\(late\).*log\/: node c needs the flushes after \d+/m)
    expect(stderr).toContain('what stands in the files of c is not known')
    expect(code).toBe(4)
    const names = (await filesWith(dataFolder, [text])).get(text)
    expect(names).toContainEqual(expect.stringMatching(/^log\//))
    await eventually('the node logs it', async () => {
      const words = 'files still have bytes of deleted rows after erase_within_ms'
      return cluster.node('a').log().includes(words) || undefined
    })
    await cluster.node('c').start()
    await eventually('nothing is left once the node is back', () => isErased(cluster))
    for (const node of cluster.nodes) {
      expect(await filesWith(node.dataFolder, [text])).toEqual(new Map())
    }
  },
)
