/** Answers of nodes about their worklists: groups with rows, changes, and the sharers of the work. */
import { expect, test } from 'vitest'
import type { ListedGroup } from '../../src/group/replica-port.ts'
import { Feed, memberMs } from '../../src/worklist/worklist-feed.ts'
import type { WorklistAnswer, WorklistOperation } from '../../src/worklist/worklist-operation.ts'
import { RemoteWorklist } from '../../src/worklist/remote-worklist.ts'
import { worklistPrefix } from '../../src/group/worklist-key.ts'
import { WorklistService } from '../../src/worklist/worklist-service.ts'
import { nodeId } from '../../src/base/ids.ts'
import { createBench, passMs, settled } from '../cells/kit.ts'
import { bytes, group, Post } from '../queues/post.ts'

function feedOf(): {
  readonly feed: Feed
  readonly put: (name: string) => void
  readonly pass: (ms: number) => Promise<void>
} {
  const bench = createBench(1)
  let wake: (listed: ListedGroup) => void = () => undefined
  const feed = new Feed(bench.clockOf('n1'), 2, (told) => {
    wake = told
    return () => undefined
  })
  let position = 0
  const put = (name: string): void => wake({ group: group(name), position: (position += 1) })
  return { feed, put, pass: (ms) => passMs(bench.world, ms) }
}

test('the feed gives changes since a mark, each group once, and a gap after forgotten ones', async () => {
  const { feed, put } = feedOf()
  expect(feed.isLost(0)).toBe(false)
  for (const name of ['a', 'b', 'a']) put(name)
  expect(feed.since(0)).toEqual([
    { group: group('a'), position: 3 },
    { group: group('b'), position: 2 },
  ])
  expect(feed.since(2)).toEqual([{ group: group('a'), position: 3 }])
  expect([feed.isLost(3), feed.isLost(4)]).toEqual([false, true])
  for (let i = 0; i < 3_000; i++) put('c')
  expect([feed.isLost(0), feed.isLost(feed.last - 900)]).toEqual([true, false])
})

test('the next change wakes a waiter, or its time does', async () => {
  const { feed, put, pass } = feedOf()
  let woken = 0
  const wait = (since: number): void => void feed.wait(since, 1_000).then(() => (woken += 1))
  wait(0)
  await pass(500)
  expect(woken).toBe(0)
  put('a')
  await pass(1)
  expect(woken).toBe(1)
  wait(1)
  await pass(1_001)
  expect(woken).toBe(2)
  wait(1)
  feed.stop()
  await pass(1)
  expect(woken).toBe(3)
})

test('recent askers share the work, up to a bound', async () => {
  const { feed, pass } = feedOf()
  feed.see('b')
  await pass(memberMs - 1_000)
  feed.see('a')
  feed.see('c')
  expect(feed.members()).toEqual(['a', 'b'])
  await pass(2_000)
  feed.see('c')
  expect(feed.members()).toEqual(['a', 'c'])
  feed.leave('a')
  feed.seeAgain('a')
  feed.seeAgain('c')
  expect(feed.members()).toEqual(['c'])
})

test('each group belongs to one of the sharing processes, and most stay when one leaves', async () => {
  const bench = createBench(1)
  const members: string[] = []
  const worklists = ['x', 'y', 'z'].map((name) => {
    const ask = (operation: WorklistOperation): Promise<WorklistAnswer> => {
      if (operation.kind !== 'watch-worklist') {
        return Promise.resolve({ kind: 'list-worklist', groups: [] })
      }
      if (!members.includes(operation.member)) members.push(operation.member)
      const answer = { groups: [], mark: '1', isGap: false, members: members.toSorted() }
      return bench.world.sleep(100_000).then(() => ({ kind: 'watch-worklist', ...answer }))
    }
    const random = bench.random.fork(name)
    return new RemoteWorklist({ ask, clock: bench.clockOf(name), random })
  })
  for (const worklist of worklists) worklist.watch('queue/q', () => undefined)
  await passMs(bench.world, 1_000)
  const groups = Array.from({ length: 300 }, (_, i) => group(i))
  const owners = (): number[] =>
    groups.map((one) => {
      const own = worklists.flatMap((worklist, index) => (worklist.isOurs(one) ? [index] : []))
      expect(own).toHaveLength(1)
      return own[0] ?? -1
    })
  const before = owners()
  for (const index of [0, 1, 2]) {
    expect(before.filter((one) => one === index).length).toBeGreaterThan(60)
  }
})

test('the service refuses a caller that asks for an invalid topic', async () => {
  const post = new Post()
  const { bench } = post.cluster
  const service = new WorklistService({
    ...{ clock: bench.clockOf('n1'), random: bench.random, node: nodeId('n1') },
    replica: post.cluster.node('n1').replica,
  })
  const ask = (operation: WorklistOperation): Promise<WorklistAnswer> =>
    settled(bench.world, service.execute(operation, 1_000))
  for (const topic of ['', 'x'.repeat(254), 'é'.repeat(127), '\0'.repeat(127), '\ud800']) {
    const listed = await ask({ kind: 'list-worklist', topic, limit: 10 })
    const common = { member: 'x', waitMs: 0, isLeaving: false } as const
    const watched = await ask({ kind: 'watch-worklist', topic, ...common })
    for (const answer of [listed, watched]) {
      expect(answer).toMatchObject({ kind: 'problem', problem: { code: 'invalid' } })
    }
    expect(await ask({ kind: 'sum-worklist', prefix: topic })).toMatchObject({ topics: [] })
  }
  const longest = await ask({ kind: 'list-worklist', topic: 'x'.repeat(253), limit: 10 })
  expect(longest).toEqual({ kind: 'list-worklist', groups: [] })
  service.stop()
})

test('a listing says whether a part of it is enough', async () => {
  const bench = createBench(1)
  const ports = { clock: bench.clockOf('x'), random: bench.random }
  const asked: WorklistOperation[] = []
  const ask = (operation: WorklistOperation): Promise<WorklistAnswer> => {
    asked.push(operation)
    return Promise.resolve({ kind: 'list-worklist', groups: [] })
  }
  await new RemoteWorklist({ ask, ...ports }).list('queue/q', undefined, 10)
  await new RemoteWorklist({ ask, ...ports, isPartial: true }).list('queue/q', undefined, 10)
  expect(asked.map((one) => 'isPartial' in one)).toEqual([false, true])
})

test('a watcher hears after a gap of groups that could not be listed at first', async () => {
  const bench = createBench(1)
  const [mark, problem] = ['run/7', { code: 'unavailable', message: 'no', detail: {} } as const]
  let refusals = 2
  const ask = async (operation: WorklistOperation): Promise<WorklistAnswer> => {
    if (operation.kind !== 'watch-worklist') {
      if ((refusals -= 1) >= 0) return { kind: 'problem', problem }
      return { kind: 'list-worklist', groups: [{ group: group('a'), position: 1 }] }
    }
    const isGap = operation.mark !== mark
    if (!isGap) await bench.world.sleep(operation.waitMs * 1_000)
    return { kind: 'watch-worklist', groups: [], mark, isGap, members: [operation.member] }
  }
  const worklist = new RemoteWorklist({ ask, clock: bench.clockOf('x'), random: bench.random })
  const told: string[] = []
  const cancel = worklist.watch('queue/q', (listed) => void told.push(listed.group))
  await passMs(bench.world, 10_000)
  expect(told).toEqual([group('a')])
  cancel()
})

test('more changes at once than the feed remembers are a gap, also for a waiting client', async () => {
  const post = new Post()
  for (const delivery of post.deliveries) await post.settle(delivery.stop())
  const { replica } = post.cluster.node('n1')
  const { bench } = post.cluster
  let wake: (listed: ListedGroup) => void = () => undefined
  const watch = (_topic: string, told: typeof wake): (() => void) => {
    wake = told
    return () => undefined
  }
  const service = new WorklistService({
    ...{ clock: bench.clockOf('n1'), random: bench.random, node: nodeId('n1') },
    replica: Object.assign(replica, { worklist: { ...replica.worklist, watch } }),
  })
  const common = {
    kind: 'watch-worklist',
    topic: 'queue/q',
    member: 'x',
    isLeaving: false,
  } as const
  const first = await settled(bench.world, service.execute({ ...common, waitMs: 0 }, 1_000))
  if (first.kind !== 'watch-worklist') throw new Error(first.kind)
  const { mark } = first
  const waited = service.execute({ ...common, waitMs: 1_000, mark }, 1_000)
  await passMs(bench.world, 10)
  for (let position = 1; position <= 3_000; position++) wake({ group: group('a'), position })
  expect(await settled(bench.world, waited)).toMatchObject({ isGap: true, groups: [] })
  service.stop()
})

test('a node lists who has rows, and ends the listing of who has none', async () => {
  const post = new Post()
  for (const delivery of post.deliveries) await post.settle(delivery.stop())
  const { replica } = post.cluster.node('n1')
  const { bench } = post.cluster
  const gone: string[] = []
  const worklist = {
    ...replica.worklist,
    list: () =>
      Promise.resolve([
        { group: group('full'), position: 1 },
        { group: group('empty'), position: 1 },
      ]),
    unlist: (_topic: string, one: string) => void gone.push(one),
  }
  const key = Buffer.concat([worklistPrefix('queue/q'), bytes('1')])
  await post.transact(group('full'), async (transaction) => transaction.put(key, bytes('x')))
  await post.pass(100)
  const service = new WorklistService({
    ...{ clock: bench.clockOf('n1'), random: bench.random, node: nodeId('n1') },
    replica: Object.assign(replica, { worklist }),
  })
  const operation = { kind: 'list-worklist', topic: 'queue/q', limit: 10 } as const
  const answer = await settled(bench.world, service.execute(operation, 1_000))
  expect(answer).toEqual({ kind: 'list-worklist', groups: [{ group: group('full'), position: 1 }] })
  expect(gone).toEqual([group('empty')])
  service.stop()
  const late = await service.execute(operation, 1_000)
  expect(late).toMatchObject({ kind: 'problem', problem: { code: 'closed' } })
})
