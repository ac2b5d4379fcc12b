/** Rounds in which a node compares its groups with a peer's; its questions, and its verdicts on the answers. */
import { expect, test } from 'vitest'
import type { GroupId } from '../../src/base/ids.ts'
import { Comparison, judgeMarks } from '../../src/peers/comparison.ts'
import type { ToldMark } from '../../src/replication/message.ts'
import { comparedBucket, comparedBuckets, type GroupMark } from '../../src/store/bucket-sums.ts'
import { HandClock } from '../ports/hand-clock.ts'
import { a, b, c, peer, settled } from './snapshot-kit.ts'

const [one, two] = ['1'.repeat(16), '2'.repeat(16)]

function told(group: GroupId, { position, hash }: GroupMark): ToldMark {
  return [group, position, Buffer.from(hash, 'latin1')]
}

class Bench {
  readonly clock = new HandClock()
  readonly own = new Map<GroupId, GroupMark>()
  readonly theirs = new Map<GroupId, GroupMark>()
  /** Groups that each question named. */
  readonly asked: (readonly GroupId[])[] = []
  readonly differing: GroupId[] = []
  readonly behind: GroupId[] = []
  sumsAsked = 0
  isSilent = false
  readonly comparison: Comparison

  constructor() {
    this.comparison = new Comparison({
      clock: this.clock,
      trace: { emit: () => undefined, mark: () => undefined },
      limits: { compareMs: 10_000, compareAgainMs: 10 },
      others: [peer],
      asks: {
        sums: () => {
          this.sumsAsked += 1
          return Promise.resolve(this.isSilent ? undefined : sumsOf(this.theirs))
        },
        marks: (_, groups) => {
          this.asked.push(groups)
          const marks = groups.map((of) =>
            told(of, this.theirs.get(of) ?? { position: 0, hash: '' }),
          )
          return Promise.resolve(marks)
        },
      },
      compares: () => true,
      sums: () => sumsOf(this.own),
      find: (group) => this.own.get(group),
      groupsIn: (buckets) => {
        const groups = [...this.own.keys()].filter((of) => buckets.has(comparedBucket(of)))
        return Promise.resolve({ groups, next: undefined })
      },
      onDiffers: (group) => this.differing.push(group),
      onBehind: (group) => this.behind.push(group),
      onFailed: (error) => {
        throw new Error('it failed', { cause: error })
      },
    })
  }

  /** Each rest passes at once. */
  async round(): Promise<void> {
    const round = this.comparison.now()
    for (let turn = 0; turn < 40; turn++) {
      await settled()
      this.clock.pass(10)
    }
    await round
  }
}

/** A byte of a bucket tells its groups, since tests have few. */
function sumsOf(marks: ReadonlyMap<GroupId, GroupMark>): Uint8Array {
  const bytes = Buffer.alloc(16 * comparedBuckets)
  for (const [group, { position, hash }] of marks) {
    const at = 16 * comparedBucket(group)
    bytes[at] = (bytes[at] ?? 0) + position
    bytes[at + 1] = (bytes[at + 1] ?? 0) + hash.charCodeAt(0)
  }
  return bytes
}

test('HEAL-2: equal sums end a round, which names no group', async () => {
  const bench = new Bench()
  for (const marks of [bench.own, bench.theirs]) marks.set(a, { position: 3, hash: one })
  await bench.round()
  expect([bench.sumsAsked, bench.asked, bench.differing]).toEqual([1, [], []])
  expect(bench.comparison.figures).toMatchObject({ rounds: 1, groups: 0, unequal: 0 })
})

test('HEAL-2: of buckets that differ at each look the node compares the groups, and tells a difference', async () => {
  const bench = new Bench()
  for (const marks of [bench.own, bench.theirs]) marks.set(b, { position: 5, hash: one })
  bench.own.set(a, { position: 3, hash: one })
  bench.theirs.set(a, { position: 3, hash: two })
  await bench.round()
  expect([bench.sumsAsked, bench.asked, bench.differing]).toEqual([4, [[a]], [a]])
  expect(bench.comparison.figures).toMatchObject({ groups: 1, differences: 1, unequal: 0 })
})

test('HEAL-2: unequal positions are no equality and no difference: they are looked at again, and counted', async () => {
  const bench = new Bench()
  bench.own.set(a, { position: 3, hash: one })
  bench.theirs.set(a, { position: 4, hash: two })
  bench.own.set(c, { position: 9, hash: one })
  bench.theirs.set(c, { position: 8, hash: one })
  await bench.round()
  expect(bench.asked.map((groups) => groups.length)).toEqual([2, 2, 2, 2])
  expect(bench.differing).toEqual([])
  expect(bench.comparison.figures).toMatchObject({ groups: 2, differences: 0, unequal: 2 })
  // It catches up by itself, and the other one when it asks.
  expect(bench.behind).toEqual([a])
  bench.own.set(a, { position: 4, hash: two })
  bench.theirs.set(c, { position: 9, hash: one })
  await bench.round()
  expect(bench.comparison.figures).toMatchObject({ rounds: 2, unequal: 0 })
})

test('HEAL-2: a peer that does not answer was not compared', async () => {
  const bench = new Bench()
  bench.isSilent = true
  await bench.round()
  expect(bench.comparison.figures).toMatchObject({ rounds: 0, uncompared: 1 })
})

test('HEAL-2: a hash that is not known is equal to none, and differs from none', () => {
  const own = { position: 3, hash: one }
  const verdicts = [
    judgeMarks(own, 3, Buffer.from(one)),
    judgeMarks(own, 3, Buffer.from(two)),
    judgeMarks(own, 4, Buffer.from(one)),
    judgeMarks(own, 3, new Uint8Array()),
    judgeMarks(undefined, 3, Buffer.from(one)),
  ]
  expect(verdicts).toEqual(['equal', 'differs', 'unequal', 'unequal', 'unequal'])
})
