/** What `trilithon rows` asks for: the JSON of a key in the forms that the table has. */
import { expect, test } from 'vitest'
import { parseSchema } from '../../schema/ddl-parse.ts'
import { findTable } from '../../schema/model.ts'
import { present } from '../../src/base/assert.ts'
import { queryOf } from '../../src/cli/rows.ts'

const result = parseSchema(`CREATE SCHEMA Work;
  CREATE TABLE Task {
    required int64 id; optional timestamp due; optional message place { optional string city; };
  } PRIMARY KEY(id), ENTITY GROUP ROOT;`)
const task = present(
  result.ok ? findTable(result.schema, 'Task') : undefined,
  'test: the schema is right',
)

test('a query selects null as null, also inside a message', () => {
  expect(queryOf(task, { id: '7', due: null, 'place.city': null })).toStrictEqual({
    ...{ id: 7n, due: null, 'place.city': null },
  })
})

test('bounds have the form of their property; a null among them is left for the call to refuse', () => {
  expect(queryOf(task, { due: { gte: '2026-01-31T08:30:00Z', lt: null } })).toStrictEqual({
    due: { gte: 1_769_848_200_000_000, lt: null },
  })
  expect(queryOf(task, { unknown: null, id: 5 })).toStrictEqual({ unknown: null, id: 5n })
})
