/** Tables that LevelDB compacts before they were checked are checked still. */
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { SeededRandom } from '../../sim/world/random.ts'
import { openLevelStore } from '../../src/adapters/level-storage.ts'
import { groupOfBytes } from '../../src/base/ids.ts'
import type { CheckPace, OrderedStore } from '../../src/ports/storage.ts'
import { allPositions, groupPrefix, stateKey, votingSpans } from '../../src/store/row-format.ts'

let path = ''
const random = new SeededRandom('level kept')

beforeEach(async () => {
  path = await mkdtemp(join(tmpdir(), 'trilithon-kept-'))
  const store = await openLevelStore(path, { compresses: false })
  const puts = Array.from({ length: 400 }, (_, row) => ({
    key: Buffer.concat([allPositions.gte, Buffer.from(`row ${1_000 + row}`)]),
    value: Buffer.from(random.bytes(200)),
  }))
  await store.write([
    ...puts,
    { key: stateKey(groupPrefix(groupOfBytes(Buffer.from('g')))), value: Buffer.alloc(100) },
  ])
  await store.close()
  // The rows of the journal are in a table then.
  await (await openLevelStore(path, { checkTables: false })).close()
})

afterEach(async () => {
  await rm(path, { recursive: true, force: true })
})

const open = (): Promise<OrderedStore> =>
  openLevelStore(path, { compresses: false, checkedSpans: votingSpans })

async function tables(folder = path): Promise<readonly string[]> {
  return (await readdir(folder)).filter((name) => name.endsWith('.ldb'))
}

async function flipABit(name: string): Promise<void> {
  const bytes = await readFile(join(path, name))
  const at = Math.floor(bytes.length / 3)
  bytes[at] = (bytes[at] ?? 0) ^ 4
  await writeFile(join(path, name), bytes)
}

test.each([
  { check: 'of some keys', spans: [allPositions] },
  { check: 'of everything', spans: 'all' as const },
])(
  'DISK-14: damage in a table that was compacted before a check $check is found',
  async ({ spans }) => {
    const names = await tables()
    expect(names.length).toBe(1)
    for (const name of names) await flipABit(name)
    const store = await open()
    try {
      // As a compaction leaves it: the table that it wrote in place of this one is sound.
      for (const name of names) await rm(join(path, name))
      await expect(store.check?.(spans)).rejects.toMatchObject({ code: 'corrupt' })
      expect(await tables(join(path, 'unchecked'))).toEqual(names)
    } finally {
      await store.close()
    }
  },
)

test('DISK-14: the next run checks the tables that a run has left unchecked', async () => {
  const [name = ''] = await tables()
  await (await open()).close()
  const kept = join('unchecked', name)
  const other = join('unchecked', '000001.ldb')
  await writeFile(join(path, other), await readFile(join(path, kept)))
  await flipABit(other)
  const store = await open()
  try {
    await expect(store.check?.([allPositions])).rejects.toMatchObject({ code: 'corrupt' })
  } finally {
    await store.close()
  }
})

test('DISK-14: a table is let go once all of it was read, and not before', async () => {
  const names = await tables()
  const store = await open()
  try {
    await store.check?.([allPositions])
    expect(await tables(join(path, 'unchecked'))).toEqual(names)
    await store.check?.('all')
    expect(await tables(join(path, 'unchecked'))).toEqual([])
    expect(await tables()).toEqual(names)
    await store.check?.('all')
  } finally {
    await store.close()
  }
})

test('DISK-14: in a folder that was copied the table itself is checked, and not the copy of its second name', async () => {
  const [name = ''] = await tables()
  await (await open()).close()
  const second = join(path, 'unchecked', name)
  const bytes = await readFile(second)
  await rm(second)
  await writeFile(second, bytes)
  await flipABit(name)
  const store = await open()
  try {
    await expect(store.check?.([allPositions])).rejects.toMatchObject({ code: 'corrupt' })
  } finally {
    await store.close()
  }
})

test('DISK-14: a cancelled check releases no table, even after it has read the last one', async () => {
  const names = await tables()
  let [calls, callsMax, isOver] = [0, Number.POSITIVE_INFINITY, false]
  const pace: CheckPace = {
    bytesPerSecond: () => {
      calls += 1
      // Right after this chunk.
      if (calls === callsMax) queueMicrotask(() => (isOver = true))
      return 1e12
    },
    isOver: () => isOver,
    onProgress: () => undefined,
  }
  const store = await open()
  try {
    // To know how many chunks there are: this lets go of nothing either way.
    await store.check?.([{ gte: Uint8Array.of(0), lt: Uint8Array.of(255, 255) }], pace)
    callsMax = calls
    calls = 0
    await expect(store.check?.('all', pace)).rejects.toMatchObject({ code: 'closed' })
    expect(await tables(join(path, 'unchecked'))).toEqual(names)
  } finally {
    await store.close()
  }
})
