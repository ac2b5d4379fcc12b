/** The schemas of a cluster: versions, refusals, and which programs go on. */
import { expect, test } from 'vitest'
import { parseSchema } from '../../schema/ddl-parse.ts'
import type { Schema } from '../../schema/model.ts'
import { firstVersion } from '../../schema/version.ts'
import { present } from '../../src/base/assert.ts'
import { applySchema, readSchema, versionFor } from '../../src/tables/registry.ts'
import { putVersion, registryGroup, versionKey } from '../../src/tables/registry-rows.ts'
import { runTransaction } from '../../src/txn/run.ts'
import { Sessions } from '../../src/txn/session.ts'
import { MemoryPort } from '../txn/memory-port.ts'
import { TestClock, testRandom } from '../txn/test-ports.ts'

function schemaOf(properties: string, more = ''): Schema {
  const text = `CREATE SCHEMA Shop; CREATE TABLE Shelf { required int64 id; ${properties} } PRIMARY KEY(id), ENTITY GROUP ROOT; ${more}`
  const result = parseSchema(text)
  return present(result.ok ? result.schema : undefined, 'test: the schema is right')
}

const early = schemaOf('required string label;')
const later = schemaOf('required string label; optional string note;')
const other = schemaOf('required int32 label;')

class Desk {
  readonly clock = new TestClock()
  readonly random = testRandom()
  readonly port = new MemoryPort()
  readonly options = {
    ...{ clock: this.clock, random: this.random },
    intents: new Sessions(this.clock, this.random),
  }
}

test('TAB-6: a schema is applied once, and goes from version to version', async () => {
  const { port, options } = new Desk()
  expect(await readSchema(port, 'Shop', options)).toBeUndefined()
  const first = await applySchema(port, early, options)
  expect(first).toEqual({ kind: 'first', version: firstVersion(early) })
  expect((await applySchema(port, early, options)).kind).toBe('same')
  const next = await applySchema(port, later, options)
  expect(next).toMatchObject({ kind: 'next', version: { version: 2 } })
  expect(await readSchema(port, 'Shop', options)).toEqual(next.version)
  // Numbers once given stay.
  expect(next.version.numbers.properties).toMatchObject(first.version.numbers.properties)
})

test('TAB-6: a change that rows or programs could not bear is refused, and changes nothing', async () => {
  const { port, options } = new Desk()
  await applySchema(port, early, options)
  await expect(applySchema(port, other, options)).rejects.toMatchObject({
    code: 'schema-mismatch',
    message: expect.stringMatching(/^schema Shop cannot be changed so: .*label/),
  })
  expect((await readSchema(port, 'Shop', options))?.version).toBe(1)
})

test('SCH-3: apply checks an unchecked schema before the cluster has it', async () => {
  const { port, options } = new Desk()
  const draft = structuredClone(schemaOf('required string label DEFAULT "x";'))
  const made: Schema = JSON.parse(JSON.stringify(draft).replace('"x"', '"\\ud800"'))
  await expect(applySchema(port, made, options)).rejects.toMatchObject({
    code: 'invalid',
    message: expect.stringMatching(/^this schema cannot be applied: .*does not fit string/),
  })
  expect(await readSchema(port, 'Shop', options)).toBeUndefined()
  expect((await applySchema(port, draft, options)).kind).toBe('first')
})

test('TAB-6: one of two concurrent changes finds the other and fails', async () => {
  const { port, options } = new Desk()
  await applySchema(port, early, options)
  const third = schemaOf('required string label; optional string origin;')
  const applied = await Promise.allSettled([
    applySchema(port, later, options),
    applySchema(port, third, options),
  ])
  // The second change would have dropped what the first had added.
  expect(applied.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  expect((await readSchema(port, 'Shop', options))?.version).toBe(2)
})

test('TAB-6: an earlier program goes on, and a later one learns what the cluster lacks', async () => {
  const { port, options } = new Desk()
  expect(() => versionFor(early, undefined)).toThrow('trilithon schema apply')
  await applySchema(port, early, options)
  const current = await readSchema(port, 'Shop', options)
  expect(() => versionFor(later, current)).toThrow(
    "this program's schema Shop is not version 1, which the cluster has, nor one before it: property Shelf.note is new",
  )
  await applySchema(port, later, options)
  const next = await readSchema(port, 'Shop', options)
  expect(versionFor(early, next)).toEqual(next)
  expect(versionFor(later, next)).toEqual(next)
  expect(() => versionFor(other, next)).toThrow('schema Shop')
})

test('TAB-6: a version that the cluster had is fine to apply again, and changes nothing', async () => {
  const { port, options } = new Desk()
  await applySchema(port, early, options)
  const second = await applySchema(port, later, options)
  await applySchema(port, schemaOf('required string label; optional string note;', more), options)
  expect(await applySchema(port, early, options)).toMatchObject({
    kind: 'older',
    version: { version: 3 },
  })
  expect((await applySchema(port, later, options)).kind).toBe('older')
  expect((await readSchema(port, 'Shop', options))?.version).toBe(3)
  // A schema that never was a version leaves something out, and apply says so.
  const less = schemaOf('required string label;', more)
  await expect(applySchema(port, less, options)).rejects.toThrow(/property Shelf.note is gone/)
  expect(second.version.version).toBe(2)
})

test('TAB-6: an earlier version that cannot be read stops no earlier and no later one', async () => {
  const { port, options } = new Desk()
  const last = schemaOf('required string label; optional string note; optional string origin;')
  for (const schema of [early, later, last]) await applySchema(port, schema, options)
  await runTransaction(port, registryGroup('Shop'), options, async (transaction) => {
    transaction.put(versionKey(2), Buffer.from('{"version":2}'))
  })
  expect((await applySchema(port, early, options)).kind).toBe('older')
  await expect(applySchema(port, later, options)).rejects.toMatchObject({ code: 'schema-mismatch' })
  const next = schemaOf(
    'required string label; optional string note; optional string origin;',
    more,
  )
  expect(await applySchema(port, next, options)).toMatchObject({ version: { version: 4 } })
})

const more = 'CREATE TABLE Other { required int64 id; } PRIMARY KEY(id), ENTITY GROUP ROOT;'

test('TAB-6: a schema with a default that would be refused now goes on where the cluster has it', async () => {
  const { port, options } = new Desk()
  const sound = schemaOf('required timestamp at DEFAULT 5;')
  const before: Schema = JSON.parse(
    JSON.stringify(sound).replace('"default":5', '"default":1700000000123'),
  )
  await expect(applySchema(port, before, options)).rejects.toThrow('no seconds or milliseconds')
  // As it was stored by an earlier build.
  const version = firstVersion(before)
  await runTransaction(port, registryGroup('Shop'), options, async (transaction) => {
    putVersion(transaction, undefined, version)
  })
  expect((await applySchema(port, before, options)).kind).toBe('same')
  const added: Schema = JSON.parse(
    JSON.stringify(schemaOf('required timestamp at DEFAULT 5; optional string note;')).replace(
      '"default":5',
      '"default":1700000000123',
    ),
  )
  expect((await applySchema(port, added, options)).kind).toBe('next')
})
