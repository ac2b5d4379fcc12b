/**
 * A log on LevelDB with one bit flipped in its journal while it was closed: a log that opens knows all that
 * it knew and reports the damage it found. A log that may have lost more does not open. LevelDB itself says
 * nothing of it.
 */
import { OrderedJournal } from '../../src/journal/ordered-journal.ts'
import { flushKey, recordKey } from '../../src/journal/ordered-journal.ts'
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { SeededRandom } from '../../sim/world/random.ts'
import { openLevelStore } from '../../src/adapters/level-storage.ts'
import { nodeId } from '../../src/base/ids.ts'
import type { OrderedStore } from '../../src/ports/storage.ts'
import { readDamages } from '../../src/log/log-mending.ts'
import type { LogStore } from '../../src/log/log-store.ts'
import { decodeMemory, memoryName } from '../../src/log/peer-memory.ts'
import { accept, chosen, durable, FakeData, group, openLog, promise } from './log-fixture.ts'

const positions = 30
/** Flushes through here are in rows. */
const settledThrough = 12
const random = new SeededRandom('journal damage')

let folder = ''
let sound = ''
const data = new FakeData()
let journal = Buffer.alloc(0)

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trilithon-journal-'))
  sound = join(folder, 'log')
  const first = await openLevelStore(sound)
  await durable(await openLog(first, {}, data), accept('a', 1, 0, 'in a table'))
  await first.close()
  const store = await openLevelStore(sound)
  const log = await openLog(store, {}, data)
  log.memory.restore(2, 2)
  for (let position = 1; position <= positions; position++) {
    if (position % 3 === 0) remember(log, position)
    const text = `${position} `.repeat(random.pick([5, 50, 200, 5_000]))
    const votes = [accept('a', position, 0, text)]
    // An open position keeps flushes from being settled.
    if (2 * position > settledThrough) votes.push(promise('b', position, position))
    await durable(log, ...votes)
    await durable(log, chosen('a', position, 0))
    if (2 * position === settledThrough) await data.batch(log, ['a', position])
  }
  // Of an idle node, alone, and then a commit.
  remember(log, 1000)
  await durable(log)
  await durable(log, accept('a', positions + 1, 0, 'the last but one'))
  await durable(log, accept('a', positions + 2, 0, 'the last'))
  await store.close()
  journal = await readFile(await journalOf(sound))
})

afterAll(async () => {
  await rm(folder, { recursive: true, force: true })
})

function remember(log: LogStore, durableFlush: number): void {
  log.memory.learn({
    node: nodeId('b'),
    storeId: 'store of b',
    durableFlush,
    incarnation: 1,
    run: 1,
  })
  log.remember()
}

async function journalOf(path: string): Promise<string> {
  const names = (await readdir(path)).filter((name) => name.endsWith('.log'))
  expect(names).toHaveLength(1)
  return join(path, names[0] ?? '')
}

/** A copy whose journal holds these bytes. */
async function withJournal(bytes: Uint8Array): Promise<string> {
  const path = join(await mkdtemp(join(folder, 'copy-')), 'log')
  await cp(sound, path, { recursive: true })
  await writeFile(await journalOf(path), bytes)
  return path
}

function flipped(bit: number): Buffer {
  const copy = Buffer.from(journal)
  copy[bit >> 3] = (copy[bit >> 3] ?? 0) ^ (1 << (bit & 7))
  return copy
}

function openStore(path: string): Promise<OrderedStore> {
  return openLevelStore(path, { checkTables: false, tellsDamage: true })
}

async function inStore<T>(path: string, work: (store: OrderedStore) => T | Promise<T>): Promise<T> {
  const store = await openStore(path)
  try {
    return await work(store)
  } finally {
    await store.close()
  }
}

/** The claims of a log that votes rest on, and those that peers hear of it. */
function knowledge(log: LogStore): unknown {
  const headers = ['a', 'b'].map((name) =>
    Array.from({ length: positions + 2 }, (_, at) => {
      const { faulty: _faulty, ...header } = log.position(group(name), at + 1) ?? {}
      return header
    }),
  )
  return { headers, durableFlush: log.durableFlush, incarnation: log.identity.incarnation }
}

function isRefusal(error: unknown): 'refused' {
  expect(error).toMatchObject({ code: 'corrupt', retry: 'never' })
  return 'refused'
}

interface Start {
  readonly knows: unknown
  readonly memory: string | number | undefined
  readonly found: number
}

/** `refused`, or what a start finds: the same a second time. */
async function startOf(path: string): Promise<Start | 'refused'> {
  return inStore(path, async (store) => {
    const log = await openLog(store, {}, new FakeData(data))
    const { isWhole } = log.memory
    const memory = isWhole ? log.memory.of(nodeId('b'))?.durableFlush : 'forgotten'
    return { knows: knowledge(log), memory, found: log.damages.length }
  }).catch(isRefusal)
}

test('LOG-13: a bit that flips anywhere in the journal costs nothing that is not told, or is refused', async () => {
  const sane = await startOf(await withJournal(journal))
  expect(sane).toMatchObject({ memory: 1000, found: 0 })
  const knows = sane === 'refused' ? undefined : sane.knows
  // Behind the last record but one begins the last, which looks like a torn end.
  const end = journal.length - 200
  const outcomes = { refused: 0, mended: 0, forgotten: 0 }
  for (let i = 0; i < 50; i++) {
    const bit = i < 20 ? random.int(0, 4000) : random.int(0, end * 8)
    const path = await withJournal(flipped(bit))
    const start = await startOf(path)
    if (start === 'refused') {
      outcomes.refused += 1
      expect(await startOf(path), `bit ${bit} again`).toBe('refused')
      continue
    }
    expect(start, `bit ${bit}`).toMatchObject({ knows, found: 1 })
    const { memory } = start
    expect([1000, 'forgotten'], `bit ${bit}`).toContain(memory)
    outcomes[memory === 1000 ? 'mended' : 'forgotten'] += 1
    expect(await startOf(path)).toMatchObject({ found: 1, memory })
  }
  expect(outcomes.mended).toBeGreaterThan(25)
  expect(outcomes.refused).toBeGreaterThan(0)
})

test('LOG-13: the store reports damage until it is put back, at whatever moment the node dies', async () => {
  const path = await withJournal(flipped(journal.length * 4))
  const batches = await inStore(path, ({ damage }) => damage?.batches.length)
  expect(batches).toBeGreaterThan(positions)
  // LevelDB has moved what it made of the journal into a table: the copy alone tells.
  expect(await inStore(path, ({ damage }) => damage?.batches.length)).toBe(batches)
  await inStore(path, (store) => openLog(store, {}, new FakeData(data)))
  await inStore(path, (store) => {
    expect(store.damage).toBeUndefined()
    expect(readDamages(new OrderedJournal(store))).toMatchObject([
      { what: expect.stringMatching(/^\d+\.log at byte \d+: /) },
    ])
    expect(store.getSync(flushKey(2 * positions))).toBeDefined()
    expect(decodeMemory(store.getSync(recordKey(memoryName)) ?? Buffer.alloc(0))).toHaveLength(1)
  })
  expect(await readdir(`${path}.damaged`)).toContain('mended')
})

test('LOG-13: a sector of zeros loses flushes: the store reports those in rows and refuses others', async () => {
  const starts = { refused: 0, lost: 0 }
  for (let i = 0; i < 16; i++) {
    const from = Math.floor((journal.length * i) / 18)
    const path = await withJournal(Buffer.from(journal).fill(0, from, from + 512))
    const start = await startOf(path)
    if (start === 'refused') {
      starts.refused += 1
      continue
    }
    expect(start, `from byte ${from}`).toMatchObject({ found: 1 })
    const damages = await inStore(path, (store) => readDamages(new OrderedJournal(store)))
    const lost = damages?.flatMap(({ lostFlushes }) => lostFlushes) ?? []
    expect(lost.every((flush) => flush <= settledThrough)).toBe(true)
    if (lost.length > 0) starts.lost += 1
  }
  expect(starts.refused).toBeGreaterThan(0)
  expect(starts.lost).toBeGreaterThan(0)
})

test('a manifest that is damaged, or a journal that is gone, is refused before LevelDB opens it', async () => {
  const gone = await withJournal(journal)
  await rm(await journalOf(gone))
  await expect(openStore(gone)).rejects.toMatchObject({
    code: 'corrupt',
    message: expect.stringContaining('it is missing'),
  })
  const path = await withJournal(journal)
  const name = (await readdir(path)).find((one) => one.startsWith('MANIFEST-')) ?? ''
  const bytes = await readFile(join(path, name))
  bytes[20] = (bytes[20] ?? 0) ^ 4
  await writeFile(join(path, name), bytes)
  await expect(openStore(path)).rejects.toMatchObject({ code: 'corrupt' })
  onTestFinished(() => rm(path, { recursive: true, force: true }))
})
