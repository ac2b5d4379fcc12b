import { expect, test } from 'vitest'
import * as api from '../../schema/index.ts'
import { parseSchema } from '../../schema/ddl-parse.ts'
import { defineSchema } from '../../schema/define.ts'
import { diffSchemas } from '../../schema/diff.ts'
import { fingerprintOf } from '../../schema/fingerprint.ts'
import { timestampOf } from '../../schema/values.ts'
import { firstVersion } from '../../schema/version.ts'
import { SchemaError } from '../../schema/problem.ts'
import { t } from '../../schema/property.ts'
import { desc, table } from '../../schema/table.ts'

const M = table('M', { id: t.int64(), name: t.string() }).key('id').root()

/** As a program in JavaScript calls it. */
function call(holder: object, method: string, ...given: readonly unknown[]): unknown {
  const called: unknown = Reflect.get(holder, method)
  if (typeof called !== 'function') throw new Error(`${method} is no method`)
  return Reflect.apply(called, holder, given)
}

const models = { diffSchemas, fingerprintOf, firstVersion, timestampOf }
const calls = { table, desc, defineSchema }
const unkeyed = table('M', { id: t.int64() })

test.each<readonly [string, () => unknown, string]>([
  [
    'a property with options',
    () => call(t, 'string', { max: 5 }),
    't.string: it takes nothing, and is given an object',
  ],
  ['a sequence with options', () => call(t, 'sequence', 1), 't.sequence: it takes nothing'],
  [
    'an optional with a value',
    () => call(t.string(), 'optional', 'x'),
    'optional: it takes nothing, and is given "x"',
  ],
  [
    'a message of nothing',
    () => call(t, 'message'),
    't.message: its properties are absent; expected { name',
  ],
  [
    'a table without a name',
    () => call(calls, 'table', 5, {}),
    'table: its name is 5; expected a string',
  ],
  [
    'a table of nothing',
    () => call(calls, 'table', 'M'),
    'table M: its properties are absent; expected {',
  ],
  [
    'a list of properties',
    () => call(calls, 'table', 'M', [t.string()]),
    'table M: its properties are a list',
  ],
  [
    'a type that is not called',
    () => call(calls, 'table', 'M', { a: t.string }),
    'table M: a is a function that is not called; expected a property such as t.string()',
  ],
  [
    'a name for a type',
    () => call(calls, 'table', 'M', { a: 'string' }),
    'table M: a is "string"; expected a property',
  ],
  [
    'a key of a list',
    () => call(unkeyed, 'key', ['id']),
    'the key of table M: a part is a list; expected a name, or desc(name)',
  ],
  ['desc of nothing', () => call(calls, 'desc'), 'desc: its name is absent; expected a string'],
  [
    'a root with a misspelt option',
    () => call(unkeyed.key('id'), 'root', { scater: true }),
    'table M: root: unknown option "scater"; did you mean "scatter"?',
  ],
  [
    'a root that scatters by a text',
    () => call(unkeyed.key('id'), 'root', { scatter: 'yes' }),
    'table M: root: scatter is "yes"; expected true or false',
  ],
  [
    'a child of a name',
    () => call(unkeyed.key('id'), 'childOf', 'User'),
    'table M: childOf: a table is "User"; expected a table with its place',
  ],
  ['in nothing', () => call(unkeyed.key('id'), 'in'), 'table M: in: a table is absent'],
  [
    'an index of a misspelt option',
    () => call(M, 'localIndex', 'I', ['name'], { uniqe: true }),
    'index I: unknown option "uniqe"; did you mean "unique"?',
  ],
  [
    'an index of null',
    () => call(M, 'localIndex', 'I', ['name'], null),
    'index I: the options are null; expected an object',
  ],
  [
    'an index over a text',
    () => call(M, 'globalIndex', 'I', 'name'),
    'index I: its parts are "name"; expected a list of names',
  ],
  [
    'an index that stores a text',
    () => call(M, 'localIndex', 'I', ['name'], { storing: 'name' }),
    'index I: storing is "name"; expected a list',
  ],
  ['an index without a name', () => call(M, 'localIndex'), 'an index: its name is absent'],
  [
    'an index into a name',
    () => call(M, 'inlineIndex', 'I', 'M', ['id']),
    'a table is "M"; expected a table with its place',
  ],
  [
    'a schema of a table',
    () => call(calls, 'defineSchema', 'S', M),
    'schema S: its tables are an object; expected a list of tables',
  ],
  [
    'a schema of a table without its place',
    () => call(calls, 'defineSchema', 'S', [unkeyed]),
    'schema S: a table is an object; expected a table with its place',
  ],
  [
    'a difference from nothing',
    () => call(models, 'diffSchemas'),
    'diffSchemas: the schema is absent',
  ],
  [
    'a fingerprint of a number',
    () => call(models, 'fingerprintOf', 5),
    'fingerprintOf: the schema is 5',
  ],
  [
    'a version of a text',
    () => call(models, 'firstVersion', 'S'),
    'firstVersion: the schema is "S"',
  ],
  ['a moment of no date', () => call(models, 'timestampOf', 5), 'timestampOf: the date is 5'],
  [
    'a moment of a date without a time',
    () => call(models, 'timestampOf', new Date(Number.NaN)),
    'timestampOf: the date is an invalid Date',
  ],
  [
    'a schema without a name',
    () => call(calls, 'defineSchema', [M]),
    'defineSchema: its name is a list',
  ],
])('%s is refused in words', (_, make, words) => {
  let error: unknown
  try {
    make()
  } catch (thrown) {
    error = thrown
  }
  expect(error).toBeInstanceOf(SchemaError)
  expect(error).toMatchObject({ code: 'invalid' })
  expect(String(error)).toContain(words)
})

const model = defineSchema('S', [M]).model
const version = firstVersion(model)
/** Values that only look like a schema. */
const noModels: readonly unknown[] = [
  ...[undefined, null, 5, 'S', [], {}, { name: 'S', tables: [] }, defineSchema('S', [M])],
  ...[
    { name: 'S', tables: [{}], indexes: [] },
    { ...model, tables: [{ name: 'A' }] },
  ],
  ...[
    { ...model, tables: [null] },
    { ...model, indexes: [{}] },
    { ...model, name: 5 },
  ],
  { ...model, tables: [{ ...model.tables[0], properties: [{ name: 'a', presence: 'required' }] }] },
  { ...model, tables: [{ ...model.tables[0], key: { parts: [5], scatter: false } }] },
  { ...model, tables: [{ ...model.tables[0], kind: 'child' }] },
]

test.each<readonly [string, (given: unknown) => unknown]>([
  ['printSchema', (given) => call(api, 'printSchema', given)],
  ['fingerprintOf', (given) => call(api, 'fingerprintOf', given)],
  ['firstVersion', (given) => call(api, 'firstVersion', given)],
  ['diffSchemas', (given) => call(api, 'diffSchemas', given, model)],
  ['diffSchemas', (given) => call(api, 'diffSchemas', model, given)],
  ['nextVersion', (given) => call(api, 'nextVersion', version, given)],
  ['nextVersion', (given) => call(api, 'nextVersion', given, model)],
  ['nextVersion', (given) => call(api, 'nextVersion', { ...version, schema: given }, model)],
  ['nextVersion', (given) => call(api, 'nextVersion', { ...version, numbers: given }, model)],
  ['changeText', (given) => call(api, 'changeText', given)],
  ['problemText', (given) => call(api, 'problemText', given)],
  ['reportProblems', (given) => call(api, 'reportProblems', [given], { file: 'a.ddl' })],
  ['reportProblems', (given) => call(api, 'reportProblems', [], given)],
])('%s of what is none is refused in words', (name, make) => {
  for (const given of noModels) {
    let error: unknown
    try {
      make(given)
    } catch (thrown) {
      error = thrown
    }
    expect(error, JSON.stringify(given)).toBeInstanceOf(SchemaError)
    expect(error).toMatchObject({ code: 'invalid' })
    const words = new RegExp(`^SchemaError: ${name}: .*(?:expected|absent)`)
    expect(String(error)).toMatch(words)
    expect(String(error)).not.toContain('undefined')
  }
})

test('problems that are no list, spans that are none, and a text that is none are refused in words', () => {
  const problem = { kind: 'syntax', message: 'm', at: [] }
  for (const given of [undefined, 'x', {}]) {
    expect(() => call(api, 'reportProblems', given, { file: 'a' })).toThrow(
      /^reportProblems: the problems are .*expected a list/,
    )
    expect(() => call(api, 'parseSchema', given === 'x' ? 5 : given)).toThrow(
      /^parseSchema: the text is .*expected a string/,
    )
  }
  const misplaced = [{ ...problem, span: { start: 'x' } }]
  expect(() => call(api, 'reportProblems', misplaced, { file: 'a', text: '' })).toThrow(
    'reportProblems: the span of a problem is an object; expected { start, end }',
  )
})

test('the functions accept a schema as made and as read back from JSON', () => {
  const reread: unknown = JSON.parse(JSON.stringify(model))
  for (const given of [model, reread]) {
    expect(call(api, 'fingerprintOf', given)).toBe(version.fingerprint)
    expect(call(api, 'printSchema', given)).toContain('CREATE TABLE M')
    expect(call(api, 'nextVersion', version, given)).toMatchObject({ kind: 'same' })
  }
  expect(call(api, 'changeText', { message: 'a', refusal: 'b', hint: 'c' })).toBe('a, but b; c')
})

test.each<readonly [keyof typeof t, unknown, string]>([
  ['int32', Number.NaN, 'the default NaN of p does not fit int32'],
  ['int32', undefined, 'the default absent of p'],
  ['double', Infinity, 'the default Infinity of p does not fit double'],
  ['int32', () => 1, 'the default a function of p'],
  ['int32', [1, 2], 'the default a list of p'],
  ['timestamp', new Date(Number.NaN), 'the default an invalid Date of p does not fit timestamp'],
  ['timestamp', 0.5, 'the default 0.5 of p does not fit timestamp'],
  ['timestamp', 1_767_225_600_001, 'the default 1767225600001 of p does not fit timestamp'],
  ['int64', 5, 'the default 5 of p does not fit int64; int64 takes a bigint: 5n'],
  ['int32', 5n, 'the default 5n of p does not fit int32; int32 takes a number: 5'],
  ['string', Uint8Array.of(1), 'the default one byte of p does not fit string'],
  ['string', 5n, 'the default 5n of p does not fit string'],
  ['int64', '5', 'the default "5" of p does not fit int64; int64 takes a bigint: 5n'],
])('a default of %s that is %s is told as it was given', (type, value, words) => {
  const declared = call(t, type)
  if (typeof declared !== 'object' || declared === null) throw new Error(`${type} is no type`)
  const properties = { id: t.int64(), p: call(declared, 'default', value) }
  const unkeyedT = call(calls, 'table', 'T', properties)
  if (typeof unkeyedT !== 'object' || unkeyedT === null) throw new Error('no table')
  const keyed = call(unkeyedT, 'key', 'id')
  if (typeof keyed !== 'object' || keyed === null) throw new Error('no table with a key')
  expect(() => call(calls, 'defineSchema', 'S', [call(keyed, 'root')])).toThrow(words)
})

test.each([
  ['double', '9007199254740993', '; it would become 9007199254740992'],
  ['double', '-12345678901234567890123', '; it would become '],
  ['double', '1e400', '; it is a number of 64 bits'],
  ['double', '1e-400', '; it would become 0'],
  ['float', '16777217', '; it would become 16777216'],
  ['float', '9007199254740993', '; it would become 9007199254740992'],
  ['integer', '9007199254740993', '; it is a whole number'],
  ['int64', '9223372036854775808', '; it is a whole number'],
  ['timestamp', '9007199254740993', '; it is microseconds since 1970'],
])('the default %s %s of a text is refused as it is written', (type, number, hint) => {
  const result = parseSchema(
    `CREATE SCHEMA S; CREATE TABLE T { required int64 id; required ${type} p DEFAULT ${number}; } PRIMARY KEY(id), ENTITY GROUP ROOT;`,
  )
  const message = `table T: the default ${number} of p does not fit ${type}`
  expect(result).toMatchObject({ ok: false, problems: [{ kind: 'bad-default', message }] })
  expect(result.ok ? '' : `; ${result.problems[0]?.hint}`).toContain(hint)
})

test.each([
  ['double', '9007199254740992', 9_007_199_254_740_992],
  ['double', '0.1', 0.1],
  ['double', '1e23', 1e23],
  ['float', '16777216', 16_777_216],
  ['float', '0.1', 0.1],
  ['integer', '-9007199254740991', -9_007_199_254_740_991],
  ['int64', '+9223372036854775807', '9223372036854775807'],
])('the default %s %s of a text is kept', (type, number, kept) => {
  const result = parseSchema(
    `CREATE SCHEMA S; CREATE TABLE T { required int64 id; required ${type} p DEFAULT ${number}; } PRIMARY KEY(id), ENTITY GROUP ROOT;`,
  )
  const properties = result.ok ? result.schema.tables[0]?.properties : undefined
  expect(properties?.[1]?.default).toBe(kept)
})

test('the default of a moment is a Date or microseconds, and no seconds or milliseconds', () => {
  const date = new Date('2026-01-31T08:30:00.001Z')
  const of = (value: number | bigint | Date) =>
    defineSchema('S', [
      table('M', { id: t.int64(), at: t.timestamp().default(value) })
        .key('id')
        .root(),
    ])
  for (const given of [date, date.getTime() * 1000, BigInt(date.getTime() * 1000)]) {
    expect(of(given).model.tables[0]?.properties[1]?.default).toBe(date.getTime() * 1000)
  }
  expect(() => of(date.getTime())).toThrow('it is microseconds since 1970')
  expect(() => of(Math.floor(date.getTime() / 1000))).toThrow('and no seconds or milliseconds')
  expect(() => of(new Date(Number.NaN))).toThrow('it is microseconds since 1970')
})
