/** Snapshots of groups that are taken in: small ones in one batch, large ones beside the group; whole wherever it ends. */
import { describe, expect, test } from 'vitest'
import type { OrderedStore } from '../../src/ports/storage.ts'
import type { DataStore } from '../../src/store/data-store.ts'
import { groupPrefix, stagedKey, encodeStored, stagingKey } from '../../src/store/row-format.ts'
import { resumeSwitches, SnapshotIntake } from '../../src/store/snapshot-intake.ts'
import { GatedStore, disks, onDisk, simulatedDisk } from './stores.ts'
import {
  a,
  b,
  commit,
  contentOf,
  EndingStore,
  gone,
  listedRow,
  openData,
  put,
  snapshotOf,
  stored,
  takeIn,
  takenOf,
  type Whole,
} from './snapshot-kit.ts'

const small = 1024 * 1024
/** Less than the rows of any snapshot of these tests. */
const large = 100

/** The entries at a node that was away: rows that the others have changed, and deleted. */
function fillBehind(data: DataStore): void {
  commit(data, a, 1, put('changed', 'old'), put('deleted', 'old'), put('kept', 'same'))
  commit(data, a, 2, put('changed', 'older'), listedRow('before', '1'))
  commit(data, b, 1, put('of another group', 'stays'))
}

/** The entries at the others. */
function fillAhead(data: DataStore): void {
  commit(data, a, 1, put('changed', 'old'), put('deleted', 'old'), put('kept', 'same'))
  commit(data, a, 2, put('changed', 'older'), listedRow('before', '1'))
  for (let position = 3; position < 40; position++) {
    commit(data, a, position, put(`row ${position % 20}`, `value ${position}`))
  }
  commit(data, a, 40, put('changed', 'new'), gone('deleted'), listedRow('out', '1'))
}

function ahead(): Promise<Whole> {
  return snapshotOf(a, fillAhead)
}

/** The content of a store that has applied the entries themselves. */
async function contentAhead(): Promise<Readonly<Record<string, unknown>>> {
  const disk = await simulatedDisk()
  const data = await openData(await disk.open())
  fillAhead(data)
  commit(data, b, 1, put('of another group', 'stays'))
  await data.drain()
  await data.stop()
  const content = await contentOf(await disk.open())
  await disk.remove()
  return content
}

async function openBehind(store: OrderedStore): Promise<DataStore> {
  const data = await openData(store)
  fillBehind(data)
  await data.drain()
  return data
}

async function listed(data: DataStore, topic: string): Promise<string[]> {
  const groups = await data.listing.list(topic, undefined, 10)
  return groups.map(({ group, position }) => `${group}@${position}`)
}

describe.each(disks)('on %s', (_, disk) => {
  test.each([
    ['a small one', small],
    ['a large one', large],
  ])('SNAP-2: %s makes of the group what applying the entries would have made', (_what, bytes) =>
    onDisk(disk, async (on) => {
      const data = await openBehind(await on.open())
      await takeIn(data, a, await ahead(), bytes)
      expect([data.applied(a).position, data.applied(a).snapshot]).toEqual([40, 40])
      expect(Buffer.from(data.state(a) ?? []).toString()).toBe('state 40')
      expect(await listed(data, 'out')).toEqual([`${a}@40`])
      await data.stop()
      const store = await on.open()
      expect(await contentOf(store)).toEqual(await contentAhead())
      const again = await openData(store)
      expect(await listed(again, 'out')).toEqual([`${a}@40`])
      expect([again.applied(a).position, again.applied(a).snapshot]).toEqual([40, 40])
    }),
  )

  test('SNAP-2: history comes along: a read of the past finds what was there', () =>
    onDisk(disk, async (on) => {
      const data = await openBehind(await on.open())
      await takeIn(data, a, await ahead(), large)
      const keys = ['changed', 'deleted', 'row 3', 'row 4'].map((key) => Buffer.from(key))
      const at = async (timestamp: number): Promise<(string | undefined)[]> =>
        (await data.getAllAt(a, keys, timestamp)).map(
          (row) => row && `${Buffer.from(row.value).toString()}@${row.timestamp}`,
        )
      expect(await at(1)).toEqual(['old@1', 'old@1', undefined, undefined])
      expect(await at(22)).toEqual(['older@2', 'old@1', 'value 3@3', 'value 4@4'])
      expect(await at(23)).toEqual(['older@2', 'old@1', 'value 23@23', 'value 4@4'])
      expect(await at(40)).toEqual(['new@40', undefined, 'value 23@23', 'value 24@24'])
    }))

  test(
    'SNAP-3: wherever the process ends in a large switch, the group is the old or the new one, whole',
    () =>
      onDisk(disk, async () => {
        const whole = await ahead()
        const seen = { old: 0, new: 0 }
        const after = await contentAhead()
        const writes = await countWrites(whole)
        expect(writes).toBeGreaterThan(10)
        for (let writesMax = 0; writesMax <= writes; writesMax++) {
          await onDisk(disk, async (one) => {
            const data = await openBehind(await one.open())
            await data.stop()
            const before = await contentOf(await one.open())
            await endAfter(await one.open(), writesMax, (cut) => takeIn(cut, a, whole, large))
            const again = await openData(await one.open())
            const resumed = await resumeSwitches(again)
            await again.stop()
            const found = await contentOf(await one.open())
            const isNew = found['states']?.toString() === after['states']?.toString()
            expect([writesMax, found]).toEqual([writesMax, isNew ? after : before])
            // Of a switch that had ended, nothing is left to do.
            if (resumed.length > 0) expect([resumed, isNew]).toEqual([[a], true])
            seen[isNew ? 'new' : 'old'] += 1
          })
        }
        expect(Math.min(seen.old, seen.new)).toBeGreaterThan(3)
      }),
    60_000,
  )
})

/** Writes of a large switch from its first part to the end. */
async function countWrites(whole: Whole): Promise<number> {
  const disk = await simulatedDisk()
  try {
    const first = await openBehind(await disk.open())
    await first.stop()
    const store = new EndingStore(await disk.open())
    const data = await openData(store)
    await takeIn(data, a, whole, large)
    await data.stop()
    return store.writes
  } finally {
    await disk.remove()
  }
}

/** Runs `work` on a data store whose process ends after `writesMax` writes; false: it did not come to its end. */
async function endAfter(
  store: OrderedStore,
  writesMax: number,
  work: (data: DataStore) => Promise<unknown>,
): Promise<boolean> {
  const data = await openData(new EndingStore(store, writesMax))
  const isOver = await work(data).then(
    () => true,
    () => false,
  )
  await data.stop()
  return isOver
}

test('SNAP-3: a start that ends within the switch that it takes up leaves it to the next one', async () => {
  const whole = await ahead()
  const after = await contentAhead()
  const writes = await countWrites(whole)
  let resumedTwice = 0
  for (let writesMax = Math.floor(writes / 2); writesMax < writes; writesMax++) {
    for (let more = 0; more < 6; more++) {
      await onDisk(simulatedDisk, async (disk) => {
        const first = await openBehind(await disk.open())
        await first.stop()
        await endAfter(await disk.open(), writesMax, (cut) => takeIn(cut, a, whole, large))
        const isOver = await endAfter(await disk.open(), more, resumeSwitches)
        const data = await openData(await disk.open())
        const resumed = await resumeSwitches(data)
        if (!isOver && resumed.length > 0) resumedTwice += 1
        if (data.applied(a).position === 40 || resumed.length > 0) {
          await data.stop()
          expect(await contentOf(await disk.open())).toEqual(after)
        }
      })
    }
  }
  expect(resumedTwice).toBeGreaterThan(3)
})

test('SNAP-3: a start that finds nothing under way changes nothing', () =>
  onDisk(simulatedDisk, async (disk) => {
    const data = await openBehind(await disk.open())
    await takeIn(data, a, await ahead(), large)
    await data.stop()
    const store = new EndingStore(await disk.open())
    expect(await resumeSwitches(await openData(store))).toEqual([])
    expect(store.writes).toBe(0)
  }))

test('SNAP-3: a small snapshot takes the group over in one batch', () =>
  onDisk(simulatedDisk, async (disk) => {
    const store = new GatedStore(await disk.open())
    const data = await openBehind(store)
    const before = store.begun.length
    await takeIn(data, a, await ahead(), small)
    expect(store.begun.length - before).toBe(1)
    const keys = store.begun.at(-1)?.map(({ key }) => String.fromCharCode(key[0] ?? 0))
    expect(keys).toContain('s')
    expect(keys).not.toContain('i')
    expect(keys).not.toContain('j')
  }))

test('SNAP-3: a small snapshot of a group that has more rows than one batch deletes is put down first', () =>
  onDisk(simulatedDisk, async (disk) => {
    const store = new GatedStore(await disk.open())
    const data = await openData(store)
    for (let position = 1; position <= 20; position++) {
      const names = Array.from({ length: 100 }, (_, i) => put(`${position}/${i}`, 'old'))
      commit(data, a, position, ...names)
    }
    await data.drain()
    await takeIn(data, a, await ahead(), small)
    const deletes = store.begun.map(
      (puts) => puts.filter(({ value }) => value === undefined).length,
    )
    expect(deletes.reduce((most, count) => Math.max(most, count), 0)).toBeLessThanOrEqual(1_024)
    const rows = await stored(store, 'g')
    expect(rows.filter((row) => row.includes('/'))).toEqual([])
    expect([await stored(store, 'i'), await stored(store, 'j')]).toEqual([[], []])
    const kept = await data.scan(a, {})
    expect(kept.map(({ key }) => Buffer.from(key).toString())).toContain('row 3')
    // `changed`, `kept`, 20 rows, and two on worklists.
    expect(kept).toHaveLength(24)
  }))

test('SNAP-3: while a large snapshot comes, the group is as it was and goes on', () =>
  onDisk(simulatedDisk, async (disk) => {
    const store = await disk.open()
    const data = await openBehind(store)
    const whole = await ahead()
    const before = await stored(store, 'g')
    const intake = new SnapshotIntake(data, a, large)
    await intake.add(whole.rows)
    expect((await stored(store, 'i')).length).toBe(whole.rows.length)
    expect(await stored(store, 'g')).toEqual(before)
    commit(data, a, 3, put('changed', 'meanwhile'))
    await data.drain()
    expect(Buffer.from(data.get(a, Buffer.from('changed'))?.value ?? []).toString()).toBe(
      'meanwhile',
    )
    await data.replace(a, () => intake.switchTo(takenOf(whole)))
    await intake.clean()
    await data.stop()
    const content = await contentOf(await disk.open())
    expect(content).toEqual(await contentAhead())
  }))

test.each([
  ['a small one', small],
  ['a large one', large],
])('SNAP-3: of %s that is abandoned nothing stays', (_, bytes) =>
  onDisk(simulatedDisk, async (disk) => {
    const data = await openBehind(await disk.open())
    const intake = new SnapshotIntake(data, a, bytes)
    const { rows } = await ahead()
    await intake.add(rows)
    await intake.abandon()
    await data.stop()
    const found = await contentOf(await disk.open())
    expect([found['staged'], found['staging']]).toEqual([[], []])
    expect(found['states']).toHaveLength(2)
    const again = await openData(await disk.open())
    expect(again.applied(a)).toMatchObject({ position: 2, snapshot: 0 })
    expect(await resumeSwitches(again)).toEqual([])
  }),
)

test('SNAP-3: a snapshot of which the record is not whole ends the start, in words', () =>
  onDisk(simulatedDisk, async (disk) => {
    const store = await disk.open()
    const key = stagingKey(groupPrefix(a))
    await store.write([{ key, value: encodeStored(key, 0, Buffer.from('no record')) }])
    await expect(resumeSwitches(await openData(store))).rejects.toThrow(
      /what it says of a snapshot that is taken in is not whole/,
    )
  }))

test('SNAP-3: snapshots of two groups are taken in beside each other, each under keys of its own', () =>
  onDisk(simulatedDisk, async (disk) => {
    const store = await disk.open()
    const data = await openBehind(store)
    const [ofA, ofB] = [
      await ahead(),
      await snapshotOf(b, (from) => {
        for (let position = 1; position <= 30; position++) {
          commit(from, b, position, put(`b ${position}`, `${position}`))
        }
      }),
    ]
    const intakes = [new SnapshotIntake(data, a, large), new SnapshotIntake(data, b, large)]
    await Promise.all([intakes[0]?.add(ofA.rows), intakes[1]?.add(ofB.rows)])
    expect(await stored(store, 'j')).toHaveLength(2)
    const prefix = stagedKey(groupPrefix(b)).toString('latin1')
    const staged = await stored(store, 'i')
    expect(staged.filter((row) => row.startsWith(prefix))).toHaveLength(ofB.rows.length)
    await Promise.all([
      data.replace(a, async () => intakes[0]?.switchTo(takenOf(ofA))),
      data.replace(b, async () => intakes[1]?.switchTo(takenOf(ofB))),
    ])
    await Promise.all(intakes.map((intake) => intake.clean()))
    expect([data.applied(a).position, data.applied(b).position]).toEqual([40, 30])
    const rows = await data.scan(b, {})
    expect(rows.map(({ key }) => Buffer.from(key).toString())).toEqual(
      Array.from({ length: 30 }, (_, i) => `b ${i + 1}`).sort(),
    )
    expect([await stored(store, 'i'), await stored(store, 'j')]).toEqual([[], []])
  }))
