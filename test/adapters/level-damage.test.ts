/**
 * The data store over LevelDB with one bit flipped in its files: if it opens, it has all rows of
 * one of its last batches. Behind it the log has whatever came later.
 */
import { cp, mkdtemp, open, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { SeededRandom } from '../../sim/world/random.ts'
import { openLevelStore } from '../../src/adapters/level-storage.ts'
import { systemClock } from '../../src/adapters/system-clock.ts'
import { present } from '../../src/base/assert.ts'
import { StoreError } from '../../src/base/errors.ts'
import { groupOfBytes, type GroupId } from '../../src/base/ids.ts'
import { defaultLimits } from '../../src/base/limits.ts'
import { silentTrace } from '../../src/ports/trace.ts'
import { DataStore } from '../../src/store/data-store.ts'
import type { RowWritten } from '../../src/replication/apply.ts'
import { written } from '../store/rows.ts'

const commits = 100
const groups: readonly GroupId[] = ['a', 'b', 'c'].map((name) => groupOfBytes(Buffer.from(name)))
const keys: readonly string[] = Array.from({ length: 60 }, (_, i) => `row ${i}`)
const random = new SeededRandom('level damage')
/** The values, of bytes that no block would shrink: a flipped bit is one that is read. */
const values: readonly Buffer[] = Array.from({ length: 20 * commits }, () =>
  Buffer.from(random.bytes(400)),
)

let folder = ''
let sound = ''

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trilithon-damage-'))
  sound = join(folder, 'sound')
  // Opened anew now and then, which moves what the log holds into a table; few rows are in the last
  // log, so that the tables hold the newest of many.
  let from = 1
  for (const to of [30, 60, 95, commits]) {
    await fill(from, to)
    from = to + 1
  }
})

afterAll(async () => {
  await rm(folder, { recursive: true, force: true })
})

/** Each commit is a batch of its own: commit n is in group n mod 3. */
async function fill(from: number, to: number): Promise<void> {
  const store = await openLevelStore(sound)
  const data = await openData(store)
  for (let commit = from; commit <= to; commit++) {
    data.commit({
      ...{ group: groupOf(commit), position: commit, timestamp: commit },
      ...{ horizonBefore: 0, horizon: 0, writes: writesOf(commit) },
      encodeState: () => Buffer.from('state'),
    })
    await data.drain()
  }
  await data.stop()
  await store.close()
}

function openData(store: Awaited<ReturnType<typeof openLevelStore>>): Promise<DataStore> {
  return DataStore.open(store, { clock: systemClock, trace: silentTrace, limits: defaultLimits })
}

function groupOf(commit: number): GroupId {
  return present(groups[commit % groups.length], 'three groups')
}

/** Twenty rows, a fifth of them deleted. */
function writesOf(commit: number): RowWritten[] {
  return Array.from({ length: 20 }, (_, i) => {
    const key = Buffer.from(keys[(commit * 7 + i) % keys.length] ?? '')
    const value = present(values[20 * (commit - 1) + i], 'a value for every row')
    return (commit + i) % 5 === 0 ? written(key) : written(key, value)
  })
}

/** The rows of all groups after `commit`, as text. */
function modelAfter(commit: number): string {
  const rows = new Map<string, string>()
  for (let at = 1; at <= commit; at++) {
    for (const { key, value } of writesOf(at)) {
      const name = `${groupOf(at)}/${Buffer.from(key).toString()}`
      if (value === undefined) rows.delete(name)
      else rows.set(name, hexOf(value))
    }
  }
  return textOf(rows)
}

function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}

function textOf(rows: ReadonlyMap<string, string>): string {
  return [...rows]
    .map(([name, value]) => `${name}=${value}`)
    .sort()
    .join('\n')
}

/** What the store serves: its last commit, its rows by their keys, and its rows by scans. */
async function served(path: string, checkTables: boolean): Promise<'refused' | string[]> {
  const store = await openLevelStore(path, { checkTables }).catch(refusal)
  if (store === 'refused') return 'refused'
  try {
    const data = await openData(store)
    const read = new Map<string, string>()
    const scanned = new Map<string, string>()
    for (const group of groups) {
      for (const key of keys) {
        const row = data.get(group, Buffer.from(key))
        if (row !== undefined) read.set(`${group}/${key}`, hexOf(row.value))
      }
      for (const { key, value } of await data.scan(group, {})) {
        scanned.set(`${group}/${Buffer.from(key).toString()}`, hexOf(value))
      }
    }
    const last = Math.max(...groups.map((group) => data.statePosition(group)))
    return [String(last), textOf(read), textOf(scanned)]
  } catch (error) {
    return refusal(error)
  } finally {
    await store.close()
  }
}

function refusal(error: unknown): 'refused' {
  expect(error).toBeInstanceOf(StoreError)
  expect(error).toMatchObject({ code: 'corrupt' })
  return 'refused'
}

type Outcome = 'refused' | 'whole' | 'earlier' | 'wrong'

async function outcomeOf(path: string, checkTables: boolean): Promise<Outcome> {
  const found = await served(path, checkTables)
  if (found === 'refused') return 'refused'
  const [last = '', ...rows] = found
  const model = modelAfter(Number(last))
  if (rows.some((text) => text !== model)) return 'wrong'
  return Number(last) === commits ? 'whole' : 'earlier'
}

interface Flip {
  readonly name: string
  readonly bit: number
}

/** `count` flips over each file that LevelDB reads. */
async function flips(count: number): Promise<Flip[]> {
  const names = (await readdir(sound)).filter((name) => /^(?:\d+\.|MANIFEST-|CURRENT)/.test(name))
  expect(names.filter((name) => name.endsWith('.ldb')).length).toBeGreaterThan(0)
  expect(names.filter((name) => name.endsWith('.log')).length).toBe(1)
  const chosen: Flip[] = []
  for (const name of names.toSorted()) {
    const { size } = await stat(join(sound, name))
    expect(size, name).toBeGreaterThan(0)
    for (let i = 0; i < count; i++) chosen.push({ name, bit: random.int(0, size * 8 - 1) })
  }
  return chosen
}

async function outcomes(
  chosen: readonly (Flip | undefined)[],
  checkTables: boolean,
): Promise<Record<Outcome, (Flip | undefined)[]>> {
  const found: Record<Outcome, (Flip | undefined)[]> = {
    refused: [],
    whole: [],
    earlier: [],
    wrong: [],
  }
  for (const flip of chosen) {
    // A copy each: an open moves what the log holds into a table.
    const path = await mkdtemp(join(folder, 'flip-'))
    await cp(sound, path, { recursive: true })
    if (flip !== undefined) await flipBit(join(path, flip.name), flip.bit)
    found[await outcomeOf(path, checkTables)].push(flip)
    await rm(path, { recursive: true, force: true })
  }
  return found
}

async function flipBit(file: string, bit: number): Promise<void> {
  const handle = await open(file, 'r+')
  try {
    const byte = Buffer.alloc(1)
    const at = Math.floor(bit / 8)
    await handle.read(byte, 0, 1, at)
    await handle.write(Buffer.of((byte[0] ?? 0) ^ (1 << (bit % 8))), 0, 1, at)
  } finally {
    await handle.close()
  }
}

test('without damage all rows are there', async () => {
  expect(await outcomes([undefined], true)).toMatchObject({ whole: [undefined] })
})

test('a flipped bit in any file is refused, or every row of an earlier moment is there', async () => {
  const chosen = await flips(25)
  const { refused, earlier, wrong } = await outcomes(chosen, true)
  expect(wrong).toEqual([])
  expect(refused.length).toBeGreaterThan(chosen.length / 2)
  // Only the last record of the log may be taken for one that a crash cut short.
  expect(earlier.every((flip) => flip?.name.endsWith('.log'))).toBe(true)
}, 60_000)

/** The key of a row, and the byte by which LevelDB marks it as put. */
const putEntry = new RegExp(`row [0-9]+${String.fromCharCode(1)}`, 'g')

/** Bits that make the entry of a row in a table the mark of its deletion. */
async function deletions(): Promise<Flip[]> {
  const found: Flip[] = []
  for (const name of (await readdir(sound)).filter((one) => one.endsWith('.ldb'))) {
    const text = await readFile(join(sound, name), 'latin1')
    for (const { 0: entry, index } of text.matchAll(putEntry)) {
      found.push({ name, bit: (index + entry.length - 1) * 8 })
    }
  }
  return found.slice(-20)
}

test('without the check of tables one bit makes a row vanish; with it no such store opens', async () => {
  const chosen = await deletions()
  const unchecked = await outcomes(chosen, false)
  expect(unchecked.wrong.length).toBeGreaterThan(0)
  const checked = await outcomes(chosen, true)
  expect(checked.refused).toEqual(chosen)
})
