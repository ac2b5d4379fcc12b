/**
 * The check of a store's files: damage anywhere in a table is found, in a log or manifest wherever it
 * can be told from what a crash leaves, and what a crash leaves is not damage.
 */
import {
  copyFile,
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  truncate,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { ClassicLevel } from 'classic-level'
import * as fc from 'fast-check'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { SeededRandom } from '../../sim/world/random.ts'
import { crc32c, masked } from '../../src/adapters/crc32c.ts'
import { openLevelStore } from '../../src/adapters/level-storage.ts'
import {
  checkSpans,
  checkTables,
  scrub,
  type CheckProgress,
} from '../../src/adapters/level-tables.ts'
import { StoreError } from '../../src/base/errors.ts'
import type { Put } from '../../src/ports/storage.ts'
import { rowsOf } from '../contracts/storage.ts'

const rowCount = 20_000
const footerBytes = 48
const random = new SeededRandom('level tables')

let folder = ''
/** All rows in tables. */
let sound = ''

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trilithon-tables-'))
  sound = join(folder, 'sound')
  await write(sound, 0, rowCount)
  const level = new ClassicLevel(sound)
  await level.compactRange('', '~')
  await level.close()
})

afterAll(async () => {
  await rm(folder, { recursive: true, force: true })
})

/** Every other row is of random bytes: some blocks shrink under compression, others do not. */
function rowOf(i: number): Put {
  const key = Buffer.from(`key ${String(i).padStart(8, '0')}`)
  const isPlain = Math.floor(i / 500) % 2 === 0
  return {
    key,
    value: isPlain ? Buffer.from(`value ${i} `.repeat(8)) : Buffer.from(random.bytes(80)),
  }
}

async function write(path: string, from: number, to: number, batchRows = 500): Promise<void> {
  const store = await openLevelStore(path, { writeBufferBytes: 512 * 1024 })
  for (let at = from; at < to; at += batchRows) {
    await store.write(Array.from({ length: Math.min(batchRows, to - at) }, (_, i) => rowOf(at + i)))
  }
  await store.close()
}

async function copyOf(path: string): Promise<string> {
  const copy = join(await mkdtemp(join(folder, 'copy-')), 'store')
  onTestFinished(() => rm(copy, { recursive: true, force: true }))
  await cp(path, copy, { recursive: true })
  return copy
}

async function filesLike(path: string, name: RegExp): Promise<string[]> {
  const names = (await readdir(path)).filter((one) => name.test(one))
  expect(names.length, `files like ${name.source}`).toBeGreaterThan(0)
  return names.toSorted().map((one) => join(path, one))
}

/** The words of the check of `path` while `file` holds `bytes`, which are taken back. */
async function saidOf(path: string, file: string, bytes: Uint8Array): Promise<string> {
  const whole = await readFile(file)
  await writeFile(file, bytes)
  try {
    await checkTables(path)
    return 'sound'
  } catch (error) {
    expect(error).toBeInstanceOf(StoreError)
    expect(error).toMatchObject({ code: 'corrupt', retry: 'never' })
    return error instanceof StoreError ? error.message : ''
  } finally {
    await writeFile(file, whole)
  }
}

function flipped(bytes: Uint8Array, bit: number): Buffer {
  const copy = Buffer.from(bytes)
  const at = Math.floor(bit / 8)
  copy[at] = (copy[at] ?? 0) ^ (1 << (bit % 8))
  return copy
}

test('CRC-32C gives the check value of its definition, in pieces as well as whole', () => {
  expect(crc32c(Buffer.from('123456789'))).toBe(0xe3069283)
  expect(crc32c(Buffer.alloc(32))).toBe(0x8a9136aa)
  fc.assert(
    fc.property(fc.uint8Array(), fc.uint8Array(), (a, b) => {
      expect(crc32c(b, crc32c(a))).toBe(crc32c(Buffer.concat([a, b])))
    }),
  )
  expect(masked(0)).toBe(0xa282ead8)
})

test('a check passes a sound store, reads each of its tables and reports progress', async () => {
  const told: CheckProgress[] = []
  const result = await checkTables(sound, { onProgress: (progress) => told.push(progress) })
  const tables = await filesLike(sound, /\.ldb$/)
  expect(tables.length).toBeGreaterThan(1)
  expect(result).toMatchObject({ tables: tables.length, tablesTotal: tables.length })
  expect(told.map((progress) => progress.tables)).toEqual(tables.map((_, i) => i + 1))
  expect(told.at(-1)?.bytesRead).toBe(result.bytesRead)
  let bytes = 0
  for (const table of tables) bytes += (await readFile(table)).length
  expect(result.bytesRead).toBeGreaterThanOrEqual(bytes)
})

test('both kinds of blocks are there: compressed ones and others', async () => {
  const kinds = new Set<number>()
  for (const table of await filesLike(sound, /\.ldb$/)) {
    const bytes = await readFile(table)
    // The first block ends where kind and checksum of what is before them match.
    for (let end = 100; end < 8000; end++) {
      const crc = masked(crc32c(bytes.subarray(0, end + 1)))
      if (bytes.readUInt32LE(end + 1) === crc) kinds.add(bytes[end] ?? -1)
    }
  }
  expect(kinds).toEqual(new Set([0, 1]))
})

test('any flipped bit in a table is found, by the name of its file', async () => {
  const path = await copyOf(sound)
  const missed: string[] = []
  for (const table of await filesLike(path, /\.ldb$/)) {
    const bytes = await readFile(table)
    for (let i = 0; i < 16; i++) {
      const bit = random.int(0, bytes.length * 8 - 1)
      const said = await saidOf(path, table, flipped(bytes, bit))
      if (!said.includes(`${basename(table)} at byte `)) missed.push(`bit ${bit}: ${said}`)
    }
  }
  expect(missed).toEqual([])
})

test('any flipped bit in the index, the filter and the footer, padding too, is found', async () => {
  const path = await copyOf(sound)
  const [table = ''] = await filesLike(path, /\.ldb$/)
  const bytes = await readFile(table)
  const missed: number[] = []
  // No checksum covers the footer, so each of its bits is tried.
  const bits = Array.from(
    { length: footerBytes * 8 },
    (_, i) => (bytes.length - footerBytes) * 8 + i,
  )
  for (let i = 0; i < 40; i++) {
    bits.push(random.int((bytes.length - 20_000) * 8, (bytes.length - footerBytes) * 8))
  }
  for (const bit of bits) {
    if ((await saidOf(path, table, flipped(bytes, bit))) === 'sound') missed.push(bit)
  }
  expect(missed).toEqual([])
})

test('a block larger than what is read at once is checked whole', async () => {
  const path = join(await mkdtemp(join(folder, 'large-')), 'store')
  const store = await openLevelStore(path)
  for (const name of ['a', 'b', 'c', 'd']) {
    const value = Buffer.from(random.bytes(3 * 512 * 1024 + 1))
    await store.write([{ key: Buffer.from(name), value }])
  }
  await store.close()
  // Once more, for what the close may have cut short.
  await (await openLevelStore(path)).close()
  const tables = await filesLike(path, /\.ldb$/)
  const table = tables.at(-1) ?? ''
  const bytes = await readFile(table)
  expect(bytes.length).toBeGreaterThan(1024 * 1024)
  expect(await saidOf(path, table, bytes)).toBe('sound')
  for (let at = 0; at < bytes.length; at += 640 * 1024) {
    const said = await saidOf(path, table, flipped(bytes, at * 8))
    expect(said, `byte ${at}`).toContain('a block does not match its checksum')
  }
})

test('a table cut at any length, or with something behind it, is found', async () => {
  const path = await copyOf(sound)
  const [table = ''] = await filesLike(path, /\.ldb$/)
  const bytes = await readFile(table)
  const lengths = [0, 1, footerBytes - 1, footerBytes, bytes.length - 1]
  while (lengths.length < 50) lengths.push(random.int(0, bytes.length - 1))
  for (const length of lengths) {
    const said = await saidOf(path, table, bytes.subarray(0, length))
    expect(said, `cut to ${length}`).toContain(`it has ${length} bytes`)
  }
  expect(await saidOf(path, table, Buffer.concat([bytes, bytes]))).toContain('at byte')
})

test('a table of the right length that is another one, or zeros, is found', async () => {
  const path = await copyOf(sound)
  const [table = ''] = await filesLike(path, /\.ldb$/)
  const bytes = await readFile(table)
  expect(await saidOf(path, table, Buffer.alloc(bytes.length))).toContain('its footer is damaged')
  const torn = Buffer.from(bytes)
  torn.fill(0, 8192, 12_288)
  expect(await saidOf(path, table, torn)).toContain('a block does not match its checksum')
})

test('the open refuses damage before LevelDB reads it, and says where and what to do', async () => {
  const path = await copyOf(sound)
  const [table = ''] = await filesLike(path, /\.ldb$/)
  await writeFile(table, flipped(await readFile(table), 5000 * 8))
  const before = await readdir(path)
  const failure: unknown = await openLevelStore(path).catch((error: unknown) => error)
  expect(failure).toMatchObject({ code: 'corrupt' })
  expect(String(failure)).toMatch(
    /the store .* is damaged \(\d+\.ldb at byte \d+: a block does not match its checksum\); keep the folder/,
  )
  expect(await readdir(path)).toEqual(before)
  const unchecked = await openLevelStore(path, { checkTables: false })
  await unchecked.close()
})

/** A store whose newest log holds rows: many small records, and one of several blocks. */
async function withLog(): Promise<{ path: string; log: string }> {
  const path = await copyOf(sound)
  await write(path, rowCount, rowCount + 200, 1)
  await write(path, rowCount + 200, rowCount + 1200, 1000)
  // A close leaves the rows of the last opening in the log.
  const store = await openLevelStore(path)
  for (let at = 0; at < 20; at++) await store.write([rowOf(at)])
  await store.write(Array.from({ length: 1000 }, (_, i) => rowOf(i)))
  for (let at = 0; at < 20; at++) await store.write([rowOf(at)])
  await store.close()
  const [log = '', ...others] = await filesLike(path, /\.log$/)
  expect(others).toEqual([])
  return { path, log }
}

test('any flipped bit in a log before its last record is found', async () => {
  const { path, log } = await withLog()
  const bytes = await readFile(log)
  expect(bytes.length).toBeGreaterThan(64 * 1024)
  expect(await saidOf(path, log, bytes)).toBe('sound')
  const missed: number[] = []
  // The first headers and payloads bit by bit: length, kind and checksum are all among them.
  const bits = Array.from({ length: 20 * 8 }, (_, i) => i)
  for (let i = 0; i < 30; i++) bits.push(random.int(0, (bytes.length - 60) * 8))
  for (const bit of bits) {
    const said = await saidOf(path, log, flipped(bytes, bit))
    if (!said.includes(basename(log))) missed.push(bit)
  }
  expect(missed).toEqual([])
})

test('a log that ends anywhere is a torn end, and opens', async () => {
  const { path, log } = await withLog()
  const bytes = await readFile(log)
  for (let i = 0; i < 20; i++) {
    const cut = bytes.subarray(0, random.int(0, bytes.length))
    expect(await saidOf(path, log, cut)).toBe('sound')
    // A file that grew before its bytes came reads as zeros.
    expect(await saidOf(path, log, Buffer.concat([cut, Buffer.alloc(40_000)]))).toBe('sound')
  }
  await truncate(log, bytes.length - 10)
  const store = await openLevelStore(path)
  expect((await rowsOf(store)).length).toBe(rowCount + 1200)
  await store.close()
})

test('a log with zeros where a later record follows is damaged', async () => {
  const { path, log } = await withLog()
  const bytes = await readFile(log)
  for (const [from, to] of [
    [0, 32_768],
    [100, 110],
    [0, 50],
  ]) {
    const zeroed = Buffer.from(bytes).fill(0, from, to)
    expect(await saidOf(path, log, zeroed)).toContain(`${basename(log)} at byte `)
  }
})

test('a torn log is refused when a newer log goes on, and not when the newer one is empty', async () => {
  const { path, log } = await withLog()
  const newer = join(path, '999999.log')
  await copyFile(log, newer)
  const bytes = await readFile(log)
  expect(await saidOf(path, log, bytes)).toBe('sound')
  const cut = bytes.subarray(0, bytes.length - 3)
  expect(await saidOf(path, log, cut)).toContain('a newer log goes on')
  expect(await saidOf(path, log, bytes.subarray(0, 40_000))).toContain('a newer log goes on')
  await truncate(newer, 0)
  expect(await saidOf(path, log, cut)).toBe('sound')
})

test('the log that the store names is missing: refused, since LevelDB opens without it', async () => {
  const { path, log } = await withLog()
  await rm(log)
  await expect(openLevelStore(path)).rejects.toMatchObject({
    code: 'corrupt',
    message: expect.stringContaining(`${basename(log)} at byte 0: it is missing`),
  })
})

test('a manifest with any flipped bit, or cut anywhere, is refused or loses nothing', async () => {
  const { path } = await withLog()
  const [manifest = ''] = await filesLike(path, /^MANIFEST-/)
  const bytes = await readFile(manifest)
  const bits = Array.from({ length: 100 }, () => random.int(0, bytes.length * 8 - 1))
  const damages = bits.map((bit) => flipped(bytes, bit))
  const accepted: Buffer[] = []
  for (const damage of damages) {
    if ((await saidOf(path, manifest, damage)) === 'sound') accepted.push(damage)
  }
  expect(accepted.length).toBeLessThan(damages.length)
  const step = Math.ceil(bytes.length / 20)
  for (let at = 0; at < bytes.length; at += step) accepted.push(bytes.subarray(0, at))
  for (const damage of accepted) {
    const copy = await copyOf(path)
    await writeFile(join(copy, basename(manifest)), damage)
    const store = await openLevelStore(copy).catch((error: unknown) => {
      expect(error).toMatchObject({ code: 'corrupt' })
      return undefined
    })
    if (store === undefined) continue
    expect((await rowsOf(store)).length).toBe(rowCount + 1200)
    await store.close()
  }
})

test('the check passes over the leftovers of a crash: half a table, an old log, a new manifest', async () => {
  const path = await copyOf(sound)
  const [table = ''] = await filesLike(path, /\.ldb$/)
  await writeFile(join(path, '888888.ldb'), (await readFile(table)).subarray(0, 5000))
  await writeFile(join(path, '000001.log'), 'garbage that was never finished')
  await writeFile(join(path, 'MANIFEST-888889'), 'half')
  await writeFile(join(path, '888889.dbtmp'), 'half')
  await checkTables(path)
  const store = await openLevelStore(path)
  expect((await rowsOf(store)).length).toBe(rowCount)
  await store.close()
  expect(await readdir(path)).not.toContain('888888.ldb')
})

test('a store passes however it was written and closed', async () => {
  const step = fc.record({
    rows: fc.integer({ min: 1, max: 3000 }),
    batch: fc.integer({ min: 1, max: 600 }),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 5 }), async (steps) => {
      const path = join(await mkdtemp(join(folder, 'any-')), 'store')
      for (const { rows, batch } of steps) {
        await write(path, 0, rows, batch)
        await checkTables(path)
      }
      await rm(path, { recursive: true, force: true })
    }),
    { numRuns: 10 },
  )
})

test('a folder that is not there, or holds no store yet, has nothing to check', async () => {
  for (const path of [join(folder, 'nowhere'), await mkdtemp(join(folder, 'empty-'))]) {
    expect(await checkTables(path)).toMatchObject({ tables: 0, bytesRead: 0 })
  }
})

test('a store is scrubbed while it is written to and moves on from log to log', async () => {
  const path = await copyOf(sound)
  const store = await openLevelStore(path, { writeBufferBytes: 256 * 1024 })
  const before = await filesLike(path, /\.log$/)
  for (let round = 0; round < 20; round++) {
    const scrubbed = scrub(path, { bytesPerSecond: 1e9 })
    for (let at = 0; at < 10; at++) {
      const first = (round * 10 + at) * 100
      await store.write(Array.from({ length: 100 }, (_, i) => rowOf(first + i)))
    }
    expect((await scrubbed).tables).toBeGreaterThan(0)
  }
  expect(await filesLike(path, /\.log$/)).not.toEqual(before)
  await store.close()
})

test('a scrub finds damage beneath an open store', async () => {
  const path = await copyOf(sound)
  const store = await openLevelStore(path)
  onTestFinished(() => store.close())
  const [table = ''] = await filesLike(path, /\.ldb$/)
  await writeFile(table, flipped(await readFile(table), 4000))
  await expect(scrub(path, { bytesPerSecond: 1e9 })).rejects.toMatchObject({ code: 'corrupt' })
})

test('DISK-16: a check that is to go on tells each damaged file, and one that cannot be read', async () => {
  const path = await copyOf(sound)
  const [first = '', second = '', third = ''] = await filesLike(path, /\.ldb$/)
  for (const table of [first, third]) await writeFile(table, flipped(await readFile(table), 4000))
  await rm(second)
  await mkdir(second)
  const told: string[] = []
  const pace = {
    ...{ bytesPerSecond: () => 1e9, isOver: () => false, onProgress: () => undefined },
    onDamage: (what: string) => void told.push(what),
  }
  await checkSpans(path, 'all', pace)
  expect(told).toEqual([
    `${basename(first)} at byte 0: a block does not match its checksum`,
    expect.stringMatching(`^${basename(second)} at byte \\d+: `),
    `${basename(third)} at byte 0: a block does not match its checksum`,
  ])
  const { onDamage: _, ...ending } = pace
  await expect(checkSpans(path, 'all', ending)).rejects.toMatchObject({ code: 'corrupt' })
})

test('a scrub keeps to its rate and ends when its signal aborts', async () => {
  const { bytesRead } = await checkTables(sound)
  const bytesPerSecond = bytesRead * 4
  const { elapsedMs } = await scrub(sound, { bytesPerSecond })
  expect(elapsedMs).toBeGreaterThanOrEqual(245)
  const ended = scrub(sound, { bytesPerSecond: 1, signal: AbortSignal.timeout(50) })
  await expect(ended).rejects.toMatchObject({ code: 'closed' })
})
