import { expect, test } from 'vitest'
import { isEqualValue } from '../../src/cli/row-equal.ts'

const bytes = new Uint8Array([0, 255])

test.each([
  [bytes, Buffer.from(bytes)],
  [Buffer.from('x00ff', 'latin1').subarray(1, 3), Buffer.from('00')],
  [5n, 5n],
  [0, -0],
  [
    [1, [bytes]],
    [1, [Buffer.from(bytes)]],
  ],
  [
    { a: 1, b: { c: bytes } },
    { b: { c: Buffer.from(bytes) }, a: 1 },
  ],
  [{ a: 1, b: undefined }, { a: 1 }],
  [Object.create(null), {}],
  [JSON.parse('{"__proto__":1}'), JSON.parse('{"__proto__":1}')],
])('%o and %o are the same', (a, b) => {
  expect([isEqualValue(a, b), isEqualValue(b, a)]).toEqual([true, true])
})

test.each([
  [bytes, new Uint8Array([0, 254])],
  [bytes, new Uint8Array([0])],
  [bytes, [0, 255]],
  [5n, 5],
  ['5', 5],
  [null, {}],
  [null, undefined],
  [[1], [1, 2]],
  [
    [1, 2],
    [2, 1],
  ],
  [[], {}],
  [{ a: 1 }, { a: 1, b: 1 }],
  [{ a: 1 }, { b: 1 }],
  [{ a: null }, {}],
  [JSON.parse('{"__proto__":{"a":1}}'), {}],
  [{}, { toString: Object.prototype.toString }],
])('%o and %o are not', (a, b) => {
  expect([isEqualValue(a, b), isEqualValue(b, a)]).toEqual([false, false])
})
