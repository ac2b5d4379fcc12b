/** The simulated disk's own promises: what a crash, a fault and a swap leave of it. */
import { expect, test } from 'vitest'
import { SimDisk, type DiskOptions } from '../../sim/world/disk.ts'
import { AssertionError } from '../../src/base/assert.ts'
import type { OrderedStore, Put } from '../../src/ports/storage.ts'
import { bytesOf, keysOf, putOf } from '../contracts/storage.ts'

/** A disk that is done with a write when the test says so. */
class SlowDisk {
  readonly #waiting: (() => void)[] = []
  readonly disk: SimDisk

  constructor(options: Omit<DiskOptions, 'schedule'> = {}) {
    this.disk = new SimDisk({ ...options, schedule: (complete) => this.#waiting.push(complete) })
  }

  work(): void {
    for (const complete of this.#waiting.splice(0)) complete()
  }

  async written(store: OrderedStore, puts: readonly Put[]): Promise<void> {
    const writing = store.write(puts)
    this.work()
    await writing
  }
}

function textOf(store: OrderedStore, key: string): string | undefined {
  const value = store.getSync(bytesOf(key))
  return value && Buffer.from(value).toString('latin1')
}

test('a crash loses a write that is under way, and nothing of before', async () => {
  const slow = new SlowDisk()
  const store = slow.disk.open()
  await slow.written(store, [putOf('a', 'old')])
  const writing = store.write([putOf('a', 'new'), putOf('b')])
  expect(textOf(store, 'a'), 'its process sees it at once').toBe('new')
  expect(slow.disk.hasPending).toBe(true)
  expect(slow.disk.crash({ kind: 'lost' })).toBe(true)
  slow.work()
  const again = slow.disk.open()
  expect(textOf(again, 'a')).toBe('old')
  expect(await keysOf(again)).toBe('a')
  await expect(Promise.race([writing, Promise.resolve('never told')])).resolves.toBe('never told')
})

test('a write under way is seen from the read on that its disk says, by key and in scans', async () => {
  let isShown = false
  const slow = new SlowDisk({ showsPending: () => isShown })
  const store = slow.disk.open()
  await slow.written(store, [putOf('a', 'old')])
  const writing = store.write([putOf('a', 'new'), putOf('b')])
  expect([textOf(store, 'a'), await keysOf(store)]).toEqual(['old', 'a'])
  isShown = true
  expect([textOf(store, 'a'), await keysOf(store)]).toEqual(['new', 'a b'])
  isShown = false
  expect(textOf(store, 'a'), 'it never goes back').toBe('new')
  slow.work()
  await writing
  const next = store.write([putOf('a', 'newest')])
  expect(textOf(store, 'a')).toBe('new')
  slow.work()
  await next
  expect(textOf(store, 'a'), 'what is durable is seen').toBe('newest')
})

test('a crash may keep the write under way, whole, though no caller heard of it', async () => {
  const slow = new SlowDisk()
  const store = slow.disk.open()
  void store.write([putOf('a'), putOf('b')])
  expect(slow.disk.crash({ kind: 'kept' })).toBe(false)
  slow.work()
  expect(await keysOf(slow.disk.open())).toBe('a b')
})

test('a torn write may leave its first puts', async () => {
  const slow = new SlowDisk()
  void slow.disk.open().write([putOf('a'), putOf('b'), putOf('c')])
  expect(slow.disk.crash({ kind: 'torn', puts: 2 })).toBe(true)
  expect(await keysOf(slow.disk.open())).toBe('a b')
})

test('a crash with nothing under way loses nothing', async () => {
  const slow = new SlowDisk()
  const store = slow.disk.open()
  await slow.written(store, [putOf('a')])
  expect(slow.disk.hasPending).toBe(false)
  expect(slow.disk.crash()).toBe(false)
  expect(await keysOf(slow.disk.open())).toBe('a')
})

test('a store whose process is gone answers nothing and writes nothing', async () => {
  const slow = new SlowDisk()
  const store = slow.disk.open()
  await slow.written(store, [putOf('a')])
  slow.disk.crash()
  expect(() => store.getSync(bytesOf('a'))).toThrow(/process of this store is gone/)
  await expect(keysOf(store)).rejects.toMatchObject({ code: 'closed' })
  await expect(store.write([putOf('b')])).rejects.toMatchObject({ code: 'closed' })
  slow.work()
  expect(await keysOf(slow.disk.open())).toBe('a')
})

test('two processes cannot have one disk open', () => {
  const { disk } = new SlowDisk()
  disk.open()
  expect(() => disk.open()).toThrow(AssertionError)
  disk.crash()
  expect(disk.isOpen).toBe(false)
  disk.open()
})

test.each(['fsync-error', 'no-space'] as const)(
  '%s fails one write and fences the store until it is opened again',
  async (fault) => {
    const slow = new SlowDisk()
    const store = slow.disk.open()
    await slow.written(store, [putOf('a')])
    slow.disk.failNextWrite(fault)
    await expect(slow.written(store, [putOf('b')])).rejects.toMatchObject({ code: 'unavailable' })
    await expect(store.write([putOf('c')])).rejects.toMatchObject({ code: 'unavailable' })
    expect(await keysOf(store), 'what it has is still read').toBe('a')
    slow.disk.crash()
    const again = slow.disk.open()
    await slow.written(again, [putOf('d')])
    expect(await keysOf(again)).toBe('a d')
  },
)

test('a write whose fsync failed may yet be on the disk; one without space is not', async () => {
  for (const [fault, keys] of [
    ['fsync-error', 'a'],
    ['no-space', ''],
  ] as const) {
    const slow = new SlowDisk()
    slow.disk.failNextWrite(fault)
    await expect(slow.written(slow.disk.open(), [putOf('a')])).rejects.toThrow(/failed/)
    slow.disk.crash({ kind: 'kept' })
    expect(await keysOf(slow.disk.open())).toBe(keys)
  }
})

test('a flipped bit is one bit of one value, and silent', async () => {
  const slow = new SlowDisk()
  const store = slow.disk.open()
  await slow.written(store, [putOf('a', '\x00\x00'), putOf('b', '\x00')])
  expect(slow.disk.flipBit(bytesOf('a'), 11)).toBe(true)
  expect(textOf(store, 'a')).toBe('\x00\x08')
  expect(textOf(store, 'b')).toBe('\x00')
  expect(slow.disk.flipBit(bytesOf('a'), 16), 'beyond its end').toBe(false)
  expect(slow.disk.flipBit(bytesOf('c'), 0), 'no such key').toBe(false)
})

test('a dropped key is gone without a word', async () => {
  const slow = new SlowDisk()
  const store = slow.disk.open()
  await slow.written(store, [putOf('a'), putOf('b')])
  expect(slow.disk.dropKey(bytesOf('a'))).toBe(true)
  expect(slow.disk.dropKey(bytesOf('a'))).toBe(false)
  expect(await keysOf(store)).toBe('b')
})

test('an image is the disk of its time: later writes and damage do not reach it', async () => {
  const slow = new SlowDisk()
  const store = slow.disk.open()
  await slow.written(store, [putOf('a', 'old'), putOf('b', 'old')])
  const image = slow.disk.image()
  await slow.written(store, [putOf('a', 'new'), { key: bytesOf('b') }, putOf('c', 'new')])
  slow.disk.flipBit(bytesOf('a'), 0)
  expect(() => slow.disk.restore(image), 'under a living process').toThrow(AssertionError)
  slow.disk.crash()
  slow.disk.restore(image)
  const again = slow.disk.open()
  expect(await keysOf(again)).toBe('a b')
  expect(textOf(again, 'a')).toBe('old')
  slow.disk.crash()
  slow.disk.wipe()
  expect(slow.disk.size).toBe(0)
  expect(await keysOf(slow.disk.open())).toBe('')
})

test('the disk reports durable writes in their order, and no lost ones', async () => {
  const told: string[] = []
  const slow = new SlowDisk({
    onDurable: (puts) => told.push(puts.map(({ key }) => Buffer.from(key).toString()).join(' ')),
  })
  const store = slow.disk.open()
  await slow.written(store, [putOf('a'), putOf('b')])
  await slow.written(store, [{ key: bytesOf('a') }])
  void store.write([putOf('lost')])
  slow.disk.crash({ kind: 'lost' })
  void slow.disk.open().write([putOf('kept')])
  slow.disk.crash({ kind: 'kept' })
  expect(told).toEqual(['a b', 'a', 'kept'])
})

test('a torn write leaves the front part of its value, and the disk reports it as cut', async () => {
  const told: string[] = []
  const slow = new SlowDisk({
    onDurable: (puts, isWhole) =>
      told.push(...puts.map(({ value }) => `${isWhole ? 'whole' : 'cut'} ${String(value)}`)),
  })
  const store = slow.disk.open()
  const writing = store.write([{ key: bytesOf('a'), value: bytesOf('abcdefgh') }])
  writing.catch(() => undefined)
  expect(slow.disk.crash({ kind: 'cut-short', kept: 500_000 })).toBe(true)
  expect(textOf(slow.disk.open(), 'a')).toBe('abcd')
  expect(told).toEqual(['cut abcd'])
})

test('a value that was written to another place stands there, and not where it was', async () => {
  const slow = new SlowDisk()
  const store = slow.disk.open()
  await slow.written(store, [putOf('a', 'one'), putOf('b', 'two')])
  expect(slow.disk.misdirect(bytesOf('a'), bytesOf('z')), 'there is no z').toBe(false)
  expect(slow.disk.misdirect(bytesOf('a'), bytesOf('b'))).toBe(true)
  expect([textOf(store, 'a'), textOf(store, 'b')]).toEqual(['one', 'one'])
})

test('while there is no space every write is refused, and none is on the disk', async () => {
  const slow = new SlowDisk()
  slow.disk.failWrites('no-space')
  for (let tries = 0; tries < 2; tries++) {
    const store = slow.disk.open()
    const writing = store.write([putOf('a')])
    slow.work()
    await expect(writing).rejects.toThrow('no space')
    expect(slow.disk.crash({ kind: 'kept' })).toBe(false)
  }
  slow.disk.failWrites('none')
  const store = slow.disk.open()
  await slow.written(store, [putOf('a', 'at last')])
  expect(textOf(store, 'a')).toBe('at last')
})
