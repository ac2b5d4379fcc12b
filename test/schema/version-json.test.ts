import { expect, test } from 'vitest'
import { parseSchema } from '../../schema/ddl-parse.ts'
import { decodeSchema } from '../../schema/decode.ts'
import { calendars } from '../../schema/examples/calendar.ts'
import { photoApp } from '../../schema/examples/photos.ts'
import type { Schema } from '../../schema/model.ts'
import { decodeVersion } from '../../schema/version-json.ts'
import { firstVersion } from '../../schema/version.ts'

const versions = [photoApp, calendars].map(({ model }) => firstVersion(model))

test.each(versions)('SCH-12: a version comes back from its JSON: $schema.name', (version) => {
  expect(decodeVersion(JSON.stringify(version))).toEqual(version)
})

test('SCH-12: decoding refuses a malformed version and one that its fingerprint does not fit', () => {
  const [version] = versions
  const other = versions[1]?.fingerprint
  for (const odd of [
    { ...version, version: 0 },
    { ...version, version: '1' },
    { ...version, fingerprint: other },
    { ...version, schema: { ...version?.schema, tables: [] } },
    { ...version, numbers: { stored: { User: 'one' }, properties: {} } },
    { ...version, numbers: undefined },
    { ...version, restricting: 'Photo' },
    [],
    null,
  ]) {
    expect(decodeVersion(JSON.stringify(odd))).toBeUndefined()
  }
  expect(decodeVersion('{')).toBeUndefined()
})

test('SCH-12: a version that was stored with a default that would be refused now is read', () => {
  const half = JSON.stringify('\ud800')
  const text = `CREATE SCHEMA S;
CREATE TABLE A { required int32 id; required string b DEFAULT "x"; } PRIMARY KEY(id), ENTITY GROUP ROOT;`
  const given = parseSchema(text)
  if (!given.ok) throw new Error('the text is a schema')
  const raw = JSON.stringify(given.schema).replace('"x"', half)
  const schema: Schema = JSON.parse(raw)
  expect(decodeSchema(schema)).toMatchObject({ ok: false, problems: [{ kind: 'bad-default' }] })
  const stored = firstVersion(schema)
  expect(decodeVersion(JSON.stringify(stored))).toEqual(stored)
})
