/** Values of files as values of rows: a value that would change is refused. */
import { expect, test } from 'vitest'
import { parseSchema } from '../../schema/ddl-parse.ts'
import { findTable, scalarKinds, type Table } from '../../schema/model.ts'
import { present } from '../../src/base/assert.ts'
import type { Json } from '../../src/cells/body.ts'
import type { RowFormat } from '../../src/cli/load-rows.ts'
import { rowOfFields } from '../../src/cli/row-fields.ts'
import { checkRow } from '../../src/tables/row-check.ts'
import { compileSchema } from '../../src/tables/compile.ts'
import { firstVersion } from '../../schema/version.ts'

const kinds = scalarKinds.filter((kind) => kind !== 'sequence')
const parsed = parseSchema(`CREATE SCHEMA Files;
  CREATE TABLE Thing {
    required integer id; ${kinds.map((kind) => `optional ${kind} the_${kind};`).join(' ')}
    repeated string tag; repeated int32 num; repeated json any; required int32 two default 2;
    optional message part { required int32 a; optional string c; };
    repeated message each { required int32 a; };
  } PRIMARY KEY(id), ENTITY GROUP ROOT;
  CREATE TABLE Named { required string id; required string name; required int32 n; optional string note; }
    PRIMARY KEY(id), ENTITY GROUP ROOT;`)
const schema = present(parsed.ok ? parsed.schema : undefined, 'test: the schema is right')
const thing: Table = present(findTable(schema, 'Thing'), 'test: there is a Thing')
const named: Table = present(findTable(schema, 'Named'), 'test: there is a Named')
const compiled = compileSchema(firstVersion(schema)).tables

/** A row as it is stored; throws what a line is rejected with. */
function stored(table: Table, fields: Json, format: RowFormat): Record<string, unknown> {
  const row = rowOfFields(table, fields, new Map(), new Map(), format)
  const known = present(compiled.get(table.name), 'test: the table is compiled')
  return checkRow(known, row, { withSequence: false, withUnknown: true })
}

/** A property, a value of the file, and what becomes of it. */
type Case<Meant> = readonly [name: string, given: Json, meant: Meant]

/** Texts are the same in files of either format. */
function inBoth<Meant>(
  cases: readonly Case<Meant>[],
): readonly (readonly [format: RowFormat, ...Case<Meant>])[] {
  const formats = ['csv', 'jsonl'] as const
  return formats.flatMap((format) => cases.map((one) => [format, ...one] as const))
}

/** The same words of each text. */
function each<Meant>(name: string, texts: readonly string[], meant: Meant): readonly Case<Meant>[] {
  return texts.map((text) => [name, text, meant])
}

function value(format: RowFormat, name: string, given: Json): unknown {
  const id = format === 'csv' ? '1' : 1
  return stored(thing, { id, [name]: given }, format)[name]
}

const digits = '9007199254740993'
const uuid = '01234567-89ab-cdef-0123-456789abcdef'

test.each<readonly [RowFormat, ...Case<unknown>]>([
  ...inBoth<unknown>([
    ['the_int32', '1815', 1815],
    ['the_int32', '1815.0', 1815],
    ['the_int32', '+7', 7],
    ['the_int32', '007', 7],
    ['the_int32', '-2147483648', -2147483648],
    ['the_int32', '-0', 0],
    ['the_int64', digits, 9007199254740993n],
    ['the_int64', `${digits}.0`, 9007199254740993n],
    ['the_int64', '-9223372036854775808', -(2n ** 63n)],
    ['the_int64', '1e18', 10n ** 18n],
    ['the_integer', '9007199254740991', 9007199254740991],
    ['the_double', '0.1', 0.1],
    ['the_double', '.5', 0.5],
    ['the_double', '1e23', 1e23],
    ['the_double', '-0', 0],
    ['the_float', '0.1', Math.fround(0.1)],
    ['the_float', '3e10', Math.fround(3e10)],
    ['the_bool', 'true', true],
    ['the_bool', 'FALSE', false],
    ['the_timestamp', '12', 12],
    ['the_timestamp', '1769848200000000', 1_769_848_200_000_000],
    ['the_timestamp', '1969-07-20T20:17:00Z', -14_182_980_000_000],
    ['the_timestamp', '1970-01-21T11:37:28.200001Z', 1_769_848_200_001],
    ['the_timestamp', '1970-01-01T00:29:29.848200Z', 1_769_848_200],
    ['the_timestamp', '1684-07-29', -9_007_113_600_000_000],
    ['the_timestamp', '2020-01-01 00:00:00Z', 1_577_836_800_000_000],
    ['the_timestamp', '2020-01-01T00:00:00.123456789+05:30', 1_577_817_000_123_456],
    ['the_bytes', '00Ff', new Uint8Array([0, 255])],
    ['the_bytes', '', new Uint8Array([])],
    ['the_uuid', uuid.toUpperCase(), uuid],
    ['the_string', '007', '007'],
    ['the_string', '', ''],
    ['tag', 'x', ['x']],
    ['num', '7', [7]],
  ]),
  ['csv', 'the_json', '{"a":[1,"x"]}', { a: [1, 'x'] }],
  ['csv', 'the_json', '5', 5],
  ['csv', 'the_json', '""', ''],
  ['csv', 'the_json', 'null', null],
  ['jsonl', 'the_json', '{"a":1}', '{"a":1}'],
  ['jsonl', 'the_json', { constructor: 1, toString: [2] }, { constructor: 1, toString: [2] }],
  ['jsonl', 'the_int64', 9007199254740991, 9007199254740991n],
  ['csv', 'tag', '["x","y"]', ['x', 'y']],
  ['csv', 'tag', '[""]', ['']],
  ['csv', 'tag', '[]', []],
  ['csv', 'tag', '[untitled]', ['[untitled]']],
  ['csv', 'tag', '["[3]"]', ['[3]']],
  ['jsonl', 'tag', '["x"]', ['["x"]']],
  ['csv', 'num', '[7,"8"]', [7, 8]],
  ['csv', 'any', '[1,"1"]', [1, '1']],
  ['csv', 'part', '{"a":"1","c":"q"}', { a: 1, c: 'q' }],
  ['csv', 'each', '[{"a":1},{"a":2}]', [{ a: 1 }, { a: 2 }]],
  ['csv', 'each', '{"a":1}', [{ a: 1 }]],
])('%s: %s of %j is %o', (format, name, given, meant) => {
  expect(value(format, name, given)).toEqual(meant)
})

test.each<readonly [RowFormat, ...Case<RegExp>]>([
  ...inBoth<RegExp>([
    ...each(
      'the_int32',
      ['2147483648', '1.5', '1_000', '0x10', ' 7', '7 ', '١', '1,000', '1e10', 'NaN', ' '],
      /whole number from -2147483648/,
    ),
    ...each(
      'the_int64',
      ['9223372036854775808', '1.5', '0x10', 'x', ' 7', '1e999999999', '--1'],
      /expected a whole number of 64 bits/,
    ),
    ['the_integer', digits, /whole number from -9007199254740991/],
    ...each(
      'the_double',
      [digits, `${digits}.0`, '1e400', '10000000000000001', '1e-400'],
      /does not hold all its digits/,
    ),
    ...each('the_double', ['0x1', 'NaN', 'Infinity', '1,5', ' 7'], /expected a finite number/),
    ['the_float', '16777217', /a float does not hold all its digits, a double does/],
    ['the_float', '1e39', /expected a finite number of 32 bits/],
    ['the_bool', '1', /expected true or false/],
    ...each(
      'the_timestamp',
      ['0001-01-01', '9999-12-31', '31/12/2020', '2020-01-01T00:00', '9'.repeat(20)],
      /expected a time such as/,
    ),
    ...each('the_bytes', ['0xff', 'f', 'zz'], /expected hexadecimal digits/),
    [
      'the_timestamp',
      '1769848200',
      /is "1769848200": it looks like seconds.* by 1000000, or write/,
    ],
    ...each(
      'the_timestamp',
      ['1769848200001', '+1769848200001'],
      /it looks like milliseconds, and numbers are microseconds since 1970: multiply it by 1000, or write 1970-01-21T11:37:28.200001Z/,
    ),
    ['the_uuid', `{${uuid}}`, /expected a UUID/],
    ['num', '7;8', /num\[0\] is "7;8"/],
  ]),
  ['csv', 'the_json', 'hello', /in a CSV it is JSON text/],
  ['csv', 'the_json', '12345678901234567890', /12345678901234567890 does not fit/],
  ['csv', 'num', '[7,"x"]', /num\[1\] is "x"/],
  ['csv', 'part', 'x', /in a CSV it is JSON text/],
  ['csv', 'part', '[]', /expected an object of a, c/],
  ['jsonl', 'part', '{"a":1}', /expected an object of a, c/],
  ['jsonl', 'the_int64', 9007199254740992, /write it in quotes/],
  ['jsonl', 'the_float', 16777217, /does not hold all its digits/],
  ['jsonl', 'the_string', 5, /expected a string/],
  ['jsonl', 'tag', [null], /tag\[0\] is null/],
  ['csv', 'tag', '["a",1]', /tag\[1\] is 1; expected a string \(one text with brackets/],
  ['csv', 'tag', '[null]', /tag\[0\] is null; expected a string/],
  ['csv', 'tag', ' [3] ', /tag\[0\] is 3; expected a string/],
  ['csv', 'tag', '["a",["b"]]', /tag\[1\] is a list; expected a string/],
  ['csv', 'num', '[1,"x"]', /num\[1\] is "x"/],
  ['jsonl', 'the_timestamp', 1.5, /expected a Date, or microseconds/],
  ['jsonl', 'the_timestamp', 1_769_848_200, /the_timestamp is 1769848200: it looks like seconds/],
  ['jsonl', 'the_timestamp', 1_769_848_200_001, /it looks like milliseconds/],
])('%s: %s of %j is refused', (format, name, given, said) => {
  expect(() => value(format, name, given)).toThrow(said)
})

test('a blank of a CSV is no value of any type; of a string and of bytes a quoted one is', () => {
  const blank = Object.fromEntries(
    thing.properties.filter(({ name }) => name !== 'id').map(({ name }) => [name, null]),
  )
  const none = { id: 1, two: 2, tag: [], num: [], any: [], each: [] }
  expect(stored(thing, { ...blank, id: '1' }, 'csv')).toEqual(none)
  const quoted = Object.fromEntries(Object.keys(blank).map((name) => [name, '']))
  expect(stored(thing, { ...quoted, id: '1' }, 'csv')).toEqual({
    ...none,
    the_string: '',
    the_bytes: new Uint8Array([]),
  })
})

test('a blank in a required column is an error, and a quoted blank is the empty string', () => {
  const row = { id: 'a', name: 'b', n: '1', note: null }
  expect(stored(named, { ...row, name: '' }, 'csv')).toEqual({ id: 'a', name: '', n: 1 })
  for (const [name, given, said] of [
    ['name', null, /^table Named: name is blank; it is required; "" with quotes is/],
    ['id', null, /^table Named: id is blank; it is required; ""/],
    ['n', null, /^table Named: n is blank; it is required$/],
    ['n', '', /^table Named: n is blank; it is required$/],
  ] as const) {
    expect(() => stored(named, { ...row, [name]: given }, 'csv')).toThrow(said)
  }
  expect(() => stored(named, { id: 'a', name: null, n: 1 }, 'jsonl')).toThrow(/name is absent/)
})

test.each<readonly [Json]>([[[1]], ['x'], [5], [null]])('%j is no row', (fields) => {
  expect(() => stored(thing, fields, 'jsonl')).toThrow(/a row is an object of fields/)
})
