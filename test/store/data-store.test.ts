/** The data store: overlay over data, the applier's batches, restarts, and damage. */
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../src/adapters/system-clock.ts'
import { AssertionError } from '../../src/base/assert.ts'
import { defaultLimits } from '../../src/base/limits.ts'
import type { GroupId, Position } from '../../src/base/ids.ts'
import type { Clock } from '../../src/ports/clock.ts'
import type { OrderedStore, Put } from '../../src/ports/storage.ts'
import { silentTrace } from '../../src/ports/trace.ts'
import { batchMarkersMax } from '../../src/store/batch-marker.ts'
import { DataStore } from '../../src/store/data-store.ts'
import type { RowWritten } from '../../src/replication/apply.ts'
import {
  decodeStored,
  groupPrefix,
  joined,
  markerKey,
  rowsPrefix,
  stateKey,
} from '../../src/store/row-format.ts'
import { group } from '../log/log-fixture.ts'
import { written } from './rows.ts'
import { disks, flipBit, GatedStore, onDisk } from './stores.ts'

const a = group('a')
const b = group('b')

function openData(store: OrderedStore, batchBytesMax = 1024 * 1024): Promise<DataStore> {
  const limits = { ...defaultLimits, applierBatchBytesMax: batchBytesMax, checkpointMs: 50 }
  return DataStore.open(store, { clock: systemClock, trace: silentTrace, limits })
}

function put(key: string, value: string): RowWritten {
  return written(Buffer.from(key), Buffer.from(value))
}

function gone(key: string): RowWritten {
  return written(Buffer.from(key))
}

/** Commits with a state record that says its position, and time that is its position, too. */
function commit(data: DataStore, to: GroupId, position: Position, ...rows: RowWritten[]): void {
  data.commit({
    ...{ group: to, position, timestamp: position, horizonBefore: 0, horizon: 0, writes: rows },
    encodeState: () => Buffer.from(`state ${position}`),
  })
}

function get(data: DataStore, from: GroupId, key: string): string | undefined {
  const row = data.get(from, Buffer.from(key))
  return row === undefined ? undefined : `${Buffer.from(row.value).toString()}@${row.timestamp}`
}

async function all(data: DataStore, from: GroupId): Promise<string[]> {
  const rows = await data.scan(from, {})
  return rows.map(
    ({ key, value, timestamp }) =>
      `${Buffer.from(key).toString()}=${Buffer.from(value).toString()}@${timestamp}`,
  )
}

function stateOf(data: DataStore, of: GroupId): string | undefined {
  const bytes = data.state(of)
  return bytes === undefined ? undefined : Buffer.from(bytes).toString()
}

describe.each(disks)('on %s', (_, disk) => {
  test('a commit is visible at once, and durable with its state after a drain', () =>
    onDisk(disk, async (on) => {
      const data = await openData(await on.open())
      commit(data, a, 1, put('x', 'one'), put('y', 'two'))
      expect(get(data, a, 'x')).toBe('one@1')
      expect(stateOf(data, a)).toBeUndefined()
      expect(data.hasPending(a)).toBe(true)
      await data.drain()
      expect([data.hasPending(a), data.overlayBytes]).toEqual([false, 0])
      expect(get(data, a, 'x')).toBe('one@1')
      const again = await openData(await on.open())
      expect([get(again, a, 'x'), get(again, a, 'y'), get(again, b, 'x')]).toEqual([
        ...['one@1', 'two@1'],
        undefined,
      ])
      expect([stateOf(again, a), again.applied(a).position]).toEqual(['state 1', 1])
    }))

  test('a deleted row is gone at once and after a drain, and may come back', () =>
    onDisk(disk, async (on) => {
      const data = await openData(await on.open())
      commit(data, a, 1, put('x', 'one'), put('y', 'two'))
      await data.drain()
      commit(data, a, 2, gone('x'))
      expect([get(data, a, 'x'), await all(data, a)]).toEqual([undefined, ['y=two@1']])
      await data.drain()
      expect([get(data, a, 'x'), await all(data, a)]).toEqual([undefined, ['y=two@1']])
      commit(data, a, 3, put('x', 'three'))
      expect(await all(data, a)).toEqual(['x=three@3', 'y=two@1'])
    }))

  test('a row marked as new supersedes nothing, so the store looks for no older version', () =>
    onDisk(disk, async (on) => {
      const store = new GatedStore(await on.open())
      const data = await openData(store)
      // As the group is read before its first entry is applied: the hash of its rows is known from there.
      data.state(a)
      store.looked.splice(0)
      const looked = (): string[] =>
        store.looked.splice(0).map((key) => Buffer.from(key).toString().slice(-1))
      commit(data, a, 1, { ...put('x', 'one'), isNew: true }, put('y', 'one'))
      await data.drain()
      expect(looked()).toEqual(['y'])
      commit(data, a, 2, gone('x'))
      commit(data, a, 3, { ...put('x', 'three'), isNew: true })
      await data.drain()
      expect(looked()).toEqual(['x'])
      const x = Buffer.from('x')
      const seen = await Promise.all([1, 2, 3].map((at) => data.getAllAt(a, [x], at)))
      expect(seen.map(([row]) => row && Buffer.from(row.value).toString())).toEqual([
        ...['one', undefined, 'three'],
      ])
    }))

  test('LOG-8: groups are listed from their prefix on, wherever the last page ended', () =>
    onDisk(disk, async (on) => {
      const data = await openData(await on.open())
      const names = ['a', 'b', 'c', 'm', 'm\0', 'm1', 'n', 'z'].map(group)
      for (const name of names.slice(0, -1)) commit(data, name, 1, put('x', 'one'))
      await data.drain()
      // Not in the store yet, but listed all the same.
      commit(data, group('z'), 1, put('x', 'one'))
      for (const prefix of ['m', 'm1', 'mm', 'z']) {
        const asked = names.filter((name) => name.startsWith(prefix))
        for (const after of [undefined, ...names, group('l'), group('zz')]) {
          const behind = asked.filter((name) => after === undefined || name > after)
          for (const limit of [1, 2, 10]) {
            const found = await data.groups(prefix, after, limit, [])
            expect([prefix, after, ...found]).toEqual([prefix, after, ...behind.slice(0, limit)])
          }
        }
      }
    }))

  test('groups do not see each other, whatever their bytes', () =>
    onDisk(disk, async (on) => {
      const data = await openData(await on.open())
      const groups = ['a', 'a\0', 'a\0\x01', 'a\x01', 'ab', '\xff', 'a\0\xff'].map(group)
      for (const one of groups) commit(data, one, 1, put('\x01', one), put('', one))
      await data.drain()
      for (const one of groups) {
        const rows = await data.scan(one, {})
        expect(rows.map(({ value }) => Buffer.from(value).toString())).toEqual([one, one])
      }
    }))

  test('LOG-6: each batch holds, for each of its groups, all rows and the state of one position', () =>
    onDisk(disk, async (on) => {
      const store = new GatedStore(await on.open())
      const data = await openData(store, 2000)
      store.hold()
      commit(data, a, 1, put('x', '1'))
      await store.hasBegun(1)
      for (let position = 2; position <= 20; position++) {
        commit(data, a, position, put(`x${position}`, `${position}`), put('last', `${position}`))
        commit(data, b, position - 1, put('last', `${position - 1}`))
      }
      store.release()
      await data.drain()
      for (const puts of store.begun) checkBatch(puts)
      expect(store.begun.length).toBeGreaterThanOrEqual(2)
      expect(store.begun.length).toBeLessThanOrEqual(4)
      expect([get(data, a, 'last'), get(data, b, 'last')]).toEqual(['20@20', '19@19'])
    }))

  test('a row written again while its batch is under way is the newest, then durable', () =>
    onDisk(disk, async (on) => {
      const store = new GatedStore(await on.open())
      const data = await openData(store)
      const applied: (readonly [GroupId, Position])[] = []
      data.onApplied = (groups) => applied.push(...groups)
      store.hold()
      commit(data, a, 1, put('x', 'old'), put('y', 'old'))
      await store.hasBegun(1)
      commit(data, a, 2, put('x', 'new'), gone('y'))
      expect([get(data, a, 'x'), get(data, a, 'y')]).toEqual(['new@2', undefined])
      store.release()
      await data.drain()
      expect(applied).toEqual([
        [a, 1],
        [a, 2],
      ])
      expect(await all(await openData(await on.open()), a)).toEqual(['x=new@2'])
      expect(data.overlayBytes).toBe(0)
    }))

  test('a scan sees whole entries as of its call, whatever batches and commits come meanwhile', () =>
    onDisk(disk, async (on) => {
      const store = new GatedStore(await on.open())
      const data = await openData(store)
      for (let position = 1; position <= 30; position++) {
        // Entry n writes n into every row: a scan that mixes two entries shows two numbers.
        const rows = Array.from({ length: 20 }, (_row, i) => put(`row ${i}`, `${position}`))
        commit(data, a, position, ...rows)
        if (position % 3 === 0) store.hold()
        const scans = [data.scan(a, {}), data.scan(a, { reverse: true, limit: 15 })]
        commit(data, b, position, put('x', 'y'))
        store.release()
        for (const scan of scans) {
          const values = (await scan).map(({ value }) => Buffer.from(value).toString())
          expect(new Set(values)).toEqual(new Set([`${position}`]))
          expect([15, 20]).toContain(values.length)
        }
      }
    }))

  test('a scan of many large rows is whole', () =>
    onDisk(disk, async (on) => {
      const data = await openData(await on.open())
      const keys = Array.from({ length: 100 }, (_key, i) => `row ${String(i).padStart(3, '0')}`)
      commit(data, a, 1, ...keys.map((key) => put(key, 'x'.repeat(3000))))
      await data.drain()
      const found = await data.scan(a, {})
      expect(found.map(({ key }) => Buffer.from(key).toString())).toEqual(keys)
    }))

  test('a drain waits for commits before it, not for later ones', () =>
    onDisk(disk, async (on) => {
      const store = new GatedStore(await on.open())
      const data = await openData(store)
      commit(data, a, 1, put('x', '1'))
      const drained = data.drain()
      await store.hasBegun(1)
      store.hold()
      commit(data, a, 2, put('x', '2'))
      await drained
      expect([data.hasPending(a), data.applied(a).position]).toEqual([true, 1])
      store.release()
      await data.drain()
      await data.drain()
      expect(data.applied(a).position).toBe(2)
    }))

  test('small values ride along with a batch', () =>
    onDisk(disk, async (on) => {
      const data = await openData(await on.open())
      data.setMeta('settled', Buffer.from('7'))
      expect(Buffer.from(data.meta('settled') ?? []).toString()).toBe('7')
      const before = await openData(await on.open())
      expect(before.meta('settled')).toBeUndefined()
      before.setMeta('settled', Buffer.from('8'))
      commit(before, a, 1)
      await before.drain()
      const after = await openData(await on.open())
      expect(Buffer.from(after.meta('settled') ?? []).toString()).toBe('8')
      expect(after.applied(a).position).toBe(1)
    }))

  test('a batch that the disk lost without a word is seen at the next start', () =>
    onDisk(disk, async (on) => {
      const store = new GatedStore(await on.open())
      const data = await openData(store)
      for (let position = 1; position <= 4; position++) {
        store.mode = position === 3 ? 'lose' : 'write'
        commit(data, a, position, put('x', `${position}`))
        await data.drain()
      }
      await expect(openData(await on.open())).rejects.toMatchObject({ code: 'corrupt' })
    }))

  test('a damaged row is reported, never served', () =>
    onDisk(disk, async (on) => {
      const store = await on.open()
      const data = await openData(store)
      commit(data, a, 1, put('x', 'one'), put('y', 'two'))
      await data.drain()
      await flipBit(store, joined(rowsPrefix(groupPrefix(a)), Buffer.from('x')), -1)
      const failures: Error[] = []
      data.onFailure = (reason) => failures.push(reason)
      expect(() => get(data, a, 'x')).toThrow(expect.objectContaining({ code: 'corrupt' }))
      await expect(data.scan(a, {})).rejects.toMatchObject({ code: 'corrupt' })
      expect(failures.length).toBe(1)
      expect(get(data, a, 'y')).toBe('two@1')
    }))

  test('a row under another key is damage, too', () =>
    onDisk(disk, async (on) => {
      const store = await on.open()
      const data = await openData(store)
      commit(data, a, 1, put('x', 'one'))
      await data.drain()
      const prefix = rowsPrefix(groupPrefix(a))
      const value = store.getSync(joined(prefix, Buffer.from('x'))) ?? new Uint8Array()
      await store.write([{ key: joined(prefix, Buffer.from('z')), value }])
      expect(() => get(data, a, 'z')).toThrow(expect.objectContaining({ code: 'corrupt' }))
    }))

  test('a state record that is damaged is reported, never taken for "never written"', () =>
    onDisk(disk, async (on) => {
      const store = await on.open()
      const data = await openData(store)
      commit(data, a, 1)
      await data.drain()
      await flipBit(store, stateKey(groupPrefix(a)), 20)
      expect(() => data.state(a)).toThrow(expect.objectContaining({ code: 'corrupt' }))
    }))

  test('a refused write ends applying: reads go on from the overlay, drains reject', () =>
    onDisk(disk, async (on) => {
      const store = new GatedStore(await on.open())
      const data = await openData(store)
      const applied: unknown[] = []
      data.onApplied = (groups) => applied.push(...groups)
      store.mode = 'refuse'
      const failed = new Promise<Error>((resolve) => {
        data.onFailure = resolve
      })
      commit(data, a, 1, put('x', 'one'))
      const drained = expect(data.drain()).rejects.toThrow('the disk is gone')
      expect((await failed).message).toBe('the disk is gone')
      await drained
      expect([get(data, a, 'x'), applied]).toEqual(['one@1', []])
      await expect(data.drain()).rejects.toThrow('the disk is gone')
      await data.stop()
    }))

  test('DISK-15: a write that meets damage ends the store as a damaged one, which is derived', () =>
    onDisk(disk, async (on) => {
      const store = new GatedStore(await on.open())
      const data = await openData(store)
      store.mode = 'damaged'
      const failed = new Promise<Error>((resolve) => {
        data.onFailure = resolve
      })
      commit(data, a, 1, put('x', 'one'))
      expect(await failed).toMatchObject({ code: 'corrupt', detail: { store: 'data' } })
      await data.stop()
    }))

  test('stop waits for the batch under way and starts no other', () =>
    onDisk(disk, async (on) => {
      const store = new GatedStore(await on.open())
      const data = await openData(store)
      store.hold()
      commit(data, a, 1, put('x', '1'))
      await store.hasBegun(1)
      commit(data, a, 2, put('x', '2'))
      const drained = expect(data.drain()).rejects.toMatchObject({ code: 'closed' })
      const stopped = data.stop()
      store.release()
      await stopped
      await drained
      const again = await openData(await on.open())
      expect([again.applied(a).position, get(again, a, 'x')]).toEqual([1, '1@1'])
    }))
})

/** Rows come along with their group's state, and none is newer than it. */
function checkBatch(puts: readonly Put[]): void {
  for (const one of [a, b]) {
    const prefix = groupPrefix(one)
    const stateOf = stateKey(prefix)
    const mine = puts.filter(({ key }) =>
      [prefix, stateOf].some((start) => Buffer.from(key).subarray(0, start.length).equals(start)),
    )
    const states = mine.filter(({ key }) => Buffer.from(key).equals(stateOf))
    expect(states.length).toBe(mine.length > 0 ? 1 : 0)
    const stamps = mine.map(({ key, value }) => decodeStored(key, value ?? new Uint8Array()))
    const highest = Math.max(
      0,
      ...stamps.map((stored) => (typeof stored === 'object' ? stored.stamp : 0)),
    )
    const state = states[0]
    if (state === undefined) continue
    const stored = decodeStored(state.key, state.value ?? new Uint8Array())
    expect(stored).toMatchObject({ stamp: highest })
    expect(Buffer.from(typeof stored === 'object' ? stored.payload : []).toString()).toBe(
      `state ${highest}`,
    )
  }
}

test('the marker of a batch is overwritten only when the ring has gone round', () => {
  expect(markerKey(1)).not.toEqual(markerKey(2))
  expect(markerKey((batchMarkersMax + 1) % batchMarkersMax)).toEqual(markerKey(1))
  expect(batchMarkersMax).toBeLessThanOrEqual(65_536)
})

test('LOG-1: a commit that skips a position stops the node', async () => {
  const [, disk] = disks[0] ?? ['', () => Promise.reject(new Error('no disk'))]
  await onDisk(disk, async (on) => {
    const data = await openData(await on.open())
    commit(data, a, 1)
    expect(() => commit(data, a, 3)).toThrow(AssertionError)
    expect(() => commit(data, a, 1)).toThrow(AssertionError)
  })
})

test('LIVE-6: a batch ends when its share of a turn is over, and the next one follows at once', async () => {
  const [, disk] = disks[0] ?? ['', () => Promise.reject(new Error('no disk'))]
  await onDisk(disk, async (on) => {
    const store = new GatedStore(await on.open())
    let nowMs = 0
    let timers = 0
    // Each look at it takes a millisecond; a group that is taken has two.
    const clock: Clock = {
      wallMicros: () => 0,
      monotonicMs: () => (nowMs += 1),
      defer: (run) => systemClock.defer(run),
      setTimer: (ms, run) => {
        timers += 1
        return systemClock.setTimer(0, () => {
          nowMs += ms
          run()
        })
      },
    }
    const limits = { ...defaultLimits, sliceMs: 8 }
    const data = await DataStore.open(store, { clock, trace: silentTrace, limits })
    const groups = Array.from({ length: 10 }, (_, at) => group(`of a turn ${at}`))
    for (const one of groups) commit(data, one, 1, put('x', 'one'))
    await store.hasBegun(groups.length / 2)
    await data.drain()
    const states = store.begun.map((puts) =>
      groups.filter((one) => puts.some(({ key }) => isSame(key, stateKey(groupPrefix(one))))),
    )
    expect(states.map(({ length }) => length)).toEqual([2, 2, 2, 2, 2])
    expect(states.flat()).toEqual(groups)
    expect(timers).toBe(1)
  })
})

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(one, other) === 0
}
