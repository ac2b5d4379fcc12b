/** The data store beside snapshots: those that it gives are of one position, those that it takes are all that counts. */
import { describe, expect, test } from 'vitest'
import { AssertionError } from '../../src/base/assert.ts'
import { groupPrefix, stateKey } from '../../src/store/row-format.ts'
import type { DataStore } from '../../src/store/data-store.ts'
import {
  a,
  b,
  commit,
  gone,
  openData,
  put,
  readWhole,
  snapshotOf,
  takeIn,
  takenOf,
  type Whole,
} from './snapshot-kit.ts'
import { SnapshotIntake } from '../../src/store/snapshot-intake.ts'
import { disks, GatedStore, onDisk, simulatedDisk } from './stores.ts'

/** A turn of the loop. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

const names = Array.from({ length: 20 }, (_, i) => `row ${i}`)

/** Each entry gives all rows the value of its position. */
function commitAll(data: DataStore, position: number): void {
  commit(data, a, position, ...names.map((name) => put(name, `${position}`)))
}

/** Newest versions by key, and what the state record says. */
function contentOf({ rows, state }: Whole): readonly [Record<string, string>, string] {
  const newest = rows.filter(({ subspace }) => subspace === 1)
  const values = newest.map(({ key, payload }) => [
    Buffer.from(key).toString(),
    Buffer.from(payload).toString(),
  ])
  return [Object.fromEntries(values), Buffer.from(state).toString()]
}

describe.each(disks)('on %s', (_, disk) => {
  test('SNAP-2: a snapshot is of one position, whole, whatever batches become durable beside it', () =>
    onDisk(disk, async (on) => {
      const data = await openData(await on.open(), { applierDelayMs: 0, checkpointMs: 0 })
      const last = 60
      const seen = new Set<number>()
      const progress = { isOver: false }
      const writing = (async () => {
        for (let position = 1; position <= last; position++) {
          commitAll(data, position)
          await (position % 2 === 0 ? data.drain() : settled())
        }
        await data.drain()
        progress.isOver = true
      })()
      while (!progress.isOver) {
        const snapshot = data.openSnapshot(a)
        if (snapshot !== undefined) {
          // Batches become durable between its parts.
          const whole = await readWhole(snapshot, 100)
          const [rows, state] = contentOf(whole)
          expect(state).toBe(`state ${whole.position}`)
          expect(rows).toEqual(Object.fromEntries(names.map((name) => [name, `${whole.position}`])))
          // Each position superseded the rows of the one before.
          const versions = whole.rows.filter(({ subspace }) => subspace === 2)
          expect(versions).toHaveLength(names.length * (whole.position - 1))
          seen.add(whole.position)
        }
        await settled()
      }
      await writing
      expect(seen.size).toBeGreaterThan(2)
    }))

  test('SNAP-2: an entry that is not durable is in no snapshot, and a group without one has none', () =>
    onDisk(disk, async (on) => {
      const data = await openData(await on.open())
      commitAll(data, 1)
      expect(data.openSnapshot(a)).toBeUndefined()
      await data.drain()
      commitAll(data, 2)
      const snapshot = data.openSnapshot(a)
      expect(snapshot?.position).toBe(1)
      await data.drain()
      if (snapshot === undefined) throw new Error('there is no snapshot')
      expect(contentOf(await readWhole(snapshot))[1]).toBe('state 1')
      expect(data.openSnapshot(b)).toBeUndefined()
    }))

  test('SNAP-4: rows that were read before a snapshot took their place are not found in memory', () =>
    onDisk(disk, async (on) => {
      const data = await openData(await on.open())
      commit(data, a, 1, put('x', 'old'), put('deleted', 'old'))
      commit(data, b, 1, put('x', 'of b'))
      await data.drain()
      const find = (key: string): string | undefined => {
        const row = data.get(a, Buffer.from(key))
        return row && `${Buffer.from(row.value).toString()}@${row.timestamp}`
      }
      expect([find('x'), find('deleted')]).toEqual(['old@1', 'old@1'])
      const whole = await snapshotOf(a, (from) => {
        commit(from, a, 1, put('x', 'old'), put('deleted', 'old'))
        commit(from, a, 2, put('x', 'new'), gone('deleted'))
      })
      await takeIn(data, a, whole, 1024 * 1024)
      expect([find('x'), find('deleted')]).toEqual(['new@2', undefined])
      expect(Buffer.from(data.get(b, Buffer.from('x'))?.value ?? []).toString()).toBe('of b')
    }))
})

async function ahead(): Promise<Whole> {
  return snapshotOf(a, (from) => {
    for (let position = 1; position <= 9; position++) commitAll(from, position)
  })
}

test('SNAP-2: a snapshot that a batch meets as it is opened is not given', () =>
  onDisk(simulatedDisk, async (disk) => {
    const store = await disk.open()
    const key = stateKey(groupPrefix(a))
    let stale: Uint8Array | undefined
    const data = await openData({
      // The batch becomes durable between the look at the state record and the scan.
      getSync: (asked) => (stale !== undefined && key.equals(asked) ? stale : store.getSync(asked)),
      scan: (range) => {
        stale = undefined
        return store.scan(range)
      },
      write: (puts) => store.write(puts),
      close: () => store.close(),
    })
    commitAll(data, 1)
    await data.drain()
    const before = store.getSync(key)
    commitAll(data, 2)
    await data.drain()
    stale = before
    expect(data.openSnapshot(a)).toBeUndefined()
    const snapshot = data.openSnapshot(a)
    expect(snapshot?.position).toBe(2)
    await snapshot?.close()
  }))

test('SNAP-3: a group has something pending until its snapshot is durable, and no longer', () =>
  onDisk(simulatedDisk, async (disk) => {
    const store = new GatedStore(await disk.open())
    const data = await openData(store)
    commitAll(data, 1)
    await data.drain()
    const whole = await ahead()
    const intake = new SnapshotIntake(data, a, 1024 * 1024)
    await intake.add(whole.rows)
    expect(data.hasPending(a)).toBe(false)
    const before = store.begun.length
    store.hold()
    const switching = data.replace(a, () => intake.switchTo(takenOf(whole)))
    await store.hasBegun(before + 1)
    expect([data.hasPending(a), data.hasPending(b), data.applied(a).position]).toEqual([
      ...[true, false, 1],
    ])
    store.release()
    await switching
    expect([data.hasPending(a), data.applied(a).position]).toEqual([false, 9])
  }))

test('SNAP-4: while a snapshot takes the place of a group, the group has none to give', () =>
  onDisk(simulatedDisk, async (disk) => {
    const data = await openData(await disk.open())
    commitAll(data, 1)
    await data.drain()
    let end: () => void = () => undefined
    const switching = data.replace(a, () => new Promise<void>((resolve) => (end = resolve)))
    expect(data.openSnapshot(a)).toBeUndefined()
    await expect(data.replace(a, () => Promise.resolve())).rejects.toThrow(AssertionError)
    end()
    await switching
    expect(data.openSnapshot(a)?.position).toBe(1)
  }))

test('SNAP-4: reads of the past of before a snapshot do not delay the collection of what it brings', () =>
  onDisk(simulatedDisk, async (disk) => {
    const data = await openData(await disk.open())
    commitAll(data, 1)
    await data.drain()
    data.pins.pin(a, 1, 0)
    data.pins.pin(b, 1, 0)
    expect(data.pins.oldest(a, 0)).toBe(1)
    await takeIn(data, a, await ahead(), 1024 * 1024)
    expect([data.pins.oldest(a, 0), data.pins.oldest(b, 0)]).toEqual([undefined, 1])
    expect(data.pins.count(0)).toBe(1)
  }))

test('SNAP-3: the log hears of a snapshot with the batch that has it, as of one', () =>
  onDisk(simulatedDisk, async (disk) => {
    const data = await openData(await disk.open())
    const told: unknown[] = []
    data.onBatch = (groups) => {
      for (const { group, position, isSnapshot } of groups) told.push([group, position, isSnapshot])
    }
    data.placeOf = () => ({ flush: 77, snapshot: 0 })
    const applied: unknown[] = []
    data.onApplied = (groups) => applied.push(...groups)
    commit(data, b, 1, put('x', 'y'))
    await takeIn(data, a, await ahead(), 1024 * 1024)
    await data.drain()
    expect(told).toEqual(
      expect.arrayContaining([
        [a, 9, true],
        [b, 1, undefined],
      ]),
    )
    expect(told).toHaveLength(2)
    expect(applied).toEqual(
      expect.arrayContaining([
        [a, 9],
        [b, 1],
      ]),
    )
    expect(data.applied(a)).toEqual({ position: 9, lastFlush: 77, snapshot: 9 })
  }))

test('SNAP-3: a store that stops, or fails, ends what waits for a snapshot to become durable', () =>
  onDisk(simulatedDisk, async (disk) => {
    const store = new GatedStore(await disk.open())
    const data = await openData(store)
    const whole = await ahead()
    const failed = new Promise<Error>((resolve) => (data.onFailure = resolve))
    store.mode = 'refuse'
    await expect(takeIn(data, a, whole, 1024 * 1024)).rejects.toThrow('the disk is gone')
    expect(await failed).toBeInstanceOf(Error)
    await expect(data.writeAlong([])).rejects.toThrow('the disk is gone')
    await data.stop()
    const other = await openData(await disk.open())
    await other.stop()
    await expect(takeIn(other, a, whole, 100)).rejects.toThrow(/stopping/)
    expect((await openData(await disk.open())).applied(a).position).toBe(0)
  }))
