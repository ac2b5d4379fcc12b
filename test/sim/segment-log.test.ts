/** The simulated log disk of segment files: a journal finds there all that the disk calls durable, and no more. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { latin1, fromLatin1 } from '../../src/base/bytes.ts'
import { flushesFrom, flushKey, numberOfKey, recordKey } from '../../src/journal/ordered-journal.ts'
import type { Journal } from '../../src/ports/journal.ts'
import { SeededRandom } from '../../sim/world/random.ts'
import { SegmentLog } from '../../sim/world/segment-log.ts'
import type { SegmentFate } from '../../sim/world/segments.ts'

interface Told {
  readonly disk: SegmentLog
  /** The keys of the puts that became durable, in order. */
  readonly told: string[]
}

function diskOf(segmentBytes = 4096): Told {
  const told: string[] = []
  const disk = new SegmentLog({
    ...{ segmentBytes, random: new SeededRandom('test'), nowMicros: () => 7 },
    schedule: (complete) => setImmediate(complete),
    onDurable: (puts) => told.push(...puts.map(({ key }) => latin1(key))),
  })
  return { disk, told }
}

async function append(journal: Journal, from: number, to: number): Promise<void> {
  for (let number = from; number <= to; number++) {
    const records = [{ name: 'meta', value: Buffer.from(`of ${number}`) }]
    await journal.append({ number, bytes: Buffer.alloc(300, number) }, records)
  }
}

/** All that a journal shows, under the keys of a disk. */
async function shownBy(journal: Journal): Promise<Map<string, string>> {
  const shown = new Map<string, string>()
  for await (const flushes of journal.scan(0)) {
    for (const { number, bytes } of flushes) {
      shown.set(latin1(flushKey(number)), Buffer.from(bytes).toString('hex'))
    }
  }
  for (const name of await journal.recordNames()) {
    shown.set(latin1(recordKey(name)), Buffer.from(journal.record(name) ?? []).toString('hex'))
  }
  return shown
}

function rowsOf(disk: Pick<SegmentLog, 'image'>): Map<string, string> {
  const rows = [...disk.image()].toSorted(([one], [other]) => (one < other ? -1 : 1))
  return new Map(rows.map(([key, value]) => [key, Buffer.from(value).toString('hex')]))
}

const fates: fc.Arbitrary<SegmentFate> = fc.oneof(
  fc.constant({ kind: 'lost' as const }),
  fc.constant({ kind: 'kept' as const }),
  fc.record({ kind: fc.constant('torn' as const), kept: fc.nat(1_000_000) }),
  fc.record({ kind: fc.constant('sectors' as const), bits: fc.nat(2 ** 30 - 1) }),
)

test('whatever a crash does to a write, the disk tells of it exactly when the next opening shows it', async () => {
  const steps = fc.array(fc.record({ flushes: fc.integer({ min: 1, max: 8 }), fate: fates }), {
    minLength: 1,
    maxLength: 8,
  })
  await fc.assert(
    fc.asyncProperty(steps, async (runs) => {
      const { disk, told } = diskOf()
      let last = 0
      for (const { flushes, fate } of runs) {
        const journal = await disk.open()
        expect(await shownBy(journal)).toEqual(rowsOf(disk))
        last = await journal.last()
        await append(journal, last + 1, last + flushes)
        const pending = append(journal, last + flushes + 1, last + flushes + 1)
        pending.catch(() => undefined)
        disk.crash(fate)
      }
      const journal = await disk.open()
      expect(await shownBy(journal)).toEqual(rowsOf(disk))
      const numbers = told.flatMap((key) => numberOfKey(fromLatin1(key)) ?? [])
      expect(numbers).toEqual(Array.from({ length: await journal.last() }, (_, at) => at + 1))
      await journal.close()
    }),
    { numRuns: 40 },
  )
})

test('rows leave the disk with the segments that the journal gives up', async () => {
  const { disk } = diskOf()
  const journal = await disk.open()
  await append(journal, 1, 60)
  await journal.drop(50)
  await append(journal, 61, 80)
  const [first] = disk.durableKeys(flushesFrom(1))
  expect(numberOfKey(fromLatin1(first ?? ''))).toBeGreaterThan(30)
  expect(Buffer.from(disk.durableValue(latin1(recordKey('meta'))) ?? []).toString()).toBe('of 80')
  disk.crash({ kind: 'lost' })
  expect(await shownBy(await disk.open())).toEqual(rowsOf(disk))
})

test.each([
  ['a value', false, 1],
  ['the head of a frame', true, 1],
  ['the header of a segment', true, 4],
])(
  'the next opening tells of rot of %s, which never hits the last frame',
  async (_, isIllegible, bit) => {
    for (const place of [0, 300_000, 999_999]) {
      const { disk, told } = diskOf()
      await append(await disk.open(), 1, 20)
      disk.crash({ kind: 'lost' })
      const before = told.length
      expect(disk.rot({ place, bit, passedOver: 0, ...(isIllegible && { isIllegible }) })).toBe(
        true,
      )
      expect(disk.rot({ place, bit, passedOver: 0 }), 'one at a time').toBe(false)
      const journal = await disk.open()
      expect(journal.lost).toBeDefined()
      expect(await journal.last()).toBe(20)
      expect(disk.takeUndamaged()?.size).toBe(21)
      await journal.lost?.putBack({ flushes: [], records: [{ name: 'x', value: Buffer.of(1) }] })
      expect(told.length, 'what is put back is old').toBe(before)
    }
  },
)

test('a check tells of a flipped bit, and the disk knows when and where', async () => {
  const { disk } = diskOf()
  const journal = await disk.open()
  await append(journal, 1, 20)
  expect(disk.flipBit(flushKey(20), 5), 'the last frame').toBe(false)
  expect(disk.flipBit(flushKey(3), 5)).toBe(true)
  expect(disk.isHurt(flushKey(3))).toBe(true)
  const heard: string[] = []
  await journal.check({
    ...{ bytesPerSecond: () => Infinity, isOver: () => false, onProgress: () => undefined },
    onDamage: (what) => heard.push(what),
  })
  expect(heard).toHaveLength(1)
  expect(disk.told).toEqual({ atMicros: 7, keys: [flushKey(3)] })
})

test('an image is put back with its files, on this disk or another one', async () => {
  const [one, other] = [diskOf().disk, diskOf().disk]
  await append(await one.open(), 1, 10)
  one.crash({ kind: 'lost' })
  const image = one.image()
  await append(await one.open(), 11, 20)
  one.crash({ kind: 'lost' })
  for (const disk of [one, other]) {
    disk.restore(image)
    expect(rowsOf(disk)).toEqual(rowsOf({ image: () => image }))
    const journal = await disk.open()
    expect(await journal.last()).toBe(10)
    disk.crash({ kind: 'lost' })
  }
  one.restore(new Map())
  expect(await (await one.open()).last()).toBe(0)
})
