/** Keys of the data store are read as what they were written for. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { latin1 } from '../../src/base/bytes.ts'
import { groupOfBytes } from '../../src/base/ids.ts'
import { worklistPrefix } from '../../src/group/worklist-key.ts'
import {
  groupPrefix,
  historyPrefix,
  listedKey,
  markerKey,
  nameKey,
  positionKey,
  rowStoreKey,
  stateKey,
  versionKey,
} from '../../src/store/row-format.ts'
import { decodeStoreKey } from '../../src/store/store-key.ts'

/** Bytes that are escaped, or look like an end, come often. */
const bytes = fc
  .array(fc.oneof(fc.constantFrom(0, 1, 2, 255), fc.integer({ min: 0, max: 255 })), {
    minLength: 1,
    maxLength: 40,
  })
  .map((list) => Buffer.from(list))
const group = bytes.map(groupOfBytes)
const number = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER })
const topic = fc.stringMatching(/^[a-z/]{1,20}$/)

test('each kind of key is read back', () => {
  fc.assert(
    fc.property(group, bytes, number, topic, (name, key, count, word) => {
      const prefix = groupPrefix(name)
      const listed = latin1(worklistPrefix(word))
      expect(decodeStoreKey(stateKey(prefix))).toEqual({ kind: 'state', group: name })
      expect(decodeStoreKey(rowStoreKey(name, key))).toEqual({ kind: 'row', group: name, key })
      expect(decodeStoreKey(versionKey(historyPrefix(prefix), key, count))).toEqual({
        ...{ kind: 'history', group: name, key, start: count },
      })
      expect(decodeStoreKey(positionKey(name, count))).toEqual({
        ...{ kind: 'position', group: name, position: count },
      })
      expect(decodeStoreKey(listedKey(listed, name))).toEqual({
        ...{ kind: 'worklist', topic: listed, group: name },
      })
    }),
  )
  expect(decodeStoreKey(markerKey(513))).toEqual({ kind: 'marker', slot: 513 })
  expect(decodeStoreKey(nameKey('log/mark'))).toEqual({ kind: 'name', name: 'log/mark' })
})

test('what no writer makes is no key', () => {
  const texts = ['', 'x', 'b', 'bbbb', 's', 'sa', 'sa\0', 'sa\0\u0001b', 'ga\0\u0001', 'l', 'mat/']
  // No group; a subspace of no kind; a version without a start.
  texts.push('g\0\u0001\u0001k', 'ga\0\u0001\u0003', 'ga\0\u0001\u0002k', 'la\0\u0001g')
  for (const text of texts) {
    expect(decodeStoreKey(Buffer.from(text, 'latin1')), JSON.stringify(text)).toBeUndefined()
  }
})
