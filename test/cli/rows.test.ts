/** The questions of `trilithon rows`: the JSON of a key in the forms that the table has. */
import { expect, test } from 'vitest'
import { parseSchema } from '../../schema/ddl-parse.ts'
import { findTable } from '../../schema/model.ts'
import { present } from '../../src/base/assert.ts'
import { parseQuery, buildRoot } from '../../src/cli/rows.ts'

const result = parseSchema(`CREATE SCHEMA Work;
  CREATE TABLE Task {
    required int64 id; optional timestamp due; optional message place { optional string city; };
  } PRIMARY KEY(id), ENTITY GROUP ROOT;`)
const task = present(
  result.ok ? findTable(result.schema, 'Task') : undefined,
  'test: the schema is right',
)

test('a query selects null as null, also inside a message', () => {
  expect(parseQuery(task, { id: '7', due: null, 'place.city': null })).toStrictEqual({
    ...{ id: 7n, due: null, 'place.city': null },
  })
})

test('bounds have the form of their property; a null among them is left for the call to refuse', () => {
  expect(parseQuery(task, { due: { gte: '2026-01-31T08:30:00Z', lt: null } })).toStrictEqual({
    due: { gte: 1_769_848_200_000_000, lt: null },
  })
  // A row that has such a moment is read by it.
  expect(parseQuery(task, { due: 1_769_848_200 })).toStrictEqual({ due: 1_769_848_200 })
  expect(parseQuery(task, { due: '1769848200001' })).toStrictEqual({ due: 1_769_848_200_001 })
  expect(parseQuery(task, { unknown: null, id: 5 })).toStrictEqual({ unknown: null, id: 5n })
})

const shop = parseSchema(`CREATE SCHEMA Shop;
  CREATE TABLE Order { required string country; required int64 customer; }
    PRIMARY KEY(country, customer), ENTITY GROUP ROOT;
  CREATE TABLE Item { required string land; required int64 buyer; required int32 line; }
    PRIMARY KEY(land, buyer, line), IN TABLE Order, ENTITY GROUP KEY(land, buyer) REFERENCES Order;`)
const tables = shop.ok ? shop.schema.tables : []

test.each([
  ['Order', {}, 'Order by country, customer, and lacks country, customer'],
  ['Order', { country: 'no' }, 'Order by country, customer, and lacks customer'],
  ['Item', {}, 'Item by land, buyer, and lacks land, buyer'],
  ['Item', { line: 1, buyer: 7n }, 'Item by land, buyer, and lacks land'],
])(
  'a --key of %s that is %o names no group, and the refusal names its columns',
  (name, key, words) => {
    const table = present(
      tables.find((one) => one.name === name),
      'test: the schema is right',
    )
    expect(() => buildRoot(tables, table, key)).toThrow(`--key names the group of a ${words}`)
  },
)

test('a --key with all columns of the group names it, and has others besides', () => {
  const table = present(tables[1], 'test: the schema is right')
  expect(buildRoot(tables, table, { land: 'no', buyer: 7n, line: 1 })).toEqual({
    ...{ table: 'Order', key: { country: 'no', customer: 7n } },
  })
})
