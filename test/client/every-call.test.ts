/** Every function and method of the library, without arguments and with odd ones: only its own errors come out. */
import { expect, test } from 'vitest'
import * as schema from '../../schema/index.ts'
import * as protobuf from '../../schema/protobuf.ts'
import { asPromise } from '../../src/base/as-promise.ts'
import { StoreError } from '../../src/base/errors.ts'
import { wordsFor } from '../../src/base/words.ts'
import * as library from '../../src/index.ts'
import * as triggers from '../../src/triggers/index.ts'
import { settled } from '../cells/kit.ts'
import { createCluster, type FakeCluster } from './cluster.ts'
import { openPhotos, photosUser } from './known-calls.ts'

class Odd {
  readonly size = 1
}
const holed: unknown[] = []
holed.length = 2

function throwing(): never {
  throw new Error('boom')
}
/** A proxy of which nothing can be asked, and objects with getters that throw. */
const unreadable: readonly unknown[] = [
  new Proxy({}, { get: throwing, ownKeys: throwing, has: throwing }),
  new Proxy([1], { get: throwing }),
  ['kind', 'name', 'rowKey', 'table', 'shard', 'session', 'at', 'signal'].reduce(
    (object, name) => Object.defineProperty(object, name, { enumerable: true, get: throwing }),
    {},
  ),
]

/** Each is given in the place of each argument, and of all. */
const oddValues: readonly unknown[] = [
  ...[undefined, null, -1, 0.5, Number.NaN, '', '\ud800', 'x'.repeat(2_000), true, 7n],
  ...[{}, { kind: 'put' }, { queue: 'q' }, [], [undefined], holed, () => 1, Odd, new Odd()],
  ...[Symbol('x'), new Map(), Promise.resolve({}), Object.create(null), new Uint8Array(3)],
  Proxy.revocable({}, {}).proxy,
  ...[{ [Symbol.toStringTag]: 'Date' }, Object.create(AbortSignal.prototype), ...unreadable],
]
/** Right ones in some places, so that the wrong one is met behind them. */
const rightValues: readonly unknown[] = ['a', { kind: 'current' }, { x: 1 }]

const argumentLists: readonly (readonly unknown[])[] = [
  [],
  ...oddValues.flatMap((one) => [
    [one],
    [one, one],
    [one, one, one, one, one],
    ...rightValues.flatMap((right) => [
      [right, one],
      [right, right, one],
      ['a', right, one, 500],
    ]),
  ]),
]

/** Calls it with what its type does not allow. */
function applied(called: unknown, holder: object, given: readonly unknown[]): unknown {
  if (typeof called !== 'function') throw new Error('there is no such function')
  const made: unknown = Reflect.apply(called, holder, given)
  return made
}

function methodsOf(holder: object): readonly string[] {
  const made: unknown = Object.getPrototypeOf(holder)
  const names = new Set(Object.keys(holder))
  if (typeof made === 'object' && made !== null && made !== Object.prototype) {
    for (const name of Object.getOwnPropertyNames(made)) names.add(name)
  }
  // A client that is closed answers nothing more, and a generator's own methods are the language's.
  const left = new Set(['constructor', 'close'])
  return [...names].filter((name) => {
    return !left.has(name) && typeof Reflect.get(holder, name) === 'function'
  })
}

/** The words of an error that the library should not throw; undefined when there was none. */
async function oddlyThrown(
  { bench: { world } }: FakeCluster,
  call: () => unknown,
): Promise<string | undefined> {
  try {
    await settled(
      world,
      asPromise(async () => {
        const made: unknown = await call()
        if (typeof made !== 'object' || made === null) return
        // A call that follows a log without end may wait for a cell.
        if ('next' in made && typeof made.next === 'function') {
          const first = applied(made.next, made, [])
          await Promise.race([first, world.sleep(1_000_000)])
        }
        if ('stop' in made) await applied(made.stop, made, [])
      }),
    )
    return undefined
  } catch (error) {
    if (error instanceof StoreError || error instanceof schema.SchemaError) {
      return error.message.length > 10 ? undefined : `says little: ${error.message}`
    }
    return error instanceof Error ? `${error.name}: ${error.message}` : wordsFor(error)
  }
}

async function faultsOf(
  cluster: FakeCluster,
  holder: object,
  method: string,
): Promise<readonly string[]> {
  const faults: string[] = []
  const called: unknown = Reflect.get(holder, method)
  if (typeof called !== 'function') throw new Error(`${method} is no function`)
  for (const given of argumentLists) {
    const thrown = await oddlyThrown(cluster, () => applied(called, holder, given))
    if (thrown !== undefined) faults.push(`${given.map(wordsFor).join(', ')}: ${thrown}`)
  }
  return faults
}

type Holders = Readonly<Record<string, (cluster: FakeCluster) => object>>

const db = (cluster: FakeCluster): object => {
  const { clock } = cluster.clockOf('tables')
  return openPhotos(cluster.client(), { clock, random: cluster.bench.random })
}
const holders: Holders = {
  client: (cluster) => cluster.client(),
  groups: (cluster) => cluster.client().groups,
  queues: (cluster) => cluster.client().queues,
  letters: (cluster) => cluster.client().queues.deadLetters('jobs'),
  cells: (cluster) => cluster.client().cells('trips'),
  index: (cluster) => cluster.client().cells('trips').index('ix'),
  cellIndexes: (cluster) => cluster.client().cells('trips').indexes,
  indexes: (cluster) => cluster.client().indexes('Photos'),
  db,
  group: (cluster) => {
    const tables = db(cluster)
    const of: unknown = Reflect.get(tables, 'of')
    const group = applied(of, tables, [photosUser])
    if (typeof group === 'object' && group !== null) return group
    throw new Error('db.of gives no handle')
  },
}

test.each(Object.entries(holders))(
  '%s: each method answers odd calls in words',
  async (_, make) => {
    for (const method of methodsOf(make(createCluster()))) {
      const cluster = createCluster()
      expect(await faultsOf(cluster, make(cluster), method), method).toEqual([])
    }
  },
)

const modules: Readonly<Record<string, object>> = {
  trilithon: library,
  'trilithon/schema': schema,
  'trilithon/protobuf': protobuf,
  'trilithon/triggers': triggers,
}

test.each(Object.entries(modules))(
  '%s: each function answers odd calls in words',
  async (_, of) => {
    const cluster = createCluster()
    for (const [name, value] of Object.entries(of)) {
      const isCalled = typeof value === 'function' && wordsFor(value) !== 'a class'
      if (!isCalled) continue
      expect(await faultsOf(cluster, of, name), name).toEqual([])
    }
  },
)

test('t: each type of a property answers odd calls in words', async () => {
  const cluster = createCluster()
  for (const method of methodsOf(schema.t)) {
    expect(await faultsOf(cluster, schema.t, method), method).toEqual([])
  }
})

const { bench, client } = (() => {
  const cluster = createCluster()
  return { bench: cluster.bench, client: cluster.client() }
})()
const run = <Value>(work: Promise<Value>): Promise<Value> => settled(bench.world, work)

test.each<[string, () => unknown, string]>([
  ['a long name of a schema', () => client.schemaVersion('x'.repeat(2_000)), 'name of a schema is'],
  ['half a character', () => client.schemaVersion('\ud800'), 'expected the name of a schema: a'],
  ['a word with a blank', () => client.indexes('a b'), 'the name of a schema is "a b"; expected'],
  ['no group', () => applied(client.groups.view, client.groups, []), 'the group is absent'],
  [
    'no place to read from',
    () => applied(client.groups.view, client.groups, ['a', undefined, 500]),
    'the place to read from is absent',
  ],
  [
    'an intent that is none',
    () => applied(client.groups.outcome, client.groups, ['a', 'x', 500]),
    'the intent is "x"',
  ],
  [
    'a lock held for no number',
    () =>
      applied(client.groups.withLock, client.groups, [
        'g',
        { name: 'n', holdMs: Number.NaN, waitMs: 5 },
        async () => 1,
      ]),
    'holdMs is NaN',
  ],
  [
    'a lock whose name is a number',
    () => applied(client.groups.withLock, client.groups, ['g', { name: 5 }, async () => 1]),
    'the name of a lock is 5',
  ],
  [
    'a class for a function',
    () => applied(client.queues.consume, client.queues, [{ queue: 'q', handle: Odd }]),
    'handle is a class; expected a function that is no class',
  ],
  [
    'a generator for a function',
    () => {
      const handle = async function* (): AsyncGenerator<number> {
        yield 1
      }
      return applied(client.queues.consume, client.queues, [{ queue: 'q', handle }])
    },
    'handle is a generator function; expected',
  ],
  [
    'an option that is none of a handler',
    () => client.queues.consume({ queue: 'q', handle: async () => undefined, retryMs: -1 }),
    'a handler: retryMs is -1; expected a number from 1',
  ],
  [
    'a first wait longer than the longest',
    () =>
      client.queues.consume({
        ...{ queue: 'q', handle: async () => undefined },
        ...{ retryMs: 5_000, retryMaxMs: 10 },
      }),
    'retryMs is 5000 and retryMaxMs 10',
  ],
  [
    'a place of a shard that is not followed',
    () =>
      client
        .cells('trips')
        .tail({ shards: [2], after: new Map([[1, 5]]) })
        .next(),
    'after names shard 1, and shards does not',
  ],
  ['a datastore that cannot be', () => client.rejected('A b!'), 'datastore'],
  [
    'a secret that is empty',
    () => library.connect({ endpoints: ['http://a:1'], secret: '' }),
    'empty',
  ],
])('%s is refused in words', async (_, call, words) => {
  await expect(run(asPromise(async () => call()))).rejects.toMatchObject({
    code: 'invalid',
    message: expect.stringContaining(words),
  })
})

test('a lock of a transaction has a name of whole characters', async () => {
  const cluster = createCluster()
  const tables = db(cluster)
  const transaction: unknown = Reflect.get(tables, 'transaction')
  if (typeof transaction !== 'function') throw new Error('there is no transaction')
  const given = [photosUser, async () => 1, { lock: '\ud800' }]
  const call = asPromise(async () => applied(transaction, tables, given))
  await expect(settled(cluster.bench.world, call)).rejects.toThrow(
    'lock is "\\ud800"; expected a string of whole characters',
  )
})

test('a value that only looks like a UUID is none', () => {
  const text = '00000000-0000-4000-8000-000000000000'
  expect(schema.isUuid(text)).toBe(true)
  for (const one of [[text], { toString: () => text }, undefined, Symbol('x')]) {
    expect(schema.isUuid(one)).toBe(false)
  }
})

const place = { kind: 'root', name: 'T', properties: [], key: { parts: [], scatter: false } }
const property = { name: 'id', presence: 'required', type: { kind: 'int64' } }
const part = { property: 'id', direction: 'asc' }
const rows = { ...place, properties: [property], key: { parts: [part], scatter: false } }

test.each<[string, object]>([
  ['tables', { tables: holed }],
  ['tables behind a right one', { tables: [rows, ...holed] }],
  ['properties', { tables: [{ ...rows, properties: [property, ...holed] }] }],
  ['parts of a key', { tables: [{ ...rows, key: { parts: [part, ...holed], scatter: false } }] }],
  ['indexes', { tables: [rows], indexes: holed }],
])('a schema that has holes in its %s is refused, and none is applied', async (_, members) => {
  const model = { format: 1, name: 'Holes', indexes: [], ...members }
  const call = asPromise(async () => applied(client.applySchema, client, [model]))
  await expect(run(call)).rejects.toMatchObject({
    code: 'invalid',
    message: expect.stringContaining('this is no schema'),
  })
  expect(await run(client.schemaVersion('Holes'))).toBeUndefined()
})
