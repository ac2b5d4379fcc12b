import { expect, test } from 'vitest'
import { calendars } from '../../schema/examples/calendar.ts'
import { photoApp } from '../../schema/examples/photos.ts'
import { decodeVersion } from '../../schema/version-json.ts'
import { firstVersion } from '../../schema/version.ts'

const versions = [photoApp, calendars].map(({ model }) => firstVersion(model))

test.each(versions)('SCH-12: a version comes back from its JSON: $schema.name', (version) => {
  expect(decodeVersion(JSON.stringify(version))).toEqual(version)
})

test('SCH-12: what is no version, or not the one its fingerprint says, is none', () => {
  const [version] = versions
  const other = versions[1]?.fingerprint
  for (const odd of [
    { ...version, version: 0 },
    { ...version, version: '1' },
    { ...version, fingerprint: other },
    { ...version, schema: { ...version?.schema, tables: [] } },
    { ...version, numbers: { stored: { User: 'one' }, properties: {} } },
    { ...version, numbers: undefined },
    [],
    null,
  ]) {
    expect(decodeVersion(JSON.stringify(odd))).toBeUndefined()
  }
  expect(decodeVersion('{')).toBeUndefined()
})
