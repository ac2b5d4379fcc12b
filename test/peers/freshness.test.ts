/** Which reads of bounded staleness a node may answer from what it has applied. */
import { beforeEach, expect, test } from 'vitest'
import { nodeId, type GroupId, type NodeId, type Position } from '../../src/base/ids.ts'
import { firstEpochs, type OwnEpochs } from '../../src/log/own-epochs.ts'
import { Freshness, type BoundedRead } from '../../src/peers/freshness.ts'
import type { OwnLog } from '../../src/peers/peer-digest-cursor.ts'
import { PeerMarks } from '../../src/peers/peer-marks.ts'
import type { Clock } from '../../src/ports/clock.ts'
import { silentTrace } from '../../src/ports/trace.ts'
import type { Reach, ReachRequest } from '../../src/replication/message.ts'
import { group } from '../log/log-fixture.ts'
import { whole } from '../log/whole.ts'

const [n1, n2, n3] = [nodeId('n1'), nodeId('n2'), nodeId('n3')]
const a = group('a')
const nothing: OwnLog = { lastFlush: 1, durableFlush: 1, highest: () => 0 }
const driftPpm = 10_000

/** Node n1 of three, with marks of the other two. */
class Bench {
  now = 1_000
  wallMs = 50_000
  own: OwnEpochs = firstEpochs
  voters: readonly NodeId[] = [n1, n2, n3]
  isReader = false
  isAdmitted = true
  isRestored = true
  readonly sent: (readonly [NodeId, Reach | ReachRequest])[] = []
  readonly calledFor: NodeId[] = []
  readonly marks = new Map<NodeId, PeerMarks>([n2, n3].map((node) => [node, this.#marksOf(node)]))
  timer: { readonly ms: number; readonly run: () => void } | undefined
  readonly freshness = new Freshness({
    ...{ incarnation: 1, clock: this.#clock(), trace: silentTrace },
    limits: { clockDriftPpm: driftPpm },
    node: n1,
    log: { durableFlush: 9 },
    epochs: this.#epochs(),
    peers: this.#peers(),
    isRestored: () => this.isRestored,
    onFailed: (error) => {
      throw error
    },
  })

  #marksOf(node: NodeId): PeerMarks {
    return new PeerMarks({
      ...{ node, log: nothing, applied: nothing, storeId: 'own', peerStore: `of ${node}` },
      meta: { meta: () => undefined, setMeta: () => undefined },
      ...{ isNewStore: false, areOld: false, isHeld: () => true, onNamed: () => undefined },
    })
  }

  #clock(): Clock {
    return {
      wallMicros: () => this.wallMs * 1_000,
      monotonicMs: () => this.now,
      defer: (run) => queueMicrotask(run),
      setTimer: (ms, run) => {
        this.timer = { ms, run }
        return { cancel: () => (this.timer = undefined) }
      },
    }
  }

  #epochs(): ConstructorParameters<typeof Freshness>[0]['epochs'] {
    const own = (): OwnEpochs => this.own
    const voters = (): readonly NodeId[] => this.voters
    const isReader = (): boolean => this.isReader
    return {
      get own() {
        return own()
      },
      get voters() {
        return voters()
      },
      isKept: true,
      get isVoting() {
        return own().isMember && own().gated === own().epoch
      },
      get isReader() {
        return isReader()
      },
    }
  }

  #peers(): ConstructorParameters<typeof Freshness>[0]['peers'] {
    const isAdmitted = (): boolean => this.isAdmitted
    return {
      get isAdmitted() {
        return isAdmitted()
      },
      marksOf: (node) => this.marks.get(node),
      tellsReach: () => true,
      send: (to, message) => this.sent.push([to, message]),
      askDigest: () => undefined,
      requireDirectory: (node, epoch, isPastGate) => {
        this.calledFor.push(node)
        this.marks.get(node)?.requireDirectory(epoch, 100, isPastGate)
      },
    }
  }

  pass(ms: number): void {
    this.now += ms
    this.wallMs += ms
  }

  isFresh(read: Partial<BoundedRead> = {}): boolean {
    const usual = { group: a, position: 5, isQuiet: false, maxStalenessMs: 1_000 }
    return this.freshness.isFresh({ ...usual, ...read })
  }

  /** The numbers of the questions to the node that left. */
  asked(node: NodeId): readonly number[] {
    return this.sent.flatMap(([to, message]) =>
      to === node && message.kind === 'reach-request' ? [message.asked] : [],
    )
  }

  answer(from: NodeId, through: number, epoch = this.own.epoch): void {
    const asked = this.asked(from).at(-1) ?? 0
    this.freshness.onMessage(from, { kind: 'reach', asked, epoch, through })
  }

  name(
    from: NodeId,
    through: number,
    groups: readonly (readonly [GroupId, Position])[] = [],
  ): void {
    const marks = this.marks.get(from)
    if (marks === undefined) return
    const after = marks.digestedThrough
    const digest = { kind: 'digest', asked: 1, after, through, isWhole: true, groups } as const
    whole(marks.takeDigest(digest))
    this.freshness.onNamed(from)
  }
}

let bench: Bench

beforeEach(() => {
  bench = new Bench()
})

test('STALE-1: nothing counts before a majority has answered, and what its flushes name is named', () => {
  expect(bench.isFresh()).toBe(false)
  bench.answer(n2, 4)
  bench.answer(n3, 4)
  expect(bench.isFresh()).toBe(false)
  bench.name(n2, 4)
  expect(bench.isFresh()).toBe(false)
  bench.name(n3, 4, [[a, 5]])
  expect(bench.isFresh()).toBe(true)
  expect(bench.isFresh({ position: 4 })).toBe(false)
})

test('STALE-5: this node counts itself where it votes, and nothing is open', () => {
  bench.isFresh()
  bench.answer(n2, 4)
  bench.name(n2, 4)
  expect(bench.isFresh({ isQuiet: true })).toBe(true)
  expect(bench.isFresh({ isQuiet: false })).toBe(false)
  bench.isAdmitted = false
  expect(bench.isFresh({ isQuiet: true })).toBe(false)
  bench.isAdmitted = true
  bench.isRestored = false
  expect(bench.isFresh({ isQuiet: true })).toBe(false)
})

test('STALE-6: the age is that of the question, with the drift of clocks', () => {
  bench.isFresh()
  bench.pass(400)
  bench.answer(n2, 4)
  bench.name(n2, 4)
  bench.pass(590)
  expect(bench.isFresh({ isQuiet: true })).toBe(true)
  bench.pass(1)
  expect(bench.isFresh({ isQuiet: true })).toBe(false)
})

test('STALE-6: a wall clock that went on shortens it, and one that is set back does not lengthen it', () => {
  bench.isFresh()
  bench.answer(n2, 4)
  bench.name(n2, 4)
  bench.wallMs -= 5_000
  bench.now += 995
  expect(bench.isFresh({ isQuiet: true })).toBe(false)
  bench.now -= 995
  bench.wallMs += 5_995
  expect(bench.isFresh({ isQuiet: true })).toBe(false)
  bench.wallMs -= 995
  expect(bench.isFresh({ isQuiet: true })).toBe(true)
})

test('STALE-3: answers of another epoch do not count, and the next epoch voids all rounds', () => {
  bench.isFresh()
  bench.answer(n2, 4, 2)
  bench.name(n2, 4)
  expect(bench.isFresh({ isQuiet: true })).toBe(false)
  bench.isFresh()
  bench.timer?.run()
  bench.answer(n2, 4)
  expect(bench.isFresh({ isQuiet: true })).toBe(true)
  bench.own = { ...firstEpochs, epoch: 2, gated: 2 }
  expect(bench.isFresh({ isQuiet: true })).toBe(false)
})

/** The peer's directory, whole, as the answer to that question. */
function direct(node: NodeId, asked: number, groups: readonly (readonly [GroupId, Position])[]) {
  const marks = bench.marks.get(node)
  const page = { kind: 'directory', through: 4, groups, asked } as const
  if (marks?.isNextPage(page) !== true) return false
  whole(marks.takePage(page, asked))
  bench.freshness.onNamed(node)
  return true
}

test('STALE-4: behind the first epoch a peer counts once its directory has come', () => {
  bench.own = { ...firstEpochs, epoch: 2, gated: 2 }
  bench.isFresh()
  bench.answer(n2, 4)
  bench.name(n2, 4)
  expect(bench.isFresh({ isQuiet: true })).toBe(false)
  expect(bench.calledFor).toEqual([n2])
  expect(direct(n2, 100, [[a, 5]])).toBe(false)
  expect(direct(n2, 101, [[a, 5]])).toBe(true)
  expect(bench.isFresh({ isQuiet: true })).toBe(true)
  expect(bench.isFresh({ isQuiet: true, position: 4 })).toBe(false)
})

test('STALE-4: a directory that a gate needed, of before the peer passed its own, does not do', () => {
  bench.own = { ...firstEpochs, epoch: 2, gated: 2 }
  bench.marks.get(n2)?.requireDirectory(2, 90, false)
  expect(direct(n2, 91, [[a, 4]])).toBe(true)
  bench.isFresh()
  bench.answer(n2, 4)
  bench.freshness.onNamed(n2)
  expect(bench.isFresh({ isQuiet: true })).toBe(false)
  expect(direct(n2, 101, [[a, 5]])).toBe(true)
  expect(bench.isFresh({ isQuiet: true })).toBe(true)
  expect(bench.isFresh({ isQuiet: true, position: 4 })).toBe(false)
})

test('STALE-3: rounds of a voter that lost its vote and has it again are void', () => {
  bench.isFresh()
  bench.answer(n2, 4)
  bench.name(n2, 4)
  expect(bench.isFresh({ isQuiet: true })).toBe(true)
  const marks = bench.marks.get(n2)
  bench.own = { ...firstEpochs, epoch: 2, gated: 2 }
  bench.voters = [n1, n3]
  bench.marks.delete(n2)
  expect(bench.isFresh({ isQuiet: true })).toBe(false)
  bench.own = { ...firstEpochs, epoch: 3, gated: 3 }
  bench.voters = [n1, n2, n3]
  expect(bench.isFresh({ isQuiet: true })).toBe(false)
  if (marks !== undefined) bench.marks.set(n2, marks)
  expect(bench.isFresh({ isQuiet: true })).toBe(false)
})

test('STALE-5: a read-only member counts a majority of the voters, and never itself', () => {
  bench.own = { ...firstEpochs, epoch: 2, gated: 0, isMember: false }
  bench.voters = [n2, n3]
  expect(bench.isFresh({ isQuiet: true })).toBe(false)
  expect(bench.asked(n2)).toHaveLength(1)
  bench.isReader = true
  for (const node of [n2, n3]) {
    expect(bench.isFresh({ isQuiet: true })).toBe(false)
    bench.answer(node, 4)
    bench.name(node, 4)
    expect(direct(node, 101, [[a, 5]])).toBe(true)
  }
  expect(bench.isFresh()).toBe(true)
  expect(bench.isFresh({ position: 4 })).toBe(false)
  bench.freshness.onMessage(n2, { kind: 'reach-request', asked: 7 })
  const answer = { kind: 'reach', asked: 7, through: 9, epoch: 0 }
  expect(bench.sent.at(-1)).toEqual([n2, answer])
})

test('STALE-3: a node tells the epoch only in which it votes in every group', () => {
  const told = (): unknown => {
    bench.freshness.onMessage(n2, { kind: 'reach-request', asked: 7 })
    return bench.sent.at(-1)
  }
  const answer = { kind: 'reach', asked: 7, through: 9 }
  expect(told()).toEqual([n2, { ...answer, epoch: 1 }])
  bench.own = { ...firstEpochs, epoch: 2, gated: 1 }
  expect(told()).toEqual([n2, { ...answer, epoch: 0 }])
  bench.own = { ...firstEpochs, epoch: 2, gated: 2, blocked: [a] }
  expect(told()).toEqual([n2, { ...answer, epoch: 0 }])
  bench.own = firstEpochs
  bench.isRestored = false
  expect(told()).toEqual([n2, { ...answer, epoch: 0 }])
})

test('questions leave while such reads come, four in the smallest bound of late', () => {
  bench.isFresh({ maxStalenessMs: 2_000 })
  expect(bench.asked(n2)).toHaveLength(1)
  expect(bench.timer?.ms).toBe(500)
  bench.isFresh({ maxStalenessMs: 100 })
  bench.pass(500)
  bench.timer?.run()
  expect(bench.asked(n2)).toHaveLength(2)
  expect(bench.timer?.ms).toBe(25)
  const last = bench.timer
  bench.pass(10_001)
  bench.timer = undefined
  last?.run()
  expect(bench.asked(n2)).toHaveLength(2)
  expect(bench.timer).toBeUndefined()
  bench.isFresh({ maxStalenessMs: 2_000 })
  expect(bench.asked(n2)).toHaveLength(3)
  bench.freshness.stop()
  expect(bench.timer).toBeUndefined()
  bench.isFresh({ maxStalenessMs: 2_000 })
  expect(bench.asked(n2)).toHaveLength(3)
})
