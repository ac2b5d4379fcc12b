import { expect, test } from 'vitest'
import { nodeId, type NodeId } from '../../src/base/ids.ts'
import type { Clock } from '../../src/ports/clock.ts'
import { GroupDiscovery } from '../../src/peers/group-discovery.ts'
import { SetNodes } from '../../src/placement/set-nodes.ts'

const n1 = nodeId('n1')
const [n2, n3, n4, n5] = [nodeId('n2'), nodeId('n3'), nodeId('n4'), nodeId('n5')] as const

/** Timers that go off when the test says so. */
class HandClock {
  #now = 0
  #timers: { readonly at: number; readonly run: () => void }[] = []

  readonly clock: Clock = {
    wallMicros: () => this.#now * 1000,
    monotonicMs: () => this.#now,
    defer: (run) => queueMicrotask(run),
    setTimer: (delayMs, run) => {
      const timer = { at: this.#now + delayMs, run }
      this.#timers.push(timer)
      return { cancel: () => (this.#timers = this.#timers.filter((one) => one !== timer)) }
    },
  }

  get waiting(): number {
    return this.#timers.length
  }

  pass(ms: number): void {
    this.#now += ms
    for (;;) {
      const due = this.#timers.find(({ at }) => at <= this.#now)
      if (due === undefined) return
      this.#timers = this.#timers.filter((one) => one !== due)
      due.run()
    }
  }
}

/** Node n1, which votes beside the others, or is a read-only member. */
function bench(others: readonly NodeId[], { isReader = false, directoriesOf = 0 } = {}) {
  const nodes = new SetNodes(n1, isReader ? others : [n1, ...others])
  const hand = new HandClock()
  const asked: NodeId[] = []
  let drawn = 0
  const ask = (node: NodeId): number => {
    asked.push(node)
    return (drawn += 1)
  }
  const discovery = new GroupDiscovery({
    ...{ clock: hand.clock, nodes, againMs: 100, ask },
    isRestored: () => true,
    epochs: { directoriesOf },
  })
  const take = (): { readonly ends: Promise<boolean>; isOver: boolean } => {
    const taken = { ends: discovery.refresh(1_000), isOver: false }
    void taken.ends.then(() => (taken.isOver = true))
    return taken
  }
  return { hand, asked, discovery, take }
}

test('LOG-8: a node alone knows all groups', async () => {
  expect(await bench([]).take().ends).toBe(true)
})

test('LOG-8: a majority has to be known as far as it was when it answered', async () => {
  const { discovery, take, hand } = bench([n2, n3, n4, n5])
  const taken = take()
  discovery.onDigest(n2, { asked: 1, through: 5, durable: 5, directedIn: 0 })
  discovery.onDigest(n2, { asked: 1, through: 5, durable: 5, directedIn: 0 })
  discovery.onDigest(n3, { asked: 2, through: 3, durable: 7, directedIn: 0 })
  await Promise.resolve()
  expect(taken.isOver).toBe(false)
  // It has gone on meanwhile; positions after the question are of no concern.
  discovery.onDigest(n3, { asked: 6, through: 7, durable: 9, directedIn: 0 })
  expect(await taken.ends).toBe(true)
  expect(hand.waiting).toBe(0)
})

test('LOG-8: an answer to a question from before tells nothing', async () => {
  const { discovery, take } = bench([n2, n3])
  const before = take()
  discovery.onDigest(n2, { asked: 1, through: 5, durable: 5, directedIn: 0 })
  expect(await before.ends).toBe(true)
  const taken = take()
  discovery.onDigest(n3, { asked: 2, through: 5, durable: 5, directedIn: 0 })
  await Promise.resolve()
  expect(taken.isOver).toBe(false)
  discovery.onDigest(n3, { asked: 4, through: 5, durable: 5, directedIn: 0 })
  expect(await taken.ends).toBe(true)
})

test('LOG-8: a discovery of groups asks silent peers again, and a minority is not enough', async () => {
  const { asked, hand, discovery, take } = bench([n2, n3, n4, n5])
  const taken = take()
  discovery.onDigest(n2, { asked: 1, through: 5, durable: 5, directedIn: 0 })
  hand.pass(100)
  expect(asked).toEqual([n2, n3, n4, n5, n3, n4, n5])
  hand.pass(1_000)
  expect(await taken.ends).toBe(false)
  expect(hand.waiting).toBe(0)
})

test('LOG-8: a discovery of groups ends when its node stops', async () => {
  const { discovery, take, hand } = bench([n2, n3])
  const taken = take()
  discovery.stop()
  expect(await taken.ends).toBe(false)
  expect(hand.waiting).toBe(0)
})

test('LOG-8: a read-only member knows all groups by a majority of the voters, without itself', async () => {
  for (const [others, needed] of [
    [[n2, n3], 2],
    [[n2, n3, n4], 2],
    [[n2, n3, n4, n5], 3],
  ] as const) {
    const { discovery, take } = bench(others, { isReader: true })
    const taken = take()
    for (const [at, node] of others.slice(0, needed).entries()) {
      await Promise.resolve()
      expect(taken.isOver, `${at} of ${others.length}`).toBe(false)
      discovery.onDigest(node, { asked: at + 1, through: 5, durable: 5, directedIn: 0 })
    }
    expect(await taken.ends).toBe(true)
  }
})

test('LOG-8: behind the first epoch a read-only member counts directories of that epoch alone', async () => {
  const { discovery, take, hand } = bench([n2, n3, n4], { isReader: true, directoriesOf: 3 })
  const taken = take()
  for (const [at, node] of [n2, n3, n4].entries()) {
    discovery.onDigest(node, { asked: at + 1, through: 5, durable: 5, directedIn: 2 })
  }
  discovery.onDigest(n2, { asked: 4, through: 5, durable: 5, directedIn: 3 })
  await Promise.resolve()
  expect(taken.isOver).toBe(false)
  discovery.onDigest(n3, { asked: 5, through: 5, durable: 5, directedIn: 3 })
  expect(await taken.ends).toBe(true)
  expect(hand.waiting).toBe(0)
})
