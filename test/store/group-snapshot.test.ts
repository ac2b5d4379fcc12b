/** A snapshot of a group as it is read: parts, checksums, and which rows of a peer are of a form that a store has. */
import { expect, test } from 'vitest'
import { AssertionError } from '../../src/base/assert.ts'
import { crc32 } from '../../src/base/bytes.ts'
import { keyBytesMax } from '../../src/base/limits.ts'
import type { SnapshotRow } from '../../src/replication/message.ts'
import { GroupSnapshot, isWellFormed } from '../../src/store/group-snapshot.ts'
import {
  groupPrefix,
  historyPrefix,
  historySubspace,
  isVersionKey,
  rowSubspace,
  versionKey,
} from '../../src/store/row-format.ts'
import { a, crcOf, readWhole, sizeOf } from './snapshot-kit.ts'

function row(key: string, bytes = 20, stamp = 1): SnapshotRow {
  return { subspace: rowSubspace, key: Buffer.from(key), stamp, payload: Buffer.alloc(bytes, key) }
}

/** The chunks of a scan; notes when its reader ends it. */
function scanOf(...chunks: readonly (readonly SnapshotRow[])[]) {
  const scan = {
    isClosed: false,
    read: 0,
    async *[Symbol.asyncIterator]() {
      try {
        for (const chunk of chunks) {
          scan.read += 1
          yield await Promise.resolve(chunk)
        }
      } finally {
        scan.isClosed = true
      }
    },
  }
  return scan
}

const state = Buffer.from('the state record of position 7')

test('SNAP-2: a snapshot is read in parts of about the size asked for, rows first, and ends with a checksum', async () => {
  const rows = ['a', 'b', 'c', 'd', 'e'].map((key) => row(key))
  const scan = scanOf(rows.slice(0, 2), rows.slice(2))
  // 37 bytes a row, with what each takes beside its key and its payload.
  expect(sizeOf(rows)).toBe(5 * 37)
  const whole = await readWhole(new GroupSnapshot(7, state, scan), 74)
  expect(whole.position).toBe(7)
  expect(whole.rows).toEqual(rows)
  expect(Buffer.from(whole.state)).toEqual(state)
  expect(whole.parts).toEqual([
    [2, 0],
    [2, 0],
    [1, 30],
  ])
  expect(whole.crc).toBe(crc32(state, crcOf(rows)))
  expect(scan.isClosed).toBe(true)
})

test('SNAP-2: a state record that is larger than a part comes in pieces, and a row never does', async () => {
  const rows = [row('a', 5_000), row('b', 3)]
  const large = Buffer.alloc(25, 's')
  const whole = await readWhole(new GroupSnapshot(7, large, scanOf(rows)), 10)
  expect(whole.rows).toEqual(rows)
  expect(Buffer.from(whole.state)).toEqual(large)
  expect(whole.parts.filter(([some]) => some > 0)).toEqual([
    [1, 0],
    [1, 0],
  ])
  expect(whole.parts.filter(([, bytes]) => bytes > 0)).toEqual([
    [0, 10],
    [0, 10],
    [0, 5],
  ])
  expect(whole.crc).toBe(crc32(large, crcOf(rows)))
})

test('SNAP-2: the checksum is the same whatever the size of the parts', async () => {
  const rows = Array.from({ length: 40 }, (_, i) => row(`key ${i}`, i, i))
  const sizes = [1, 30, 100, 1_000, 100_000]
  const crcs = await Promise.all(
    sizes.map(
      async (bytes) => (await readWhole(new GroupSnapshot(7, state, scanOf(rows)), bytes)).crc,
    ),
  )
  expect(crcs).toEqual(sizes.map(() => crc32(state, crcOf(rows))))
})

test('SNAP-2: a group without a row has a snapshot of its state record alone', async () => {
  const whole = await readWhole(new GroupSnapshot(7, state, scanOf()), 1_000)
  expect([whole.rows, whole.parts, whole.crc]).toEqual([[], [[0, 30]], crc32(state)])
})

test('SNAP-2: the checksum tells rows that changed, moved, are missing, or are there twice', () => {
  const [one, two] = [row('a'), row('b')]
  const versions: readonly (readonly SnapshotRow[])[] = [
    [one, two],
    [two, one],
    [one],
    [one, one, two],
    [{ ...one, stamp: 2 }, two],
    [{ ...one, subspace: historySubspace }, two],
    [{ ...one, payload: Buffer.alloc(20, 'x') }, two],
    [{ ...one, key: Buffer.from('A') }, two],
    // The same bytes, cut at another place.
    [{ ...one, key: Buffer.from('aa'), payload: Buffer.alloc(19, 'a') }, two],
    [],
  ]
  expect(new Set(versions.map(crcOf)).size).toBe(versions.length)
  expect(crcOf([one, { ...two }])).toBe(crcOf([one, two]))
})

test('SNAP-2: there is no snapshot of position 0, and a closed one is not read on', async () => {
  expect(() => new GroupSnapshot(0, state, scanOf())).toThrow(AssertionError)
  const scan = scanOf([row('a')], [row('b')])
  const snapshot = new GroupSnapshot(7, state, scan)
  await snapshot.next(1)
  expect([scan.read, scan.isClosed]).toEqual([1, false])
  await snapshot.close()
  await snapshot.close()
  expect(scan.isClosed).toBe(true)
  await expect(snapshot.next(1)).rejects.toThrow(AssertionError)
})

/** The key of a version as it lies in history. */
function version(key: Uint8Array, start: number): Buffer {
  const history = historyPrefix(groupPrefix(a))
  return versionKey(history, key, start).subarray(history.length)
}

test('a row of a peer is of a form that a store has', () => {
  const long = Buffer.alloc(keyBytesMax, 0)
  const of = (subspace: number, key: Uint8Array): SnapshotRow => ({ ...row('a'), subspace, key })
  expect(isWellFormed(of(rowSubspace, Buffer.from('any')))).toBe(true)
  expect(isWellFormed(of(rowSubspace, long))).toBe(true)
  expect(isWellFormed(of(rowSubspace, Buffer.alloc(keyBytesMax + 1)))).toBe(false)
  expect(isWellFormed(of(historySubspace, version(Buffer.from('a'), 5)))).toBe(true)
  // Each byte of it is escaped.
  expect(isWellFormed(of(historySubspace, version(long, Number.MAX_SAFE_INTEGER)))).toBe(true)
  expect(isWellFormed(of(historySubspace, Buffer.from('a')))).toBe(false)
  expect(isWellFormed(of(historySubspace, version(Buffer.alloc(keyBytesMax + 1), 1)))).toBe(false)
  for (const subspace of [0, 3, 255])
    expect(isWellFormed(of(subspace, Buffer.from('a')))).toBe(false)
})

test.each<readonly [what: string, key: Uint8Array]>([
  ['nothing', new Uint8Array()],
  ['no end of the key', Buffer.from('aaaaaaaaaaaaaaaa')],
  ['a start that is cut', version(Buffer.from('a'), 5).subarray(0, -1)],
  ['a byte too many', Buffer.concat([version(Buffer.from('a'), 5), Buffer.of(0)])],
  ['a start that is no safe integer', changed(version(Buffer.from('a'), 5), -8, 0xfe)],
  [
    'a zero that is not escaped',
    Buffer.concat([Buffer.of(0x61, 0, 0x62), version(Buffer.of(), 5)]),
  ],
  ['an end within the key', Buffer.concat([Buffer.of(0x61, 0, 1, 0x62), version(Buffer.of(), 5)])],
  [
    'half of an escape before the end',
    Buffer.concat([Buffer.of(0x61, 0), version(Buffer.of(), 5)]),
  ],
  ['another end', changed(version(Buffer.from('a'), 5), -9, 2)],
])('a key of history is refused that has %s', (_, key) => {
  expect(isVersionKey(key)).toBe(false)
  expect(isWellFormed({ ...row('a'), subspace: historySubspace, key })).toBe(false)
})

test('keys of history that stores make are versions, whatever is in the row’s key', () => {
  const keys = [[], [0], [0, 0], [0, 1], [0, 255], [255, 0, 1, 0], [97, 0, 98], [1, 0]]
  for (const key of keys) {
    for (const start of [0, 1, 2 ** 32, Number.MAX_SAFE_INTEGER]) {
      expect([key, start, isVersionKey(version(Buffer.from(key), start))]).toEqual([
        key,
        start,
        true,
      ])
    }
  }
})

/** `at` is counted from the end. */
function changed(key: Buffer, at: number, byte: number): Buffer {
  const other = Buffer.from(key)
  other[other.length + at] = byte
  return other
}
