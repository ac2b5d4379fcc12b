/** Positions that no proposer writes to any more: a node that goes after them closes them. */
import { expect, test } from 'vitest'
import { CoreCluster } from './core-cluster.ts'

test('LIVE-4, LOG-5: a position that was promised and forgotten is closed when a node goes after it', () => {
  const cluster = new CoreCluster()
  const [proposer, promiser] = [cluster.at(2), cluster.at(1)]
  const position = 1
  const prepared = { epoch: 1, round: 3, node: proposer.node, incarnation: 1 }
  const { group } = cluster
  const message = { kind: 'prepare', group, epoch: 1, position, ballot: prepared } as const
  promiser.step({ kind: 'message', from: proposer.node, message })
  cluster.inFlight = []
  promiser.step({ kind: 'exists', position, informer: promiser.node })
  cluster.settle()
  expect(cluster.marks).toContain('noop_proposed')
  for (const { replica } of cluster.nodes) expect(replica.applied(group).position).toBe(position)
})
