import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { groupOfBytes } from '../../src/base/ids.ts'
import { crc32 } from '../../src/base/bytes.ts'
import {
  decodeStored,
  encodeState,
  encodeStored,
  groupPrefix,
  joined,
  rowsPrefix,
  rowStoreKey,
  stateKey,
} from '../../src/store/row-format.ts'

test('the key that a row is looked up by is the one that it is written under', () => {
  const groups = fc.uint8Array({ minLength: 1, maxLength: 40 }).map(groupOfBytes)
  fc.assert(
    fc.property(groups, fc.uint8Array({ maxLength: 40 }), (group, key) => {
      const written = joined(rowsPrefix(groupPrefix(group)), key)
      expect(rowStoreKey(group, key).equals(written)).toBe(true)
    }),
    { numRuns: 500, seed: 2 },
  )
})

/** The same value in another format, under its checksum. */
function inFormat(key: Uint8Array, format: number, content: readonly Uint8Array[]): Buffer {
  const head = Buffer.alloc(15)
  head[4] = format
  head.writeBigUInt64BE(7n, 7)
  const value = Buffer.concat([head, ...content])
  value.writeUInt32BE(crc32(value.subarray(4), crc32(key)))
  return value
}

function wide(number: bigint): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64BE(number)
  return bytes
}

test('LOG-15: a state record says the last flush and the last snapshot; those of earlier builds name no snapshot', () => {
  const key = stateKey(groupPrefix(groupOfBytes(Buffer.from('a'))))
  const payload = Buffer.from('state')
  const written = encodeState(key, 7, { flush: 12, snapshot: 5 }, payload)
  expect(decodeStored(key, written)).toEqual({ stamp: 7, flush: 12, snapshot: 5, payload })
  expect(written).toEqual(inFormat(key, 4, [wide(12n), wide(5n), payload]))
  const flushed = inFormat(key, 3, [wide(12n), payload])
  expect(decodeStored(key, flushed)).toEqual({ stamp: 7, flush: 12, snapshot: 0, payload })
  const oldest = inFormat(key, 2, [payload])
  expect(oldest).toEqual(encodeStored(key, 7, payload))
  expect(decodeStored(key, oldest)).toEqual({ stamp: 7, payload })
})

test('a state record of a later format is known as one, and one that is cut as damaged', () => {
  const key = stateKey(groupPrefix(groupOfBytes(Buffer.from('a'))))
  expect(decodeStored(key, inFormat(key, 5, [wide(1n), wide(1n)]))).toBe('unknown format')
  expect(decodeStored(key, inFormat(key, 4, [wide(1n)]))).toBe('damaged')
  expect(decodeStored(key, inFormat(key, 3, []))).toBe('damaged')
})
