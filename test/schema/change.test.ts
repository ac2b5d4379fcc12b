/** Online schema change: additions that pass, changes that are refused, and parts that stay. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { changeText } from '../../schema/change.ts'
import { parseSchema } from '../../schema/ddl-parse.ts'
import { diffSchemas } from '../../schema/diff.ts'
import { calendars } from '../../schema/examples/calendar.ts'
import { photoApp } from '../../schema/examples/photos.ts'
import { fingerprintOf } from '../../schema/fingerprint.ts'
import type { Property, Schema, Table } from '../../schema/model.ts'
import {
  firstVersion,
  nextVersion,
  withoutIndex,
  type SchemaVersion,
} from '../../schema/version.ts'
import { schemas } from './arbitrary.ts'

const base = `CREATE SCHEMA S;
CREATE TABLE User {
  required int64 id;
  required string name DEFAULT "new";
  required string mail;
  optional string nick;
  repeated string tag;
  optional message home { required string city; };
} PRIMARY KEY(id), ENTITY GROUP ROOT;
CREATE TABLE Photo {
  required int64 id;
  required int64 at;
  required int64 size;
} PRIMARY KEY(id, at), IN TABLE User, ENTITY GROUP KEY(id) REFERENCES User;
CREATE LOCAL INDEX BySize ON Photo(id, size);
`

function parsed(text: string): Schema {
  const result = parseSchema(text)
  if (!result.ok) throw new Error(result.problems.map(({ message }) => message).join('\n'))
  return result.schema
}

/** From the base to what it is with `to` in the place of `from`, as lines. */
function changes(from: string, to: string): readonly string[] {
  expect(base.split(from)).toHaveLength(2)
  return diffSchemas(parsed(base), parsed(base.replace(from, to))).map(changeText)
}

test.each([
  [
    'a table',
    'CREATE LOCAL',
    'CREATE TABLE T { required uuid id; } PRIMARY KEY(id), ENTITY GROUP ROOT; CREATE LOCAL',
    ['table T is new'],
  ],
  [
    'a table with its index',
    'CREATE LOCAL INDEX BySize',
    'CREATE TABLE T { required uuid id; } PRIMARY KEY(id), ENTITY GROUP ROOT; CREATE LOCAL INDEX I ON T(id); CREATE LOCAL INDEX BySize',
    ['table T is new', 'index I on T is new'],
  ],
  [
    'an index on a table that is there',
    'CREATE LOCAL INDEX BySize',
    'CREATE UNIQUE LOCAL INDEX ByTime ON Photo(at); CREATE LOCAL INDEX BySize',
    ['index ByTime on Photo is new; trilithon index build ByTime makes it ready to be asked'],
  ],
  [
    'an optional property',
    'required string mail;',
    'required string mail; optional json note;',
    ['property User.note is new'],
  ],
  [
    'a list',
    'required string mail;',
    'required string mail; repeated string note;',
    ['property User.note is new'],
  ],
  [
    'a required property with a default',
    'required string mail;',
    'required string mail; required int32 note DEFAULT 0;',
    ['property User.note is new'],
  ],
  [
    'a field of a message',
    'required string city;',
    'required string city; optional string street;',
    ['property User.home.street is new'],
  ],
  [
    'a whole message',
    'required string mail;',
    'required string mail; optional message m { required string s; }',
    ['property User.m is new'],
  ],
  [
    'ON DELETE',
    'REFERENCES User;',
    'REFERENCES User, ON DELETE KEEP;',
    ['table Photo gets ON DELETE KEEP'],
  ],
  [
    'a first default',
    'required string mail;',
    'required string mail DEFAULT "?";',
    ['property User.mail gets the default "?"'],
  ],
])('SCH-14: %s can be added while a cluster works', (_, from, to, expected) => {
  expect(changes(from, to)).toEqual(expected)
  const step = nextVersion(firstVersion(parsed(base)), parsed(base.replace(from, to)))
  expect(step).toMatchObject({ kind: 'next', version: { version: 2 } })
})

const moved = 'the rows that are there would have to move; make a new table and copy them'
const keyed = 'the rows that are there are stored under their keys; make a new table and copy them'

test.each([
  [
    'required string mail;',
    'required string mail; required int32 note;',
    'property User.note is new, but it is required, and the rows that are there are without it; make it optional, or give it a DEFAULT',
  ],
  [
    'required int64 size;',
    'required int64 size; required sequence n;',
    'property Photo.n is new, but it is required, and the rows that are there are without it; a sequence is declared together with its table',
  ],
  [
    'required string city;',
    'required string city; required string street;',
    'property User.home.street is new, but it is required, and the rows that are there are without it; make it optional, or give it a DEFAULT',
  ],
  [
    'optional string nick;',
    '',
    'property User.nick is gone, but rows have it, and programs of the earlier version use it; leave it, and write it no more',
  ],
  [
    'optional string nick;',
    'optional bytes nick;',
    'property User.nick would change from string to bytes, but rows that are there hold values of string; add an optional property',
  ],
  [
    'optional message home { required string city; };',
    'optional json home;',
    'property User.home would change from message to json, but rows that are there hold values of message; add an optional property',
  ],
  [
    'optional string nick;',
    'required string nick;',
    'property User.nick would change from optional to required, but rows that are there may be without it',
  ],
  [
    'required string mail;',
    'optional string mail;',
    'property User.mail would change from required to optional, but programs of the earlier version count on its being there',
  ],
  [
    'repeated string tag;',
    'optional string tag;',
    'property User.tag would change from repeated to optional, but rows that are there hold lists',
  ],
  [
    'optional string nick;',
    'repeated string nick;',
    'property User.nick would change from optional to repeated, but rows that are there hold single values',
  ],
  [
    'DEFAULT "new"',
    'DEFAULT "old"',
    'property User.name would change its default "new" to "old", but rows that were written without it would change with it',
  ],
  [
    ' DEFAULT "new"',
    '',
    'property User.name would lose its default "new", but rows that were written without it would change with it',
  ],
  [
    'PRIMARY KEY(id, at)',
    'PRIMARY KEY(id, at, size)',
    `the key of table Photo would change from (id, at) to (id, at, size), but ${keyed}`,
  ],
  [
    'PRIMARY KEY(id, at)',
    'PRIMARY KEY(id, at DESC)',
    `the key of table Photo would change from (id, at) to (id, at DESC), but ${keyed}`,
  ],
  [
    'PRIMARY KEY(id),',
    'PRIMARY KEY(id) SCATTER,',
    `the key of table User would change from (id) to (id) SCATTER, but ${keyed}`,
  ],
  [
    'IN TABLE User, ',
    '',
    `table Photo would change from IN TABLE User, ENTITY GROUP KEY(id) REFERENCES User to ENTITY GROUP KEY(id) REFERENCES User, but ${moved}`,
  ],
  [
    'IN TABLE User, ENTITY GROUP KEY(id) REFERENCES User',
    'ENTITY GROUP ROOT',
    `table Photo would change from IN TABLE User, ENTITY GROUP KEY(id) REFERENCES User to ENTITY GROUP ROOT, but ${moved}`,
  ],
  [
    'ON Photo(id, size);',
    'ON Photo(size);',
    'index BySize would be declared differently, but its entries are stored as it was declared',
  ],
  [
    'LOCAL INDEX',
    'UNIQUE LOCAL INDEX',
    'index BySize would be declared differently, but its entries are stored as it was declared',
  ],
  [
    'CREATE LOCAL INDEX BySize ON Photo(id, size);',
    '',
    'index BySize is gone, but its entries are there, and programs of the earlier version ask it; take it out first: trilithon index drop BySize',
  ],
  [
    'SCHEMA S;',
    'SCHEMA T;',
    'schema S would become T, but the name is what tells one schema from another',
  ],
])('SCH-14: from "%s" to "%s" is refused with its reason', (from, to, expected) => {
  expect(changes(from, to)).toEqual([expected])
  const step = nextVersion(firstVersion(parsed(base)), parsed(base.replace(from, to)))
  expect(step).toMatchObject({ kind: 'refused', changes: [{ refusal: expect.any(String) }] })
})

test('SCH-14: a table that is gone is one refusal, whatever it had', () => {
  const [, photo = '', index = ''] =
    /(CREATE TABLE Photo[^]*?User;\n)(CREATE LOCAL.*\n)/.exec(base) ?? []
  expect(changes(photo + index, '')).toEqual([
    'table Photo is gone, but its rows are there, and programs of the earlier version use them',
  ])
})

test('SCH-14: one refusal keeps all changes from being made', () => {
  const later = parsed(
    base.replace('optional string nick;', 'required string nick; optional string note;'),
  )
  const step = nextVersion(firstVersion(parsed(base)), later)
  expect(step.kind === 'refused' ? step.changes.map(({ kind }) => kind) : []).toEqual([
    'change-presence',
    'add-property',
  ])
})

test('SCH-13: another order is the same version', () => {
  fc.assert(
    fc.property(schemas, (schema) => {
      const current = firstVersion(schema)
      const other = { ...schema, tables: [...schema.tables].reverse() }
      expect(nextVersion(current, other)).toEqual({ kind: 'same', version: current })
    }),
  )
})

/** Every way to change one member of a schema's data into something else. */
function edits(value: unknown, change: (value: unknown) => unknown): readonly unknown[] {
  if (Array.isArray(value)) {
    const list: readonly unknown[] = value
    return [
      ...list.map((_, gone) => list.filter((_element, index) => index !== gone)),
      ...list.flatMap((element, at) => edits(element, change).map((other) => list.with(at, other))),
    ]
  }
  if (typeof value !== 'object' || value === null) return [change(value)]
  return Object.entries(value).flatMap(([name, member]) => {
    // The kind of a table or index decides about its form.
    if (name === 'kind' && 'name' in value) return []
    return edits(member, change).map((other) => ({ ...value, [name]: other }))
  })
}

const otherWord: Readonly<Record<string, string>> = {
  ...{ asc: 'desc', desc: 'asc' },
  ...{ required: 'optional', optional: 'repeated', repeated: 'required' },
}

function other(value: unknown): unknown {
  if (typeof value === 'boolean') return !value
  if (typeof value === 'number') return value + 1
  const text = String(value)
  return otherWord[text] ?? `${text}_`
}

test.each([
  ['photos', photoApp.model],
  ['calendars', calendars.model],
])('SCH-13: every edit of %s changes the fingerprint and shows in the diff', (_, schema) => {
  const all = edits(schema, other)
  expect(all.length).toBeGreaterThan(50)
  for (const edited of all) {
    if (!isSchema(edited)) continue
    const isSame = fingerprintOf(edited) === fingerprintOf(schema)
    const told = diffSchemas(schema, edited)
    expect({ isSame, told: told.length > 0 }, JSON.stringify(edited)).toEqual({
      isSame: false,
      told: true,
    })
  }
})

/** Edits keep the form, except for the format's number, which is not a matter of two schemas. */
function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && 'format' in value && value.format === 1
}

/** The schema with optional properties in every table and message, at the front, and one more table. */
function grown(schema: Schema): Schema {
  const tables = schema.tables.map((table) => {
    return { ...table, properties: withMore(table.properties) }
  })
  const extra: Table = {
    ...{ kind: 'root', name: 'Extra' },
    properties: [{ name: 'id', presence: 'required', type: { kind: 'uuid' } }],
    key: { parts: [{ property: 'id', direction: 'asc' }], scatter: false },
  }
  return { ...schema, tables: [extra, ...tables] }
}

function withMore(properties: readonly Property[]): readonly Property[] {
  const more: Property = { name: 'more', presence: 'optional', type: { kind: 'string' } }
  const deeper = properties.map((property): Property => {
    if (property.type.kind !== 'message') return property
    const fields = withMore(property.type.properties)
    return { ...property, type: { kind: 'message', properties: fields } }
  })
  return [more, ...deeper]
}

function numbersOf({ numbers }: SchemaVersion): Readonly<Record<string, number>> {
  const all: Record<string, number> = { ...numbers.stored }
  for (const [path, number] of Object.entries(numbers.properties)) all[`.${path}`] = number
  return all
}

test('SCH-15: numbers once given stay, new ones follow, and none is given twice', () => {
  fc.assert(
    fc.property(schemas, (schema) => {
      const first = firstVersion(schema)
      const step = nextVersion(first, grown(schema))
      if (step.kind !== 'next') throw new Error('growth is never refused')
      expect(numbersOf(step.version)).toMatchObject(numbersOf(first))
      expect(numbersOf(step.version)['Extra']).toBe(
        schema.tables.length + schema.indexes.length + 1,
      )
      // A number is unique within its place: the path before the last dot.
      const places = Object.entries(numbersOf(step.version)).map(([path, number]) => {
        return `${path.slice(0, path.lastIndexOf('.') + 1)} ${number}`
      })
      expect(new Set(places).size).toBe(places.length)
    }),
  )
})

test('SCH-15: the first version numbers things in the order of their declaration', () => {
  expect(firstVersion(photoApp.model)).toMatchObject({
    version: 1,
    numbers: {
      stored: { User: 1, Photo: 2, PhotosByTime: 3, PhotosByTag: 4 },
      properties: { 'User.user_id': 1, 'User.name': 2, 'Photo.user_id': 1, 'Photo.tag': 6 },
    },
  })
  expect(firstVersion(calendars.model).numbers.properties).toMatchObject({
    'Event.place': 6,
    'Event.place.name': 1,
    'Event.place.geohash': 4,
    'Event.guest': 7,
    'Event.guest.account_id': 1,
  })
})

const byNick = 'CREATE LOCAL INDEX ByNick ON User(nick)'

test('SCH-13: which rows an index has is a part of what it is, and is refused to change', () => {
  const first = parsed(`${base}${byNick};`)
  const leftOut = parsed(`${base}${byNick} WHERE PRESENT;`)
  expect(fingerprintOf(first)).not.toBe(fingerprintOf(leftOut))
  const message =
    'index ByNick would be declared differently, but its entries are stored as it was declared'
  expect(diffSchemas(leftOut, first).map(changeText)).toEqual([`${message}; add WHERE PRESENT`])
  expect(diffSchemas(first, leftOut).map(changeText)).toEqual([
    `${message}; leave WHERE PRESENT out`,
  ])
})

/** The base, where Photo says this. */
function deleting(rule: string): Schema {
  return parsed(base.replace('REFERENCES User;', `REFERENCES User${rule};`))
}

test.each([
  ['', ' ON DELETE KEEP', undefined],
  ['', ' ON DELETE CASCADE', undefined],
  [' ON DELETE KEEP', ' ON DELETE RESTRICT', undefined],
  [' ON DELETE RESTRICT', ' ON DELETE CASCADE', undefined],
  [
    ' ON DELETE CASCADE',
    '',
    'table Photo would change from ON DELETE CASCADE to no ON DELETE, but programs that know it so go on, and it goes from KEEP to RESTRICT to CASCADE only; write ON DELETE CASCADE',
  ],
  [
    ' ON DELETE CASCADE',
    ' ON DELETE RESTRICT',
    'table Photo would change from ON DELETE CASCADE to ON DELETE RESTRICT, but programs that know it so go on, and it goes from KEEP to RESTRICT to CASCADE only; write ON DELETE CASCADE',
  ],
])('SCH-14: from "%s" a table goes to "%s" and not back', (before, after, refused) => {
  const clause = (rule: string): string => (rule === '' ? '' : `,${rule}`)
  const step = nextVersion(firstVersion(deleting(clause(before))), deleting(clause(after)))
  if (refused === undefined) expect(step.kind).toBe('next')
  else expect(step.kind === 'refused' ? step.changes.map(changeText) : step).toEqual([refused])
})

test('SCH-14: a table restricts that came since no ON DELETE means so, and stays as it is', () => {
  const { restricting: _, ...old } = firstVersion(parsed(base))
  const more = `${base}CREATE TABLE Tag { required int64 id; required int32 n; }
    PRIMARY KEY(id, n), IN TABLE User, ENTITY GROUP KEY(id) REFERENCES User;`
  const second = nextVersion(old, parsed(more))
  expect(second).toMatchObject({ kind: 'next', version: { restricting: ['Tag'] } })
  if (second.kind !== 'next') throw new Error('a table may come')
  const third = nextVersion(
    second.version,
    parsed(more.replace('optional string nick;', 'optional string nick; optional string x;')),
  )
  expect(third).toMatchObject({ kind: 'next', version: { version: 3, restricting: ['Tag'] } })
  expect(withoutIndex(second.version, 'BySize').restricting).toEqual(['Tag'])
  expect(firstVersion(parsed(base)).restricting).toEqual(['Photo'])
})

test.each([
  ['', ', TTL 30 DAYS', 'no TTL to TTL 30 DAYS'],
  [', TTL 30 DAYS', '', 'TTL 30 DAYS to no TTL'],
  [', TTL 1 HOUR', ', TTL 61 MINUTES', 'TTL 1 HOURS to TTL 61 MINUTES'],
])('SCH-16: a table has its TTL from "%s" on, not "%s" later', (before, after, words) => {
  const [earlier, later] = [before, after].map(deleting)
  if (earlier === undefined || later === undefined) throw new Error('two schemas')
  const step = nextVersion(firstVersion(earlier), later)
  expect(step.kind === 'refused' ? step.changes.map(changeText) : step).toEqual([
    `table Photo would change from ${words}, but programs would not agree on which rows are there while they learn of it; make a new table and copy them`,
  ])
  const hours = [', TTL 2 HOURS', ', TTL 120 MINUTES'].map((one) => fingerprintOf(deleting(one)))
  expect(new Set(hours).size).toBe(1)
})
