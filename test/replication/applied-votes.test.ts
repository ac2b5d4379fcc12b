/** A proposer that is behind asks for votes at positions that others have applied. */
import { expect, test } from 'vitest'
import type { Accept, Prepare } from '../../src/replication/message.ts'
import { CoreCluster } from './core-cluster.ts'

test.each(['prepare', 'accept'] as const)(
  'PAX-8: a replica that has applied a position answers a request to %s with what was chosen',
  (kind) => {
    const cluster = new CoreCluster()
    const [asked, behind] = [cluster.at(0), cluster.at(2)]
    for (const key of ['a', 'b', 'c']) {
      cluster.submit(0, { key })
      cluster.deliver(({ to }) => to !== behind.node)
    }
    const before = new Map(
      [...asked.durable].map(([position, record]) => [position, { ...record }]),
    )
    const { group } = cluster
    const at = { group, epoch: 1, position: 2 }
    const ballot = { epoch: 1, round: 9, node: behind.node, incarnation: 1 }
    const message: Prepare | Accept =
      kind === 'prepare'
        ? { kind, ...at, ballot }
        : { kind, ...at, ballot, value: Buffer.from('another value') }
    asked.step({ kind: 'message', from: behind.node, message })
    expect(asked.durable).toEqual(before)
    const entries = [2, 3].map((position) => ({ position, ...before.get(position)?.chosen }))
    expect(cluster.inFlight).toMatchObject([
      { to: behind.node, message: { kind: 'entries', from: 2, committed: 3, entries } },
    ])
  },
)

test('PAX-8: a replica whose log cannot say what was chosen says at least how far it has applied', () => {
  const cluster = new CoreCluster()
  const [asked, behind] = [cluster.at(0), cluster.at(2)]
  cluster.submit(0, { key: 'a' })
  cluster.deliver(({ to }) => to !== behind.node)
  asked.durable.clear()
  const { group } = cluster
  const ballot = { epoch: 1, round: 9, node: behind.node, incarnation: 1 }
  const message: Prepare = { kind: 'prepare', group, epoch: 1, position: 1, ballot }
  asked.step({ kind: 'message', from: behind.node, message })
  expect(cluster.inFlight).toMatchObject([
    { to: behind.node, message: { kind: 'entries', from: 1, committed: 1, entries: [] } },
  ])
})
