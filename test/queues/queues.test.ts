/** Messages from group to group: sent with a commit, delivered and handled once, in order. */
import { expect, test } from 'vitest'
import { defineSchema } from '../../schema/define.ts'
import { t } from '../../schema/property.ts'
import { table } from '../../schema/table.ts'
import { guardedPort } from '../../sim/cluster/guarded-port.ts'
import { worklistPrefix } from '../../src/group/worklist-key.ts'
import type { GroupId } from '../../src/base/ids.ts'
import { pack, type Packable } from '../../src/base/pack.ts'
import { Delivery } from '../../src/queues/delivery.ts'
import { outboxTopic } from '../../src/queues/names.ts'
import { Sender } from '../../src/queues/send.ts'
import { deliveryBounds, messageBytesMax, sentMessagesMax } from '../../src/queues/limits.ts'
import type { GroupPort } from '../../src/group/group-port.ts'
import { LocalGroups } from '../../src/txn/local-groups.ts'
import { bytes, group, Post, textOf } from './post.ts'

/** Notes what it is given, by group, when that is committed. */
function keeper(post: Post, options: { readonly batch?: number } = {}): Map<GroupId, string[]> {
  const kept = new Map<GroupId, string[]>()
  post.handle({
    ...options,
    handle: async (transaction, messages) => {
      const key = bytes('seen')
      const before = Buffer.from((await transaction.get(key))?.value ?? []).toString()
      const seen = [...before.split(' ').filter(Boolean), ...messages.map(textOf)]
      transaction.put(key, bytes(seen.join(' ')))
      kept.set(transaction.group, seen)
    },
  })
  return kept
}

test('QUE-1: a message is there iff the transaction that sends it takes effect', async () => {
  const post = new Post()
  const kept = keeper(post)
  const refused = post.transact(group('a'), async (transaction) => {
    new Sender(transaction).send('work', group('b'), bytes('never'))
    throw new Error('no')
  })
  await expect(refused).rejects.toThrow('no')
  await post.send(group('a'), [{ to: group('b'), body: 'once' }])
  await post.until(() => kept.size > 0)
  await post.pass(10_000)
  expect([...kept]).toEqual([[group('b'), ['once']]])
  expect(post.bugs).toEqual([])
})

test('QUE-2, QUE-3, QUE-4: several nodes deliver, several processes handle: once, in order, nothing left', async () => {
  const post = new Post({ pageRows: 3, receivedMax: 2 })
  const kept = keeper(post, { batch: 3 })
  const other = post.cluster.client({}, 'other')
  post.handle(
    {
      handle: async (transaction, messages) => {
        const key = bytes('seen')
        const before = Buffer.from((await transaction.get(key))?.value ?? []).toString()
        const seen = [...before.split(' ').filter(Boolean), ...messages.map(textOf)]
        transaction.put(key, bytes(seen.join(' ')))
        kept.set(transaction.group, seen)
      },
    },
    other,
  )
  const receivers = ['x', 'y', 'z'].map(group)
  for (let i = 0; i < 20; i++) {
    await post.send(
      group('a'),
      receivers.flatMap((to) => [0, 1].map((part) => ({ to, body: `${i}.${part}` }))),
    )
  }
  const all = Array.from({ length: 20 }, (_, i) => [`${i}.0`, `${i}.1`]).flat()
  const rowsOf = async (of: GroupId): Promise<string> => {
    const { value } = await post.transact(of, async (tx) => tx.get(bytes('seen')))
    return Buffer.from(value?.value ?? []).toString()
  }
  await post.pass(20_000)
  for (const receiver of receivers) expect(await rowsOf(receiver)).toBe(all.join(' '))
  for (const one of ['a', 'x', 'y', 'z']) expect(await post.worklistRows(group(one))).toBe(0)
  const delivered = post.deliveries.map(({ counts }) => counts.delivered)
  expect(delivered.reduce((sum, count) => sum + count, 0)).toBe(120)
  expect(post.deliveries.reduce((sum, { counts }) => sum + counts.repeated, 0)).toBeGreaterThan(0)
  expect(post.bugs).toEqual([])
})

test('QUE-2: a receiver passes over a message that arrives again, even much later', async () => {
  const post = new Post()
  await post.send(group('a'), [{ to: group('b'), body: 'one' }])
  await post.pass(2_000)
  const counts = (): number =>
    post.deliveries.reduce((sum, { counts: { delivered } }) => sum + delivered, 0)
  expect(counts()).toBe(1)
  expect(await post.worklistRows(group('b'))).toBe(1)
})

test('QUE-5: a delivery that is stopped before it has looked leaves its group listed', async () => {
  const post = new Post()
  for (const delivery of post.deliveries) await post.settle(delivery.stop())
  await post.send(group('a'), [{ to: group('b'), body: 'waits' }])
  const { replica } = post.cluster.node('n1')
  const unlisted: GroupId[] = []
  const unlist = (_topic: string, one: GroupId): void => void unlisted.push(one)
  const local = new LocalGroups(replica)
  let views = 0
  const view: GroupPort['view'] = async (...asked) => {
    views += 1
    await post.sleep(500)
    return local.view(...asked)
  }
  const ports = { clock: post.clock, random: post.cluster.bench.random }
  const delivery = new Delivery(
    {
      ...ports,
      replica: Object.assign(replica, { worklist: Object.assign(replica.worklist, { unlist }) }),
      groups: Object.assign(new LocalGroups(replica), { view }),
    },
    deliveryBounds,
    (error) => post.bugs.push(error),
  )
  delivery.start()
  await post.pass(100)
  await post.settle(delivery.stop())
  expect(views).toBe(1)
  expect(unlisted).toEqual([])
  expect(post.bugs).toEqual([])
})

test('messages to groups that can be reached do not wait for those to one that cannot', async () => {
  const post = new Post()
  for (const delivery of post.deliveries) await post.settle(delivery.stop())
  const { replica } = post.cluster.node('n1')
  const groups = guardedPort(new LocalGroups(replica), (one) => one === group('cut'))
  const ports = { replica, groups, clock: post.clock, random: post.cluster.bench.random }
  const delivery = new Delivery(ports, deliveryBounds, () => undefined)
  delivery.start()
  await post.send(group('a'), [{ to: group('cut'), body: 'waits' }])
  await post.send(group('a'), [{ to: group('b'), body: 'first' }])
  // By then it is tried again every ten seconds.
  await post.pass(60_000)
  const waits: number[] = []
  for (let i = 1; i <= 5; i++) {
    const began = post.clock.monotonicMs()
    await post.send(group('a'), [{ to: group('b'), body: `${i}` }])
    await post.until(() => delivery.counts.delivered > i)
    waits.push(post.clock.monotonicMs() - began)
  }
  expect(Math.max(...waits.slice(1))).toBeLessThan(500)
  expect(await post.worklistRows(group('b'))).toBe(6)
  await post.settle(delivery.stop())
})

test('a message to its own group is there with the commit, and needs no delivery', async () => {
  const post = new Post()
  for (const delivery of post.deliveries) await post.settle(delivery.stop())
  const kept = keeper(post)
  await post.send(group('a'), [
    { to: group('a'), body: 'mine' },
    { to: group('b'), body: 'waits' },
  ])
  await post.until(() => kept.size > 0)
  expect([...kept]).toEqual([[group('a'), ['mine']]])
})

test('QUE-7: a delayed message is handled when it is due, and equal delays keep their order', async () => {
  const post = new Post()
  const kept = keeper(post)
  const delayed = (body: string, delayMs: number) => ({
    ...{ to: group('b'), body, options: { delayMs } },
  })
  await post.send(group('a'), [delayed('late-1', 5_000), delayed('soon', 1_000)])
  await post.send(group('a'), [delayed('late-2', 5_000), { to: group('b'), body: 'now' }])
  await post.pass(700)
  expect(kept.get(group('b'))).toEqual(['now'])
  await post.pass(1_500)
  expect(kept.get(group('b'))).toEqual(['now', 'soon'])
  await post.pass(5_000)
  expect(kept.get(group('b'))).toEqual(['now', 'soon', 'late-1', 'late-2'])
})

test('one transaction sends to a thousand groups', async () => {
  const post = new Post()
  const kept = keeper(post)
  const letters = Array.from({ length: 1_000 }, (_, i) => ({ to: group(i), body: String(i) }))
  await post.send(group('a'), letters)
  await post.until(() => kept.size === 1_000)
  for (const { to, body } of letters) expect(kept.get(to)).toEqual([body])
  await post.pass(2_000)
  expect(await post.worklistRows(group('a'))).toBe(0)
})

test('groups whose messages are due later, more than are listed at once, are not looked at before', async () => {
  const post = new Post()
  const options = { delayMs: 60_000 }
  const letters = Array.from({ length: 600 }, (_, i) => ({ to: group(i), body: 'x', options }))
  await post.send(group('a'), letters)
  await post.pass(10_000)
  let looks = 0
  let handled = 0
  const prepare = async (): Promise<void> => void (looks += 1)
  post.handle({ prepare, handle: async () => void (handled += 1) })
  await post.pass(20_000)
  // Once each, and those again that are named while they are looked at.
  expect(looks).toBeLessThan(700)
  expect(handled).toBe(0)
  await post.pass(40_000)
  expect(handled).toBe(600)
})

test('processes that handle one queue share its groups', async () => {
  const post = new Post()
  const names = ['second', 'third']
  const clients = [post.client, ...names.map((name) => post.cluster.client({}, name))]
  const counts = clients.map(() => 0)
  const handlings = clients.map((client, index) =>
    post.handle(
      {
        handle: async (transaction) => {
          counts[index] = (counts[index] ?? 0) + 1
          transaction.put(bytes('done'), bytes('1'))
        },
      },
      client,
    ),
  )
  await post.pass(8_000)
  const letters = Array.from({ length: 60 }, (_, i) => ({ to: group(i), body: 'x' }))
  await post.send(group('a'), letters)
  await post.pass(2_000)
  expect(handlings.map((one) => one.counts.handled).every((count) => count >= 8)).toBe(true)
  // Each is called for its own groups, and hardly ever for those of others.
  expect(counts.reduce((sum, count) => sum + count, 0)).toBeLessThan(70)
})

test('send refuses what is too large, too much or misnamed, and says why', async () => {
  const post = new Post()
  const sending = (send: (sender: Sender) => void): Promise<unknown> =>
    post.transact(group('a'), async (transaction) => send(new Sender(transaction)))
  const large = new Uint8Array(messageBytesMax + 1)
  await expect(sending((to) => to.send('work', group('b'), large))).rejects.toMatchObject({
    code: 'too-large',
    detail: { limit: 'messageBytesMax' },
  })
  await expect(sending((to) => to.send('no name', group('b'), bytes('')))).rejects.toThrow(
    '"no name" is no name of a queue',
  )
  const back = sending((to) => to.send('work', group('b'), bytes(''), { delayMs: -1 }))
  await expect(back).rejects.toThrow('delayMs is -1')
  const many = sending((to) => {
    for (let i = 0; i <= sentMessagesMax; i++) to.send('work', group('b'), bytes(''))
  })
  await expect(many).rejects.toMatchObject({ detail: { limit: 'sentMessagesMax' } })
  expect(() => post.handle({ handle: async () => undefined, batch: 0 })).toThrow('from 1')
})

test('a node counts the messages by queue', async () => {
  const post = new Post()
  await post.send(group('a'), [
    { to: group('b'), body: '1' },
    { to: group('b'), body: '2' },
    { to: group('c'), body: '3', queue: 'rest' },
  ])
  await post.pass(1_000)
  const sums = await post.settle(post.client.queues.list())
  expect(sums).toMatchObject([
    { queue: 'rest', waiting: { messages: 1, groups: 1 }, dead: { messages: 0 } },
    { queue: 'work', waiting: { messages: 2, groups: 1, isWhole: true }, dead: { messages: 0 } },
  ])
  const waiting = await post.settle(post.client.queues.waiting('work', 10))
  expect(waiting.map(({ group: of, id }) => [of, id])).toEqual([
    [group('b'), 1],
    [group('b'), 2],
  ])
})

test('a long queue of one group is handled in as few commits as batches allow', async () => {
  const post = new Post()
  const letters = Array.from({ length: 1_205 }, (_, i) => ({ to: group('r'), body: String(i) }))
  await post.send(group('a'), letters)
  await post.pass(2_000)
  const sizes: number[] = []
  const bodies: string[] = []
  const handling = post.handle({
    ...{ batch: 100, concurrency: 1 },
    handle: async (transaction) => transaction.put(bytes('last'), bytes('x')),
    onHandled: (_group, messages) => {
      sizes.push(messages.length)
      bodies.push(...messages.map(textOf))
    },
  })
  await post.until(() => handling.counts.handled === letters.length)
  expect(sizes).toEqual([...Array.from({ length: 12 }, () => 100), 5])
  expect(bodies).toEqual(letters.map(({ body }) => body))
})

test('a handler looks past held-up messages up to a limit, and loses none', async () => {
  const post = new Post()
  const held = Array.from({ length: 1_100 }, (_, i) => ({ to: group('r'), body: `held ${i}` }))
  await post.send(group('a'), [{ to: group('r'), body: 'bad' }, ...held])
  await post.pass(1_000)
  await post.send(group('b'), [{ to: group('r'), body: 'behind' }])
  await post.pass(1_000)
  const seen: string[] = []
  post.handle({
    ...{ attemptsMax: 2, retryMs: 5_000, batch: 50 },
    handle: async (transaction, messages) => {
      if (messages.some((one) => textOf(one) === 'bad')) throw new Error('bad')
      transaction.put(bytes('last'), bytes('x'))
    },
    onHandled: (_group, messages) => seen.push(...messages.map(textOf)),
  })
  await post.pass(3_000)
  expect(seen).toEqual([])
  // Once it is dead, all go on in their order.
  await post.until(() => seen.length === 1_101)
  expect(seen).toEqual([...held.map(({ body }) => body), 'behind'])
})

const number = Buffer.of(0, 0, 1, 0, 0, 0, 0, 0)
const body = Buffer.from('x')
const strange: readonly (readonly [string, Uint8Array, Packable[]])[] = [
  ['for a group without a name', number, ['work', Buffer.of(), body, 0]],
  ['for a group with too long a name', number, ['work', Buffer.alloc(1025, 1), body, 0]],
  ['delayed beyond all times', number, ['work', Buffer.from('b'), body, 2 ** 53 - 1]],
  ['of number zero', Buffer.alloc(8), ['work', Buffer.from('b'), body, 0]],
]

test.each(strange)('a foreign outbox row %s does not end the node', async (_, key, fields) => {
  const post = new Post()
  const kept = keeper(post)
  const whole = Buffer.concat([worklistPrefix(outboxTopic), key])
  await post.transact(group('a'), async (transaction) =>
    transaction.put(whole, pack([1, ...fields])),
  )
  const failures = (): number =>
    post.deliveries.reduce((sum, { counts }) => sum + counts.failures, 0)
  await post.until(() => failures() > 0)
  expect(post.bugs).toEqual([])
  await post.transact(group('a'), async (transaction) => transaction.delete(whole))
  await post.send(group('a'), [{ to: group('b'), body: 'one' }])
  await post.until(() => kept.has(group('b')))
})

test('a call refuses a queue that has nothing and that no schema has, with the names of others', async () => {
  const post = new Post()
  const asker = post.cluster.client({}, 'asker').queues
  const calls = (queue: string): readonly (() => Promise<unknown>)[] => {
    const letters = asker.deadLetters(queue)
    const of = group('r')
    return [
      () => asker.waiting(queue, 10),
      () => letters.list(10),
      () => letters.of(of, 10),
      () => letters.redrive(of, [1]),
      () => letters.redriveAll(),
      () => letters.redriveAll(of),
    ]
  }
  const refused = async (queue: string, words: RegExp): Promise<void> => {
    for (const call of calls(queue)) {
      await expect(post.settle(call())).rejects.toMatchObject({
        ...{ code: 'not-found', message: expect.stringMatching(words) },
      })
    }
  }
  await refused(
    'nope',
    /^there is no queue nope: its name begins with no schema.*such as Bank.deposits$/,
  )
  await post.send(group('a'), [{ to: group('r'), body: '1' }])
  await post.pass(1_000)
  await refused('nope', /queues that have messages: work$/)
  await refused('wrk', /did you mean work\?$/)
  await refused('Bank.deposits', /the cluster has no schema Bank, and it has no message/)
  // It has a message, and no dead letter.
  const none = await Promise.all(calls('work').map((call) => post.settle(call())))
  expect(none).toMatchObject([[{ id: 1 }], [], [], 0, 0, 0])
  const root = table('Account', { account: t.string() }).key('account').root()
  await post.settle(post.client.applySchema(defineSchema('Bank', [root]).model))
  const empty = await Promise.all(calls('Bank.deposits').map((call) => post.settle(call())))
  expect(empty).toEqual([[], [], [], 0, 0, 0])
  await refused('Bank.', /there is no queue Bank\./)
})
