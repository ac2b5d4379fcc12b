/** The sums of buckets: kept up by batches, they are what a scan of all state records gives. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { groupOfBytes, type GroupId } from '../../src/base/ids.ts'
import {
  BucketSums,
  comparedBucket,
  differingBuckets,
  type GroupMark,
} from '../../src/store/bucket-sums.ts'
import { hashOfNothing } from '../../src/store/group-hash.ts'
import { a, b, commit, gone, openData, put } from './snapshot-kit.ts'
import { onDisk, simulatedDisk } from './stores.ts'

type Marks = readonly (readonly [GroupId, GroupMark])[]

async function* scanOf(marks: Marks): AsyncGenerator<Marks> {
  await Promise.resolve()
  yield marks
}

async function countOf(marks: Marks): Promise<BucketSums> {
  const sums = new BucketSums(
    () => scanOf(marks),
    (error) => expect(error).toBeUndefined(),
  )
  sums.want()
  sums.onWritten()
  await new Promise((resolve) => setImmediate(resolve))
  return sums
}

const anyGroup = fc.uint8Array({ minLength: 1, maxLength: 3 }).map(groupOfBytes)
const anyMark = fc.record({
  position: fc.integer({ min: 1, max: 9 }),
  hash: fc.integer({ min: 0, max: 3 }).map((n) => String.fromCharCode(n).repeat(16)),
})

test('HEAL-1: sums that batches moved are those of a count of what is there then', async () => {
  const property = fc.asyncProperty(
    fc.array(fc.tuple(anyGroup, anyMark), { maxLength: 20 }),
    fc.array(fc.tuple(anyGroup, anyMark), { maxLength: 20 }),
    async (before, moves) => {
      const known = new Map(before)
      const sums = await countOf([...known])
      for (const [group, mark] of moves) {
        sums.move(group, known.get(group), mark)
        known.set(group, mark)
      }
      const counted = (await countOf([...known])).all ?? new Uint8Array()
      // Kilobytes each: a comparison that could name each byte takes a hundred times as long.
      expect(Buffer.compare(sums.all ?? new Uint8Array(), counted)).toBe(0)
    },
  )
  await fc.assert(property)
})

test('HEAL-1: one group at another position, or with another hash, makes its bucket differ, and no other', async () => {
  const mark = { position: 3, hash: 'h'.repeat(16) }
  const others = { position: 1, hash: 'o'.repeat(16) }
  const sums = await countOf([[a, mark], [b, others]]) // prettier-ignore
  for (const other of [
    { ...mark, position: 4 },
    { ...mark, hash: 'i'.repeat(16) },
  ]) {
    const differing = await countOf([[a, other], [b, others]]) // prettier-ignore
    const found = differingBuckets(sums.all ?? new Uint8Array(), differing.all ?? new Uint8Array())
    expect([...found]).toEqual([comparedBucket(a)])
  }
})

test('HEAL-1: a group moves while its record is being scanned, and counts once', async () => {
  const before = { position: 1, hash: 'h'.repeat(16) }
  const after = { position: 2, hash: 'i'.repeat(16) }
  const sums = new BucketSums(
    () => scanOf([[a, before]]),
    (error) => expect(error).toBeUndefined(),
  )
  expect(sums.isCounting).toBe(false)
  expect([sums.want(), sums.want(), sums.all]).toEqual([true, false, undefined])
  sums.onWritten()
  expect([sums.all, sums.isCounting, sums.counted]).toEqual([undefined, true, 0])
  sums.move(a, before, after)
  await new Promise((resolve) => setImmediate(resolve))
  expect([sums.isCounting, sums.counted]).toEqual([false, 1])
  expect(sums.all).toEqual((await countOf([[a, after]])).all)
})

test('HEAL-1: the data store moves the sums with each batch; a start counts the same', () =>
  onDisk(simulatedDisk, async (disk) => {
    const store = await disk.open()
    const data = await openData(store)
    expect(data.hashes.buckets.want()).toBe(true)
    commit(data, a, 1, put('x', 'old'))
    await data.drain()
    await new Promise((resolve) => setImmediate(resolve))
    commit(data, a, 2, put('x', 'new'), put('y', 'new'))
    commit(data, b, 1, put('x', 'other'))
    await data.drain()
    commit(data, b, 2, gone('x'))
    await data.drain()
    const { all } = data.hashes.buckets
    expect(data.hashes.find(b)).toEqual({ position: 2, hash: hashOfNothing })
    expect(all).toBeDefined()
    await data.stop()
    const again = await openData(store)
    again.hashes.buckets.want()
    again.wantBatch()
    await again.drain()
    await expect.poll(() => again.hashes.buckets.all).toEqual(all)
    await again.stop()
  }))
