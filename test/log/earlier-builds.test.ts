/** A folder of an earlier build: its flushes and rows are read, and what its rows alone tell comes into the log. */
import { flushKey } from '../../src/journal/ordered-journal.ts'
import { expect, test } from 'vitest'
import { pack } from '../../src/base/pack.ts'
import { decodeFlush } from '../../src/log/flush.ts'
import type { LogRecord } from '../../src/replication/effect.ts'
import type { OrderedStore } from '../../src/ports/storage.ts'
import { encodeOldFlush, keepCarried, keepOldRow } from './earlier-builds.ts'
import {
  accept,
  ballot,
  chosen,
  durable,
  FakeData,
  group,
  openLog,
  promise,
  textOf,
} from './log-fixture.ts'
import { disks, onDisk } from '../store/stores.ts'

const flushes: readonly (readonly LogRecord[])[] = [
  [accept('a', 1, 0, 'one'), promise('open', 1, 7)],
  [chosen('a', 1, 0), accept('a', 2, 0, 'two')],
  [chosen('a', 2, 0)],
]

/** Three flushes, all of them settled; position 1 of `open` is carried in its row alone. */
async function writtenBefore(store: OrderedStore): Promise<FakeData> {
  await openLog(store)
  let crc = 0
  for (const [at, records] of flushes.entries()) {
    const stamp = { number: at + 1, incarnation: 1, previousCrc: crc }
    const flush = encodeOldFlush(stamp, records)
    await store.write([{ key: flushKey(at + 1), value: flush.bytes }])
    crc = flush.crc
  }
  const data = new FakeData()
  data.setApplied(group('a'), { position: 2, lastFlush: 0, snapshot: 0 })
  const row = { promised: ballot(0), accepted: ballot(0), chosen: ballot(0) }
  keepOldRow(data, group('a'), 1, { ...row, place: { flush: 1, index: 0 }, lastFlush: 2 })
  keepOldRow(data, group('a'), 2, { ...row, place: { flush: 2, index: 1 }, lastFlush: 3 })
  const open = { promised: ballot(7), accepted: undefined, chosen: undefined, place: undefined }
  keepOldRow(data, group('open'), 1, { ...open, lastFlush: 1 })
  keepCarried(data, [[group('open'), 1]])
  data.setMeta('log/mark', pack([1, 3, 1, crc]))
  return data
}

test.each(disks)('a folder of an earlier build goes on, on %s', (_, disk) =>
  onDisk(disk, async (on) => {
    const data = await writtenBefore(await on.open())
    const log = await openLog(await on.open(), {}, data)
    expect([log.settledFlush, [...log.groupsWithUnsettled()]]).toEqual([3, [group('open')]])
    const texts = [1, 2].map((position) => textOf(log.chosen(group('a'), position)?.value))
    expect(texts).toEqual(['one', 'two'])
    expect(log.position(group('open'), 1)).toMatchObject({ promised: ballot(7) })
    // The first batch brings the facts into the log that stand in a row alone.
    await durable(log, accept('a', 3, 0, 'three'), chosen('a', 3, 0))
    await data.batch(log, ['a', 3])
    expect(data.meta('log/carried')).toEqual(pack([1]))
    expect(decodeFlush((await on.open()).getSync(flushKey(4)) ?? new Uint8Array())).toMatchObject({
      groups: [{ group: group('a'), previous: 0 }],
    })
    const again = await openLog(await on.open(), {}, data)
    expect(again.position(group('open'), 1)).toMatchObject({ promised: ballot(7) })
    const later = [1, 2, 3].map((position) => textOf(again.chosen(group('a'), position)?.value))
    expect(later).toEqual(['one', 'two', 'three'])
    // A log that is folded whole knows the same, and has no rows to find settled values by.
    const whole = await openLog(await on.open())
    expect([...whole.positions(group('a'), 0)].length).toBe(3)
    expect(whole.position(group('open'), 1)).toMatchObject({ promised: ballot(7) })
  }),
)
