/** The weight of messages decides how many a frame holds: any frame so made can be sent. */
import { expect, test } from 'vitest'
import { groupOfBytes, nodeId } from '../../src/base/ids.ts'
import {
  batchItemsMax,
  frameBytesMax,
  keyBytesMax,
  listedGroupsMax,
  transactionMutationsMax,
} from '../../src/base/limits.ts'
import { problem } from '../../src/base/problem.ts'
import { topicsMax } from '../../src/worklist/worklist-operation.ts'
import { pageRowsMax } from '../../src/txn/limits.ts'
import { replyBytes, requestBytes } from '../../src/wire/client/client-bytes.ts'
import { encodeClientFrame } from '../../src/wire/client/client-codec.ts'
import type { Operation, Reply, Response } from '../../src/wire/client/client-message.ts'
import { frameBodiesBytesMax, frameMessagesMax, Outbox } from '../../src/wire/outbox.ts'
import { createBench, passMs, rowKey, settled } from '../cells/kit.ts'
import { createCluster } from '../client/cluster.ts'

const group = groupOfBytes(Buffer.from('g'))
const many = <Item>(count: number, item: Item): Item[] => Array.from({ length: count }, () => item)
const name = { rowKey: rowKey(1), column: 'x'.repeat(64), refKey: Number.MAX_SAFE_INTEGER }
const time = Date.UTC(2100, 0) * 1000
const key = Buffer.alloc(keyBytesMax)
const cell = { ...name, addedId: 2 ** 50, createdAt: time, body: Buffer.alloc(1) }
const row = { key: Buffer.from('k'), value: Buffer.alloc(1), timestamp: time }
const positions = many(4096, [4095, 2 ** 50] as const)
const read = { level: 'snapshot', atLeast: positions } as const
const intent = { session: 's', sequence: 1, floor: 1, expiresAt: time }
const page = { rows: many(pageRowsMax, row), isWhole: true }
const place = { kind: 'after', shard: 4095, addedId: 2 ** 50, asOf: 2 ** 50 } as const

const operations: readonly Operation[] = [
  { kind: 'put', datastore: 'd', items: many(batchItemsMax, { ...name, body: Buffer.alloc(1) }) },
  { kind: 'get', datastore: 'd', read, items: many(batchItemsMax, name) },
  { kind: 'log', datastore: 'd', read, items: many(4096, place), limit: 1, waitMs: 0 },
  {
    ...{ kind: 'read-group', group, from: { kind: 'current' }, atLeast: 0 },
    ...{ keys: many(pageRowsMax, key), range: { gte: key, lt: key } },
  },
  {
    kind: 'commit-group',
    submission: {
      ...{ group, intent, attempt: 1, readPosition: 1, allocations: [] },
      ...{ reads: many(1_000, key), ranges: many(1_000, { gte: key, lt: key }) },
      mutations: many(1_000, { key, value: Buffer.alloc(1), slots: undefined, isNew: true }),
    },
  },
]

const written = { shard: 4095, addedId: 2 ** 50, createdAt: time, created: true }
const logged = { shard: 4095, cells: [cell], next: 2 ** 50, asOf: 2 ** 50 }
const long = groupOfBytes(Buffer.alloc(1024, 0xff))
const listed = many(listedGroupsMax, { group: long, position: 2 ** 50 })
const by = { session: 'x'.repeat(64), sequence: 2 ** 50 }
const sum = { topic: 't'.repeat(250), groups: 2 ** 50, rows: 2 ** 50, isWhole: true, oldest: time }
const committed = {
  kind: 'committed',
  ...{ position: 2 ** 50, timestamp: time, attempt: 1 },
  sequences: many(transactionMutationsMax, 2 ** 50),
} as const
const refused = problem('immutable', 'x'.repeat(200), { group })
const replies: readonly Reply[] = [
  { kind: 'put', items: many(batchItemsMax, { kind: 'ok', value: written }) },
  { kind: 'put', items: many(batchItemsMax, { kind: 'problem', problem: refused }) },
  { kind: 'get', items: many(batchItemsMax, { kind: 'ok', value: cell }) },
  { kind: 'row', page: { cells: many(1_000, cell) } },
  { kind: 'log', items: many(4096, { kind: 'ok', value: logged }) },
  { kind: 'read-group', view: { position: 1, asOf: time }, rows: many(pageRowsMax, row), page },
  { kind: 'problem', problem: problem('invalid', '€'.repeat(4096), { group: long }) },
  { kind: 'commit-group', outcome: committed },
  { kind: 'commit-group', outcome: { kind: 'conflict', position: 2 ** 50, key, by } },
  { kind: 'outcome-group', outcome: committed },
  { kind: 'list-groups', groups: many(listedGroupsMax, long) },
  { kind: 'list-worklist', groups: listed },
  {
    kind: 'watch-worklist',
    groups: listed,
    mark: '',
    isGap: false,
    members: many(1_000, by.session),
  },
  { kind: 'sum-worklist', node: nodeId('n1'), topics: many(topicsMax, sum) },
  { kind: 'status', status: Buffer.alloc(1_000_000) },
  {
    ...{ kind: 'index', fields: many(32, 'f'.repeat(64)), types: many(32, 'string') },
    entries: many(batchItemsMax, { rowKey: rowKey(1), values: ['€'.repeat(1_000), 2 ** 50, true] }),
  },
]

/** Where the weights are those of half the bytes or more, a full frame is far below its bound. */
test('a message weighs no less than half of what it takes in a frame', () => {
  expect(2 * frameBodiesBytesMax + 256 * frameMessagesMax).toBeLessThan(frameBytesMax)
  for (const operation of operations) {
    const requests = [{ id: 1, timeoutMs: 10_000, operation }]
    const { length } = encodeClientFrame({ kind: 'requests', requests })
    expect(2 * requestBytes(operation) + 256, operation.kind).toBeGreaterThan(length)
  }
  for (const answer of replies) {
    const responses = [{ id: 1, answer, positions }]
    const { length } = encodeClientFrame({ kind: 'responses', responses })
    expect(2 * replyBytes({ answer, positions }) + 256, answer.kind).toBeGreaterThan(length)
  }
})

test('many long keys asked for in one turn go in as many frames as they take', async () => {
  const cluster = createCluster({ names: ['n1'] })
  const client = cluster.client()
  const view = { position: 0, asOf: undefined }
  const asked = many(20, many(pageRowsMax, key)).map((keys) =>
    client.groups.get(group, view, keys, 5_000),
  )
  await settled(cluster.bench.world, Promise.all(asked))
  const sizes = cluster.frames.map(({ frame }) => encodeClientFrame(frame).length)
  expect(Math.max(...sizes)).toBeLessThan(frameBytesMax)
})

test('many long answers that are given in one turn go in as many frames as they take', async () => {
  const { clockOf, world } = createBench()
  const sent: (readonly Response[])[] = []
  const outbox = new Outbox<Response>({
    clock: clockOf('n1'),
    send: (_, responses) => sent.push(responses) > 0,
    bodyBytes: replyBytes,
    onDropped: () => undefined,
  })
  for (const answer of replies) {
    for (let id = 0; id < 20; id++) outbox.add(answer.kind, { id, answer, positions: [] })
  }
  await passMs(world, 1)
  expect(sent.flat()).toHaveLength(20 * replies.length)
  const sizes = sent.map((responses) => encodeClientFrame({ kind: 'responses', responses }).length)
  expect(Math.max(...sizes)).toBeLessThan(frameBytesMax)
})
