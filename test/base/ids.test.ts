/** Names of things: which texts are names, and group ids as the bytes they stand for. */
import { expect, test } from 'vitest'
import * as fc from 'fast-check'
import { compareBytes, compareText } from '../../src/base/bytes.ts'
import {
  bytesOfGroup,
  clusterId,
  groupOfBytes,
  isClusterId,
  isNodeId,
  isStoreId,
  isUuid,
  nodeId,
  storeId,
} from '../../src/base/ids.ts'

const seeded = { seed: 20_110_109, numRuns: 500 }
const groupBytes = fc.uint8Array({ minLength: 1, maxLength: 1024 })

test('ids: a node and a cluster are named by a-z, 0-9 and -, up to a length', () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[a-z0-9-]{1,64}$/), (text) => {
      expect(isClusterId(text)).toBe(true)
      expect(isNodeId(text)).toBe(text.length <= 32)
    }),
    seeded,
  )
  const wrong = ['', 'A', 'a b', 'a/b', 'ä', 'a\n', '\na', 'a_b', 'x'.repeat(65)]
  expect(wrong.filter((text) => isNodeId(text) || isClusterId(text))).toEqual([])
})

test('ids: any other text is no name', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 40 }), (text) => {
      const allowed = 'abcdefghijklmnopqrstuvwxyz0123456789-'
      const isPlain = text.split('').every((char) => allowed.includes(char))
      expect(isNodeId(text)).toBe(isPlain && text.length >= 1 && text.length <= 32)
      expect(isStoreId(text)).toBe(false)
    }),
    seeded,
  )
})

test('ids: a store is named by a UUID in lower case, whole and nothing around it', () => {
  const uuid = '0f8fad5b-d9cb-469f-a165-70867728950e'
  expect(storeId(uuid)).toBe(uuid)
  const wrong = [uuid.toUpperCase(), `{${uuid}}`, uuid.replaceAll('-', ''), `${uuid}0`, `${uuid}\n`]
  expect(wrong.filter((text) => isStoreId(text) || isUuid(text))).toEqual([])
})

test('ids: a name that was not checked first is a bug', () => {
  expect(() => nodeId('No such')).toThrow('ids: a node id is')
  expect(() => clusterId('')).toThrow('ids: a cluster id is')
  expect(() => storeId('x')).toThrow('ids: a store id is')
  expect(() => groupOfBytes(new Uint8Array(0))).toThrow('ids: a group id has')
  expect(() => groupOfBytes(new Uint8Array(1025))).toThrow('ids: a group id has')
})

test('ids: a group is its bytes, and orders as they do', () => {
  fc.assert(
    fc.property(groupBytes, groupBytes, (a, b) => {
      expect([...bytesOfGroup(groupOfBytes(a))]).toEqual([...a])
      expect(compareText(groupOfBytes(a), groupOfBytes(b))).toBe(Math.sign(compareBytes(a, b)))
    }),
    seeded,
  )
})

test('ids: a group is named by its own part of a larger memory', () => {
  const memory = Uint8Array.from([7, 1, 2, 3, 7])
  expect(groupOfBytes(memory.subarray(1, 4))).toBe(groupOfBytes(Uint8Array.from([1, 2, 3])))
})
