import { expect, test } from 'vitest'
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
    'timestampOf: the date is a Date',
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

test('the default of a moment is a Date or microseconds, and no milliseconds', () => {
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
  expect(() => of(new Date(Number.NaN))).toThrow('it is microseconds since 1970')
})
