/** Each bad schema is refused with one clear error, the same in whatever form it was declared. */
import { expect, test } from 'vitest'
import { parseSchema } from '../../schema/ddl-parse.ts'
import { defineSchema } from '../../schema/define.ts'
import { propertiesMax, tablesMax } from '../../schema/limits.ts'
import { problemText, SchemaError, type SchemaProblem } from '../../schema/problem.ts'
import { t } from '../../schema/property.ts'
import { ruleByKind } from '../../schema/rules.ts'
import { table } from '../../schema/table.ts'
import { indexes } from './bad-indexes.ts'
import * as bad from './bad-schemas.ts'

type Tables = Parameters<typeof defineSchema>[1]

function inText(text: string): readonly SchemaProblem[] {
  const result = parseSchema(`CREATE SCHEMA S; ${bad.userText} ${text}`)
  return result.ok ? [] : result.problems
}

function inTypeScript(tables: Tables): readonly SchemaProblem[] {
  try {
    defineSchema('S', [bad.User, ...tables])
    return []
  } catch (error) {
    if (error instanceof SchemaError) return error.problems
    throw error
  }
}

/** One problem, in both forms, of one of the rules. */
function checkOne(schema: bad.BadSchema, rules: readonly string[]): void {
  const found = [inText(schema.text)]
  if (schema.tables !== undefined) found.push(inTypeScript(schema.tables()))
  for (const problems of found) {
    expect(problems.map(problemText)).toEqual([schema.problem])
    expect(problems.map(({ kind }) => ruleByKind[kind])).toEqual([expect.toBeOneOf([...rules])])
  }
}

test.each(Object.entries(bad.names))('SCH-1, SCH-2: %s is one clear error', (_, schema) => {
  checkOne(schema, ['SCH-1', 'SCH-2'])
})

test.each(Object.entries(bad.defaults))('SCH-3: %s is one clear error', (_, schema) => {
  checkOne(schema, ['SCH-3'])
})

test.each(Object.entries(bad.keys))('SCH-4, SCH-5: %s is one clear error', (_, schema) => {
  checkOne(schema, ['SCH-2', 'SCH-4', 'SCH-5', 'SCH-10'])
})

test.each(Object.entries(bad.sequences))('SCH-6: %s is one clear error', (_, schema) => {
  checkOne(schema, ['SCH-5', 'SCH-6'])
})

test.each(Object.entries(bad.expiries))('SCH-16: %s is one clear error', (_, schema) => {
  checkOne(schema, ['SCH-16'])
})

test.each(Object.entries(bad.groups))('SCH-7, SCH-8: %s is one clear error', (_, schema) => {
  checkOne(schema, ['SCH-2', 'SCH-5', 'SCH-7', 'SCH-8'])
})

test.each(Object.entries(indexes))('SCH-9: %s is one clear error', (_, schema) => {
  checkOne(schema, ['SCH-1', 'SCH-2', 'SCH-4', 'SCH-5', 'SCH-7', 'SCH-9'])
})

test('a schema without tables is one clear error', () => {
  const result = parseSchema('CREATE SCHEMA S;')
  expect(result.ok ? [] : result.problems.map(problemText)).toEqual(['schema S has no tables'])
  expect(() => defineSchema('S', [])).toThrow('schema S: schema S has no tables')
})

test('SCH-10: more tables or properties than the bounds allow are one error, not thousands', () => {
  const names = Array.from({ length: tablesMax }, (_, index) => `T${index}`)
  const tables = names.map((name) => table(name, { id: t.json() }).key().root())
  const told = inTypeScript(tables).map(problemText)
  expect(told).toEqual([`the schema has ${tablesMax + 1} tables, at most ${tablesMax}`])

  const properties = Array.from({ length: propertiesMax }, (_, index) => `optional bool p${index};`)
  const text = `CREATE TABLE A { required string id; ${properties.join(' ')} } PRIMARY KEY(id), ENTITY GROUP ROOT;`
  expect(inText(text).map(problemText)).toEqual([
    `table A: has ${propertiesMax + 1} properties, fields of messages included; at most ${propertiesMax}`,
  ])
})

test('an error in TypeScript tells every problem, a line each', () => {
  const A = table('A', { id: t.int32().default(0.5) })
    .key()
    .root()
  const B = table('B', { id: t.string() }).key('id', 'id').root()
  expect(() => defineSchema('S', [A, B])).toThrow(
    `schema S has 3 problems:
table A: its primary key has no parts
table A: the default 0.5 of id does not fit int32; it is a whole number from -2147483648 to 2147483647
table B: id is in its primary key twice`,
  )
})
