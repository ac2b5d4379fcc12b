/** Polls that wait: what they cost while they do, who wakes them, and that they end with their clients. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import type { GetLog, LogPlace } from '../../src/cells/operation.ts'
import { ShardWaits } from '../../src/cells/shard-waits.ts'
import { shardOf } from '../../src/client/row-shard.ts'
import { Slices } from '../../src/ports/slices.ts'
import { any, ask, createBench, datastore, packed, passMs, rowKey, settled } from './kit.ts'

setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')

const shard = shardOf(rowKey(1))

function poll(shards: readonly number[]): GetLog {
  const items = shards.map((of): LogPlace => ({ kind: 'after', shard: of, addedId: 0 }))
  return { kind: 'log', datastore, read: any, limit: 10, waitMs: 30_000, items }
}

test('COST-5: many polls of many shards watch each shard once, and one cell wakes those that wait for it', async () => {
  const { world, node } = createBench()
  const { store, replica } = node('n1')
  const shards = Array.from({ length: 64 }, (_, nth) => (shard + nth) % 4096)
  let timers = 0
  const waiting = Array.from({ length: 20 }, (_, nth) =>
    ask(store, poll(nth < 10 ? shards : shards.slice(1)), { timeoutMs: 60_000 }).then((answer) => {
      timers += 1
      return answer
    }),
  )
  await passMs(world, 200)
  expect(replica.watches).toBe(64)
  const items = [{ rowKey: rowKey(1), column: 'BASE', refKey: 1, body: packed('x') }]
  await settled(world, ask(store, { kind: 'put', datastore, items }))
  const answers = await settled(world, Promise.all(waiting.slice(0, 10)))
  for (const { items: pages } of answers) {
    expect(pages[0]).toMatchObject({ value: { shard, cells: [{ addedId: 1 }], next: 1 } })
    expect(pages[1]).toMatchObject({ value: { cells: [], next: 0, asOf: 0 } })
    expect(pages).toHaveLength(64)
  }
  expect(timers).toBe(10)
  expect(replica.watches).toBe(63)
  await settled(world, Promise.all(waiting))
  expect(replica.watches).toBe(0)
})

test('COST-4, COST-5: a poll whose client goes ends at once, and nothing of it is left', async () => {
  const { world, node, clockOf } = createBench()
  const { store, replica } = node('n1')
  const line = new Slices(clockOf('node')).open()
  const shards = Array.from({ length: 64 }, (_, nth) => nth)
  const asked = store.execute(poll(shards), { timeoutMs: 60_000, pace: line.task() })
  await passMs(world, 200)
  expect(replica.watches).toBe(64)
  const startMicros = world.nowMicros
  line.close()
  expect(await settled(world, asked)).toMatchObject({ answer: { problem: { code: 'closed' } } })
  expect(world.nowMicros).toBe(startMicros)
  expect(replica.watches).toBe(0)
})

test('COST-5: the count of waiting places stays right as waits wake, resume and end', async () => {
  const { node, clockOf } = createBench()
  const { replica } = node('n1')
  const clock = clockOf('node')
  const waits = new ShardWaits({ replica, clock })
  const [one, other] = [
    waits.begin(datastore, 1e9, undefined),
    waits.begin(datastore, 1e9, undefined),
  ]
  for (let at = 0; at < 5; at++) {
    await one.add({ at, shard: at, position: 0 })
    await other.add({ at, shard: at, position: 0 })
  }
  expect(waits.places).toBe(10)
  expect(() => one.add({ at: 0, shard: 0, position: 0 })).toThrow('COST-5')
  one.end()
  expect(waits.places).toBe(5)
  other.end()
  expect(waits.places).toBe(0)
  expect(replica.watches).toBe(0)
})

test('a batch of a thousand is read over many turns, and gives what it gives at once', async () => {
  const { world, node, clockOf } = createBench()
  const { store } = node('n1')
  const items = Array.from({ length: 300 }, (_, nth) => {
    return { rowKey: rowKey(nth), column: 'BASE', refKey: 1 }
  })
  const put = items.map((item) => ({ ...item, body: packed('x') }))
  await settled(world, ask(store, { kind: 'put', datastore, items: put }))
  const slices = new Slices(clockOf('node'))
  const get = { kind: 'get', datastore, read: any, items } as const
  const atOnce = await settled(world, store.execute(get, { timeoutMs: 10_000 }))
  const before = world.eventCount
  const pace = slices.open().task()
  const inSlices = await settled(world, store.execute(get, { timeoutMs: 10_000, pace }))
  expect(inSlices.answer).toStrictEqual(atOnce.answer)
  // 300 reads of shards, at some 50 a turn.
  expect(world.eventCount - before).toBeGreaterThanOrEqual(5)
  pace.end()
  expect(slices.answerBytes).toBe(0)
})

test('COST-5: ten polls of all shards that wait take little memory', async () => {
  const { world, node } = createBench()
  const { store } = node('n1')
  const shards = Array.from({ length: 4096 }, (_, of) => of)
  // The memory that the node keeps of shards for all callers is there by now.
  await settled(world, ask(store, { ...poll(shards), waitMs: 0 }, { timeoutMs: 60_000 }))
  collect()
  const before = process.memoryUsage().heapUsed
  const polls = Array.from({ length: 10 }, () => ask(store, poll(shards), { timeoutMs: 60_000 }))
  await passMs(world, 5_000)
  collect()
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(40 * 1024 * 1024)
  store.stop()
  await settled(world, Promise.all(polls))
})
