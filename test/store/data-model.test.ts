/** The data store against a plain map: any mix of commits, batches, restarts, reads and scans. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { systemClock } from '../../src/adapters/system-clock.ts'
import { compareBytes, fromLatin1, latin1 } from '../../src/base/bytes.ts'
import { groupOfBytes } from '../../src/base/ids.ts'
import { defaultLimits } from '../../src/base/limits.ts'
import type { OrderedStore } from '../../src/ports/storage.ts'
import { silentTrace } from '../../src/ports/trace.ts'
import { DataStore } from '../../src/store/data-store.ts'
import { isAtEnd, type PageRange, type Row } from '../../src/group/replica-port.ts'
import { groupPrefix, joined, rowsPrefix, stateKey } from '../../src/store/row-format.ts'
import { group } from '../log/log-fixture.ts'
import { disks, onDisk, runsOn } from './stores.ts'
import { pageOf, written } from './rows.ts'

const groups = ['a', 'a\0', 'a\0\xff', 'b'].map(group)

const anyKey = fc
  .array(fc.constantFrom(0, 1, 2, 97, 255), { maxLength: 3 })
  .map((bytes) => latin1(Uint8Array.from(bytes)))

const anyRange = fc.record(
  {
    gte: anyKey.map(fromLatin1),
    gt: anyKey.map(fromLatin1),
    lt: anyKey.map(fromLatin1),
    reverse: fc.boolean(),
    limit: fc.integer({ min: 0, max: 8 }),
    bytesMax: fc.nat(20),
  },
  { requiredKeys: [] },
)

const anyGroup = fc.integer({ min: 0, max: groups.length - 1 })

const anyStep = fc.oneof(
  fc.record({
    kind: fc.constant('commit' as const),
    group: anyGroup,
    writes: fc.array(fc.tuple(anyKey, fc.option(fc.string({ maxLength: 4 }))), { maxLength: 6 }),
  }),
  fc.record({ kind: fc.constant('scan' as const), group: anyGroup, range: anyRange }),
  fc.record({ kind: fc.constant('get' as const), group: anyGroup, key: anyKey }),
  fc.record({ kind: fc.constant('drain' as const) }),
  fc.record({ kind: fc.constant('turn' as const) }),
  fc.record({ kind: fc.constant('restart' as const) }),
)

type Step = typeof anyStep extends fc.Arbitrary<infer S> ? S : never
type Model = Map<string, Row>

/** Batches of a few rows, and a cache of as many. */
const limits = { ...defaultLimits, applierBatchBytesMax: 200, rowCacheBytesMax: 5_000 }

function openData(store: OrderedStore): Promise<DataStore> {
  return DataStore.open(store, { clock: systemClock, trace: silentTrace, limits })
}

function expected(model: Model, range: PageRange): Row[] {
  const { gte, gt, lt, reverse } = range
  const rows = [...model.values()].filter(
    ({ key }) =>
      (gte === undefined || compareBytes(key, gte) >= 0) &&
      (gt === undefined || compareBytes(key, gt) > 0) &&
      (lt === undefined || compareBytes(key, lt) < 0),
  )
  rows.sort((one, other) => compareBytes(one.key, other.key) * (reverse === true ? -1 : 1))
  return pageOf(rows, range)
}

function plain(rows: readonly Row[]): unknown[] {
  return rows.map(({ key, value, timestamp }) => [latin1(key), latin1(value), timestamp])
}

test.each(disks)('gets and scans agree with a plain map, on %s', async (name, disk) => {
  const property = fc.asyncProperty(fc.array(anyStep, { maxLength: 60, size: 'max' }), (steps) =>
    onDisk(disk, async (on) => {
      let data = await openData(await on.open())
      const models: Model[] = groups.map(() => new Map())
      const positions = groups.map(() => 0)
      for (const step of steps) {
        if (step.kind === 'restart') {
          await data.drain()
          data = await openData(await on.open())
        } else await take(data, models, positions, step)
      }
      await data.drain()
      expect(data.overlayBytes).toBe(0)
      for (const [at, position] of positions.entries()) {
        expect(data.applied(groups[at] ?? group('?')).position).toBe(position)
      }
    }),
  )
  await fc.assert(property, { numRuns: runsOn(name, 100), seed: 4 })
})

async function take(
  data: DataStore,
  models: readonly Model[],
  positions: number[],
  step: Step,
): Promise<void> {
  if (step.kind === 'drain') {
    await data.drain()
    return lookUpAll(data, models)
  }
  if (step.kind === 'turn' || step.kind === 'restart') {
    return new Promise((resolve) => setImmediate(resolve))
  }
  const where = groups[step.group] ?? group('?')
  const model = models[step.group] ?? new Map<string, Row>()
  if (step.kind === 'get') {
    const row = data.get(where, fromLatin1(step.key))
    const known = model.get(step.key)
    return expect(row && plain([row])).toEqual(known && plain([known]))
  }
  if (step.kind === 'scan') {
    const rows = await data.scan(where, step.range)
    expect(plain(rows)).toEqual(plain(expected(model, step.range)))
    if (!isAtEnd(rows, step.range)) return
    const { limit: _, bytesMax: __, ...whole } = step.range
    return expect(rows).toHaveLength(expected(model, whole).length)
  }
  const position = (positions[step.group] ?? 0) + 1
  positions[step.group] = position
  const writes = step.writes.map(([key, value]) =>
    written(fromLatin1(key), value === null ? undefined : Buffer.from(value)),
  )
  data.commit({
    ...{ group: where, position, timestamp: position, horizonBefore: 0, horizon: 0, writes },
    encodeState: () => Buffer.from(`state ${position}`),
  })
  for (const { key, value } of writes) {
    if (value === undefined) model.delete(latin1(key))
    else model.set(latin1(key), { key, value, timestamp: position })
  }
}

/** Row by row: the rows in memory since the last time are those of the store. */
function lookUpAll(data: DataStore, models: readonly Model[]): void {
  for (const [at, model] of models.entries()) {
    for (const row of model.values()) {
      const found = data.get(groups[at] ?? group('?'), row.key)
      expect(found && plain([found])).toEqual(plain([row]))
    }
  }
}

test('keys in the data store lie in the order of (group, key), everything of a group together', () => {
  const anyGroupName = fc.uint8Array({ minLength: 1, maxLength: 4 }).map(latin1)
  fc.assert(
    fc.property(
      anyGroupName,
      anyKey,
      anyGroupName,
      anyKey,
      (oneName, oneKey, otherName, otherKey) => {
        const one = groupPrefix(groupOfLatin1(oneName))
        const other = groupPrefix(groupOfLatin1(otherName))
        const oneRow = joined(rowsPrefix(one), fromLatin1(oneKey))
        const otherRow = joined(rowsPrefix(other), fromLatin1(otherKey))
        const order = Math.sign(
          oneName === otherName
            ? compareBytes(fromLatin1(oneKey), fromLatin1(otherKey))
            : compareBytes(fromLatin1(oneName), fromLatin1(otherName)),
        )
        expect(Math.sign(compareBytes(oneRow, otherRow))).toBe(order)
        expect(Math.sign(compareBytes(stateKey(one), stateKey(other)))).toBe(
          Math.sign(compareBytes(fromLatin1(oneName), fromLatin1(otherName))),
        )
        if (oneName !== otherName) expect(one.subarray(0, other.length)).not.toEqual(other)
      },
    ),
  )
})

function groupOfLatin1(name: string): ReturnType<typeof group> {
  return groupOfBytes(fromLatin1(name))
}
