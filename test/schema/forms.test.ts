/** One model, three forms: drawn schemas go through text and JSON and come out as they were. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseSchema } from '../../schema/ddl-parse.ts'
import { printSchema } from '../../schema/ddl-print.ts'
import { decodeSchema, parseSchemaJson } from '../../schema/decode.ts'
import { decodeVersion } from '../../schema/version-json.ts'
import { calendars } from '../../schema/examples/calendar.ts'
import { photoApp } from '../../schema/examples/photos.ts'
import { fingerprintOf } from '../../schema/fingerprint.ts'
import type { Schema } from '../../schema/model.ts'
import { problemText } from '../../schema/problem.ts'
import { schemas } from './arbitrary.ts'

test('SCH-11: print and parse are inverse', () => {
  fc.assert(
    fc.property(schemas, (schema) => {
      const text = printSchema(schema)
      const result = parseSchema(text)
      expect(result).toEqual({ ok: true, schema })
      if (result.ok) expect(printSchema(result.schema)).toBe(text)
    }),
  )
})

test('SCH-12: JSON gives back what was made JSON of', () => {
  fc.assert(
    fc.property(schemas, (schema) => {
      expect(parseSchemaJson(JSON.stringify(schema))).toEqual({ ok: true, schema })
    }),
  )
})

test('SCH-12: an index that was stored before absent parts had entries has none for them', () => {
  const text = `CREATE SCHEMA S;
CREATE TABLE A { required int32 id; optional string x; } PRIMARY KEY(id), ENTITY GROUP ROOT;
CREATE LOCAL INDEX I ON A(x) WHERE PRESENT;`
  const result = parseSchema(text)
  if (!result.ok) throw new Error('the text is a schema')
  const [index] = result.schema.indexes
  const { absent, ...before } = index ?? {}
  expect(absent).toBe('left-out')
  expect(decodeSchema({ ...result.schema, indexes: [before] })).toEqual(result)
})

test.each([
  ['"name":"Other","name":"PhotoApp"', 'the name "name" is given twice in one object'],
  ['"name":"PhotoApp","n\\u0061me":"Other"', 'the name "n\\u0061me" is given twice in one object'],
  ['"name":9007199254740993', 'the number 9007199254740993 does not fit a JSON number'],
])('SCH-12: JSON that says %s is refused', (member, words) => {
  const json = JSON.stringify(photoApp.model).replace('"name":"PhotoApp"', member)
  const found = parseSchemaJson(json)
  expect(found.ok ? [] : found.problems.map(problemText)).toEqual([expect.stringContaining(words)])
})

test('SCH-12: a name that is given twice deep inside a schema is refused too', () => {
  const json = JSON.stringify(photoApp.model).replace(
    '"kind":"root"',
    '"kind":"root","kind":"root"',
  )
  const found = parseSchemaJson(json)
  expect(found).toMatchObject({ ok: false, problems: [{ kind: 'format' }] })
  expect(decodeVersion(json)).toBeUndefined()
})

test('SCH-12: messages inside one another without end are refused by their depth', () => {
  const open = '[{"name":"m","presence":"optional","type":{"kind":"message","properties":'
  const said = (depth: number): readonly string[] => {
    const deep = `${open.repeat(depth)}[]${'}}]'.repeat(depth)}`
    const json = JSON.stringify(photoApp.model).replace(
      '"properties":[',
      `"properties":${deep},"x":[`,
    )
    const found = parseSchemaJson(json.replace(/,"x":\[.*?\],"key"/, ',"key"'))
    return found.ok ? [] : found.problems.map(problemText)
  }
  expect(said(20)).toContain(
    'table User: message m.m.m.m.m.m.m.m: field m lies deeper than 8 messages inside one another',
  )
  expect(said(20_000)).toEqual(['lists and objects are nested deeper than 256 levels'])
})

/** Another form of the parts of a schema, by their path. */
function changed(value: unknown, at: readonly (string | number)[], to: unknown): unknown {
  const [step, ...rest] = at
  if (step === undefined) return to
  if (Array.isArray(value)) {
    const elements: readonly unknown[] = value
    return elements.map((one, index) => (index === step ? changed(one, rest, to) : one))
  }
  const record = typeof value === 'object' && value !== null ? { ...value } : {}
  const inner: unknown = Object.entries(record).find(([name]) => name === step)?.[1]
  return { ...record, [step]: changed(inner, rest, to) }
}

test.each([
  [['format'], 2, 'format is 2, and this program knows 1'],
  [['tables'], {}, 'tables is not a list'],
  [['tables', 0], 5, 'tables[0] is not an object'],
  [['tables', 0, 'kind'], 'branch', 'tables[0].kind is none of root, child'],
  [['tables', 0, 'name'], 7, 'tables[0].name is not a text'],
  [['tables', 0, 'color'], 'red', 'tables[0] has a member "color", which means nothing'],
  [['tables', 0, 'key', 'scatter'], 1, 'tables[0].key.scatter is not true or false'],
  [
    ['tables', 0, 'properties', 1, 'type'],
    { kind: 'int31' },
    'tables[0].properties[1].type.kind is none of',
  ],
  [['tables', 1, 'properties', 3, 'default'], {}, 'tables[1].properties[3].default is not a text'],
  [['indexes', 0, 'shards'], '64', 'indexes[0].shards is not a number'],
  [
    ['indexes', 0, 'parts', 0, 'direction'],
    'up',
    'indexes[0].parts[0].direction is none of asc, desc',
  ],
  [
    ['indexes', 0, 'parts', 0, 'path'],
    'mail',
    'index AccountsByEmail: mail is not a property of Account; did you mean email?',
  ],
  [[], null, 'the schema is not an object'],
])('SCH-12: JSON with another value at %j is refused by its place', (at, value, message) => {
  const result = decodeSchema(changed(calendars.model, at, value))
  expect(result.ok ? [] : result.problems.map(problemText)).toEqual([
    expect.stringContaining(message),
  ])
})

test('SCH-12: any JSON at all is a schema or is refused in words', () => {
  fc.assert(
    fc.property(fc.json(), fc.string(), (json, text) => {
      for (const given of [json, text]) {
        const result = parseSchemaJson(given)
        expect(result.ok ? '' : result.problems.map(problemText).join('')).not.toBe('')
      }
    }),
  )
})

test('SCH-11: any text at all is a schema or is refused with places inside it', () => {
  const pieces = [
    'CREATE',
    'SCHEMA',
    'TABLE',
    'T',
    '{',
    '}',
    '(',
    ')',
    ',',
    ';',
    'required',
    'string',
  ]
  const more = [
    'message',
    'PRIMARY KEY',
    'ENTITY GROUP ROOT',
    'INDEX',
    'LOCAL',
    'ON',
    '"a"',
    '7',
    '.',
    '"',
    '/*',
    '\n',
  ]
  const texts = fc.array(fc.constantFrom(...pieces, ...more)).map((words) => words.join(' '))
  fc.assert(
    fc.property(fc.oneof(texts, fc.string({ unit: 'binary' })), (text) => {
      const result = parseSchema(text)
      if (result.ok) return
      expect(result.problems).not.toEqual([])
      for (const { span } of result.problems) {
        expect(span?.start).toBeGreaterThanOrEqual(0)
        expect(span?.end).toBeLessThanOrEqual(text.length)
      }
    }),
  )
})

/** The same, in another order. */
function turned(schema: Schema): Schema {
  return {
    ...schema,
    tables: schema.tables
      .map((table) => ({ ...table, properties: [...table.properties].reverse() }))
      .reverse(),
    indexes: [...schema.indexes].reverse(),
  }
}

test('SCH-13: the fingerprint does not hang on the order of a declaration', () => {
  fc.assert(
    fc.property(schemas, (schema) => {
      expect(fingerprintOf(turned(schema))).toBe(fingerprintOf(schema))
    }),
  )
})

test('SCH-13: fingerprints stay what they were in every version of this program', () => {
  expect(fingerprintOf(calendars.model)).toBe('a143214e8e62fd5fc5f08dbbbe25340b')
})
