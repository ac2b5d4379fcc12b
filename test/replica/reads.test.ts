/** A read under a lease looks at the clock before its point is taken, and again after it. */
import { expect, test } from 'vitest'
import { systemClock } from '../../src/adapters/system-clock.ts'
import { defaultLimits } from '../../src/base/limits.ts'
import type { ClockReading } from '../../src/lease/clock-reading.ts'
import { Pins } from '../../src/store/pins.ts'
import type { Clock } from '../../src/ports/clock.ts'
import { silentTrace } from '../../src/ports/trace.ts'
import type { ReadPoint } from '../../src/group/replica-port.ts'
import { Reads, type ReadsParts } from '../../src/replica/reads.ts'
import { Overlay } from '../../src/store/overlay.ts'
import { group } from '../log/log-fixture.ts'
import { written } from '../store/rows.ts'

const limits = { ...defaultLimits, slicePiecesMax: 16 }
const applied = { position: 3, timestamp: 30, horizon: 0 }
const asked: ReadPoint = { position: 4, timestamp: 40 }

/** Time passes between any two looks at the clock: 10 ms, and so on. */
function readsOfLease(endsMs: number): Reads {
  let now = 0
  return readsAt({ ...systemClock, monotonicMs: () => (now += 10) }, endsMs)
}

function readsAt(
  clock: Clock,
  endsMs: number,
  data: Partial<ReadsParts['data']> = {},
  appliedNow: () => typeof applied = () => applied,
  whenBack: ReadsParts['whenBack'] = () => undefined,
  isAside: ReadsParts['isAside'] = () => false,
  isFresh: ReadsParts['isFresh'] = () => false,
  mayHaveCome = false,
): Reads {
  const covers = ({ now: at }: ClockReading): boolean => at < endsMs
  return new Reads({
    clock,
    isRestored: () => true,
    trace: silentTrace,
    limits,
    replica: {
      applied: () => appliedNow(),
      appliedInMemory: () => appliedNow(),
      leased: (_, reading) => (covers(reading) ? applied : undefined),
      isStillLeased: (_, reading) => covers(reading),
      isQuiet: () => true,
    },
    isFresh,
    mayHaveCome: () => mayHaveCome,
    data: {
      get: () => undefined,
      getAll: (_, keys) => keys.map(() => undefined),
      getAllAt: () => Promise.resolve([]),
      scan: () => Promise.resolve([]),
      scanAt: () => Promise.resolve([]),
      ordering: () => undefined,
      pins: new Pins(1_000),
      ...data,
    },
    requests: { count: 0, read: () => Promise.resolve(asked) },
    isOver: () => false,
    wake: () => undefined,
    begin: () => undefined,
    ...{ whenBack, isAside },
  })
}

test('LEASE-1: a lease that holds at both looks is read under', async () => {
  const { position, timestamp } = applied
  expect(await readsOfLease(21).read(group('g'), 'current', 1_000)).toEqual({ position, timestamp })
  const { point } = readsOfLease(21).rowsNow(group('g'), 'current', 0, []) ?? {}
  expect(point).toEqual({ position, timestamp })
})

test('LEASE-1: the reader turns to a majority if its lease runs out between the two looks', async () => {
  expect(await readsOfLease(20).read(group('g'), 'current', 1_000)).toEqual(asked)
  expect(readsOfLease(20).rowsNow(group('g'), 'current', 0, [])).toBeUndefined()
})

test('LIVE-6: a scan puts thousands of pending rows in order over several turns before it looks at them', async () => {
  const overlay = new Overlay({ nowMs: () => 0, groupBytesMax: Number.POSITIVE_INFINITY })
  let position = 0
  const commit = (keys: readonly string[]): void => {
    overlay.commit({
      ...{ group: group('g'), position: ++position, timestamp: position },
      ...{ horizonBefore: 0, horizon: 0, encodeState: () => new Uint8Array() },
      writes: keys.map((key) => written(Buffer.from(key), Buffer.from('value'))),
    })
  }
  commit(Array.from({ length: 20_000 }, (_, at) => String((at * 2_654_435_761) % 2 ** 32)))
  let turns = 0
  // A clock that stands still: the number of pieces ends a slice, too.
  const clock: Clock = {
    ...{ ...systemClock, monotonicMs: () => 0 },
    defer: (work) => {
      turns += 1
      if (turns === 2) commit(['0 of the meantime'])
      setImmediate(work)
    },
  }
  const scan: ReadsParts['data']['scan'] = (name, range) => {
    const rows = overlay.range(name, range)
    return Promise.resolve(rows.map(({ key, timestamp }) => ({ key, value: key, timestamp })))
  }
  const ordering = overlay.ordering.bind(overlay)
  const rows = await readsAt(clock, 0, { scan, ordering }).scan(
    group('g'),
    { limit: 2 },
    applied.timestamp,
  )
  expect(rows.map(({ key }) => Buffer.from(key).toString())).toEqual(['0', '0 of the meantime'])
  // Of 128 keys each.
  expect(turns).toBeGreaterThanOrEqual(Math.floor(20_000 / 128 / limits.slicePiecesMax))
  const before = turns
  await readsAt(clock, 0, { scan, ordering }).scan(group('g'), { limit: 2 }, applied.timestamp)
  expect(turns).toBe(before)
})

test('MVCC-1: a snapshot whose end comes while its scan waits for a turn is refused', async () => {
  let horizon = 0
  const ordering = function* (): Generator<undefined, void> {
    yield undefined
    horizon = applied.timestamp + 1
    for (let piece = 0; piece < limits.slicePiecesMax; piece++) yield undefined
  }
  const reads = readsAt(systemClock, 0, { ordering }, () => ({
    ...applied,
    timestamp: 99,
    horizon,
  }))
  const scan = reads.scan(group('g'), {}, applied.timestamp)
  await expect(scan).rejects.toMatchObject({ code: 'snapshot-too-old' })
})

test('SNAP-4: reads of a group wait while a snapshot takes its place, and see what it has then', async () => {
  const [g, other] = [group('g'), group('other')]
  const key = Buffer.from('k')
  let isAside = true
  let end: () => void = () => undefined
  const back = new Promise<void>((resolve) => (end = resolve))
  const row = (): { key: Uint8Array; value: Uint8Array; timestamp: number } => ({
    ...{ key, value: Buffer.from(isAside ? 'half' : 'whole'), timestamp: 30 },
  })
  const reads = readsAt(
    systemClock,
    0,
    {
      get: () => row(),
      getAll: (_, keys) => keys.map(row),
      scan: () => Promise.resolve([row()]),
      scanAt: () => Promise.resolve([row()]),
    },
    () => ({ ...applied, position: isAside ? 3 : 9 }),
    (asked) => (asked === g && isAside ? back : undefined),
  )
  const results: string[] = []
  const note = (what: string, rows: readonly ({ value: Uint8Array } | undefined)[]): void => {
    results.push(`${what} ${rows.map((one) => Buffer.from(one?.value ?? []).toString()).join()}`)
  }
  const waiting = [
    reads.read(g, 'snapshot', 1_000).then(({ position }) => results.push(`read ${position}`)),
    reads.readAt(g, 30, 1_000).then(({ position }) => results.push(`read at ${position}`)),
    reads.getAt(g, [key], 30).then((rows) => note('get at', rows)),
    reads.scan(g, {}).then((rows) => note('scan', rows)),
    reads.scan(g, {}, 30).then((rows) => note('scan at', rows)),
  ]
  await new Promise((resolve) => setImmediate(resolve))
  expect(results).toEqual([])
  // Calls that give rows at once do not wait.
  expect(reads.rowsNow(g, 'snapshot', 0, [key])).toBeUndefined()
  expect(() => reads.get(g, key)).toThrow(/takes in a snapshot of the group; try again/)
  // Other groups are read as ever.
  expect((await reads.read(other, 'snapshot', 1_000)).position).toBe(3)
  expect(reads.get(other, key)?.timestamp).toBe(30)
  isAside = false
  end()
  await Promise.all(waiting)
  expect([...results].sort()).toEqual([
    ...['get at whole', 'read 9', 'read at 9', 'scan at whole', 'scan whole'],
  ])
})

test('SNAP-4: a read ends with the word that the node is stopping, where it stops meanwhile', async () => {
  const stopping = Promise.reject(new Error('this node is stopping'))
  stopping.catch(() => undefined)
  const reads = readsAt(
    systemClock,
    0,
    {},
    () => applied,
    () => stopping,
  )
  await expect(reads.read(group('g'), 'snapshot', 1_000)).rejects.toThrow('stopping')
  await expect(reads.scan(group('g'), {})).rejects.toThrow('stopping')
})

test('MVCC-1: at the moment before its first commit a group has no rows, and the store is not asked for them', async () => {
  const asked = (): never => expect.fail('the store is asked')
  const first = { position: 1, timestamp: 10, horizon: 0 }
  for (const here of [{ position: 0, timestamp: 0, horizon: 0 }, first]) {
    const reads = readsAt(systemClock, 0, { scan: asked, scanAt: asked }, () => here)
    expect(await reads.scan(group('g'), { limit: 10 }, 0)).toEqual([])
  }
  const found = { key: Buffer.from('k'), value: Buffer.from('v'), timestamp: 10 }
  const reads = readsAt(systemClock, 0, { scan: () => Promise.resolve([found]) }, () => first)
  expect(await reads.scan(group('g'), { limit: 10 }, 10)).toEqual([found])
})

test('STALE-1: a replica answers a read with a bound from its applied state while that is fresh, and reads currently else', async () => {
  const told: unknown[] = []
  let isFresh = true
  const fresh: ReadsParts['isFresh'] = (read) => {
    told.push(read)
    return isFresh
  }
  const { position, timestamp } = applied
  const reads = readsAt(
    systemClock,
    0,
    {},
    () => applied,
    () => undefined,
    () => false,
    fresh,
  )
  const bound = { maxStalenessMs: 500 }
  expect(await reads.read(group('g'), bound, 1_000)).toEqual({ position, timestamp })
  expect(reads.rowsNow(group('g'), bound, 0, [])?.point).toEqual({ position, timestamp })
  expect(told[0]).toEqual({ group: group('g'), position, isQuiet: true, maxStalenessMs: 500 })
  expect(await reads.read(group('g'), bound, 1_000, position + 1)).toEqual(asked)
  expect(reads.rowsNow(group('g'), bound, position + 1, [])).toBeUndefined()
  isFresh = false
  expect(await reads.read(group('g'), bound, 1_000)).toEqual(asked)
  expect(reads.rowsNow(group('g'), bound, 0, [])).toBeUndefined()
})

test('STALE-1: of a group that may have come from another set, a replica that has nothing of it reads currently', async () => {
  const nothing = { ...applied, position: 0, timestamp: 0 }
  const readAs = (mayHaveCome: boolean): Reads =>
    readsAt(
      systemClock,
      0,
      {},
      () => nothing,
      () => undefined,
      () => false,
      () => true,
      mayHaveCome,
    )
  const bound = { maxStalenessMs: 500 }
  expect(await readAs(false).read(group('g'), bound, 1_000)).toEqual({ position: 0, timestamp: 0 })
  expect(await readAs(true).read(group('g'), bound, 1_000)).toEqual(asked)
  expect(readAs(true).rowsNow(group('g'), bound, 0, [])).toBeUndefined()
})
