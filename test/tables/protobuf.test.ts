/** Messages of Protocol Buffers as properties of rows, with what protoc-gen-es generates. */
import {
  create,
  createFileRegistry,
  equals,
  fromBinary,
  type DescMessage,
} from '@bufbuild/protobuf'
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parseSchema } from '../../schema/ddl-parse.ts'
import { printSchema } from '../../schema/ddl-print.ts'
import { defineSchema } from '../../schema/define.ts'
import type { Row } from '../../schema/infer.ts'
import { t } from '../../schema/property.ts'
import { fieldsOf, messageFrom, messageOf } from '../../schema/protobuf.ts'
import { table } from '../../schema/table.ts'
import { rootKey } from '../../src/tables/tables.ts'
import { tablesBench } from './bench.ts'
import { ExifSchema, Flash, UnfitSchema, type Exif } from './protobuf/exif_pb.js'

const Shot = table('Shot', { shot: t.integer(), exif: messageOf(ExifSchema).optional() })
  .key('shot')
  .root()
  .localIndex('ShotsByLatitude', ['shot', 'exif.place.latitude'], { storing: ['exif.camera'] })

const shots = defineSchema('Shots', [Shot])
const one = rootKey(Shot, { shot: 1 })

const exif: Exif = create(ExifSchema, {
  camera: 'Leica M3',
  focalLength: 50,
  lens: ['Summicron', 'f2'],
  place: { latitude: 52.5, longitude: -13.25 },
  flash: Flash.FIRED,
  iso: 4_000_000_000,
  serial: -7n,
  thumbnail: new Uint8Array([1, 2]),
  owner: { case: 'ownerId', value: 12n },
  edits: [{ tool: 'crop', strength: 0.5 }],
})

test('a message goes into a row and comes back as the message it was', async () => {
  const { db } = tablesBench(shots)
  await db.transaction(one, (tx) => tx.insert(Shot, { shot: 1, exif: fieldsOf(ExifSchema, exif) }))
  const { value } = await db.read(one, 'current', async (rows) => {
    const row: Row<typeof Shot> | undefined = await rows.get(Shot, { shot: 1 })
    const page = await rows.index(Shot, 'ShotsByLatitude', { shot: 1 })
    return { row, entries: page.items }
  })
  expect(value.row?.exif).toMatchObject({ camera: 'Leica M3', flash: 1, ownerId: 12n })
  expect(value.row?.exif).not.toHaveProperty('ownerName')
  expect(value.entries).toEqual([
    { shot: 1, 'exif.place.latitude': 52.5, 'exif.camera': 'Leica M3' },
  ])
  const back = messageFrom(ExifSchema, value.row?.exif ?? fieldsOf(ExifSchema, create(ExifSchema)))
  expect(equals(ExifSchema, back, exif)).toBe(true)
})

test('fields without presence have their zero, the others may be absent', async () => {
  const { db } = tablesBench(shots)
  await db.transaction(one, (tx) => tx.insert(Shot, { shot: 1, exif: { camera: 'box' } }))
  const { value } = await db.read(one, 'current', (rows) => rows.get(Shot, { shot: 1 }))
  const zeros = { flash: 0, iso: 0, serial: 0n, thumbnail: new Uint8Array(), lens: [], edits: [] }
  expect(value?.exif).toEqual({ camera: 'box', ...zeros })
  const empty = create(ExifSchema, { camera: 'box' })
  expect(equals(ExifSchema, messageFrom(ExifSchema, { camera: 'box', ...zeros }), empty)).toBe(true)
})

test('a descriptor that is read at run time declares the same, and its text reads back', () => {
  const file = readFileSync(new URL('./protobuf/exif.binpb', import.meta.url))
  const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, file))
  const descriptor = registry.getMessage('photos.Exif')
  if (descriptor === undefined) throw new Error('the file has the message')
  const Other = table('Shot', { shot: t.integer(), exif: messageOf(descriptor).optional() })
    .key('shot')
    .root()
  const read = defineSchema('Shots', [Other]).model
  const [compiled, other] = [shots.model.tables[0], read.tables[0]]
  expect(other?.properties).toEqual(compiled?.properties)
  const text = printSchema(read)
  expect(text).toContain('optional message place {')
  expect(parseSchema(text)).toMatchObject({ ok: true, schema: read })
})

test('a message that rows cannot hold is refused with all its problems, by name', () => {
  // By its generated type it does not even compile: it would never end.
  const unfit: DescMessage = UnfitSchema
  const told = (() => {
    try {
      messageOf(unfit)
      return ''
    } catch (error) {
      return String(error)
    }
  })()
  expect(told).toMatch(/message photos\.Unfit has 3 problems/)
  expect(told).toMatch(/photos\.Unfit\.counts is a map/)
  expect(told).toMatch(/photos\.Unfit\.big has 64 bits without a sign/)
  expect(told).toMatch(/photos\.Unfit\.child is a Unfit inside itself/)
})

test('a field of a message is typed as the message has it', () => {
  const { db } = tablesBench(shots)
  const wrong = db.transaction(one, (tx) =>
    // @ts-expect-error -- a camera is text
    tx.insert(Shot, { shot: 1, exif: { camera: 5 } }),
  )
  return expect(wrong).rejects.toThrow(/table Shot: exif.*camera is 5; expected a string/)
})
