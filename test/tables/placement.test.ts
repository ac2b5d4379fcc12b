/** Names of groups of tables with PLACEMENT: each has its place, and leads back to its row and to its schema. */
import { expect, test } from 'vitest'
import { parseSchema } from '../../schema/ddl-parse.ts'
import { problemText } from '../../schema/problem.ts'
import { firstVersion } from '../../schema/version.ts'
import { present } from '../../src/base/assert.ts'
import type { GroupId } from '../../src/base/ids.ts'
import { placeOf } from '../../src/base/placed-group.ts'
import { compileSchema } from '../../src/tables/compile.ts'
import type { CompiledSchema } from '../../src/tables/compiled.ts'
import { indexGroups } from '../../src/tables/global-entries.ts'
import { groupContext, rootOfGroup, schemaOfGroup } from '../../src/tables/group-context.ts'

const properties = '{ required string region; required int64 id; optional string nick; }'
const key = { region: 'eu', id: 7n }

function compiled(clauses: string, scatter = ''): CompiledSchema {
  const text = `CREATE SCHEMA S;
    CREATE TABLE U ${properties} PRIMARY KEY(region, id)${scatter}, ENTITY GROUP ROOT${clauses};
    CREATE TABLE W { required string region; required int64 id; required int32 n; }
      PRIMARY KEY(region, id, n), ENTITY GROUP KEY(region, id) REFERENCES U;
    CREATE GLOBAL INDEX UsersByNick ON U(nick) SHARDS 3;
    CREATE GLOBAL INDEX ByN ON W(n) SHARDS 2;`
  const result = parseSchema(text)
  if (!result.ok) throw new Error(result.problems.map(problemText).join('; '))
  return compileSchema(firstVersion(result.schema))
}

function groupIn(schema: CompiledSchema, of: { region: string; id: bigint } = key): GroupId {
  return groupContext(schema, present(schema.tables.get('U'), 'a table'), of).group
}

test.each([
  ['', '', undefined],
  [', PLACEMENT IN SET a', '', { kind: 'set', name: 'a' }],
  [', PLACEMENT IN REGION eu-1', ' SCATTER', { kind: 'region', name: 'eu-1' }],
  [', PLACEMENT BY region', '', { kind: 'region', name: 'eu' }],
  [', PLACEMENT BY region', ' SCATTER', { kind: 'region', name: 'eu' }],
])(
  'MOVE-8: the name of a group of a table with "%s"%s has its place, its schema and its key',
  (clause, scatter, place) => {
    const schema = compiled(clause, scatter)
    const group = groupIn(schema)
    expect(placeOf(group)).toEqual(place)
    expect(schemaOfGroup(group)).toBe('S')
    expect(rootOfGroup(schema, group)).toMatchObject({ root: { name: 'U' }, values: ['eu', 7n] })
    // A list of the table's groups finds all of them, whatever their places are.
    const { groupPrefix } = present(schema.tables.get('U'), 'a table')
    for (const region of ['eu', 'us']) {
      const other = groupIn(schema, { region, id: 8n })
      expect(Buffer.from(other, 'latin1').subarray(0, groupPrefix.length).equals(groupPrefix)).toBe(
        true,
      )
    }
  },
)

test('SCH-17: groups of an index are where the groups of its table are, if these have one place', () => {
  const places = (clause: string): readonly unknown[] => {
    const schema = compiled(clause)
    const indexes = [...schema.tables.values()].flatMap(({ globals }) => globals)
    const groups = indexes.flatMap(indexGroups)
    expect(new Set(groups).size).toBe(5)
    return [...new Set(groups.map((group) => JSON.stringify(placeOf(group) ?? 'none')))]
  }
  expect(places(', PLACEMENT IN SET a')).toEqual(['{"kind":"set","name":"a"}'])
  expect(places(', PLACEMENT BY region')).toEqual(['"none"'])
  expect(places('')).toEqual(['"none"'])
})

test('a key whose region is the name of none is refused before anything is sent', () => {
  const schema = compiled(', PLACEMENT BY region')
  for (const region of ['EU', '', 'a b', 'x'.repeat(33)]) {
    expect(() => groupIn(schema, { region, id: 1n })).toThrow(
      'is the name of no region, which has 1 to 32 of a-z, 0-9 and -; its groups have PLACEMENT BY region',
    )
  }
})
