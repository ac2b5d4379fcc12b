/** Typed queues over nodes in memory: a group's handler gets the messages of another group. */
import { expect, test } from 'vitest'
import { asyncScope } from '../../src/adapters/async-scope.ts'
import { defineSchema } from '../../schema/define.ts'
import { Photo, photoApp, User } from '../../schema/examples/photos.ts'
import { t } from '../../schema/property.ts'
import { table } from '../../schema/table.ts'
import { indexWorklist } from '../../src/tables/index-worklist.ts'
import { openTables } from '../../src/tables/open.ts'
import { rootKey, type Tables } from '../../src/tables/tables.ts'
import { queue, type Message } from '../../src/tables/queue-types.ts'
import { Post } from '../queues/post.ts'
import { tablesBench } from './bench.ts'

interface Tag {
  readonly photo_id: number
  readonly tag: string
}

const tags = queue<Tag>()('tags', User)
const ann = { user_id: 1n }
const bob = { user_id: 2n }

async function open(post: Post): Promise<Tables<typeof photoApp.tables>> {
  await post.settle(post.client.applySchema(photoApp.model))
  return await post.settle(post.client.tables(photoApp))
}

test('QUE-1, QUE-2: a message has its types, its sender and its receiver, and is handled once', async () => {
  const post = new Post()
  const db = await open(post)
  const seen: Message<typeof User, Tag>[] = []
  db.consume(tags, async (tx, messages) => {
    for (const message of messages) {
      const { to, body } = message
      const key = { ...to, photo_id: body.photo_id }
      const photo = await tx.get(Photo, key)
      const before = photo?.tag ?? []
      await tx.put(Photo, { ...key, time: 1n, full_url: 'x', tag: [...before, body.tag] })
      seen.push(message)
    }
  })
  await post.settle(
    db.transaction(rootKey(User, ann), async (tx) => {
      await tx.insert(User, { ...ann, name: 'Ann' })
      await tx.send(tags, bob, { photo_id: 7, tag: 'sea' })
      await tx.send(tags, ann, { photo_id: 1, tag: 'own' })
      await tx.send(tags, bob, { photo_id: 7, tag: 'sky' })
    }),
  )
  await post.until(() => seen.length >= 3)
  await post.pass(3_000)
  const { value } = await post.settle(
    db.read(rootKey(User, bob), 'current', (rows) => rows.get(Photo, { ...bob, photo_id: 7 })),
  )
  expect(value?.tag).toEqual(['sea', 'sky'])
  const from = { table: 'User', key: ann }
  expect(seen.find(({ body }) => body.tag === 'own')).toMatchObject({ to: ann, from, attempt: 1 })
  expect(seen.find(({ body }) => body.tag === 'sky')).toMatchObject({ to: bob, from })
  const sums = await post.settle(post.client.queues.list())
  expect(sums).toEqual([])
})

test('send refuses a body that is no JSON, a wrong root and a wrong name; handle needs nodes', async () => {
  const { db } = tablesBench(photoApp)
  const send = (use: (tx: Parameters<Parameters<typeof db.transaction>[1]>[0]) => Promise<void>) =>
    db.transaction(rootKey(User, ann), use)
  const loose = queue<unknown>()('loose', User)
  await expect(send((tx) => tx.send(loose, ann, 1n))).rejects.toThrow(
    /^queue loose: the body is 1n; expected JSON/,
  )
  await expect(send((tx) => tx.send(loose, ann, undefined))).rejects.toMatchObject({
    code: 'invalid',
  })
  expect(() => queue()('no name', User)).toThrow('no name of a queue')
  expect(() => db.consume(loose, async () => undefined)).toThrow('without a cluster')
})

test('db itself is not to be used inside a handler', async () => {
  const post = new Post()
  const { clock, client } = post
  const { random } = post.cluster.bench
  const own = { clock, random, scope: asyncScope(), queues: client.queues }
  const db = openTables(photoApp, client.groups, own)
  const errors: unknown[] = []
  db.consume(
    tags,
    async () => {
      await db.read(rootKey(User, ann), 'current', async () => undefined)
      throw new Error('reached')
    },
    { attemptsMax: 1, onFailed: (error) => errors.push(error) },
  )
  await post.settle(
    db.transaction(rootKey(User, ann), (tx) => tx.send(tags, bob, { photo_id: 1, tag: 'x' })),
  )
  await post.pass(3_000)
  expect(String(errors[0])).toContain('db.read was called inside the function')
})

test('IDX-6: a handler keeps an index that was declared after it began', async () => {
  const post = new Post()
  const Car = table('Car', { car: t.integer(), city: t.string() }).key('car').root()
  const Indexed = Car.globalIndex('CarsByCity', ['city'])
  const moves = queue<string>()('moves', Car)
  const fleet = defineSchema('Fleet', [Car])
  await post.settle(post.client.applySchema(fleet.model))
  const sender = await post.settle(post.client.tables(fleet))
  const handler = post.cluster.client({ schemaTrustMs: 1_000 }, 'handler')
  const db = await post.settle(handler.tables(fleet))
  const handled: string[] = []
  db.consume(moves, async (tx, messages) => {
    for (const { to, body: city } of messages) {
      await tx.put(Car, { ...to, city })
      handled.push(city)
    }
  })
  await post.settle(post.client.applySchema(defineSchema('Fleet', [Indexed]).model))
  await post.pass(1_100)
  await post.settle(
    sender.transaction(rootKey(Car, { car: 1 }), (tx) => tx.send(moves, { car: 2 }, 'Rome')),
  )
  await post.until(() => handled.length > 0)
  await post.pass(1_000)
  const receiver = db.group(rootKey(Car, { car: 2 }))
  const changes = await post.settle(post.cluster.node('n1').replica.scan(receiver, indexWorklist))
  expect(changes).toHaveLength(1)
})
