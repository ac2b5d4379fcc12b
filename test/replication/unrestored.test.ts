/** A replica that has lost what it knew, and is not restored yet. */
import { expect, test } from 'vitest'
import type { Accept, Prepare } from '../../src/replication/message.ts'
import { CoreCluster, type CoreNode } from './core-cluster.ts'

/** One entry is chosen by the first two nodes; the third has not heard of it, and the first loses everything. */
function withLoss(): {
  readonly cluster: CoreCluster
  readonly lost: CoreNode
  readonly keeper: CoreNode
  readonly behind: CoreNode
} {
  const cluster = new CoreCluster()
  const [lost, keeper, behind] = [cluster.at(0), cluster.at(1), cluster.at(2)]
  cluster.submit(0, { key: 'a' })
  cluster.deliver(({ to }) => to !== behind.node)
  expect(keeper.replica.appliedInMemory(cluster.group)?.position).toBe(1)
  cluster.inFlight = []
  lost.loseAll()
  return { cluster, lost, keeper, behind }
}

test.each(['prepare', 'accept'] as const)(
  'LOG-19: a replica that is not restored gives no vote to a request to %s',
  (kind) => {
    const { cluster, lost, behind } = withLoss()
    const at = { group: cluster.group, epoch: 1, position: 1 }
    const ballot = { epoch: 1, round: 9, node: behind.node, incarnation: 1 }
    const message: Prepare | Accept =
      kind === 'prepare'
        ? { kind, ...at, ballot }
        : { kind, ...at, ballot, value: Buffer.from('another value') }
    lost.step({ kind: 'message', from: behind.node, message })
    expect(cluster.inFlight).toMatchObject([
      { to: behind.node, message: { kind: 'faulty', position: 1, ballot } },
    ])
    expect(lost.durable.size).toBe(0)
  },
)

test('LOG-19: it answers no read round, so none ends without what was chosen', () => {
  const { cluster, behind, keeper } = withLoss()
  behind.read(1)
  cluster.deliver(({ to }) => to !== keeper.node)
  expect([...behind.served]).toEqual([])
  behind.wakeNext()
  cluster.deliver()
  expect([...behind.served]).toEqual([[1, 1]])
})

test('LOG-19: a read that began before it was restored counts it afterwards, where another voter is down', () => {
  const { cluster, lost, keeper, behind } = withLoss()
  lost.read(1)
  const isWell = ({ from, to }: { readonly from: string; readonly to: string }): boolean =>
    from !== behind.node && to !== behind.node
  cluster.deliver(isWell)
  expect([...lost.served]).toEqual([])
  lost.isRestored = true
  lost.wakeNext()
  cluster.deliver(isWell)
  for (let looks = 0; looks < 20 && lost.served.size === 0; looks++) {
    lost.wakeNext()
    cluster.deliver(isWell)
  }
  expect([...lost.served]).toEqual([[1, 1]])
  expect(keeper.served.size).toBe(0)
})

test('LOG-19: its own read round counts a majority of the others, and it shows what was chosen', () => {
  const { cluster, lost, keeper } = withLoss()
  lost.read(1)
  cluster.deliver(({ to, from }) => to !== keeper.node && from !== keeper.node)
  expect([...lost.served]).toEqual([])
  lost.wakeNext()
  cluster.deliver()
  expect([...lost.served]).toEqual([[1, 1]])
  expect(lost.replica.leasedThrough(cluster.group, { now: cluster.now, wall: 1 })).toBeUndefined()
})

test('LOG-19: it does not use ballot zero at position 1, where it may have used it before', () => {
  const { cluster, lost } = withLoss()
  cluster.submit(0, { key: 'b' })
  const kinds = cluster.inFlight.map(({ from, message }) => from === lost.node && message.kind)
  expect(kinds).not.toContain('accept')
  expect(kinds).toContain('prepare')
  cluster.deliver()
  expect(lost.replica.appliedInMemory(cluster.group)?.position).toBe(2)
  const values = lost.durable.get(1)?.chosen
  expect(values).toEqual(cluster.at(1).durable.get(1)?.chosen)
})
