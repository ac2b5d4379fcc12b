/** The answers of a node to its clients when it meets an error of its own, or has more to say than it can. */
import { expect, test } from 'vitest'
import { StoreError } from '../../src/base/errors.ts'
import { frameBytesMax } from '../../src/base/limits.ts'
import type { Answered, CellService } from '../../src/cells/operation.ts'
import type { Operation } from '../../src/wire/client/client-message.ts'
import { pack } from '../../src/base/pack.ts'
import { defaultWorkLimits } from '../../src/node/work-limit.ts'
import { passMs, rowKey, settled } from '../cells/kit.ts'
import { createCluster } from '../client/cluster.ts'

const broken: readonly (readonly [string, Partial<CellService>])[] = [
  [
    'at once',
    {
      answerNow: () => {
        throw new TypeError('odd')
      },
    },
  ],
  ['later', { answerNow: () => undefined, execute: () => Promise.reject(new TypeError('odd')) }],
]

test.each(broken)('a bug that shows %s is reported once, and answered', async (_, parts) => {
  const bugs: Error[] = []
  const cluster = createCluster({
    wrap: (store) => Object.assign(store, parts),
    onBug: (error) => void bugs.push(error),
  })
  const { world } = cluster.bench
  const client = cluster.client()
  const asked = client.cells('trips').get({ rowKey: rowKey(1), column: 'BASE', refKey: 0 })
  await expect(settled(world, asked)).rejects.toMatchObject({ code: 'internal' })
  // The next node is not asked: it would meet the same.
  expect(bugs).toHaveLength(1)
  for (const { server } of cluster.nodes.values()) {
    expect(server.requests).toBe(0)
    await settled(world, server.drain())
  }
})

/** An index of one entry, with a text of the given number of bytes. */
function indexOf(bytes: number): Partial<CellService> {
  const entries = [{ rowKey: rowKey(1), values: ['x'.repeat(bytes)] }]
  const answer = { kind: 'index', fields: ['note'], types: ['string'], entries } as const
  return { execute: () => Promise.resolve({ answer, positions: [] }) }
}

test.each([
  ['a frame holds', frameBytesMax - 1_000, 'answered'],
  ['no frame holds', frameBytesMax, 'too-large'],
])('an answer that %s is not kept from who waits for it', async (_, bytes, expected) => {
  const { bench, client, frames } = createCluster({
    wrap: (store) => Object.assign(store, indexOf(bytes)),
  })
  const asked = client().cells('trips').index('notes').query({ note: 'x' })
  const code = await settled(
    bench.world,
    asked.then(
      () => 'answered',
      (error: unknown) => (error instanceof StoreError ? error.code : 'unknown'),
    ),
  )
  expect(code).toBe(expected)
  expect(frames.filter(({ frame }) => frame.kind === 'requests')).toHaveLength(1)
})

test('LIVE-8: a node that lacks much sends its clients to another one, and then takes them again', async () => {
  const returning = new Set(['n1'])
  const cluster = createCluster({ names: ['n1', 'n2'], returning })
  const { world } = cluster.bench
  const cells = cluster.client().cells('trips')
  const servedBy = (name: string): number =>
    cluster.frames.filter(({ from, frame }) => from === name && frame.kind === 'responses').length
  for (let n = 0; n < 40; n++) {
    const name = { rowKey: rowKey(n), column: 'BASE', refKey: 0 }
    expect(await settled(world, cells.get(name))).toBeUndefined()
  }
  // The client asks it once, and avoids it then.
  expect(servedBy('n1')).toBeLessThanOrEqual(2)
  expect(servedBy('n2')).toBeGreaterThanOrEqual(38)
  returning.clear()
  await passMs(world, 3_000)
  for (let n = 0; n < 40; n++) {
    await settled(world, cells.get({ rowKey: rowKey(n), column: 'BASE', refKey: 0 }))
  }
  expect(servedBy('n1')).toBeGreaterThan(10)
})

test('LIVE-8: a client that knows no other node is served by one that lacks much', async () => {
  const cluster = createCluster({ names: ['n1'], returning: new Set(['n1']) })
  const { world } = cluster.bench
  const cells = cluster.client().cells('trips')
  const beganMicros = world.nowMicros
  await settled(world, cells.get({ rowKey: rowKey(1), column: 'BASE', refKey: 0 }))
  expect(world.nowMicros - beganMicros).toBeLessThan(2_000_000)
})

test('COST-4: a queued request does not begin once its client has stopped waiting', async () => {
  const begun: number[] = []
  const ends: (() => void)[] = []
  const done: Answered = { answer: { kind: 'put', items: [] }, positions: [] }
  const execute: CellService['execute'] = (operation) =>
    new Promise((resolve) => {
      if (operation.kind === 'put') begun.push(operation.items[0]?.refKey ?? -1)
      ends.push(() => resolve(done))
    })
  const cluster = createCluster({
    names: ['n1'],
    wrap: (store) => Object.assign(store, { execute }),
  })
  const { world } = cluster.bench
  const link = (name: string): ((id: number, operation: Operation) => void) => {
    const transport = cluster.network.attach(cluster.clockOf(name).process, ['n1'])
    transport.start({
      ...{ self: () => ({}), admit: () => undefined, onRefused: () => undefined },
      ...{ onLink: () => undefined, onFrame: () => undefined },
    })
    closers.push(() => transport.close())
    return (id, operation) =>
      void transport.send('n1', { kind: 'requests', requests: [{ id, timeoutMs: 400, operation }] })
  }
  const closers: (() => Promise<void>)[] = []
  const [stays, goes] = [link('stays'), link('goes')]
  await passMs(world, 100)
  const putOf = (refKey: number): Operation => {
    const cell = { rowKey: rowKey(refKey), column: 'BASE', refKey, body: pack({}) }
    return { kind: 'put', datastore: 'trips', items: [cell] }
  }
  // As many as may be at work, and ten that wait behind them.
  const { startMax } = defaultWorkLimits
  for (let n = 1; n <= startMax + 10; n++) stays(n, putOf(n))
  await passMs(world, 50)
  for (let n = 1; n <= 5; n++) goes(n, putOf(1_000 + n))
  await passMs(world, 50)
  const { server } = cluster.node('n1')
  expect([begun.length, server.requests]).toEqual([startMax, startMax + 15])
  stays(900, { kind: 'cancel', request: startMax + 3 })
  void closers[1]?.()
  await passMs(world, 100)
  // They give their places back at once.
  expect(server.requests).toBe(startMax + 9)
  while (ends.length > 0) {
    for (const end of ends.splice(0)) end()
    await passMs(world, 10)
  }
  const all = Array.from({ length: startMax + 10 }, (_, at) => at + 1)
  expect(begun).toEqual(all.filter((n) => n !== startMax + 3))
  expect(server.requests).toBe(0)
})
