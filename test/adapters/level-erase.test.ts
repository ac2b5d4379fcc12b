/** A deleted row is in no file of LevelDB's, wherever its compactions have put it. */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { SeededRandom } from '../../sim/world/random.ts'
import { openLevelStore } from '../../src/adapters/level-storage.ts'
import type { KeySpan, OrderedStore, Put } from '../../src/ports/storage.ts'
import { votingSpans } from '../../src/store/row-format.ts'

const random = new SeededRandom('level erase')
const spanOf = (letter: string): KeySpan => {
  return { gte: Buffer.from(letter), lt: Buffer.from(`${letter}~`) }
}

async function makeFolder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'trilithon-erase-'))
  onTestFinished(() => rm(path, { recursive: true, force: true }))
  return path
}

async function openIn(path: string, compresses: boolean): Promise<OrderedStore> {
  const store = await openLevelStore(path, { compresses, writeBufferBytes: 64 * 1024 })
  onTestFinished(() => store.close())
  return store
}

/** The files, at whatever depth, that have the text. */
async function filesWith(path: string, text: string): Promise<readonly string[]> {
  const entries = await readdir(path, { recursive: true, withFileTypes: true })
  const found: string[] = []
  for (const { parentPath, name } of entries.filter((one) => one.isFile())) {
    if ((await readFile(join(parentPath, name))).includes(text)) found.push(name)
  }
  return found
}

function put(key: string, text: string): Put {
  return { key: Buffer.from(key), value: Buffer.from(text) }
}

function filler(letter: string, rows: number): readonly Put[] {
  return Array.from({ length: rows }, (_, row) =>
    put(`${letter}${10_000 + row}`, Buffer.from(random.bytes(500)).toString('latin1')),
  )
}

const marker = 'f3a9c61be04d7a5832c0de91b75f64aa'

test.for([
  { where: 'the write buffer', before: 0, after: 0 },
  { where: 'one table with its deletion', before: 0, after: 200 },
  { where: 'a deeper table than its deletion', before: 200, after: 200 },
])('ERASE-1: a deleted row in $where is erased', async ({ before, after }) => {
  for (const compresses of [true, false]) {
    const path = await makeFolder()
    const store = await openIn(path, compresses)
    await store.write([put('k1', marker), put('k2', 'it stays')])
    if (before > 0) await store.write(filler('a', before))
    // A scan that is open keeps the row, also where the table has its deletion.
    const scan = store.scan({})[Symbol.asyncIterator]()
    await scan.next()
    await store.write([{ key: Buffer.from('k1') }])
    if (after > 0) await store.write(filler('z', after))
    expect(await filesWith(path, marker)).not.toEqual([])
    const erased = store.erase?.([spanOf('k')])
    await scan.return?.()
    expect(await erased).toBeUndefined()
    expect(await filesWith(path, marker)).toEqual([])
    expect(store.getSync(Buffer.from('k1'))).toBeUndefined()
    expect(Buffer.from(store.getSync(Buffer.from('k2')) ?? []).toString()).toBe('it stays')
  }
})

test('ERASE-1: a row that a table has beside its deletion, at the lowest level, is erased', async () => {
  const path = await makeFolder()
  const store = await openIn(path, false)
  await store.write([put('k1', marker), put('k2', 'it stays'), { key: Buffer.from('k1') }])
  // An erasure of another span has LevelDB write the table, and rewrites nothing in it.
  expect(await store.erase?.([spanOf('x')])).toBeUndefined()
  const tables = await filesWith(path, marker)
  expect(tables).toEqual([expect.stringMatching(/\.ldb$/)])
  expect(await store.erase?.([spanOf('k')])).toBeUndefined()
  expect(await filesWith(path, marker)).toEqual([])
})

test('ERASE-1: a table that is kept until the scrub has read it holds an erasure up', async () => {
  const path = await makeFolder()
  const first = await openLevelStore(path, { compresses: false })
  await first.write([put('k1', marker)])
  await first.close()
  await (await openLevelStore(path, { checkTables: false })).close()
  const store = await openLevelStore(path, { compresses: false, checkedSpans: votingSpans })
  onTestFinished(() => store.close())
  await store.write([{ key: Buffer.from('k1') }])
  expect(await store.erase?.('all')).toBe('unchecked')
  await store.check?.('all')
  expect(await store.erase?.('all')).toBeUndefined()
  expect(await filesWith(path, marker)).toEqual([])
})
