/** The mover of buckets: which phase follows which, and when it asks the other set to open them. */
import { expect, test } from 'vitest'
import { StoreError } from '../../src/base/errors.ts'
import { groupOfBytes, nodeId, type GroupId } from '../../src/base/ids.ts'
import { close, finish, settle } from '../../src/members/shares-row.ts'
import type { SharesPort } from '../../src/members/share-requests.ts'
import { BucketMover, type Moves, type Whereabouts } from '../../src/node/bucket-mover.ts'
import type { Share, SharesRow } from '../../src/placement/shares.ts'
import type { Clock } from '../../src/ports/clock.ts'

const node = nodeId('n1')

function named(name: string): GroupId {
  return groupOfBytes(Buffer.from(name))
}

/** A set whose groups are in the one share, and a mover of it whose timers are called by hand. */
class World {
  row: SharesRow = [{ phase: 'leaving', set: 'west', term: 1, buckets: [7], epoch: 0, began: [] }]
  readonly where = new Map<GroupId, Whereabouts>()
  readonly unmovable = new Set<GroupId>()
  readonly done: string[] = []
  isBehindGate = true
  isFirst = true
  began: readonly GroupId[] = []
  readonly mover: BucketMover
  #due: (() => void)[] = []

  constructor() {
    const shares: SharesPort = {
      ...{ row: [], of: () => this.row[0] },
      isBehindGate: () => this.isBehindGate,
      isVoid: () => false,
      checkVersion: () => undefined,
      leave: () => Promise.reject(new Error('not asked')),
      stay: () => Promise.reject(new Error('not asked')),
      receive: () => Promise.reject(new Error('not asked')),
      close: () => this.#note('close', close(this.row, 2)),
      settle: () =>
        this.#note('settle', settle(this.row, { node, epoch: 2, began: this.began }, [node])),
      finish: () => this.#note('finish', finish(this.row)),
    }
    Object.defineProperty(shares, 'row', { get: () => this.row })
    const moves: Moves = {
      isFirst: () => this.isFirst,
      shareOf: () => this.row[0],
      list: (after) => Promise.resolve(after === undefined ? [...this.where.keys()] : []),
      where: (group) => Promise.resolve(this.where.get(group) ?? 'here'),
      move: (group) => {
        if (this.unmovable.has(group))
          return Promise.reject(new StoreError('unavailable', 'no majority'))
        this.where.set(group, 'there')
        this.done.push(`move ${Buffer.from(group, 'latin1').toString()}`)
        return Promise.resolve()
      },
      admit: () => Promise.resolve(),
      open: () => this.#note('open', this.row),
    }
    const clock: Clock = {
      ...{ monotonicMs: () => 0, wallMicros: () => 1, defer: (call) => call() },
      setTimer: (_, call) => {
        this.#due.push(call)
        return { cancel: () => undefined }
      },
    }
    const onFailed = (error: unknown): void => {
      throw error
    }
    this.mover = new BucketMover({ clock, shares, moves, groupsPerSecond: Infinity, onFailed })
    this.mover.start()
  }

  get phase(): Share['phase'] | undefined {
    return this.row[0]?.phase
  }

  #note(what: string, row: SharesRow): Promise<void> {
    this.done.push(what)
    this.row = row
    return Promise.resolve()
  }

  /** The timer of the next look, and all that follows from it. */
  async look(): Promise<void> {
    const due = this.#due
    this.#due = []
    for (const call of due) call()
    for (let turn = 0; turn < 200; turn++) await Promise.resolve()
  }
}

test('MOVE-15: buckets are opened after a sweep behind the gate that has moved no group', async () => {
  const world = new World()
  world.where.set(named('a'), 'here')
  await world.look()
  await world.look()
  expect(world.phase).toBe('settled')
  world.where.set(named('b'), 'here')
  await world.look()
  await world.look()
  expect(world.done).toEqual(['move a', 'close', 'settle', 'move b', 'open', 'finish'])
  expect(world.mover.progress).toBeUndefined()
})

test('MOVE-15: a group that may have begun is moved, which is its first entry', async () => {
  const world = new World()
  world.began = [named('c')]
  for (let looks = 0; looks < 4; looks++) await world.look()
  expect(world.done).toEqual(['close', 'settle', 'move c', 'open', 'finish'])
})

test('MOVE-15: a group of which the set has begun nothing keeps no bucket from opening', async () => {
  const world = new World()
  await world.look()
  await world.look()
  world.where.set(named('d'), 'void')
  await world.look()
  expect(world.done).toEqual(['close', 'settle', 'open', 'finish'])
})

test('MOVE-15: a node before its gate opens nothing', async () => {
  const world = new World()
  await world.look()
  await world.look()
  world.isBehindGate = false
  await world.look()
  expect(world.phase).toBe('settled')
  world.isBehindGate = true
  await world.look()
  expect(world.done.slice(-2)).toEqual(['open', 'finish'])
})

test('a group that cannot be moved keeps the buckets from closing, and no other group from moving', async () => {
  const world = new World()
  world.where.set(named('a'), 'here')
  world.where.set(named('b'), 'here')
  world.unmovable.add(named('a'))
  await world.look()
  expect(world.done).toEqual(['move b'])
  expect(world.mover.progress).toMatchObject({ phase: 'leaving', to: 'west', moved: 1, left: 1 })
  world.unmovable.clear()
  await world.look()
  expect(world.done).toEqual(['move b', 'move a', 'close'])
})

test('a node that is not the first one alive leaves the buckets to it, but for its list of groups that may have begun', async () => {
  const world = new World()
  world.isFirst = false
  world.where.set(named('a'), 'here')
  await world.look()
  expect(world.done).toEqual([])
  world.row = close(world.row, 2)
  await world.look()
  await world.look()
  expect(world.done).toEqual(['settle'])
})
