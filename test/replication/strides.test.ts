/** Entries that are decided behind a hole are applied step by step once the hole is filled. */
import { expect, test } from 'vitest'
import type { ChosenEntry } from '../../src/replication/message.ts'
import { CoreCluster, type CoreNode } from './core-cluster.ts'

const count = 20

/** Two of three nodes have committed `count` entries of which the third has heard nothing. */
function clusterWithALaggard(limits: {
  readonly catchUpEntriesMax?: number
  readonly catchUpBytesMax?: number
}): { readonly cluster: CoreCluster; readonly laggard: CoreNode; readonly all: ChosenEntry[] } {
  const cluster = new CoreCluster({ limits })
  const laggard = cluster.at(2)
  for (let at = 1; at <= count; at++) {
    cluster.submit(0, { key: `k${at}` })
    cluster.deliver(({ to }) => to !== laggard.node)
  }
  const all = [...cluster.at(0).durable].flatMap(([position, { chosen }]) =>
    chosen === undefined ? [] : [{ position, ...chosen }],
  )
  expect(all.length).toBe(count)
  return { cluster, laggard, all }
}

function supply({ cluster, laggard }: Laggard, entries: readonly ChosenEntry[]): void {
  const { group } = cluster
  const from = entries[0]?.position ?? 0
  const message = { kind: 'entries', group, epoch: 1, from, entries, committed: count } as const
  laggard.step({ kind: 'message', from: cluster.at(0).node, message })
}

type Laggard = Pick<ReturnType<typeof clusterWithALaggard>, 'cluster' | 'laggard'>

test.each([
  { limits: { catchUpEntriesMax: 4 }, stride: 4 },
  { limits: { catchUpBytesMax: 1 }, stride: 1 },
  { limits: {}, stride: count },
])('LIVE-7: behind a hole that is filled, a step applies $stride entries at most', (one) => {
  const { cluster, laggard, all } = clusterWithALaggard(one.limits)
  const { group } = cluster
  const applied = (): number => laggard.replica.applied(group).position
  supply({ cluster, laggard }, all.slice(1))
  laggard.step({ kind: 'read', read: 1 })
  cluster.deliver()
  expect([applied(), laggard.served.get(1)]).toEqual([0, undefined])
  supply({ cluster, laggard }, all.slice(0, 1))
  const seen = [applied()]
  while (applied() < count) {
    // The node asks no peer for entries that it has, and serves no read at less than it has to see.
    expect([cluster.inFlight, laggard.served.get(1)]).toEqual([[], undefined])
    laggard.wakeNext()
    if (applied() > (seen.at(-1) ?? 0)) seen.push(applied())
  }
  const steps = Array.from({ length: count / one.stride }, (_, at) => (at + 1) * one.stride)
  expect(seen).toEqual(steps)
  expect(laggard.served.get(1)).toBe(count)
  expect(laggard.rows.size).toBe(count)
})

test('LIVE-7: a node whose turn to apply has not come proposes nothing, and then goes on', () => {
  const { cluster, laggard, all } = clusterWithALaggard({ catchUpEntriesMax: 3 })
  supply({ cluster, laggard }, all.slice(1))
  supply({ cluster, laggard }, all.slice(0, 1))
  const request = cluster.submit(2, { key: 'own', readPosition: count })
  expect(laggard.verdicts.get(request)).toBeUndefined()
  cluster.settle()
  expect(laggard.verdicts.get(request)?.kind).toBe('committed')
  const { group } = cluster
  for (const { replica } of cluster.nodes) {
    expect(replica.applied(group).position).toBe(count + 1)
  }
})
