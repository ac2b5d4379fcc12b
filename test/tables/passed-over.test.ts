/** Values that copying would lose, or that cannot be read: each is refused in words, and none is a TypeError. */
import { expect, test } from 'vitest'
import { defineSchema } from '../../schema/define.ts'
import { t } from '../../schema/property.ts'
import { table } from '../../schema/table.ts'
import { optionsProblem, flag } from '../../src/base/arguments.ts'
import { StoreError } from '../../src/base/errors.ts'
import { hiddenIn, isBytes, isList, isReadable } from '../../src/base/readable.ts'
import { isDate, isPlain, wordsFor } from '../../src/base/words.ts'
import { packBody } from '../../src/cells/body.ts'
import { queue } from '../../src/tables/queue-types.ts'
import { rootKey } from '../../src/tables/tables.ts'
import { typed } from '../../src/tables/types.ts'
import { tablesBench } from './bench.ts'

const User = table('User', {
  user: t.string(),
  data: t.json().optional(),
  tags: t.string().repeated(),
  raw: t.bytes().optional(),
  inner: t.message({ a: t.int32() }).optional(),
})
  .key('user')
  .root()
const File = table('File', { hash: t.bytes() }).key('hash').root()
const users = defineSchema('Users', [User, File])
const ann = rootKey(User, { user: 'ann' })
const jobs = queue<unknown>()('jobs', User)

function revoked<Of extends object>(target: Of): Of {
  const { proxy, revoke } = Proxy.revocable(target, {})
  revoke()
  return proxy
}

/** Its bytes went to another thread. */
function transferred(size: number): Uint8Array {
  const bytes = new Uint8Array(size)
  structuredClone(bytes.buffer, { transfer: [bytes.buffer] })
  return bytes
}

const symbol = Symbol('s')
const withSymbol = { a: 1, [symbol]: 2 }
const withHidden = Object.defineProperty({ a: 1 }, 'b', { value: 2 })
const listWithSymbol = Object.assign(['a'], { [symbol]: 2 })
const listWithMember = Object.assign(['a'], { b: 2 })
function throwing(): never {
  throw new Error('boom')
}

/** Its one member cannot be read. */
function unreadable(name: string): never {
  return typed<never>(Object.defineProperty({}, name, { enumerable: true, get: throwing }))
}

/** As a match of a regular expression is. */
const match: unknown = /a/.exec('a')

test('hiddenIn names what an object holds beside its members', () => {
  const hidden = [withSymbol, withHidden, listWithSymbol, listWithMember].map(hiddenIn)
  expect(hidden).toEqual([
    ...['a member that a symbol names', 'a member that is not enumerable'],
    ...['a member that a symbol names', 'a member beside its elements'],
  ])
  const open = [{}, { a: 1 }, [], [1, 2], Array(3), Object.create(null), Object.freeze([1])]
  expect(open.map(hiddenIn)).toEqual(open.map(() => undefined))
})

test('the checks look inside no revoked proxy and no transferred bytes', () => {
  const gone = [revoked({}), revoked([]), revoked(() => 1), revoked(new Uint8Array(1))]
  expect(gone.map(isReadable)).toEqual([false, false, false, false])
  expect(gone.flatMap((one) => [isList(one), isBytes(one), isDate(one)])).not.toContain(true)
  expect(isPlain(revoked({}))).toBe(false)
  expect(wordsFor(revoked({}))).toBe('a proxy that was revoked')
  expect([transferred(8), transferred(0)].map(isBytes)).toEqual([false, false])
  expect(wordsFor(transferred(8))).toBe('bytes that were transferred')
  expect([new Uint8Array(), Buffer.alloc(0), new Uint8Array(3)].map(isBytes)).toEqual([
    ...[true, true, true],
  ])
  expect(isReadable(Object.create(null)) && isReadable(null) && isReadable(1)).toBe(true)
})

const json = /without members that are hidden or that symbols name$/
const refusals: readonly (readonly [string, object, string | RegExp])[] = [
  ['a symbol', { [symbol]: 1 }, 'table User: it has a member that a symbol names; leave it out'],
  ['a revoked row', revoked({}), 'table User is a proxy that was revoked; expected an object of'],
  ['a list with a member', { tags: listWithMember }, 'table User: tags: the list has a member'],
  ['a list with a symbol', { tags: listWithSymbol }, 'table User: tags: the list has a member'],
  ['a match', { tags: match }, 'table User: tags: the list has a member beside its elements'],
  ['a revoked list', { tags: revoked([]) }, 'table User: tags is a proxy that was revoked; expect'],
  ['a revoked element', { tags: [revoked({})] }, 'table User: tags[0] is a proxy that was revoked'],
  ['a message', { inner: withSymbol }, 'table User: inner: it has a member that a symbol names'],
  ['a revoked message', { inner: revoked({}) }, 'table User: inner is a proxy that was revoked'],
  ['json with a symbol', { data: withSymbol }, json],
  ['json with a hidden member', { data: [withHidden] }, json],
  ['json lists', { data: { a: listWithMember } }, json],
  ['json lists with a symbol', { data: listWithSymbol }, json],
  ['revoked json', { data: revoked({}) }, 'data is a proxy that was revoked; expected JSON'],
  ['revoked json inside', { data: [{ a: revoked([]) }] }, json],
  ['transferred bytes', { raw: transferred(8) }, 'raw is bytes that were transferred; expected'],
]

test.each(refusals)('a row with %s is refused', async (_, members, words) => {
  const { db, port } = tablesBench(users)
  const given = members === refusals[1]?.[1] ? members : Object.assign(members, { user: 'ann' })
  for (const verb of ['insert', 'put'] as const) {
    const call = db.transaction(ann, async (tx) => void (await tx[verb](User, typed(given))))
    await expect(call).rejects.toThrow(words)
    await expect(call).rejects.toMatchObject({ code: 'invalid' })
  }
  expect(port.rowsOf(db.group(ann))).toEqual([])
})

test('keys, patches and queries are held to the same', async () => {
  const { db } = tablesBench(users)
  await db.transaction(ann, (tx) => tx.insert(User, { user: 'ann', tags: [] }))
  const user = { user: 'ann' }
  const strange = { ...user, [symbol]: 1 }
  const calls: readonly (() => Promise<unknown>)[] = [
    () => db.transaction(ann, (tx) => tx.get(User, strange)),
    () => db.transaction(ann, (tx) => tx.get(User, revoked(user))),
    () => db.transaction(ann, (tx) => tx.getMany(User, revoked([user]))),
    () => db.transaction(ann, (tx) => tx.delete(User, strange)),
    () => db.transaction(ann, (tx) => tx.update(User, user, typed({ [symbol]: 1 }))),
    () => db.transaction(ann, (tx) => tx.update(User, user, revoked({}))),
    () => db.transaction(ann, (tx) => tx.scan(User, strange)),
    () => db.transaction(ann, (tx) => tx.send(jobs, user, listWithMember)),
    () => db.transaction(ann, (tx) => tx.send(jobs, user, [revoked({})])),
    () => db.transaction(ann, (tx) => tx.send(revoked(jobs), user, 1)),
    () => db.transaction(ann, async () => 1, typed({ [symbol]: 1 })),
    () => db.transaction(Object.assign({}, ann, { [symbol]: 1 }), async () => 1),
    () => db.read(ann, revoked({ at: 1 }), async () => 1),
    () => db.read(ann, Object.assign({ at: new Date() }, { [symbol]: 1 }), async () => 1),
    () => db.transaction(rootKey(File, { hash: transferred(8) }), async () => 1),
    async () => db.group(revoked(ann)),
    async () => db.group(unreadable('table')),
    async () => db.group(unreadable('key')),
    () => db.read(ann, unreadable('at'), async () => 1),
    () => db.transaction(unreadable('table'), async () => 1),
    () => db.transaction(rootKey(User, unreadable('user')), async () => 1),
    () => db.transaction(ann, (tx) => tx.scan(User, unreadable('user'))),
    () => db.transaction(ann, (tx) => tx.getMany(User, new Proxy([user], { get: throwing }))),
    () => db.transaction(ann, (tx) => tx.getMany(User, Object.assign([user], { b: 2 }))),
    async () => rootKey(unreadable('name'), user),
  ]
  for (const call of calls) {
    const error: unknown = await call().catch((one: unknown) => one)
    expect(error, call.toString()).toBeInstanceOf(StoreError)
    expect(error, call.toString()).toMatchObject({ code: 'invalid' })
  }
})

test('one of several keys that is none is named by its place', async () => {
  const { db } = tablesBench(users)
  const user = { user: 'ann' }
  for (const [key, words] of [
    [unreadable('user'), 'getMany: keys[1]: user cannot be read: Error: boom'],
    [{ ...user, [symbol]: 1 }, 'getMany: keys[1]: table User: the key: it has a member that a'],
    [{}, 'getMany: keys[1]: table User: user is absent; expected'],
  ] as const) {
    const call = db.read(ann, 'current', (rows) => rows.getMany(User, [user, typed(key)]))
    await expect(call).rejects.toMatchObject({ code: 'invalid' })
    await expect(call).rejects.toThrow(words)
  }
})

test('a body of a cell holds nothing that JSON would pass over', () => {
  const said = [withSymbol, withHidden, [listWithMember], listWithSymbol, [revoked({})]].map(
    (body) => packBody(typed(body)),
  )
  const places = ['it', 'it', '[0]', 'it', '[0]']
  const words = [
    ...['a member that a symbol names', 'a member that is not enumerable'],
    ...['a member beside its elements', 'a member that a symbol names', 'a proxy that was revoked'],
  ]
  expect(said).toMatchObject(
    words.map((word, place) => ({
      problem: {
        code: 'invalid',
        message: `the body is refused: ${places[place]} holds ${word}, which JSON has no word for`,
      },
    })),
  )
  expect(packBody([{ a: [1, 'x', null] }])).toMatchObject({ kind: 'ok' })
})

test('options and declarations are held to the same', () => {
  expect(optionsProblem({ a: true, [symbol]: 1 }, { a: flag })).toMatchObject({
    words: 'the options have a member that a symbol names',
  })
  expect(optionsProblem(revoked({}), { a: flag })?.words).toContain('a proxy that was revoked')
  expect(optionsProblem({ a: revoked({}) }, { a: flag })?.words).toContain('a is a proxy that was')
  const name = t.string()
  expect(() => table('T', { name, [symbol]: name })).toThrow('its properties have a member that a')
  expect(() => table('T', revoked({ name }))).toThrow('its properties are a proxy that was revoked')
  expect(() => table('T', { name: revoked(name) })).toThrow('name is a proxy that was revoked')
  expect(() => t.message({ name, [symbol]: name })).toThrow('a member that a symbol names')
  expect(() => defineSchema('S', revoked([User]))).toThrow(
    'its tables are a proxy that was revoked',
  )
  expect(() => defineSchema('S', [revoked(User)])).toThrow('a table is a proxy that was revoked')
  expect(() => t.bytes().default(transferred(8))).not.toThrow(TypeError)
  const bytes = table('T', { id: t.string(), raw: t.bytes().default(transferred(8)) })
  expect(() => defineSchema('S', [bytes.key('id').root()])).toThrow('bytes that were transferred')
})
