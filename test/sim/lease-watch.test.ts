/**
 * The watch compares each node that counts on a lease with its grantor, at one moment and by both
 * clocks.
 */
import { expect, test } from 'vitest'
import { groupOfBytes, nodeId, type NodeId } from '../../src/base/ids.ts'
import type { ClockReading } from '../../src/lease/clock-reading.ts'
import type { ObservedLeases } from '../../src/replica/replica.ts'
import { Coverage } from '../../sim/coverage.ts'
import { LeaseWatch } from '../../sim/cluster/lease-watch.ts'

const group = groupOfBytes(Buffer.from('a group'))
const [holder, grantor, other] = [nodeId('n1'), nodeId('n2'), nodeId('n3')]

/** A node with the leases that the test gives it. */
class Node implements ObservedLeases {
  readonly name: NodeId
  readonly reading: { readonly now: number; readonly wall: number }
  isUp = true
  isRunning = true
  through: number | undefined
  registrations: readonly (readonly [grantor: NodeId, position: number])[] = []
  /** Holder, position and clock of each question. */
  readonly asked: (readonly [NodeId, number, number])[] = []
  readonly listed = new Set<NodeId>()

  constructor(name: NodeId, now: number) {
    this.name = name
    this.reading = { now, wall: now * 1000 }
  }

  readonly nowMicros: number = 0

  readingAt(): ClockReading {
    return this.reading
  }

  get program(): Node | undefined {
    return this.isUp ? this : undefined
  }

  leasedThrough(_group: string, { now }: ClockReading): number | undefined {
    return now === this.reading.now ? this.through : undefined
  }

  eachCounted(
    { now }: ClockReading,
    ofGrantor: NodeId,
    visit: (of: typeof group, position: number) => void,
  ): void {
    for (const [from, position] of this.registrations) {
      if (now === this.reading.now && from === ofGrantor) visit(group, position)
    }
  }

  lists(node: NodeId, _group: string, position: number, now: number): boolean {
    this.asked.push([node, position, now])
    return this.listed.has(node)
  }

  stop(): Promise<void> {
    return Promise.resolve()
  }
}

function watching(): {
  readonly nodes: readonly [Node, Node, Node]
  readonly watch: LeaseWatch<Node>
  readonly seen: unknown[]
} {
  const nodes = [new Node(holder, 10), new Node(grantor, 20), new Node(other, 30)] as const
  const seen: unknown[] = []
  const watch = new LeaseWatch({
    hosts: nodes,
    coverage: new Coverage(),
    readLeases: (node: Node) => (node.isRunning ? node : undefined),
    checker: {
      onLeaseSeen: (...what) => void seen.push(what),
      onUnlistedSeen: (...what) => void seen.push(what),
    },
  })
  nodes[0].registrations = [[grantor, 7]]
  return { nodes, watch, seen }
}

test('LEASE-2: a registration is looked at when its holder or its grantor has taken a step', () => {
  const { nodes, watch, seen } = watching()
  watch.onHandled(other)
  expect(seen).toEqual([])
  watch.onHandled(holder)
  nodes[1].listed.add(holder)
  watch.onHandled(grantor)
  expect(seen).toEqual([[holder, grantor, group, 7]])
  expect(nodes[1].asked).toEqual([
    [holder, 7, 20],
    [holder, 7, 20],
  ])
})

test('LEASE-2: a grantor that is down, or has stopped, is not asked: it lists everybody when it comes back', () => {
  const { nodes, watch, seen } = watching()
  nodes[1].isUp = false
  watch.onHandled(holder)
  nodes[1].isUp = true
  nodes[1].isRunning = false
  watch.onHandled(holder)
  expect(seen).toEqual([])
})

test('LEASE-2: the watch compares a visible position with what every other node would show', () => {
  const { nodes, watch, seen } = watching()
  for (const [index, node] of nodes.entries()) node.through = index
  nodes[1].through = undefined
  watch.onVisible(holder, group, 5)
  expect(seen).toEqual([[other, group, 5, 2]])
})
