import * as fc from 'fast-check'
import { canonicalize } from 'json-canonicalize'
import { expect, test } from 'vitest'
import {
  canonicalJson,
  checkBody,
  packBody,
  unpackBody,
  type BodyResult,
  type Json,
} from '../../src/cells/body.ts'
import { parseJsonText } from '../../src/base/json-text.ts'
import { cellBytesMax } from '../../src/base/limits.ts'
import { present } from '../../src/base/assert.ts'

const names = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.constantFrom('__proto__', 'constructor', 'toJSON', 'hasOwnProperty', 'length', '1', '0', ''),
)
const { tree } = fc.letrec<{ tree: Json; leaf: Json }>((tie) => ({
  leaf: fc.oneof(
    fc.string({ unit: 'grapheme' }),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.constantFrom(null, true, false, 0, -1, 1e21, 2 ** 53, 2 ** 60, -(2 ** 31) - 1, 5e-324),
  ),
  tree: fc.oneof(
    { maxDepth: 4 },
    tie('leaf'),
    fc.array(tie('tree'), { maxLength: 4 }),
    fc
      .array(fc.tuple(names, tie('tree')), { maxLength: 4 })
      .map((pairs) => Object.fromEntries(pairs)),
  ),
}))

function bytesOf(value: Json): Uint8Array {
  const packed = packBody(value)
  if (packed.kind === 'problem') throw new Error(packed.problem.message)
  return packed.body.bytes
}

function hashOf(result: BodyResult): string {
  if (result.kind === 'problem') throw new Error(result.problem.message)
  return Buffer.from(result.body.hash).toString('hex')
}

/** A value after a journey as JSON text: -0 has become 0. */
function throughText(value: Json): Json {
  const parsed = parseJsonText(JSON.stringify(value))
  if (!parsed.ok) throw new Error(parsed.reason)
  return parsed.value
}

test('a body comes back as it went in, whatever its members are called', () => {
  fc.assert(
    fc.property(tree, (value) => {
      const back = present(unpackBody(bytesOf(value)), 'the bytes are a body')
      expect(JSON.stringify(throughText(back))).toBe(JSON.stringify(throughText(value)))
    }),
    { seed: 1, numRuns: 500 },
  )
})

test('the checking end finds the same hash as the packing end', () => {
  fc.assert(
    fc.property(tree, (value) => {
      expect(hashOf(checkBody(bytesOf(value)))).toBe(hashOf(packBody(value)))
    }),
    { seed: 2, numRuns: 300 },
  )
})

test('the canonical text is that of RFC 8785', () => {
  const hasHook = (value: Json): boolean => JSON.stringify(value).includes('"toJSON"')
  fc.assert(
    fc.property(tree, (value) => {
      fc.pre(!hasHook(value))
      expect(canonicalJson(value)).toStrictEqual({ kind: 'ok', text: canonicalize(value) })
    }),
    { seed: 3, numRuns: 300 },
  )
})

test('members of any order make the same body, one called toJSON too', () => {
  const hash = (value: Json): string => hashOf(packBody(value))
  expect(hash({ toJSON: 1, b: [2], a: 3 })).toBe(hash({ a: 3, b: [2], toJSON: 1 }))
  expect(hash({ a: 3, b: [2] })).not.toBe(hash({ a: 3, b: [2, 2] }))
})

function nested(depth: number): Json {
  let value: Json = 1
  for (let i = 0; i < depth; i++) value = [value]
  return value
}

function membersOf(count: number): Json {
  return Object.fromEntries(Array.from({ length: count }, (_, i) => [i.toString(36), 1]))
}

test('a body of few members is packed as it always was', () => {
  const bytes = Buffer.from(bytesOf({ a: 1, b: [{}] }))
  expect(bytes.toString('hex')).toBe('de0002a16101a16291de0000')
})

test.each<[string, Json, string]>([
  ['NaN', Number.NaN, 'invalid'],
  ['infinity', [Number.POSITIVE_INFINITY], 'invalid'],
  ['half a surrogate pair', { a: '\ud800' }, 'invalid'],
  ['a name with half a pair', { '\udc00': 1 }, 'invalid'],
  ['101 levels', nested(101), 'invalid'],
  ['a hundred thousand levels', nested(100_000), 'invalid'],
  ['more than a mebibyte', 'é'.repeat(cellBytesMax / 2), 'too-large'],
])('a body that could not come back is refused: %s', (_, value, code) => {
  expect(packBody(value)).toMatchObject({ kind: 'problem', problem: { code } })
})

test.each<[string, Json]>([
  ['100 levels', nested(100)],
  ['a whole mebibyte', 'x'.repeat(cellBytesMax - 2)],
  ['numbers that pack larger than they are written', Array<number>(200_000).fill(0.5)],
  ['more members than two bytes count', [membersOf(65_536), { few: membersOf(2) }]],
])('a body at its bounds is taken: %s', (_, value) => {
  expect(unpackBody(bytesOf(value))).toStrictEqual(value)
})

test('bytes from outside are a body or a problem, never an exception', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
      const checked = checkBody(bytes)
      const isBody = unpackBody(bytes) !== undefined
      expect(checked.kind === 'ok').toBe(isBody)
    }),
    { seed: 4, numRuns: 2000 },
  )
})

test.each([
  ['a date', 'd6ff00000000'],
  ['bytes', 'c403010203'],
  ['a reference to itself', '92d66900000001d67000000001c0'],
  ['trailing bytes', 'c0c0'],
  ['a name cut off', '81a5'],
])('packed bytes that are not JSON are refused: %s', (_, hex) => {
  expect(checkBody(Buffer.from(hex, 'hex'))).toMatchObject({ problem: { code: 'invalid' } })
})

test.each([
  ['{"a":1,"b":{"c":2,"c":3}}', 'the name "c" is given twice'],
  ['{"\\u0061":1,"a":2}', 'the name "a" is given twice'],
  ['[9007199254740993]', 'the number 9007199254740993 does not fit'],
  ['{"id":-123456789012345678}', 'the number -123456789012345678 does not fit'],
  ['1e400', 'the number 1e400 does not fit'],
  ['{"id":9007199254740993.0}', 'the number 9007199254740993.0 does not fit'],
  ['[1e-400]', 'the number 1e-400 does not fit'],
  ['{"a":', 'not JSON'],
  ['', 'not JSON'],
])('text that would lose something is refused: %s', (text, reason) => {
  const parsed = parseJsonText(text)
  expect(parsed.ok ? '' : parsed.reason).toContain(reason)
})

test('text that is nested without end is refused by a limit, and text up to it is taken', () => {
  const nested = (open: string, depth: number, close: string): string =>
    `${open.repeat(depth)}1${close.repeat(depth)}`
  for (const depth of [257, 10_000, 1_000_000]) {
    for (const text of [nested('[', depth, ']'), nested('{"a":', depth, '}')]) {
      expect(parseJsonText(text)).toEqual({
        ...{ ok: false, isJson: true },
        reason: 'lists and objects are nested deeper than 256 levels',
      })
    }
  }
  expect(parseJsonText(nested('[', 256, ']')).ok).toBe(true)
})

test.each([
  '[{"a":1},{"a":1}]',
  '{"a":["a","a"],"b":"a"}',
  '{"a":"\\"a\\",","b":"{\\"a\\":1,\\"a\\":2}"}',
  '9007199254740992',
  '1152921504606847000',
  '0.1000000000000000055511151231257827',
  '[]',
])('text that loses nothing is taken: %s', (text) => {
  expect(parseJsonText(text)).toStrictEqual({ ok: true, value: JSON.parse(text) })
})
