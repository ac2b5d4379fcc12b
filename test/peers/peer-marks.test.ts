/** How far a node knows a peer's flushes, and how far it has durably applied them. */
import { expect, test } from 'vitest'
import { pack } from '../../src/base/pack.ts'
import { nodeId, type GroupId, type Position } from '../../src/base/ids.ts'
import type { OwnLog } from '../../src/peers/peer-digest-cursor.ts'
import { PeerMarks } from '../../src/peers/peer-marks.ts'
import type { Digest, Directory } from '../../src/replication/message.ts'
import { group } from '../log/log-fixture.ts'
import { whole } from '../log/whole.ts'

const [a, b, c] = [group('a'), group('b'), group('c')]

class Store implements OwnLog {
  lastFlush = 1
  durableFlush = 1
  readonly positions = new Map<GroupId, Position>()

  highest(of: GroupId): Position {
    return this.positions.get(of) ?? 0
  }
}

class Node {
  readonly log = new Store()
  readonly applied = new Store()
  readonly kept = new Map<string, Uint8Array>()
  readonly named: GroupId[] = []
  peerStore: string | undefined = 'of n2'
  isNewStore = false
  areOld = true
  marks = this.start()

  start(): PeerMarks {
    this.marks = new PeerMarks({
      ...{ node: nodeId('n2'), log: this.log, applied: this.applied, storeId: 'own' },
      meta: {
        meta: (name) => this.kept.get(name),
        setMeta: (name, value) => void this.kept.set(name, value),
      },
      ...{ peerStore: this.peerStore, isNewStore: this.isNewStore, areOld: this.areOld },
      onNamed: (name) => this.named.push(name),
    })
    return this.marks
  }

  digest(after: number, through: number, groups: Digest['groups'], isWhole = true): void {
    const asked = 1
    whole(this.marks.takeDigest({ kind: 'digest', asked, after, through, isWhole, groups }))
  }

  /** The next page, if it is taken; whether it was. */
  page(page: Omit<Directory, 'kind'>): boolean {
    const message = { kind: 'directory', ...page } as const
    const isNext = this.marks.isNextPage(message)
    if (isNext) whole(this.marks.takePage(message, page.asked))
    return isNext
  }

  /** How far the marks are after two looks, which two lots take. */
  through(): number {
    for (let looks = 0; looks < 3; looks++) this.marks.advance()
    return this.marks.appliedThrough
  }
}

test('LOG-18: a position in the log alone does not count as durably applied', () => {
  const node = new Node()
  node.log.positions.set(a, 2)
  node.digest(0, 10, [[a, 2]])
  expect(node.named).toEqual([])
  expect(node.through()).toBe(0)
  // The batch that applies it is under way.
  node.applied.positions.set(a, 2)
  node.applied.lastFlush = 2
  expect(node.through()).toBe(0)
  node.applied.durableFlush = 2
  expect(node.through()).toBe(10)
})

test('LOG-18: a start asks for digests from the lower of both marks', () => {
  const node = new Node()
  node.log.positions.set(a, 1)
  node.applied.positions.set(b, 1)
  node.digest(0, 5, [[b, 1]])
  expect(node.through()).toBe(5)
  node.digest(5, 9, [[a, 1]])
  expect(node.through()).toBe(5)
  node.marks.save()
  expect(node.start().digestedThrough).toBe(5)
  node.digest(5, 9, [[a, 1]])
  node.applied.positions.set(a, 1)
  expect(node.through()).toBe(9)
})

test('LOG-18: a mark of another store counts for nothing', () => {
  const node = new Node()
  node.digest(0, 5, [])
  expect(node.through()).toBe(5)
  node.marks.save()
  node.kept.delete('applied/n2')
  expect(node.start().digestedThrough).toBe(0)
})

test('LOG-18: no mark passes what a digest could not name, and the directory names it', () => {
  const node = new Node()
  node.digest(0, 5, [], false)
  node.digest(5, 7, [])
  expect(node.through()).toBe(0)
  expect(node.marks.nextPage).toEqual({ through: 0 })
  expect(node.page({ asked: 3, through: 20, next: b, groups: [[a, 2]] })).toBe(true)
  expect(node.marks.nextPage).toEqual({ through: 20, after: b })
  expect(node.through(), 'of the first page alone').toBe(0)
  // Pages that are late, of another directory, or come again.
  expect(node.page({ asked: 3, through: 20, next: b, groups: [] })).toBe(false)
  expect(node.page({ asked: 4, through: 19, after: b, groups: [] })).toBe(false)
  expect(node.page({ asked: 4, through: 20, after: a, groups: [] })).toBe(false)
  expect(node.page({ asked: 4, through: 20, after: b, groups: [[c, 1]] })).toBe(true)
  expect(node.marks.nextPage).toBeUndefined()
  expect([node.marks.digestedThrough, node.marks.knownThrough]).toEqual([20, 20])
  expect(node.named).toEqual([a, c])
  expect(node.through()).toBe(0)
  for (const one of [node.log, node.applied]) {
    one.positions.set(a, 2)
    one.positions.set(c, 1)
  }
  expect(node.through()).toBe(20)
  // The answer to a question of before.
  expect(node.page({ asked: 4, through: 30, groups: [] })).toBe(false)
})

/** Whether all that the peer's flushes through 10 name is here, but for positions that are known. */
function isTaken(node: Node, ...known: readonly GroupId[]): boolean {
  return node.marks.isTakenThrough(10, (name) => known.includes(name))
}

test('MOVE-3: flushes are taken when all that they name is applied or known', () => {
  const node = new Node()
  node.digest(0, 9, [])
  expect(isTaken(node), 'not named as far').toBe(false)
  node.log.positions.set(c, 4)
  node.digest(9, 10, [
    [a, 2],
    [b, 1],
    [c, 4],
  ])
  node.applied.positions.set(b, 1)
  expect([isTaken(node), isTaken(node, a), isTaken(node, c)]).toEqual([false, false, false])
  expect(isTaken(node, a, c)).toBe(true)
  node.applied.positions.set(a, 1)
  expect(isTaken(node, c), 'at a lower position').toBe(false)
  node.applied.positions.set(a, 2)
  node.applied.positions.set(c, 4)
  expect(isTaken(node)).toBe(true)
  // A later digest names more, and that counts, too.
  node.digest(10, 20, [[b, 5]])
  expect([isTaken(node), isTaken(node, b)]).toEqual([false, true])
})

test('MOVE-3: flushes that a digest could not name are taken with the last page of the directory', () => {
  const node = new Node()
  node.digest(0, 10, [], false)
  expect(isTaken(node)).toBe(false)
  node.page({ asked: 3, through: 20, next: b, groups: [] })
  expect(isTaken(node)).toBe(false)
  node.page({ asked: 4, through: 20, after: b, groups: [] })
  expect(isTaken(node)).toBe(true)
})

test('LOG-18: marks of the store that another one replaced are dropped, over restarts, too', () => {
  const node = new Node()
  node.digest(0, 10, [])
  expect(node.through()).toBe(10)
  node.marks.save()
  node.peerStore = 'second'
  expect([node.start().digestedThrough, isTaken(node)]).toEqual([0, false])
  node.peerStore = 'of n2'
  expect(node.start().digestedThrough, 'the first one again').toBe(10)
  node.peerStore = 'second'
  node.isNewStore = true
  expect([node.start().digestedThrough, node.marks.isUnsaved]).toEqual([0, true])
  node.marks.save()
  node.isNewStore = false
  node.peerStore = 'of n2'
  expect(node.start().digestedThrough, 'after the second one').toBe(0)
})

test('LOG-18: a node that forgot the store takes the marks for those of the store that they name', () => {
  const node = new Node()
  node.digest(0, 10, [])
  node.through()
  node.marks.save()
  node.peerStore = undefined
  node.start()
  expect([node.marks.digestedThrough, node.marks.peerStore]).toEqual([10, 'of n2'])
})

test('LOG-18: marks that name no store count in the first epoch alone', () => {
  const node = new Node()
  for (const name of ['digest/n2', 'applied/n2']) node.kept.set(name, pack(['own', 1, 10]))
  expect(node.start().digestedThrough).toBe(10)
  node.isNewStore = true
  expect(node.start().digestedThrough, 'of another store').toBe(0)
  node.isNewStore = false
  node.areOld = false
  expect(node.start().digestedThrough).toBe(0)
})

test('LOG-19: a directory is applied however often digests name its groups anew meanwhile', () => {
  const node = new Node()
  node.marks.requireDirectory(2, 1, false)
  expect(node.page({ asked: 2, through: 10, groups: [[a, 5]] })).toBe(true)
  expect(node.marks.hasAppliedAll(2)).toBe(false)
  // The group goes on: each look finds a position that has just been named.
  const looks: boolean[] = []
  for (let position = 6; position < 12; position += 1) {
    node.digest(position + 4, position + 5, [[a, position]])
    node.applied.positions.set(a, position - 1)
    node.applied.lastFlush += 1
    looks.push(node.marks.hasAppliedAll(2))
    node.applied.durableFlush = node.applied.lastFlush
  }
  expect(looks[0], 'applied, not durably').toBe(false)
  expect(looks.at(-1)).toBe(true)
})

test('LOG-19: a directory is not applied before each of its pages is, durably', () => {
  const node = new Node()
  node.digest(0, 10, [])
  node.through()
  node.marks.requireDirectory(2, 1, false)
  expect(node.page({ asked: 2, through: 10, groups: [[a, 5]], next: b })).toBe(true)
  node.applied.positions.set(a, 5)
  expect(node.marks.hasAppliedAll(2), 'a page is to come').toBe(false)
  expect(node.page({ asked: 3, through: 10, after: b, groups: [[c, 1]] })).toBe(true)
  for (let looks = 0; looks < 3; looks += 1) expect(node.marks.hasAppliedAll(2)).toBe(false)
  node.applied.positions.set(c, 1)
  node.applied.lastFlush = 2
  expect(node.marks.hasAppliedAll(2), 'its batch is under way').toBe(false)
  node.applied.durableFlush = 2
  expect(node.marks.hasAppliedAll(2)).toBe(true)
})
