/** Fields of files as properties of tables. */
import { expect, test } from 'vitest'
import { parseSchema } from '../../schema/ddl-parse.ts'
import { findTable, type Table } from '../../schema/model.ts'
import { present } from '../../src/base/assert.ts'
import type { Json } from '../../src/cells/body.ts'
import { rowOfFields, type Ignored } from '../../src/cli/row-fields.ts'
import { fieldSource, type Sources } from '../../src/cli/row-sources.ts'

const result = parseSchema(`CREATE SCHEMA Files;
  CREATE TABLE Thing {
    required int64 id; required int32 count; optional string name; optional bool done;
    optional timestamp at; optional bytes digest; optional uuid mark; optional json rest; optional double weight;
    repeated string tag; repeated message part { required integer id; optional string role; };
  } PRIMARY KEY(id), ENTITY GROUP ROOT;`)
const thing: Table = present(
  result.ok ? findTable(result.schema, 'Thing') : undefined,
  'test: the schema is right',
)

function row(fields: Json, sources: Sources = new Map(), ignored: Ignored = new Map()): unknown {
  return rowOfFields(thing, fields, sources, ignored)
}

test('JSON fields become properties by their names', () => {
  const mark = '01234567-89AB-CDEF-0123-456789ABCDEF'
  expect(
    row({
      ...{ id: '9007199254740993', count: 7, name: 'a', done: true, digest: '00ff', mark },
      ...{ at: '2026-01-31T08:30:00.000001Z', rest: { a: [1] }, weight: 1.5 },
      ...{ tag: ['x', 'y'], part: [{ id: 1, role: 'artist' }, { id: 2 }] },
    }),
  ).toEqual({
    ...{ id: 9007199254740993n, count: 7, name: 'a', done: true },
    ...{ digest: Buffer.from([0, 255]), mark: mark.toLowerCase() },
    ...{ at: 1769848200000001, rest: { a: [1] }, weight: 1.5 },
    ...{ tag: ['x', 'y'], part: [{ id: 1, role: 'artist' }, { id: 2 }] },
  })
})

test('texts of a CSV become what the property is', () => {
  const fields = { id: '5', count: '-7', name: '007', done: 'false', at: '12', weight: '1e3' }
  expect(row({ ...fields, tag: 'x' })).toEqual({
    ...{ id: 5n, count: -7, name: '007', done: false, at: 12, weight: 1000, tag: ['x'] },
  })
})

test('a row leaves out null and passes values of a wrong type on to the validator', () => {
  expect(row({ id: 1.5, count: 'many', name: null, done: 'perhaps' })).toEqual({
    ...{ id: 1.5, count: 'many', done: 'perhaps' },
  })
})

test('a property may be found under another name, inside others too', () => {
  const sources = new Map([
    ['id', present(fieldSource('owners.0.id'), 'test: a path')],
    ['count', present(fieldSource('n'), 'test: a path')],
  ])
  const ignored: Ignored = new Map()
  const fields = { n: 2, owners: [{ id: 7 }, { id: 8 }], count: 3 }
  expect(row(fields, sources, ignored)).toEqual({ id: 7n, count: 2 })
  expect([...ignored]).toEqual([['count', 1]])
})

test('ignored fields are counted by path', () => {
  const ignored: Ignored = new Map()
  row({ id: 1, count: 1, more: 1, part: [{ id: 1, era: {} }] }, new Map(), ignored)
  row({ id: 1, count: 1, more: 1 }, new Map(), ignored)
  expect([...ignored]).toEqual([
    ['part.era', 1],
    ['more', 2],
  ])
})
