/** Two nodes have different rows at one position: a count of rows, or a majority, says which one is wrong. */
import { expect, test } from 'vitest'
import { nodeId, type GroupId, type NodeId, type Position } from '../../src/base/ids.ts'
import { Differences, type Finding, type Recount } from '../../src/peers/differences.ts'
import type { GroupMark } from '../../src/store/bucket-sums.ts'
import { HandClock } from '../ports/hand-clock.ts'
import { a, settled } from './snapshot-kit.ts'

const [own, second, third] = [nodeId('n1'), nodeId('n2'), nodeId('n3')]
const [one, two, three] = ['1', '2', '3'].map((digit) => digit.repeat(16))

class Bench {
  readonly clock = new HandClock()
  readonly found: (readonly [GroupId, Finding])[] = []
  readonly marks: string[] = []
  readonly told = new Map<NodeId, readonly [Position, string]>()
  readonly away = new Set<NodeId>()
  own: GroupMark = { position: 7, hash: one ?? '' }
  count: Recount = 'sound'
  readonly differences: Differences

  constructor(toldBySecond: string | undefined, toldByThird: string | undefined) {
    for (const [node, hash] of [
      [second, toldBySecond],
      [third, toldByThird],
    ] as const) {
      // prettier-ignore
      if (hash === undefined) this.away.add(node)
      else this.told.set(node, [7, hash])
    }
    this.differences = new Differences({
      ...{ node: own, others: [second, third], clock: this.clock },
      trace: { emit: () => undefined, mark: (name) => this.marks.push(name) },
      limits: { compareAgainMs: 10 },
      asks: {
        marks: (peer) => {
          const [position, hash] = this.told.get(peer) ?? [0, '']
          return Promise.resolve([[a, position, Buffer.from(hash)]])
        },
      },
      compares: (peer) => !this.away.has(peer),
      find: () => this.own,
      recount: () => Promise.resolve(this.count),
      isAside: () => this.found.length > 0,
      putAside: (...finding) => this.found.push(finding),
      onFailed: (error) => {
        throw new Error('it failed', { cause: error })
      },
    })
  }

  async look(): Promise<void> {
    this.differences.look(a)
    for (let turn = 0; turn < 20; turn++) {
      await settled()
      this.clock.pass(10)
    }
    if (this.differences.open > 0) throw new Error('it is not decided')
  }
}

test('HEAL-3: rows that are not what the own state record says are wrong, whatever the peers have', async () => {
  const bench = new Bench(one, two)
  bench.count = 'damaged'
  await bench.look()
  expect(bench.found).toEqual([[a, { cause: 'rows', sources: [second, third] }]])
})

test('HEAL-3: the node with another hash than the majority is wrong, and takes what one of the majority has', async () => {
  const bench = new Bench(two, two)
  await bench.look()
  const right = { position: 7, hash: two }
  expect(bench.found).toEqual([[a, { cause: 'minority', right, sources: [second, third] }]])
})

test('HEAL-3: a node of the majority keeps what it has', async () => {
  const bench = new Bench(one, two)
  await bench.look()
  expect(bench.found).toEqual([])
  expect(bench.marks).toEqual(['difference_is_of_others'])
  expect(bench.differences.undecided).toEqual([])
})

test('HEAL-3: a majority is one of all replicas, at one position', async () => {
  const bench = new Bench(two, two)
  bench.told.set(third, [8, two ?? ''])
  await bench.look()
  expect(bench.found).toEqual([])
  expect(bench.marks).toEqual(['difference_left_open'])
  bench.told.set(third, [7, two ?? ''])
  await bench.look()
  expect(bench.found).toHaveLength(1)
})

test('HEAL-3: nothing is decided about a group that was written meanwhile', async () => {
  const bench = new Bench(two, two)
  bench.count = 'unknown'
  await bench.look()
  expect(bench.found).toEqual([])
  expect(bench.marks).toEqual(['difference_left_open'])
})

test.each([
  ['three hashes', two, three],
  ['two hashes, and a node that is away', two, undefined],
])('HEAL-6: %s have no majority: the group waits until one has', async (_, bySecond, byThird) => {
  const bench = new Bench(bySecond, byThird)
  await bench.look()
  expect(bench.found).toEqual([])
  expect(bench.differences.undecided).toEqual([a])
  expect(bench.differences.isUndecided(a)).toBe(true)
  bench.away.clear()
  bench.told.set(third, [7, two ?? ''])
  bench.clock.pass(200)
  bench.differences.go()
  await bench.look()
  expect(bench.found).toHaveLength(1)
  expect(bench.differences.undecided).toEqual([])
})

test('HEAL-8: an operator decides for the rows of one node, where no majority has the same ones', async () => {
  const bench = new Bench(two, three)
  await bench.look()
  await bench.differences.resolve(a, third)
  const right = { position: 7, hash: three }
  expect(bench.found).toEqual([[a, { cause: 'operator', right, sources: [third] }]])
  expect(bench.differences.undecided).toEqual([])
})

test('HEAL-8: an operator may choose a node that has the group further than this one', async () => {
  const bench = new Bench(two, three)
  await bench.look()
  bench.told.set(second, [9, two ?? ''])
  await bench.differences.resolve(a, second)
  expect(bench.found).toMatchObject([[a, { right: { position: 9, hash: two } }]])
})

test('HEAL-8: the decision is refused in words where it may not be made', async () => {
  const bench = new Bench(two, three)
  const refusal = (from: NodeId): Promise<unknown> => bench.differences.resolve(a, from)
  await expect(refusal(second)).rejects.toMatchObject({
    ...{ code: 'invalid', message: expect.stringContaining('not undecided at node n1') },
  })
  await bench.look()
  await expect(refusal(own)).rejects.toMatchObject({
    ...{ code: 'invalid', message: expect.stringContaining('ask the others') },
  })
  await expect(refusal(nodeId('n9'))).rejects.toMatchObject({
    ...{ code: 'invalid', message: expect.stringContaining('only n2, n3 are') },
  })
  bench.away.add(second)
  await expect(refusal(second)).rejects.toMatchObject({
    ...{ code: 'unavailable', message: expect.stringContaining('start it, or take the rows') },
  })
  for (const told of [
    [6, three ?? ''],
    [7, ''],
  ] as const) {
    bench.told.set(third, told)
    await expect(refusal(third)).rejects.toMatchObject({
      ...{ code: 'not-found', message: expect.stringContaining('does not have this group') },
    })
  }
  expect(bench.found).toEqual([])
  expect(bench.differences.undecided).toEqual([a])
})
