/**
 * LevelDB on bad disks: for every obstacle a StoreError says what to do, and nothing crashes.
 * Damage that LevelDB does not notice is not here: the stores above carry checksums of their own.
 */
import { execFileSync } from 'node:child_process'
import {
  chmod,
  cp,
  mkdtemp,
  mkdir,
  readdir,
  readFile,
  rm,
  truncate,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { afterAll, beforeAll, expect, onTestFinished, test, type TestContext } from 'vitest'
import { StoreError } from '../../src/base/errors.ts'
import { openLevelStore } from '../../src/adapters/level-storage.ts'
import type { OrderedStore } from '../../src/ports/storage.ts'
import { bytesOf, keysOf, putOf, rowsOf } from '../contracts/storage.ts'

/** Large enough for several tables and a log beside them, small enough to be copied often. */
const rowCount = 60
const rowBytes = 4096

let folder = ''
/** A closed store with tables, a log and a manifest; a test that damages it makes a copy. */
let sound = ''

beforeAll(async () => {
  // The name has words of LevelDB's own messages in it: a path must not decide anything.
  folder = await mkdtemp(join(tmpdir(), 'trilithon corruption no space left LEVEL_LOCKED '))
  sound = join(folder, 'sound')
  const store = await openLevelStore(sound, { writeBufferBytes: 64 * 1024 })
  for (let i = 0; i < rowCount; i++) {
    await store.write([{ key: keyOf(i), value: incompressible(i) }])
  }
  await store.close()
})

afterAll(async () => {
  await rm(folder, { recursive: true, force: true })
})

function keyOf(i: number): Buffer {
  return bytesOf(`key ${i}`)
}

/** The same bytes for the same number, and no pattern that a table would shorten. */
function incompressible(i: number): Buffer {
  const bytes = Buffer.alloc(rowBytes)
  let state = i + 1
  for (let at = 0; at < rowBytes; at++) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    bytes[at] = state >>> 24
  }
  return bytes
}

/** A path of this test's own. */
async function ownPath(): Promise<string> {
  const path = await mkdtemp(join(folder, 'own-'))
  onTestFinished(() => rm(path, { recursive: true, force: true }))
  return path
}

async function copyOfSound(): Promise<string> {
  const path = join(await ownPath(), 'store')
  await cp(sound, path, { recursive: true })
  return path
}

async function filesLike(path: string, name: RegExp): Promise<string[]> {
  const names = (await readdir(path)).filter((one) => name.test(one))
  expect(names.length, `files like ${name.source}`).toBeGreaterThan(0)
  return names.map((one) => join(path, one))
}

async function failureOf(opening: Promise<OrderedStore>): Promise<StoreError> {
  const failure: unknown = await opening.then(
    async (store) => {
      await store.close()
      return 'it opened'
    },
    (error: unknown) => error,
  )
  expect(failure).toBeInstanceOf(StoreError)
  if (failure instanceof StoreError) return failure
  throw new Error(String(failure))
}

/** Reads all there is: what LevelDB refuses must be a StoreError with a code and a sentence. */
async function readAll(path: string): Promise<{ readonly codes: readonly string[]; rows: number }> {
  const codes: string[] = []
  let rows = 0
  const note = (error: unknown): void => {
    expect(error).toBeInstanceOf(StoreError)
    if (error instanceof StoreError) codes.push(error.code)
  }
  const store = await openLevelStore(path).catch(note)
  if (store === undefined) return { codes, rows }
  for (let i = 0; i < rowCount; i++) {
    try {
      store.getSync(keyOf(i))
    } catch (error) {
      note(error)
    }
  }
  await rowsOf(store).then((found) => (rows = found.length), note)
  await store.close()
  return { codes, rows }
}

test('a folder that is not there is made, with the folders above it', async () => {
  const path = join(await ownPath(), 'some', 'where', 'store')
  const store = await openLevelStore(path)
  await store.write([putOf('a')])
  await store.close()
  const again = await openLevelStore(path)
  expect(await keysOf(again)).toBe('a')
  await again.close()
})

test('a store that is open elsewhere is in use, and the first one goes on', async () => {
  const path = join(await ownPath(), 'store')
  const store = await openLevelStore(path)
  const { code, message } = await failureOf(openLevelStore(path))
  expect(code).toBe('unavailable')
  expect(message).toContain(`${path} is in use by another process`)
  await store.write([putOf('a')])
  expect(await keysOf(store)).toBe('a')
  await store.close()
})

test('a file where the folder should be is named, at the end of the path or within it', async () => {
  const file = join(await ownPath(), 'file')
  await writeFile(file, 'not a store')
  for (const path of [file, join(file, 'store')]) {
    const { code, message } = await failureOf(openLevelStore(path))
    expect(code).toBe('invalid')
    expect(message).toContain(`${path} is a file, or lies below one; name another folder`)
  }
  expect(await readFile(file, 'utf8')).toBe('not a store')
})

/** Runs `mount`, or skips the test where that is not allowed. */
function mountOrSkip(context: TestContext, target: string, ...arguments_: string[]): void {
  try {
    execFileSync('mount', [...arguments_, target], { stdio: 'pipe' })
  } catch (error) {
    context.skip(`mount is not allowed here: ${String(error).split('\n')[0] ?? ''}`)
  }
  onTestFinished(() => {
    execFileSync('umount', [target])
  })
}

/** Root may write whatever the mode says, so its folder is mounted read-only. */
async function makeReadOnly(context: TestContext, path: string): Promise<void> {
  if (process.getuid?.() === 0) {
    mountOrSkip(context, path, '--bind', path)
    execFileSync('mount', ['-o', 'remount,ro,bind', path])
    return
  }
  await chmod(join(path, 'LOCK'), 0o444)
  await chmod(path, 0o555)
  onTestFinished(() => chmod(path, 0o755))
}

test('a read-only folder is refused with what to do', async (context) => {
  const path = await copyOfSound()
  await makeReadOnly(context, path)
  const { code, message } = await failureOf(openLevelStore(path))
  expect(code).toBe('forbidden')
  expect(message).toContain(`${path} cannot be written`)
  expect(message).toContain('make it writable, or name another folder')
})

/** Writes rows until one is refused. */
async function fill(
  store: OrderedStore,
): Promise<{ readonly written: number; readonly failure: unknown }> {
  for (let i = 0; i < 1000; i++) {
    try {
      await store.write([{ key: keyOf(i), value: incompressible(i) }])
    } catch (failure) {
      return { written: i, failure }
    }
  }
  throw new Error('4 MB fit a disk of 1 MiB')
}

test('a full disk fails a write, fences the store, and loses nothing of before', async (context) => {
  const disk = await ownPath()
  mountOrSkip(context, disk, '-t', 'tmpfs', '-o', 'size=1m', 'tmpfs')
  const path = join(disk, 'store')
  const store = await openLevelStore(path)
  const { written, failure } = await fill(store)
  expect(written).toBeGreaterThan(50)
  expect(failure).toMatchObject({ name: 'StoreError', code: 'unavailable' })
  expect(String(failure)).toContain('the disk is full: make room and start the node again')
  // Room alone does not bring it back: the bytes that the failed write left behind are unknown.
  await writeFile(join(disk, 'store', 'LOG'), '')
  await expect(store.write([putOf('small')])).rejects.toBe(failure)
  expect(incompressible(0).equals(store.getSync(keyOf(0)) ?? Buffer.of())).toBe(true)
  await store.close()
  const atOpen = await failureOf(openLevelStore(path))
  expect(atOpen.message).toContain('the disk is full; make room and start the node again')
  execFileSync('mount', ['-o', 'remount,size=16m', disk])
  const again = await openLevelStore(path)
  for (let i = 0; i < written; i++) {
    expect(incompressible(i).equals(again.getSync(keyOf(i)) ?? Buffer.of()), `row ${i}`).toBe(true)
  }
  await again.close()
})

const refused: readonly (readonly [string, (path: string) => Promise<void>])[] = [
  [
    'a table that is gone',
    async (path) => {
      const [table = ''] = await filesLike(path, /\.ldb$/)
      await rm(table)
    },
  ],
  [
    'a manifest with a flipped bit',
    async (path) => {
      for (const file of await filesLike(path, /^MANIFEST/)) await flipBit(file, 20 * 8)
    },
  ],
  [
    'a truncated manifest',
    async (path) => {
      for (const file of await filesLike(path, /^MANIFEST/)) await truncate(file, 10)
    },
  ],
  [
    'a manifest that is gone',
    async (path) => {
      for (const file of await filesLike(path, /^MANIFEST/)) await rm(file)
    },
  ],
  ['an empty CURRENT', (path) => writeFile(join(path, 'CURRENT'), '')],
  ['a CURRENT with garbage', (path) => writeFile(join(path, 'CURRENT'), 'garbage\n')],
  [
    'a CURRENT that is a folder',
    async (path) => {
      await rm(join(path, 'CURRENT'))
      await mkdir(join(path, 'CURRENT'))
    },
  ],
  ['a CURRENT that is gone', (path) => rm(join(path, 'CURRENT'))],
]

test.each(refused)(
  '%s: the store is damaged and is not opened, nor begun anew',
  async (_, damage) => {
    const path = await copyOfSound()
    await damage(path)
    for (const attempt of [1, 2]) {
      const { code, message } = await failureOf(openLevelStore(path))
      expect(code, `attempt ${attempt}: ${message}`).toBe('corrupt')
      expect(message).toContain(`the store ${path} is damaged`)
    }
  },
)

test('a store whose creation was cut short before its CURRENT is created once more', async () => {
  const path = join(await ownPath(), 'store')
  await mkdir(path)
  await writeFile(join(path, 'MANIFEST-000001'), '')
  const store = await openLevelStore(path)
  await store.write([putOf('a')])
  expect(await keysOf(store)).toBe('a')
  await store.close()
})

test.each([
  ['cut in half', 0.5],
  ['cut to nothing', 0],
] as const)('tables %s: a read reports their rows as damage, not as absent', async (_, share) => {
  const path = await copyOfSound()
  for (const table of await filesLike(path, /\.ldb$/)) {
    const { length } = await readFile(table)
    await truncate(table, Math.floor(length * share))
  }
  const { codes, rows } = await readAll(path)
  expect(codes.length).toBeGreaterThan(0)
  expect(new Set(codes)).toEqual(new Set(['corrupt']))
  expect(rows).toBe(0)
})

test('tables with a damaged index or footer read as damage', async () => {
  for (const fromEnd of [1, 60]) {
    const path = await copyOfSound()
    for (const table of await filesLike(path, /\.ldb$/)) {
      const { length } = await readFile(table)
      await flipBit(table, (length - fromEnd) * 8)
    }
    const { codes } = await readAll(path)
    expect(codes.length).toBeGreaterThan(0)
    expect(new Set(codes)).toEqual(new Set(['corrupt']))
  }
})

test('tables that LevelDB cannot merge end writes, and the error does not advise a restart', async () => {
  const path = await copyOfSound()
  for (const table of await filesLike(path, /\.ldb$/)) {
    const bytes = await readFile(table)
    bytes[0] = 0xff
    await writeFile(table, bytes)
  }
  const small = { writeBufferBytes: 64 * 1024, checkTables: false }
  const store = await openLevelStore(path, small)
  let failure: unknown
  for (let i = 0; i < 20 * rowCount && failure === undefined; i++) {
    const put = { key: keyOf(i % rowCount), value: incompressible(i) }
    failure = await store.write([put]).catch((error: unknown) => error)
  }
  await store.close()
  expect(failure).toMatchObject({ code: 'corrupt' })
  expect(String(failure)).toMatch(/is damaged, and takes no write any more .*keep the folder/)
  expect(String(failure)).not.toContain('start the node again')
})

test('any flipped bit or cut in any file gives rows or a StoreError, and never a crash', async () => {
  const names = (await readdir(sound)).filter((name) => /ldb|log|MANIFEST|CURRENT/.test(name))
  const damage = fc.record({
    name: fc.constantFrom(...names),
    kind: fc.constantFrom('flip', 'cut'),
    at: fc.nat({ max: 1_000_000 }),
  })
  await fc.assert(
    fc.asyncProperty(damage, async ({ name, kind, at }) => {
      const path = await mkdtemp(join(folder, 'any-'))
      try {
        await cp(sound, path, { recursive: true })
        const file = join(path, name)
        const { length } = await readFile(file)
        const byte = Math.floor((at / 1_000_001) * length)
        if (kind === 'cut') await truncate(file, byte)
        else await flipBit(file, byte * 8 + (at % 8))
        const { codes, rows } = await readAll(path)
        for (const code of codes) expect(['corrupt', 'unavailable']).toContain(code)
        expect(rows).toBeLessThanOrEqual(rowCount)
      } finally {
        await rm(path, { recursive: true, force: true })
      }
    }),
    { numRuns: 60 },
  )
})

async function flipBit(file: string, bit: number): Promise<void> {
  const bytes = await readFile(file)
  const at = bit >> 3
  bytes[at] = (bytes[at] ?? 0) ^ (1 << (bit & 7))
  await writeFile(file, bytes)
}
