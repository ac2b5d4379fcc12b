import { expect, test } from 'vitest'
import { nodeId, type NodeId } from '../../src/base/ids.ts'
import type { Clock } from '../../src/ports/clock.ts'
import { RollCall } from '../../src/peers/roll-call.ts'

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

function bench(others: readonly NodeId[]) {
  const hand = new HandClock()
  const asked: NodeId[] = []
  let drawn = 0
  const ask = (node: NodeId): number => {
    asked.push(node)
    return (drawn += 1)
  }
  const rollCall = new RollCall({ clock: hand.clock, others, againMs: 100, ask })
  const take = (): { readonly ends: Promise<boolean>; isOver: boolean } => {
    const taken = { ends: rollCall.take(1_000), isOver: false }
    void taken.ends.then(() => (taken.isOver = true))
    return taken
  }
  return { hand, asked, rollCall, take }
}

test('LOG-8: a node alone knows all groups', async () => {
  expect(await bench([]).take().ends).toBe(true)
})

test('LOG-8: a majority has to be known as far as it was when it answered', async () => {
  const { rollCall, take, hand } = bench([n2, n3, n4, n5])
  const taken = take()
  rollCall.onDigest(n2, { asked: 1, through: 5, durable: 5 })
  rollCall.onDigest(n2, { asked: 1, through: 5, durable: 5 })
  rollCall.onDigest(n3, { asked: 2, through: 3, durable: 7 })
  await Promise.resolve()
  expect(taken.isOver).toBe(false)
  // It has gone on meanwhile; what came after the question is of no concern.
  rollCall.onDigest(n3, { asked: 6, through: 7, durable: 9 })
  expect(await taken.ends).toBe(true)
  expect(hand.waiting).toBe(0)
})

test('LOG-8: an answer to a question from before tells nothing', async () => {
  const { rollCall, take } = bench([n2, n3])
  const before = take()
  rollCall.onDigest(n2, { asked: 1, through: 5, durable: 5 })
  expect(await before.ends).toBe(true)
  const taken = take()
  rollCall.onDigest(n3, { asked: 2, through: 5, durable: 5 })
  await Promise.resolve()
  expect(taken.isOver).toBe(false)
  rollCall.onDigest(n3, { asked: 4, through: 5, durable: 5 })
  expect(await taken.ends).toBe(true)
})

test('LOG-8: a roll call asks silent peers again, and a minority is not enough', async () => {
  const { asked, hand, rollCall, take } = bench([n2, n3, n4, n5])
  const taken = take()
  rollCall.onDigest(n2, { asked: 1, through: 5, durable: 5 })
  hand.pass(100)
  expect(asked).toEqual([n2, n3, n4, n5, n3, n4, n5])
  hand.pass(1_000)
  expect(await taken.ends).toBe(false)
  expect(hand.waiting).toBe(0)
})

test('LOG-8: a roll call ends when its node stops', async () => {
  const { rollCall, take, hand } = bench([n2, n3])
  const taken = take()
  rollCall.stop()
  expect(await taken.ends).toBe(false)
  expect(hand.waiting).toBe(0)
})
