/** Groups that are put aside since their rows are wrong; the events that wait meanwhile, and the end of it. */
import { expect, test } from 'vitest'
import { nodeId, type GroupId, type NodeId } from '../../src/base/ids.ts'
import type { Question } from '../../src/peers/replies.ts'
import { Healing } from '../../src/replica/healing.ts'
import type { GroupEvent } from '../../src/replication/group.ts'
import { emptyState } from '../../src/replication/state.ts'
import type { DataStore } from '../../src/store/data-store.ts'
import { a, b, openData } from '../store/snapshot-kit.ts'
import { onDisk, simulatedDisk } from '../store/stores.ts'

const [second, third] = [nodeId('n2'), nodeId('n3')]
const hash = 'h'.repeat(16)
const finding = {
  cause: 'minority',
  right: { position: 5, hash },
  sources: [second, third],
} as const

function message(kind: 'query' | 'fetch'): GroupEvent {
  const about = { group: a, epoch: 1 }
  const query = { kind: 'query', ...about, read: 1, mayRegister: true } as const
  const fetch = { kind: 'fetch', ...about, from: 3, through: 9, isAwaited: true } as const
  return { kind: 'message', from: third, message: kind === 'fetch' ? fetch : query }
}

class Bench {
  readonly steps: string[] = []
  readonly offered: NodeId[] = []
  readonly answered: Question[] = []
  readonly healing: Healing

  constructor(data: DataStore) {
    const applied = { position: 5, timestamp: 50, horizon: 0 }
    this.healing = new Healing({
      trace: { emit: () => undefined, mark: () => undefined },
      data,
      replica: { applied: () => applied, appliedInMemory: () => applied },
      others: [second, third],
      epochOf: () => 1,
      step: (group: GroupId, event: GroupEvent) => {
        if (!this.healing.keep(group, event)) this.steps.push(event.kind)
      },
      answer: (question) => this.answered.push(question),
      offer: (_, { from }) => this.offered.push(from),
      isComing: () => false,
    })
  }
}

async function onBench(work: (bench: Bench, data: DataStore) => Promise<void>): Promise<void> {
  await onDisk(simulatedDisk, async (disk) => {
    const data = await openData(await disk.open())
    await work(new Bench(data), data)
    await data.stop()
  })
}

test('HEAL-4: the last step of a group that is put aside gives up its leases; then none follows until it is mended', () =>
  onBench((bench) => {
    bench.healing.putAside(a, finding)
    expect(bench.steps).toEqual(['aside'])
    for (const event of [message('query'), { kind: 'wake' }, { kind: 'wake' }] as const) {
      expect(bench.healing.keep(a, event)).toBe(true)
      expect(bench.healing.keep(b, event)).toBe(false)
    }
    expect(bench.healing.keep(a, { kind: 'install', state: emptyState() })).toBe(false)
    expect(bench.healing.mend(a).map(({ kind }) => kind)).toEqual(['message', 'wake'])
    expect(bench.steps, 'the caller takes these, after the snapshot').toEqual(['aside'])
    expect([bench.healing.isAside(a), bench.healing.mended]).toEqual([false, 1])
    return Promise.resolve()
  }))

test('HEAL-4: a peer that asks for entries gets them out of the log, up to what is applied', () =>
  onBench((bench) => {
    bench.healing.putAside(a, finding)
    expect(bench.healing.keep(a, message('fetch'))).toBe(true)
    expect(bench.answered).toMatchObject([{ to: third, from: 3, through: 5, committed: 5 }])
    return Promise.resolve()
  }))

test('HEAL-4: a group is still aside after a restart, and no more once it is mended', () =>
  onBench(async (bench, data) => {
    bench.healing.putAside(a, finding)
    await data.drain()
    await expect.poll(() => data.durableBatch).toBeGreaterThan(0)
    const again = new Bench(data)
    await again.healing.resume()
    expect(again.healing.asides).toEqual([a])
    expect(again.healing.mend(a)).toEqual([])
    const before = data.durableBatch
    await expect.poll(() => data.durableBatch).toBeGreaterThan(before)
    const last = new Bench(data)
    await last.healing.resume()
    expect(last.healing.asides).toEqual([])
  }))

test('HEAL-5: a snapshot of the same position is of use to a group that is aside alone, and with the right hash alone', () =>
  onBench((bench) => {
    const { healing } = bench
    expect([healing.above(a, 5), healing.mayTake(a, 5, hash)]).toEqual([5, false])
    healing.putAside(a, finding)
    expect([healing.above(a, 5), healing.above(b, 5)]).toEqual([4, 5])
    const other = 'o'.repeat(16)
    expect([5, 6].map((position) => healing.mayTake(a, position, other))).toEqual([false, true])
    expect(healing.mayTake(a, 5, hash)).toBe(true)
    return Promise.resolve()
  }))

test('HEAL-4: a node asks one source after the other for a snapshot', () =>
  onBench((bench) => {
    bench.healing.putAside(a, finding)
    bench.healing.go()
    bench.healing.go()
    expect(bench.offered).toEqual([second, third, second])
    return Promise.resolve()
  }))
