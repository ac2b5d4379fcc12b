/**
 * A settled table of the log is damaged beneath a node that runs. What its next start would read there is
 * written anew, out of memory: without that the start is refused.
 */
import { flushKey, recordKey } from '../../src/journal/ordered-journal.ts'
import { cp, mkdtemp, open, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openLevelStore } from '../../src/adapters/level-storage.ts'
import { nodeId } from '../../src/base/ids.ts'
import { present } from '../../src/base/assert.ts'
import type { OrderedStore } from '../../src/ports/storage.ts'
import type { LogStore } from '../../src/log/log-store.ts'
import { memoryName } from '../../src/log/peer-memory.ts'
import {
  accept,
  ballot,
  chosen,
  durable,
  FakeData,
  group,
  openLog,
  promise,
} from './log-fixture.ts'

let folder = ''
let data = new FakeData()

/** Flush 1 is settled; 2 to 4 are not, and a position of `b` stays open. All of them are in a table. */
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trilithon-renewal-'))
  data = new FakeData()
  const store = await openStore(join(folder, 'log'))
  const log = await openLog(store, {}, data)
  log.memory.restore(2, 2)
  const peer = { node: nodeId('b'), storeId: 'store of b', incarnation: 1, run: 1 }
  log.memory.learn({ ...peer, durableFlush: 1000 })
  await durable(log, accept('a', 1, 0, 'the first'), chosen('a', 1, 0))
  await data.batch(log, ['a', 1])
  await durable(log, promise('b', 1, 7))
  await durable(log, accept('a', 2, 0, 'the second'))
  await durable(log, promise('c', 1, 3))
  await store.close()
})

afterEach(async () => {
  await rm(folder, { recursive: true, force: true })
})

function openStore(path: string): Promise<OrderedStore> {
  return openLevelStore(path, { checkTables: false, compresses: false })
}

/** One bit of the value in the tables, while they are open. */
async function damage(path: string, value: Uint8Array): Promise<void> {
  const names = (await readdir(path)).filter((name) => name.endsWith('.ldb'))
  let found = 0
  for (const name of names) {
    const at = (await readFile(join(path, name))).indexOf(value)
    if (at < 0) continue
    const file = await open(join(path, name), 'r+')
    await file.write(Uint8Array.of((value[0] ?? 0) ^ 1), 0, 1, at)
    await file.close()
    found += 1
  }
  expect(found).toBe(1)
}

/** The log as a start finds it, with what it has not settled damaged beneath it. */
async function withDamage(work: (log: LogStore) => Promise<void>): Promise<void> {
  const path = join(folder, 'log')
  const store = await openStore(path)
  try {
    const log = await openLog(store, {}, data)
    for (const key of [flushKey(2), flushKey(3), flushKey(4), recordKey(memoryName)]) {
      await damage(path, present(store.getSync(key), 'test: it is there'))
    }
    await work(log)
  } finally {
    await store.close()
  }
}

async function reopened(work: (log: LogStore) => void): Promise<void> {
  const path = join(folder, 'again')
  await cp(join(folder, 'log'), path, { recursive: true })
  const store = await openStore(path)
  try {
    work(await openLog(store, {}, new FakeData(data)))
  } finally {
    await store.close()
  }
}

const what = '000005.ldb at byte 9: a block does not match its checksum'

test('DISK-16: a log that is not written anew is refused at the next start', async () => {
  await withDamage((log) => data.batch(log))
  await expect(reopened(() => undefined)).rejects.toMatchObject({ code: 'corrupt' })
})

test('DISK-16: the log writes records of damaged tables anew and settles them, and no promise is lost', async () => {
  await withDamage(async (log) => {
    await new Promise<void>((resolve) => expect(log.renew(what, resolve)).toBe(true))
    expect(log.durableFlush).toBe(5)
    await data.batch(log)
    expect(log.settledFlush).toBe(5)
    expect(log.position(group('b'), 1)?.promised).toEqual(ballot(7))
    expect(log.value(group('a'), 2)).toBe('faulty')
  })
  await reopened((log) => {
    expect(log.position(group('b'), 1)?.promised).toEqual(ballot(7))
    expect(log.position(group('c'), 1)?.promised).toEqual(ballot(3))
    expect(log.position(group('a'), 2)?.accepted).toEqual(ballot(0))
    expect(log.value(group('a'), 2)).toBe('faulty')
    expect(log.memory.isWhole && log.memory.of(nodeId('b'))?.durableFlush).toBe(1000)
    expect(log.damages).toEqual([{ what, lostFlushes: [], isMemoryLost: false, isRenewed: true }])
  })
})

test('DISK-16: damage that is known is not written anew with each pass', async () => {
  await withDamage(async (log) => {
    await new Promise<void>((resolve) => expect(log.renew(what, resolve)).toBe(true))
    expect(log.renew(what, () => expect.fail('nothing is written'))).toBe(false)
    await durable(log)
    expect(log.durableFlush).toBe(5)
    await new Promise<void>((resolve) => expect(log.renew(`${what} elsewhere`, resolve)).toBe(true))
    expect(log.damages).toHaveLength(2)
  })
})
