/** The placement of a schema's tables: each form of a schema says it, the checker refuses wrong ones, and no change alters it. */
import { expect, test } from 'vitest'
import { changeText } from '../../schema/change.ts'
import { parseSchema } from '../../schema/ddl-parse.ts'
import { printSchema } from '../../schema/ddl-print.ts'
import { reportProblems } from '../../schema/ddl-report.ts'
import { decodeSchema } from '../../schema/decode.ts'
import { defineSchema } from '../../schema/define.ts'
import { fingerprintOf } from '../../schema/fingerprint.ts'
import type { Schema, TablePlacement } from '../../schema/model.ts'
import { readPlacement } from '../../schema/placed.ts'
import { problemText, SchemaError } from '../../schema/problem.ts'
import { t } from '../../schema/property.ts'
import { ruleByKind } from '../../schema/rules.ts'
import { table } from '../../schema/table.ts'
import { firstVersion, nextVersion } from '../../schema/version.ts'

const properties = '{ required string region; required int64 id; optional string nick; }'

function text(clause: string, head = ''): string {
  return `CREATE SCHEMA S${head};\nCREATE TABLE U ${properties} PRIMARY KEY(region, id), ENTITY GROUP ROOT${clause};`
}

function parsed(source: string): Schema {
  const result = parseSchema(source)
  if (!result.ok) throw new Error(result.problems.map(problemText).join('; '))
  return result.schema
}

function placementIn(schema: Schema, name = 'U'): TablePlacement | undefined {
  const found = schema.tables.find((one) => one.name === name)
  return found?.kind === 'root' ? found.placement : undefined
}

const keyed = table('U', { region: t.string(), id: t.int64(), nick: t.string().optional() }).key(
  'region',
  'id',
)

test.each([
  [', PLACEMENT IN SET west-2', keyed.root({ placement: { set: 'west-2' } })],
  [', placement in region "eu"', keyed.root({ placement: { region: 'eu' } })],
  [', PLACEMENT IN REGION "2-b"', keyed.root({ placement: { region: '2-b' } })],
  [', PLACEMENT BY region', keyed.root({ placement: { by: 'region' } })],
  ['', keyed.root()],
])('SCH-17: %s is one schema in text, in TypeScript, in JSON and printed', (clause, declared) => {
  const schema = parsed(text(clause))
  expect(defineSchema('S', [declared]).model).toEqual(schema)
  expect(parsed(printSchema(schema))).toEqual(schema)
  expect(decodeSchema(JSON.parse(JSON.stringify(schema)))).toEqual({ ok: true, schema })
})

test('SCH-17: the placement of a schema is that of each root table that says none', () => {
  const more = `CREATE TABLE V ${properties} PRIMARY KEY(region), ENTITY GROUP ROOT, PLACEMENT IN SET a;
    CREATE TABLE W { required string region; required int64 id; required int32 n; }
      PRIMARY KEY(region, id, n), ENTITY GROUP KEY(region, id) REFERENCES U;`
  const schema = parsed(`${text('', ' PLACEMENT IN REGION eu')}${more}`)
  expect(['U', 'V', 'W'].map((name) => placementIn(schema, name))).toEqual([
    { kind: 'region', name: 'eu' },
    { kind: 'set', name: 'a' },
    undefined,
  ])
  const declared = defineSchema('S', [keyed.root()], { placement: { region: 'eu' } })
  expect(declared.model).toEqual(parsed(text(', PLACEMENT IN REGION eu')))
})

test.each([
  [
    ', PLACEMENT BY nick',
    'table U: PLACEMENT BY nick, which is not in its primary key; there is region, id',
  ],
  [
    ', PLACEMENT BY id',
    'table U: PLACEMENT BY id, which is of type int64; the value is the name of a region: make it a string',
  ],
  [
    ', PLACEMENT IN SET "A b"',
    'table U: PLACEMENT IN SET "A b" names no set; a set or a region has 1 to 32 of a-z, 0-9 and -',
  ],
])('SCH-17: %s is one clear error, in its place', (clause, words) => {
  const source = text(clause)
  const result = parseSchema(source)
  if (result.ok) throw new Error('it is refused')
  expect(result.problems.map(problemText)).toEqual([words])
  expect(result.problems.map(({ kind }) => ruleByKind[kind])).toEqual(['SCH-17'])
  const [{ span = { start: 0, end: 0 } } = {}] = result.problems
  expect(`, ${source.slice(span.start, span.end)}`).toBe(clause)
  expect(reportProblems(result.problems, { file: 's.sql', text: source })).toContain(
    words.split(';')[0],
  )
})

test('SCH-17: a child table has no placement: its rows are where their root row is', () => {
  const child = `CREATE TABLE W { required string region; required int64 id; }
    PRIMARY KEY(region, id), ENTITY GROUP KEY(region, id) REFERENCES U, PLACEMENT IN SET a;`
  const result = parseSchema(`${text('')}${child}`)
  expect(result.ok ? [] : result.problems.map(problemText)).toEqual([
    'table W: PLACEMENT is of entity group roots; its rows are where the group of their root row is: say it of the root table',
  ])
})

test.each([
  [', PLACEMENT IN SET a, PLACEMENT IN SET b', 'PLACEMENT stands twice in one table'],
  [', PLACEMENT ON region', 'expected IN or BY, found ON'],
  [', PLACEMENT IN ZONE a', 'expected SET or REGION, found ZONE'],
  [', PLACEMENT IN SET ,', 'expected the name of a set, found ","'],
])('SCH-11: %s is a mistake of form with its words', (clause, words) => {
  const result = parseSchema(text(clause))
  expect(result.ok ? [] : result.problems.map(({ message }) => message)).toEqual([words])
})

test('a placement that is none is refused in JavaScript, too', () => {
  for (const placement of [
    'eu',
    { zone: 'a' },
    { set: 'a', region: 'b' },
    { set: 5 },
    {},
    [],
    null,
  ]) {
    expect(() => readPlacement('table U', placement)).toThrow(SchemaError)
  }
  // @ts-expect-error -- no such place
  expect(() => keyed.root({ placement: { zone: 'a' } })).toThrow('expected { set:')
  // @ts-expect-error -- not a string of the key
  expect(() => defineSchema('S', [keyed.root({ placement: { by: 'nick' } })])).toThrow(
    'PLACEMENT BY nick, which is not in its primary key',
  )
})

test.each([
  ['', ', PLACEMENT IN SET a', 'no PLACEMENT to PLACEMENT IN SET a'],
  [', PLACEMENT IN SET a', '', 'PLACEMENT IN SET a to no PLACEMENT'],
  [
    ', PLACEMENT IN REGION a',
    ', PLACEMENT IN SET a',
    'PLACEMENT IN REGION a to PLACEMENT IN SET a',
  ],
  [
    ', PLACEMENT IN REGION a',
    ', PLACEMENT BY region',
    'PLACEMENT IN REGION a to PLACEMENT BY region',
  ],
])('SCH-17: a table with "%s" never gets "%s"', (before, after, words) => {
  const [earlier, later] = [parsed(text(before)), parsed(text(after))]
  expect(fingerprintOf(earlier)).not.toBe(fingerprintOf(later))
  const step = nextVersion(firstVersion(earlier), later)
  expect(step.kind === 'refused' ? step.changes.map(changeText) : step).toEqual([
    `table U would change from ${words}, but the groups that are there would be elsewhere, and nothing would find them; make a new table and copy the rows`,
  ])
})
