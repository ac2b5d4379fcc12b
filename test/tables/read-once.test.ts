/**
 * Values are read once, and in full: a table stores the very value that it checked, and refuses an unreadable
 * one with its place.
 */
import { expect, test } from 'vitest'
import { defineSchema } from '../../schema/define.ts'
import { t } from '../../schema/property.ts'
import { table } from '../../schema/table.ts'
import { packBody, unpackBody, type Json } from '../../src/cells/body.ts'
import { packCell, packCells } from '../../src/cells/new-cells.ts'
import { queue } from '../../src/tables/queue-types.ts'
import { rootKey } from '../../src/tables/tables.ts'
import { typed } from '../../src/tables/types.ts'
import { rowKey } from '../cells/kit.ts'
import { tablesBench } from './bench.ts'

const Thing = table('Thing', {
  id: t.string(),
  note: t.string().optional(),
  data: t.json().optional(),
  list: t.int32().repeated(),
  raw: t.bytes().optional(),
  weight: t.float().optional(),
  inner: t.message({ a: t.int32().optional() }).optional(),
})
  .key('id')
  .root()
const things = defineSchema('Things', [Thing])
const a = rootKey(Thing, { id: 'a' })
const jobs = queue<unknown>()('jobs', Thing)
const boom = new Error('boom')

class Row {
  readonly id = 'a'
  get note(): string {
    return 'lost'
  }
}

/** Gives one value after the other, and the last one from then on. */
function changing(...values: readonly unknown[]): object {
  let reads = 0
  return Object.defineProperty({}, 'v', {
    enumerable: true,
    get: (): unknown => values[Math.min(reads++, values.length - 1)],
  })
}

function throwing(name: string): object {
  const get = (): never => {
    throw boom
  }
  return Object.defineProperty({}, name, { enumerable: true, get })
}

function listOfLength(...lengths: readonly unknown[]): object {
  let reads = 0
  return new Proxy([1, 2, 3], {
    get: (list, name): unknown =>
      name === 'length' ? lengths[Math.min(reads++, lengths.length - 1)] : Reflect.get(list, name),
  })
}

async function refused(members: object): Promise<Error> {
  const { db, port } = tablesBench(things)
  const put = db.transaction(a, (tx) => tx.put(Thing, typed(members)))
  const error: unknown = await put.catch((thrown: unknown) => thrown)
  expect(port.rowsOf(db.group(a))).toEqual([])
  if (error instanceof Error) return error
  throw new Error('the row was stored')
}

test.each<[string, object, string]>([
  ['a getter of its class', new Row(), 'table Thing: it inherits note, which would be lost'],
  [
    'a member of another object',
    Object.assign(Object.create({ note: 'lost' }), { id: 'a' }),
    'table Thing: it inherits note',
  ],
  [
    'an inherited member in a message',
    { id: 'a', inner: Object.assign(Object.create({ a: 1 }), {}) },
    'table Thing: inner is an object that inherits',
  ],
])('a row with %s is refused, and no part of it is stored', async (_, row, words) => {
  expect(await refused(row)).toMatchObject({
    code: 'invalid',
    message: expect.stringContaining(words),
  })
})

test('a row of a class whose members are its own is stored', async () => {
  class Own {
    readonly id = 'a'
    readonly note = 'kept'
  }
  const { db } = tablesBench(things)
  await db.transaction(a, (tx) => tx.put(Thing, typed(new Own())))
  const { value } = await db.read(a, 'current', (rows) => rows.get(Thing, { id: 'a' }))
  expect(value).toMatchObject({ id: 'a', note: 'kept' })
})

test.each<[string, object, string]>([
  [
    'a getter that throws',
    Object.assign(throwing('note'), { id: 'a' }),
    'note cannot be read: Error: boom',
  ],
  [
    'a getter in JSON',
    { id: 'a', data: { x: [throwing('y')] } },
    'data.x[0].y cannot be read: Error: boom',
  ],
])('a row with %s is refused with its place and its cause', async (_, row, words) => {
  const error = await refused(row)
  expect(error).toMatchObject({ code: 'invalid', message: expect.stringContaining(words) })
  expect(error.cause).toBe(boom)
})

test.each<[string, object, string]>([
  ['a list of a negative length', { id: 'a', list: listOfLength(3, -1) }, 'list'],
  ['JSON of a negative length', { id: 'a', data: listOfLength(3, -1) }, 'data'],
  ['what only looks like bytes', { id: 'a', raw: Object.create(Uint8Array.prototype) }, 'raw is'],
  ['a proxy of bytes', { id: 'a', raw: new Proxy(new Uint8Array(2), {}) }, 'raw is'],
  ['undefined in JSON', { id: 'a', data: [undefined] }, 'data[0] is absent; expected JSON'],
  ['a number that is none', { id: 'a', data: { x: { y: Number.NaN } } }, 'data.x.y is NaN'],
  ['a whole number that 32 bits lose', { id: 'a', weight: 16_777_217 }, 'weight is 16777217'],
  ['a number too small for 32 bits', { id: 'a', weight: 1e-50 }, 'weight is 1e-50'],
])('a row with %s is refused', async (_, row, words) => {
  expect(await refused(row)).toMatchObject({
    code: 'invalid',
    message: expect.stringContaining(`table Thing: ${words}`),
  })
})

test.each<[string, readonly unknown[]]>([
  ['undefined', [1, undefined]],
  ['a Map', [1, new Map([[1, 2]])]],
  ['a bigint', [1, 5n]],
  ['a function', [1, () => 1]],
])('a value that is %s when it is read again is stored as it was checked', async (_, values) => {
  const body = packBody(typed<Json>(changing(...values)))
  expect(body.kind === 'ok' ? unpackBody(body.body.bytes) : body).toEqual({ v: 1 })
  const { db } = tablesBench(things)
  await db.transaction(a, async (tx) => {
    await tx.put(Thing, typed({ id: 'a', data: changing(...values) }))
    await tx.send(jobs, { id: 'a' }, changing(...values))
  })
  const { value } = await db.read(a, 'current', (rows) => rows.get(Thing, { id: 'a' }))
  expect(value?.data).toEqual({ v: 1 })
})

test('a body says where it holds what JSON has no word for', () => {
  const refusals: readonly (readonly [unknown, string])[] = [
    [undefined, 'the body is refused: it holds undefined, which JSON has no word for'],
    [
      { a: [1, undefined] },
      'the body is refused: a[1] holds undefined, which JSON has no word for',
    ],
    [{ at: new Date(Number.NaN) }, 'the body is refused: at holds an invalid Date, which JSON has'],
    [listOfLength(3, -1), 'the body is refused: it holds a list whose length is'],
  ]
  for (const [body, words] of refusals) {
    const packed = packBody(typed<Json>(body))
    expect(packed).toMatchObject({
      kind: 'problem',
      problem: { code: 'invalid', message: expect.stringContaining(words) },
    })
  }
})

test('what a getter throws in a body is the cause, and of a batch one outcome', () => {
  const cell = { rowKey: rowKey(1), column: 'A', refKey: 0, body: typed<Json>(throwing('x')) }
  const good = { ...cell, body: 1 }
  expect(() => packCell(cell)).toThrow('the body is refused: x cannot be read: Error: boom')
  expect(packCells([cell]).outcomes([])).toMatchObject([{ problem: { code: 'invalid' } }])
  const { items, outcomes } = packCells([good, cell])
  expect(items).toHaveLength(1)
  expect(outcomes([])[1]).toMatchObject({ kind: 'problem', problem: { code: 'invalid' } })
})
