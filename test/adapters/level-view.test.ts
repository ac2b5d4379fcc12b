/** A store that is only looked at shows what LevelDB shows, and nothing in its folder changes. */
import { mkdtemp, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openLevelStore } from '../../src/adapters/level-storage.ts'
import { viewLevelStore } from '../../src/adapters/level-view.ts'
import type { KeyValue, OrderedStore, Put, Range } from '../../src/ports/storage.ts'

let folder = ''
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trilithon-view-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

/** Few keys, so that batches write the same ones again. */
const key = fc.integer({ min: 0, max: 40 }).map((one) => Buffer.from([one >> 3, one & 7]))
const put = fc.record(
  { key, value: fc.uint8Array({ maxLength: 3_000 }) },
  { requiredKeys: ['key'] },
)
const range = fc.record(
  { gte: key, gt: key, lt: key, reverse: fc.boolean(), limit: fc.integer({ min: 0, max: 60 }) },
  { requiredKeys: [] },
)

async function readRows(store: OrderedStore, asked: Range): Promise<KeyValue[]> {
  const rows: KeyValue[] = []
  for await (const chunk of store.scan(asked)) {
    rows.push(...chunk.map((one) => ({ key: Buffer.from(one.key), value: Buffer.from(one.value) })))
  }
  return rows
}

async function snapshotFiles(path: string): Promise<ReadonlyMap<string, string>> {
  const files = new Map<string, string>()
  for (const name of (await readdir(path)).toSorted()) {
    const { mtimeMs, ctimeMs, size } = await stat(join(path, name))
    const bytes = (await readFile(join(path, name))).toString('base64')
    files.set(name, `${mtimeMs} ${ctimeMs} ${size} ${bytes}`)
  }
  return files
}

/** Several runs, each with batches: all but the last one's are in tables. */
async function write(path: string, runs: readonly (readonly (readonly Put[])[])[]): Promise<void> {
  for (const batches of runs) {
    const store = await openLevelStore(path, { writeBufferBytes: 64 * 1024 })
    for (const puts of batches) await store.write(puts)
    await store.close()
  }
}

test('it has the rows that LevelDB has, in each range, and leaves every file as it is', async () => {
  const batches = fc.array(fc.array(put, { minLength: 1, maxLength: 20 }), { maxLength: 6 })
  let at = 0
  await fc.assert(
    fc.asyncProperty(
      fc.array(batches, { minLength: 1, maxLength: 3 }),
      fc.array(range, { minLength: 1, maxLength: 4 }),
      async (runs, ranges) => {
        const path = join(folder, String(at++))
        await write(path, runs)
        const before = await snapshotFiles(path)
        const damages: string[] = []
        const view = await viewLevelStore(path, (what) => damages.push(what))
        const shown = [await readRows(view, {})]
        for (const asked of ranges) shown.push(await readRows(view, asked))
        const single = Array.from({ length: 41 }, (_, one) =>
          view.getSync(Buffer.from([one >> 3, one & 7])),
        )
        await view.close()
        expect(await snapshotFiles(path)).toEqual(before)
        expect(damages).toEqual([])
        const store = await openLevelStore(path)
        const meant = [await readRows(store, {})]
        for (const asked of ranges) meant.push(await readRows(store, asked))
        expect(shown).toEqual(meant)
        for (const [one, value] of single.entries()) {
          const stored = store.getSync(Buffer.from([one >> 3, one & 7]))
          expect(value && Buffer.from(value)).toEqual(stored && Buffer.from(stored))
        }
        await store.close()
      },
    ),
    { numRuns: 12 },
  )
})

/** Rows in several blocks of one table. */
async function writeTable(count: number): Promise<string> {
  const puts = Array.from({ length: count }, (_, one) => {
    return { key: Buffer.from(String(one).padStart(5, '0')), value: Buffer.alloc(500, one) }
  })
  await write(folder, [[puts], []])
  const name = (await readdir(folder)).find((one) => one.endsWith('.ldb'))
  if (name === undefined) throw new Error('the rows are in no table')
  return name
}

test('a view names the place of a block that does not match its checksum, and reads all others', async () => {
  const name = await writeTable(2_000)
  const path = join(folder, name)
  const bytes = await readFile(path)
  const middle = Math.floor(bytes.length / 2)
  bytes[middle] = (bytes[middle] ?? 0) ^ 4
  await writeFile(path, bytes)
  const damages: string[] = []
  const view = await viewLevelStore(folder, (what) => damages.push(what))
  const rows = await readRows(view, {})
  expect(rows.length).toBeGreaterThan(1_000)
  expect(rows.length).toBeLessThan(2_000)
  expect(damages).toHaveLength(1)
  expect(damages[0]).toMatch(
    new RegExp(`^${name} at byte \\d+: a block does not match its checksum$`),
  )
  const checked: string[] = []
  await view.checkFiles({
    ...{ bytesPerSecond: () => Infinity, isOver: () => false, onProgress: () => undefined },
    onDamage: (what) => checked.push(what),
  })
  expect(checked).toEqual(damages)
  await view.close()
})

test.each<[string, (path: string) => Promise<void>, RegExp]>([
  ['is gone', (path) => rm(path), /ldb at byte 0: it cannot be read \(ENOENT\)$/],
  ['was cut', (path) => truncate(path, 10_000), /ldb at byte 9952: its footer is damaged$/],
])(
  'a view names a table that %s, and reads the journals all the same',
  async (_, damage, words) => {
    const name = await writeTable(100)
    const store = await openLevelStore(folder)
    const [last] = [{ key: Buffer.from('last'), value: Buffer.from('one') }]
    await store.write([last])
    await store.close()
    await damage(join(folder, name))
    const damages: string[] = []
    const view = await viewLevelStore(folder, (what) => damages.push(what))
    expect(await readRows(view, {})).toEqual([last])
    await view.close()
    expect(damages).toEqual([expect.stringMatching(words)])
  },
)

test('a folder without a store is no store, and a view takes no write', async () => {
  const damages: string[] = []
  const view = await viewLevelStore(folder, (what) => damages.push(what))
  expect(view.isReadable).toBe(false)
  expect(damages).toEqual(['CURRENT is missing, or cannot be read'])
  await expect(view.write([])).rejects.toMatchObject({ code: 'invalid' })
})
