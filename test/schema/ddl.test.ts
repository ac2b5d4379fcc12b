/** The text of schemas: what it means, its one printed form, and errors that point at their place. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parseSchema } from '../../schema/ddl-parse.ts'
import { printSchema } from '../../schema/ddl-print.ts'
import { reportProblems } from '../../schema/ddl-report.ts'
import { calendars } from '../../schema/examples/calendar.ts'
import { catalogue } from '../../schema/examples/catalogue.ts'
import { photoApp } from '../../schema/examples/photos.ts'
import { ddlCharsMax, problemsMax } from '../../schema/limits.ts'
import type { Schema } from '../../schema/model.ts'

function example(name: string): string {
  return readFileSync(new URL(`../../schema/examples/${name}`, import.meta.url), 'utf8')
}

function parsed(text: string): Schema {
  const result = parseSchema(text)
  if (!result.ok) throw new Error(reportProblems(result.problems, { file: 'text', text }))
  return result.schema
}

function report(text: string): string {
  const result = parseSchema(text)
  return result.ok ? 'nothing is wrong' : reportProblems(result.problems, { file: 'f', text })
}

/** Figure 3 of the Megastore paper. */
const figure3 = `
CREATE SCHEMA PhotoApp;

CREATE TABLE User {
  required int64 user_id;
  required string name;
} PRIMARY KEY(user_id), ENTITY GROUP ROOT;

CREATE TABLE Photo {
  required int64 user_id;
  required int32 photo_id;
  required int64 time;
  required string full_url;
  optional string thumbnail_url;
  repeated string tag;
} PRIMARY KEY(user_id, photo_id),
  IN TABLE User,
  ENTITY GROUP KEY(user_id) REFERENCES User;

CREATE LOCAL INDEX PhotosByTime
  ON Photo(user_id, time);

CREATE GLOBAL INDEX PhotosByTag
  ON Photo(tag) STORING (thumbnail_url);
`

test("SCH-11: the paper's text means what the same declared in TypeScript means", () => {
  expect(parsed(figure3)).toEqual(photoApp.model)
})

test.each([
  ['photos.ddl', photoApp],
  ['calendar.ddl', calendars],
  ['catalogue.ddl', catalogue],
])('SCH-11: %s is the printed form of its example in TypeScript', (file, { model }) => {
  expect(printSchema(model)).toBe(example(file))
  expect(parsed(example(file))).toEqual(model)
})

test('blanks, comments and capital letters part words and mean nothing', () => {
  const text = `-- a schema
create schema PhotoApp; /* of
  users */ CREATE Table User{Required INT64 user_id;REQUIRED string name;}
  primary key(user_id ASC),entity group root; // the end`
  expect(parsed(text).tables).toEqual(photoApp.model.tables.slice(0, 1))
})

test('words of the text may name things where nothing else can be meant', () => {
  const text = `CREATE SCHEMA schema;
CREATE TABLE Index { required string key; required string message; repeated message index { required bool true; }
  required string string DEFAULT "true"; } PRIMARY KEY(key, message), ENTITY GROUP ROOT;
CREATE LOCAL INDEX local ON Index(index.true);`
  expect(parsed(text).tables[0]?.properties.map(({ name }) => name)).toEqual([
    ...['key', 'message', 'index', 'string'],
  ])
  expect(parsed(printSchema(parsed(text)))).toEqual(parsed(text))
})

test('defaults keep their values: no digit of an int64 and no character of a text is lost', () => {
  const text = `CREATE SCHEMA S;
CREATE TABLE T {
  required string id;
  required int64 big DEFAULT -9223372036854775808;
  required int64 plus DEFAULT +007;
  required double small DEFAULT 5e-324;
  required double zero DEFAULT -0.0;
  required string line DEFAULT "a\\n\\"b\\" \\u00e9 -- no comment";
  required bytes bytes DEFAULT "00ff";
} PRIMARY KEY(id), ENTITY GROUP ROOT;`
  const defaults = parsed(text)
    .tables[0]?.properties.slice(1)
    .map((property) => property.default)
  expect(defaults).toEqual([
    ...['-9223372036854775808', '7', 5e-324, 0],
    ...['a\n"b" é -- no comment', '00ff'],
  ])
})

const head = 'CREATE SCHEMA S;\n'

test.each([
  [
    'a misspelt type',
    `${head}CREATE TABLE T {\n  required strng name;\n} PRIMARY KEY(name), ENTITY GROUP ROOT;`,
    `f:3:12: strng is not a type; did you mean string?
  3 |   required strng name;
    |            ^^^^^`,
  ],
  [
    'a type of another language',
    `${head}CREATE TABLE T {\n\toptional varchar name;\n} PRIMARY KEY(name), ENTITY GROUP ROOT;`,
    `f:3:11: varchar is not a type; did you mean string?
  3 | \toptional varchar name;
    | \t         ^^^^^^^`,
  ],
  [
    'a type like no other',
    `${head}CREATE TABLE T { required quux name; };`,
    `f:2:27: quux is not a type; there is string, bytes, bool, int32, int64, integer, float, double, timestamp, uuid, json, sequence and message
  2 | CREATE TABLE T { required quux name; };
    |                           ^^^^`,
  ],
  [
    'a misspelt word',
    `${head}CREATE TABLE T {\n  requierd string name;\n};`,
    `f:3:3: expected "}", required, optional or repeated, found requierd; did you mean required?
  3 |   requierd string name;
    |   ^^^^^^^^`,
  ],
  [
    'a misspelt statement',
    `${head}CREATE LOCL INDEX I ON T(a);`,
    `f:2:8: expected TABLE, SCHEMA, UNIQUE, LOCAL, GLOBAL or INLINE, found LOCL; did you mean LOCAL?
  2 | CREATE LOCL INDEX I ON T(a);
    |        ^^^^`,
  ],
  [
    'a missing name before a word',
    `${head}CREATE LOCAL INDEX ON T(a);`,
    `f:2:20: expected the name of the index, found ON
  2 | CREATE LOCAL INDEX ON T(a);
    |                    ^^`,
  ],
  [
    'a missing semicolon, told where it should be noticed',
    `${head}CREATE TABLE T {\n  required string a\n  required string b;\n};`,
    `f:4:3: expected DEFAULT or ";", found required
  4 |   required string b;
    |   ^^^^^^^^`,
  ],
  [
    'a text that ends too early',
    `${head}CREATE TABLE T {\n  required string a;\n`,
    `f:4:1: expected "}", required, optional or repeated, found the end of the text
  4 |
    | ^`,
  ],
  [
    'a clause that stands twice',
    `${head}CREATE TABLE T { required string a; } PRIMARY KEY(a), PRIMARY KEY(a), ENTITY GROUP ROOT;`,
    `f:2:55: PRIMARY KEY stands twice in one table
  2 | CREATE TABLE T { required string a; } PRIMARY KEY(a), PRIMARY KEY(a), ENTITY GROUP ROOT;
    |                                                       ^^^^^^^^^^^`,
  ],
  [
    'a text in single quotes',
    `${head}CREATE TABLE T { required string a DEFAULT 'x'; };`,
    `f:2:44: expected true, false, a number or a text in quotes, found ' in front of a text; texts stand in double quotes
  2 | CREATE TABLE T { required string a DEFAULT 'x'; };
    |                                            ^`,
  ],
  [
    'a comment without its end',
    `${head}/* for ever`,
    `f:2:1: expected CREATE, found a comment without its end */
  2 | /* for ever
    | ^^`,
  ],
  [
    'a second CREATE SCHEMA',
    `${head}CREATE SCHEMA T;`,
    `f:2:8: CREATE SCHEMA stands once, at the start of the text
  2 | CREATE SCHEMA T;
    |        ^^^^^^`,
  ],
  [
    'an escape that JSON does not have',
    `${head}CREATE TABLE T { required string a DEFAULT "\\q"; };`,
    `f:2:44: "\\q" has a \\ before what needs none; write \\\\ for \\
  2 | CREATE TABLE T { required string a DEFAULT "\\q"; };
    |                                            ^^^^`,
  ],
])('SCH-11: the report of %s has its place, a caret and a remedy', (_what, text, expected) => {
  expect(report(text)).toBe(expected)
})

test('one report has the mistakes of several statements, in their order, each once', () => {
  const text = `CREATE SHEMA S;
CREATE TABLE T { required strng a; } PRIMARY KEY(a), ENTITY GROUP ROOT;
CREATE TABLE U { required string a; } PRIMARY KEY(a), ENTITY GROUP ROOT;
CREATE LOCAL INDEX I ON U(a;`
  expect(report(text).match(/^f:\d+:\d+/gm)).toEqual(['f:1:8', 'f:2:27', 'f:4:28'])
})

test('one report has each unknown name with its line, in the order of the text', () => {
  const text = `${head}CREATE LOCAL INDEX I ON T(nmae);
CREATE TABLE T { required string name; } PRIMARY KEY(nam), ENTITY GROUP ROOT;`
  expect(report(text)).toBe(`f:2:27: index I: nmae is not a property of T; did you mean name?
  2 | CREATE LOCAL INDEX I ON T(nmae);
    |                           ^^^^
f:3:54: table T: nam, a part of its primary key, is not one of its properties; did you mean name?
  3 | CREATE TABLE T { required string name; } PRIMARY KEY(nam), ENTITY GROUP ROOT;
    |                                                      ^^^`)
})

test('a report of many problems has the first ones and the count of the rest', () => {
  const properties = Array.from({ length: 15 }, (_, index) => `required json j${index};`)
  const keys = properties.map((_, index) => `j${index}`)
  const text = `${head}CREATE TABLE T { ${properties.join(' ')} } PRIMARY KEY(${keys.join()}), ENTITY GROUP ROOT;`
  const told = report(text)
  expect(told.match(/^f:/gm)).toHaveLength(problemsMax)
  expect(told).toMatch(/\n… and 5 more$/)
  // A long line is cut around the place.
  for (const line of told.split('\n')) expect(line.length).toBeLessThan(250)
})

test('messages inside one another without end, and a text without end, are refused quickly', () => {
  const deep = `${head}CREATE TABLE T { required string id; ${'optional message m { '.repeat(40_000)}`
  expect(report(deep)).toContain('found the end of the text')
  const closed = `${deep}required string x;${'}'.repeat(40_001)} PRIMARY KEY(id), ENTITY GROUP ROOT;`
  expect(report(closed)).toContain('lies deeper than 8 messages')
  expect(report(' '.repeat(ddlCharsMax + 1))).toBe(
    `f: the text has ${ddlCharsMax + 1} characters, at most ${ddlCharsMax}`,
  )
})
