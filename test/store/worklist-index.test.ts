/** Which groups are listed for what is on their worklist: at once, over batches and restarts, until nothing is there. */
import { describe, expect, test } from 'vitest'
import { encodeTuple, type TupleElement } from '../../src/base/tuple.ts'
import { systemClock } from '../../src/adapters/system-clock.ts'
import { worklistPrefix, findTopicText } from '../../src/group/worklist-key.ts'
import { present } from '../../src/base/assert.ts'
import { latin1 } from '../../src/base/bytes.ts'
import { defaultLimits } from '../../src/base/limits.ts'
import type { GroupId, Position } from '../../src/base/ids.ts'
import type { OrderedStore } from '../../src/ports/storage.ts'
import { silentTrace } from '../../src/ports/trace.ts'
import { LocalWorklist } from '../../src/store/worklist.ts'
import { DataStore } from '../../src/store/data-store.ts'
import type { RowWritten } from '../../src/replication/apply.ts'
import { SeededRandom } from '../../sim/world/random.ts'
import { group } from '../log/log-fixture.ts'
import { written } from './rows.ts'
import { disks, GatedStore, onDisk } from './stores.ts'

const a = group('a')
const b = group('b\0')
const c = group('c\xff')

function openData(store: OrderedStore): Promise<DataStore> {
  const options = { clock: systemClock, trace: silentTrace, limits: defaultLimits }
  return DataStore.open(store, options)
}

function put(topic: string, rest: string): RowWritten {
  return written(Buffer.concat([worklistPrefix(topic), Buffer.from(rest)]), Buffer.from('body'))
}

function gone(topic: string, rest: string): RowWritten {
  return written(Buffer.concat([worklistPrefix(topic), Buffer.from(rest)]))
}

function commit(data: DataStore, to: GroupId, position: Position, ...rows: RowWritten[]): void {
  data.commit({
    ...{ group: to, position, timestamp: position, horizonBefore: 0, horizon: 0, writes: rows },
    encodeState: () => Buffer.from(`state ${position}`),
  })
}

async function listed(data: DataStore, topic: string, limit = 10): Promise<string[]> {
  const groups = await data.listing.list(topic, undefined, limit)
  return groups.map((one) => `${one.group}@${one.position}`)
}

test('a key shows its topic, and the prefix of a topic begins no key of another', () => {
  const topics = ['a', 'ab', 'a\0', 'a\0b', '\u00ff', 'übung']
  for (const topic of topics) {
    const prefix = latin1(worklistPrefix(topic))
    expect(findTopicText(`${prefix}\0\u0001rest`)).toBe(prefix)
    const others = topics.filter((other) => other !== topic)
    for (const other of others) expect(latin1(worklistPrefix(other)).startsWith(prefix)).toBe(false)
  }
  expect(findTopicText('\u0000\u0007row')).toBeUndefined()
  expect(findTopicText('\u00ffnot a topic')).toBeUndefined()
})

describe.each(disks)('on %s', (_, disk) => {
  test('QUE-5: a group is listed at once, after its batch, and after a restart', () =>
    onDisk(disk, async (on) => {
      const data = await openData(await on.open())
      commit(data, b, 1, put('out', '1'), put('other', '1'))
      commit(data, a, 1, put('out', '1'))
      commit(data, c, 1, written(Buffer.from('row'), Buffer.from('x')))
      const found = [`${a}@1`, `${b}@1`]
      expect(await listed(data, 'out')).toEqual(found)
      await data.drain()
      expect(await listed(data, 'out')).toEqual(found)
      commit(data, a, 2, put('out', '2'))
      expect(await listed(data, 'out')).toEqual([`${a}@2`, `${b}@1`])
      const again = await openData(await on.open())
      expect([await listed(again, 'out'), await listed(again, 'ou')]).toEqual([found, []])
      const [first] = await again.listing.list('out', undefined, 1)
      expect(first).toEqual({ group: a, position: 1 })
      expect(await again.listing.list('out', a, 10)).toEqual([{ group: b, position: 1 }])
    }))

  test('QUE-5: a unlist ends the listing of a group, but not of rows that came since', () =>
    onDisk(disk, async (on) => {
      const store = new GatedStore(await on.open())
      const data = await openData(store)
      commit(data, a, 1, put('out', '1'))
      commit(data, b, 1, put('out', '1'))
      await data.drain()
      commit(data, a, 2, gone('out', '1'))
      commit(data, b, 2, gone('out', '1'))
      data.listing.unlist('out', a, 2)
      data.listing.unlist('out', b, 2)
      expect(await listed(data, 'out')).toEqual([])
      commit(data, b, 3, put('out', '2'))
      expect(await listed(data, 'out')).toEqual([`${b}@3`])
      data.listing.unlist('out', b, 2)
      await data.drain()
      expect(await listed(data, 'out')).toEqual([`${b}@3`])
      expect(await listed(await openData(await on.open()), 'out')).toEqual([`${b}@3`])
    }))

  test('QUE-5: a group stays listed on disk until the batch in which its last row goes', () =>
    onDisk(disk, async (on) => {
      const store = new GatedStore(await on.open())
      const data = await openData(store)
      commit(data, a, 1, put('out', '1'))
      await data.drain()
      commit(data, b, 1, put('out', '1'))
      const draining = data.drain()
      commit(data, a, 2, gone('out', '1'))
      data.listing.unlist('out', a, 2)
      await draining
      // In a crash the row of group a would come back, and be listed until its end is applied again.
      const again = await openData(await on.open())
      const isGone = (await again.scan(a, {})).length === 0
      const names = (await again.listing.list('out', undefined, 10)).map((one) => one.group)
      expect(names.includes(a)).toBe(!isGone)
    }))

  test('QUE-5: a topic of which nothing is stored is looked for once, until something is listed', () =>
    onDisk(disk, async (on) => {
      const store = await on.open()
      let scans = 0
      const data = await openData({
        getSync: (key) => store.getSync(key),
        write: (puts) => store.write(puts),
        close: () => store.close(),
        scan(range) {
          scans += 1
          return store.scan(range)
        },
      })
      const looked = async (): Promise<readonly [scans: number, found: string[]]> => {
        const before = scans
        const found = await listed(data, 'out')
        return [scans - before, found]
      }
      expect([await looked(), await looked()]).toEqual([
        [1, []],
        [0, []],
      ])
      commit(data, a, 1, put('out', '1'))
      expect(await looked()).toEqual([1, [`${a}@1`]])
      await data.drain()
      expect(await looked()).toEqual([1, [`${a}@1`]])
      commit(data, a, 2, gone('out', '1'))
      data.listing.unlist('out', a, 2)
      await data.drain()
      // A row comes while a worker looks, and the look was in vain.
      const looking = listed(data, 'out')
      commit(data, b, 1, put('out', '1'))
      expect(await looking).toEqual([])
      await data.drain()
      expect(await listed(data, 'out')).toEqual([`${b}@1`])
    }))

  test('the worklist lists topics by name, and counts rows as they come and go', () =>
    onDisk(disk, async (on) => {
      const data = await openData(await on.open())
      const worklist = new LocalWorklist(data.listing, systemClock, { isOurs: () => true })
      commit(data, a, 1, put('queue/b', '1'), put('outbox', '1'))
      await data.drain()
      commit(data, b, 1, put('queue/a', '1'), { ...put('queue/a', '2'), isNew: true })
      expect(await worklist.topics(10)).toEqual(['outbox', 'queue/a', 'queue/b'])
      expect(await worklist.topics(2)).toEqual(['outbox', 'queue/a'])
      commit(data, b, 2, gone('queue/a', '2'))
      expect(worklist.counts()).toMatchObject({ 'queue/a': { put: 1, gone: 1 } })
    }))

  test('QUE-5: the listing misses no group with a row, through any writes, deletes and looks', () =>
    onDisk(disk, async (on) => {
      const walk = new Walk(await openData(await on.open()))
      const random = new SeededRandom('listing')
      for (let round = 0; round < 300; round++) {
        const act = random.int(0, 9)
        if (act < 8) walk.step(act, random.pick([a, b, c]), `${random.int(0, 2)}`)
        else await walk.data.drain()
        if (act === 9) walk.data = await openData(await on.open())
        const found = await walk.data.listing.list('out', undefined, 10)
        const names = found.map((one) => one.group)
        expect(names).toEqual(expect.arrayContaining(walk.groupsWithRows()))
      }
      walk.empty()
      expect(await listed(walk.data, 'out')).toEqual([])
      walk.commit(a)
      await walk.data.drain()
      expect(await listed(await openData(await on.open()), 'out')).toEqual([])
    }))
})

/** Three groups, the rows that each has under a topic, and its position. */
class Walk {
  data: DataStore
  readonly #rows = new Map<GroupId, Set<string>>([a, b, c].map((one) => [one, new Set()]))
  readonly #positions = new Map<GroupId, Position>()

  constructor(data: DataStore) {
    this.data = data
  }

  groupsWithRows(): GroupId[] {
    return [...this.#rows].filter(([, rows]) => rows.size > 0).map(([one]) => one)
  }

  step(act: number, one: GroupId, name: string): void {
    const rows = this.#rows.get(one) ?? new Set()
    if (act === 7) {
      if (rows.size === 0) this.data.listing.unlist('out', one, this.#positions.get(one) ?? 0)
      return
    }
    if (act < 3) rows.add(name)
    else rows.delete(name)
    this.commit(one, act < 3 ? put('out', name) : gone('out', name))
  }

  commit(one: GroupId, ...rows: RowWritten[]): void {
    const position = (this.#positions.get(one) ?? 0) + 1
    this.#positions.set(one, position)
    commit(this.data, one, position, ...rows)
  }

  empty(): void {
    for (const [one, rows] of this.#rows) {
      for (const name of rows) this.commit(one, gone('out', name))
      this.data.listing.unlist('out', one, this.#positions.get(one) ?? 0)
    }
  }
}

test('a row whose key has no topic, though it begins like one, is counted under none', () =>
  onDisk(present(disks[0], 'a disk')[1], async (on) => {
    const data = await openData(await on.open())
    const worklist = new LocalWorklist(data.listing, systemClock, { isOurs: () => true })
    const tuples: readonly TupleElement[][] = [
      [''],
      ['x'.repeat(300)],
      [Buffer.from('a')],
      [7, 'a'],
    ]
    const opened = [Buffer.of(), Buffer.of(0, 1), Buffer.of(0x20, 0xc3, 0, 1)]
    const keys = [...opened, ...tuples.map(encodeTuple)].map((rest) =>
      Buffer.concat([Buffer.of(0xff), rest, Buffer.from('rest')]),
    )
    for (const [index, key] of keys.entries()) {
      commit(data, a, index + 1, written(key, Buffer.from('body')))
    }
    commit(data, a, keys.length + 1, put('out', '1'))
    const check = async (): Promise<void> => {
      expect(await worklist.topics(100)).toEqual(['out'])
      expect(Object.keys(worklist.counts())).toEqual(['out'])
    }
    await check()
    await data.drain()
    await check()
  }))

test('a watch of a topic wakes once a row under it is applied, until it is cancelled', () =>
  onDisk(present(disks[0], 'a disk')[1], async (on) => {
    const data = await openData(await on.open())
    const worklist = new LocalWorklist(data.listing, systemClock, { isOurs: () => true })
    const woken: string[] = []
    const cancel = worklist.watch('out', ({ group: who, position }) =>
      woken.push(`${who}@${position}`),
    )
    commit(data, a, 1, put('out', '1'), put('other', '1'))
    expect(woken).toEqual([])
    await data.drain()
    expect(woken).toEqual([`${a}@1`])
    commit(data, a, 2, gone('out', '1'))
    commit(data, b, 1, put('out', '1'))
    await data.drain()
    expect(woken).toEqual([`${a}@1`, `${b}@1`])
    cancel()
    commit(data, b, 2, put('out', '2'))
    await data.drain()
    expect(woken).toHaveLength(2)
  }))
