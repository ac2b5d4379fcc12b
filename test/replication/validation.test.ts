/** Validation: what a transaction has read must stand, in ranges and where there was nothing, too. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { defaultLimits, type Limits } from '../../src/base/limits.ts'
import { nodeId } from '../../src/base/ids.ts'
import {
  encodeEntry,
  entryHeadBytesMax,
  transactionHeadBytesMax,
} from '../../src/replication/entry.ts'
import { EntryWrites } from '../../src/replication/entry-writes.ts'
import { keyInRanges, orderRanges } from '../../src/replication/key-range.ts'
import type { KeyRange } from '../../src/group/outcome.ts'
import { fillSlots, type Mutation } from '../../src/group/transaction.ts'
import { ValidationWindow } from '../../src/replication/window.ts'
import { CoreCluster } from './core-cluster.ts'

/** A row whose key ends with a number still to be drawn. */
function numbered(prefix: string): Mutation {
  const key = Buffer.concat([Buffer.from(prefix), Buffer.alloc(8)])
  const offset = prefix.length
  return { key, value: Buffer.from('v'), slots: [{ allocation: 0, at: 'key', offset }] }
}

/** Submissions that wait while the disk is slow, and so meet in one entry. */
function together(cluster: CoreCluster, submit: () => readonly number[]): readonly number[] {
  cluster.at(0).isHeld = true
  cluster.submit(0, { key: 'before' })
  const requests = submit()
  cluster.at(0).isHeld = false
  cluster.at(0).flush()
  cluster.settle()
  return requests
}

test('TXN-2: a row that came into a range since it was read is a conflict, named with its writer', () => {
  const cluster = new CoreCluster()
  cluster.submit(0, { key: 'a/5', session: 'writer', sequence: 3 })
  cluster.deliver()
  const inside = cluster.submit(1, { key: 'x', readPosition: 0, ranges: [['a/', 'a0']] })
  const beside = cluster.submit(1, { key: 'y', readPosition: 0, ranges: [['a/6', 'a0']] })
  cluster.settle()
  const by = { session: 'writer', sequence: 3 }
  const key = Buffer.from('a/5')
  // It went to the leader and back: the codec's business aside, both nodes say the same.
  expect(cluster.at(1).verdicts.get(inside)).toEqual({ kind: 'conflict', position: 1, key, by })
  expect(cluster.at(1).verdicts.get(beside)).toMatchObject({ kind: 'committed' })
})

test('TXN-2: the end of a range is not in it, its start is', () => {
  const cluster = new CoreCluster()
  cluster.submit(0, { key: 'b' })
  cluster.deliver()
  const ends = cluster.submit(0, { key: 'x', ranges: [['a', 'b']] })
  const starts = cluster.submit(0, { key: 'y', ranges: [['b', 'c']] })
  const empty = cluster.submit(0, { key: 'z', ranges: [['b', 'b']] })
  cluster.deliver()
  expect(cluster.at(0).verdicts.get(ends)).toMatchObject({ kind: 'committed' })
  expect(cluster.at(0).verdicts.get(starts)).toMatchObject({ kind: 'conflict', position: 1 })
  expect(cluster.at(0).verdicts.get(empty)).toMatchObject({ kind: 'committed' })
})

test('TXN-2: a row that went from a range, and one that came where none was, are conflicts', () => {
  const cluster = new CoreCluster()
  cluster.submit(0, { key: 'a' })
  cluster.deliver()
  cluster.submit(0, { key: 'a', mutations: [{ key: Buffer.from('a') }] })
  cluster.submit(0, { key: 'new' })
  cluster.deliver()
  const gone = cluster.submit(0, { key: 'x', readPosition: 1, ranges: [['a', 'b']] })
  const came = cluster.submit(0, { key: 'y', readPosition: 1, reads: ['new'] })
  cluster.deliver()
  expect(cluster.at(0).verdicts.get(gone)).toMatchObject({ kind: 'conflict', position: 2 })
  expect(cluster.at(0).verdicts.get(came)).toMatchObject({ kind: 'conflict', position: 3 })
})

test('TXN-1: a conflict names the last write to the keys read, and its writer', () => {
  const cluster = new CoreCluster()
  cluster.submit(0, { key: 'a', session: 'one', sequence: 1 })
  cluster.deliver()
  cluster.submit(0, { key: 'b', session: 'two', sequence: 9 })
  cluster.deliver()
  cluster.submit(0, { key: 'c', session: 'three', sequence: 4 })
  cluster.deliver()
  const request = cluster.submit(0, { key: 'x', reads: ['a', 'b', 'z'], ranges: [['a', 'b']] })
  cluster.deliver()
  expect(cluster.at(0).verdicts.get(request)).toEqual({
    ...{ kind: 'conflict', position: 2, key: Buffer.from('b') },
    by: { session: 'two', sequence: 9 },
  })
})

test('TXN-1: a conflict with an entry older than the window has no name', () => {
  const limits = { validationWindow: 1, validationWindowMax: 1 }
  const cluster = new CoreCluster({ limits })
  for (const key of ['a', 'b', 'c']) {
    cluster.submit(0, { key })
    cluster.deliver()
  }
  const old = cluster.submit(0, { key: 'x', readPosition: 1, reads: ['unwritten'] })
  const blind = cluster.submit(0, { key: 'y', readPosition: 0 })
  cluster.deliver()
  expect(cluster.at(0).verdicts.get(old)).toEqual({ kind: 'conflict', position: 3 })
  expect(cluster.at(0).verdicts.get(blind)).toMatchObject({ kind: 'committed' })
})

test('TXN-2: a transaction that reads a range waits for the entry after one that may write into it', () => {
  const cluster = new CoreCluster()
  const requests = together(cluster, () => [
    cluster.submit(0, { key: 'a/5' }),
    cluster.submit(0, { key: 'x', ranges: [['a/', 'a0']] }),
    cluster.submit(0, { key: 'y', ranges: [['b/', 'b0']] }),
  ])
  const verdicts = requests.map((request) => cluster.at(0).verdicts.get(request))
  expect(verdicts[0]).toMatchObject({ kind: 'committed', position: 2 })
  expect(verdicts[1]).toMatchObject({ kind: 'conflict', position: 2, key: Buffer.from('a/5') })
  expect(verdicts[2]).toMatchObject({ kind: 'committed', position: 2 })
})

test('TXN-2: a key whose number is not drawn yet may be anywhere under what is known of it', () => {
  const cluster = new CoreCluster()
  const third = Buffer.concat([Buffer.from('a/'), Buffer.from('0000000000000003', 'hex')])
  const requests = together(cluster, () => [
    cluster.submit(0, { key: '', mutations: [numbered('a/')], allocations: [1] }),
    cluster.submit(0, { key: 'x', ranges: [['a/', 'a0']] }),
    cluster.submit(0, { key: 'y', ranges: [[third.toString('latin1'), 'a0']] }),
    cluster.submit(0, { key: 'z', reads: [third.toString('latin1')] }),
    cluster.submit(0, { key: 'w', ranges: [['a0', 'b']] }),
  ])
  const verdicts = requests.map((request) => cluster.at(0).verdicts.get(request))
  expect(verdicts[0]).toMatchObject({ kind: 'committed', position: 2, sequences: [1] })
  const key = Buffer.concat([Buffer.from('a/'), Buffer.from('0000000000000001', 'hex')])
  expect(verdicts[1]).toMatchObject({ kind: 'conflict', position: 2, key })
  // Once it is drawn, it is known to be elsewhere.
  expect(verdicts[2]).toMatchObject({ kind: 'committed', position: 3 })
  expect(verdicts[3]).toMatchObject({ kind: 'committed', position: 3 })
  expect(verdicts[4]).toMatchObject({ kind: 'committed', position: 2 })
})

test('LOG-4: an entry of several transactions keeps its bound as it is sent, with all that is around them', () => {
  const valueBytes = 60
  const entryBytesMax = 1_000
  const cluster = new CoreCluster({ limits: { entryBytesMax } })
  const sizes: number[] = []
  const requests = together(cluster, () =>
    Array.from({ length: 100 }, (_, i) =>
      cluster.submit(0, { key: `k${i}`, value: 'v'.repeat(valueBytes) }),
    ),
  )
  for (const { chosen } of cluster.at(0).durable.values()) sizes.push(chosen?.value.length ?? 0)
  for (const request of requests)
    expect(cluster.at(0).verdicts.get(request)).toMatchObject({ kind: 'committed' })
  expect(Math.max(...sizes)).toBeLessThanOrEqual(entryBytesMax)
  // Filled nearly to the brim all the same.
  expect(Math.max(...sizes)).toBeGreaterThan(entryBytesMax - 2 * valueBytes - entryHeadBytesMax)
})

test('the bounds of what is around the transactions of an entry hold for the largest numbers', () => {
  const most = Number.MAX_SAFE_INTEGER
  const nextLeader = { node: nodeId('n'.repeat(32)), incarnation: most }
  const head = { position: most, timestamp: most, horizon: most, nextLeader }
  const bytesOf = (transactions: readonly Uint8Array[]): number =>
    encodeEntry({ ...head, transactions }).length
  const count = 300
  const none = new Uint8Array(0)
  const bytes = bytesOf(Array.from({ length: count }, () => none))
  expect(bytes).toBeLessThanOrEqual(entryHeadBytesMax + count * transactionHeadBytesMax)
  expect(bytesOf([])).toBeLessThanOrEqual(entryHeadBytesMax)
  expect(() => nodeId('n'.repeat(33))).toThrow('1 to 32')
})

const key = fc
  .array(fc.constantFrom('a', 'b', 'c'), { maxLength: 4 })
  .map((letters) => letters.join(''))
const range = fc
  .tuple(key, key)
  .map(([gte, lt]): KeyRange => ({ gte: Buffer.from(gte), lt: Buffer.from(lt) }))
const ranges = fc.array(range, { maxLength: 5 })

function isIn(one: string, all: readonly KeyRange[]): boolean {
  return all.some(({ gte, lt }) => gte.toString() <= one && one < lt.toString())
}

test('TXN-2: ranges put in order hold the same keys, apart from one another', () => {
  fc.assert(
    fc.property(ranges, fc.array(key, { maxLength: 20 }), (some, keys) => {
      const ordered = orderRanges(some)
      for (const [index, { gte, lt }] of ordered.entries()) {
        expect(gte < lt).toBe(true)
        expect((ordered[index - 1]?.lt ?? '') < gte || index === 0).toBe(true)
      }
      const inside = keys.filter((one) => isIn(one, some))
      for (const one of keys)
        expect(keyInRanges([one], ordered)).toBe(isIn(one, some) ? one : undefined)
      const found = keyInRanges(keys.toSorted(), ordered)
      expect(found).toBe(inside.toSorted()[0])
    }),
    { numRuns: 2_000 },
  )
})

test('TXN-1, TXN-2: the window finds the last write of what was read, as looking at every write does', () => {
  const entry = fc.array(fc.array(key, { maxLength: 4 }), { maxLength: 3 })
  const few: Limits = { ...defaultLimits, validationWindow: 4, validationWindowMax: 4 }
  fc.assert(
    fc.property(
      fc.array(entry, { maxLength: 8 }),
      fc.nat({ max: 8 }),
      fc.array(key, { maxLength: 3 }),
      ranges,
      (entries, readPosition, reads, some) => {
        const window = new ValidationWindow(0, few)
        const all = entries.flatMap((sets, index) => {
          const position = index + 1
          const made = sets.map((keys, sequence) => ({ by: { session: 's', sequence }, keys }))
          window.add({ position, timestamp: position, sets: made })
          return sets.flatMap((keys) => keys.map((one) => ({ position, key: one })))
        })
        const through = entries.length
        const found = window.conflict(readPosition, reads, orderRanges(some), through)
        const isNothing = reads.length + orderRanges(some).length === 0
        const met = all.filter(
          (one) => one.position > readPosition && (reads.includes(one.key) || isIn(one.key, some)),
        )
        const last = isNothing ? undefined : met.at(-1)
        const isForgotten = !isNothing && readPosition < through - 4
        expect(found?.position).toBe(isForgotten ? through : last?.position)
        expect(found?.key === undefined).toBe(isForgotten || last === undefined)
        if (found?.key === undefined) return
        const named = Buffer.from(found.key).toString()
        expect(met).toContainEqual({ position: found.position, key: named })
        expect(entries[found.position - 1]?.[found.by?.sequence ?? -1]).toContain(named)
      },
    ),
    { numRuns: 3_000 },
  )
})

test('TXN-2: a pending entry meets every transaction that may read what it writes', () => {
  const mutation = fc
    .tuple(key, fc.boolean())
    .map(([text, isNumbered]): Mutation =>
      isNumbered ? numbered(text) : { key: Buffer.from(text), value: Buffer.of() },
    )
  fc.assert(
    fc.property(
      fc.array(fc.array(mutation, { maxLength: 3 }), { maxLength: 5 }),
      fc.array(key, { maxLength: 3 }),
      fc.array(ranges, { minLength: 1, maxLength: 4 }),
      fc.nat(),
      (transactions, reads, looked, drawn) => {
        const writes = new EntryWrites()
        const keys: string[] = []
        for (const [index, mutations] of transactions.entries()) {
          writes.add(mutations)
          for (const one of mutations) {
            keys.push(Buffer.from(fillSlots(one, [drawn]).key).toString('latin1'))
          }
          const some = looked[index % looked.length] ?? []
          const isMet = keys.some((one) => reads.includes(one) || isIn(one, some))
          // It may say yes where the number turns out to be another, never no where it matters.
          if (isMet) expect(writes.meets(reads, orderRanges(some))).toBe(true)
          const isNumbered = transactions.flat().some(({ slots }) => slots !== undefined)
          if (!isNumbered) expect(writes.meets(reads, orderRanges(some))).toBe(isMet)
        }
      },
    ),
    { numRuns: 3_000 },
  )
})

test('the window keeps young entries beyond its least, up to its limits of entries and keys', () => {
  const few = { ...defaultLimits, validationWindow: 2, validationWindowMax: 4 }
  const limits: Limits = { ...few, validationMs: 1_000, validationKeysMax: 6 }
  const entry = (position: number, seconds: number, keyCount = 1) => ({
    ...{ position, timestamp: seconds * 1_000_000 },
    sets: [
      {
        by: { session: 's', sequence: position },
        keys: Array.from({ length: keyCount }, (_, i) => `${position}/${i}`),
      },
    ],
  })
  const window = new ValidationWindow(0, limits)
  const froms = [entry(1, 1), entry(2, 1), entry(3, 1), entry(4, 1), entry(5, 1), entry(6, 9)].map(
    (one) => {
      window.add(one)
      return window.from
    },
  )
  expect(froms).toEqual([0, 0, 0, 0, 1, 4])
  window.add(entry(7, 9, 6))
  expect(window.from).toBe(6)
  window.add(entry(8, 9, 7))
  // Larger than all there may be: a transaction that has read before it conflicts.
  expect(window.from).toBe(8)
  expect(window.conflict(7, ['8/0'], [], 8)).toEqual({ position: 8 })
  expect(window.conflict(8, ['8/0'], [], 8)).toBeUndefined()
})
