/** The damage that an opening, a reader and a check find. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { present } from '../../src/base/assert.ts'
import type { Journal, LostWrites } from '../../src/ports/journal.ts'
import { sectorBytes } from '../../sim/world/segments.ts'
import { Fixture, readOf, soundOf, textOf } from './segment-fixture.ts'

async function filled(flushes: number, segmentBytes = 4096): Promise<Fixture> {
  const fixture = new Fixture(segmentBytes)
  await fixture.open()
  for (let at = 0; at < flushes; at++)
    await fixture.append(300, at % 4 === 0 ? ['meta', 'peers'] : [])
  await fixture.journal.close()
  return fixture
}

/** The frame of a flush, and the segment that it stands in. */
function frameOf(
  fixture: Fixture,
  flush: number,
): { name: string; offset: number; valueAt: number; end: number } {
  for (const name of fixture.segments) {
    for (const { parts, offset, end } of fixture.splitIntoFrames(name)) {
      const part = parts.find((one) => one.flush === flush)
      if (part !== undefined) return { name, offset, valueAt: part.offset, end }
    }
  }
  throw new Error(`flush ${flush} is nowhere`)
}

function lostOf(journal: Journal): LostWrites {
  return present(journal.lost, 'test: damage is told')
}

test('JRN-7: a damaged last frame counts as never written, and is no damage', async () => {
  const fixture = await filled(5)
  const { name, valueAt } = frameOf(fixture, 5)
  fixture.disk.flipBit(name, valueAt * 8)
  const journal = await fixture.open()
  expect(journal.lost).toBeUndefined()
  expect(await journal.last()).toBe(4)
  await journal.append({ number: 5, bytes: Buffer.from('another one') })
  await fixture.reopen()
  expect(readOf(fixture.journal, 5)).toBe('another one')
})

test.each([
  ['head', 40],
  ['magic', 0],
  ['table', 70],
])('JRN-7: a wrong %s before a sound frame is damage', async (_, at) => {
  const fixture = await filled(5)
  const { name, offset } = frameOf(fixture, 3)
  fixture.disk.flipBit(name, (offset + at) * 8)
  const journal = await fixture.open()
  const { what, writes } = lostOf(journal)
  expect(what).toContain(`${name} at byte ${offset}`)
  expect(writes[0]).toBeUndefined()
  expect(writes.slice(1).map((values) => textOf(values?.[0]))).toEqual([
    fixture.flushes.get(4),
    fixture.flushes.get(5),
  ])
  expect(readOf(journal, 3)).toBe('corrupt')
  expect(await journal.last()).toBe(5)
})

test('JRN-7: a wrong value before a sound frame is damage, and its bytes are given as they are', async () => {
  const fixture = await filled(5)
  const { name, valueAt } = frameOf(fixture, 3)
  fixture.disk.flipBit(name, (valueAt + 20) * 8)
  const journal = await fixture.open()
  const { writes } = lostOf(journal)
  expect(writes).toHaveLength(3)
  expect(textOf(writes[0]?.[0])).toHaveLength(fixture.flushes.get(3)?.length ?? 0)
  expect(textOf(writes[0]?.[0])).not.toBe(fixture.flushes.get(3))
  expect(readOf(journal, 3)).toBe('corrupt')
})

test('JRN-7: frames that end before the place that the next segment names are damage', async () => {
  const fixture = await filled(30)
  const [name = ''] = fixture.segments
  const last = present(fixture.splitIntoFrames(name).at(-1), 'test: a segment has frames')
  const flush = present(last.parts[0]?.flush, 'test: the last frame has a flush')
  fixture.disk.bytesOf(name).fill(0, last.offset)
  const journal = await fixture.open()
  const { what, writes } = lostOf(journal)
  expect(what).toContain(`${name} at byte ${last.offset}: its frames end before`)
  expect(writes[0]).toBeUndefined()
  expect(writes.flatMap((values) => values ?? []).map(textOf)).toContain(
    fixture.flushes.get(flush + 1),
  )
  expect(readOf(journal, flush)).toBe('corrupt')
})

test('JRN-7: a last segment that is shorter than it was made is damage', async () => {
  const fixture = await filled(5)
  const name = present(fixture.segments.at(-1), 'test: there are segments')
  const { offset } = frameOf(fixture, 5)
  fixture.disk.cutShort(name, offset)
  for (let at = 0; at < 2; at++) {
    const { what, writes } = lostOf(await fixture.reopen())
    expect(what).toContain('shorter than when it was made')
    expect(writes).toContain(undefined)
    expect(await fixture.journal.last()).toBe(4)
  }
})

test.each([
  ['and frames follow it', 0],
  ['and nothing follows it', 1],
])('a damaged checkpoint is made good from the segment before, %s', async (_, openings) => {
  const fixture = await filled(39)
  for (let at = 0; at < openings; at++) await (await fixture.open()).close()
  const name = present(fixture.segments.at(-1), 'test: there are segments')
  const [checkpoint] = fixture.splitIntoFrames(name)
  for (const at of [0, 30, (checkpoint?.parts[0]?.offset ?? 0) - 128]) {
    const before = fixture.disk.image()
    fixture.disk.flipBit(name, (128 + at) * 8)
    const journal = await fixture.open()
    expect(lostOf(journal).writes).not.toContain(undefined)
    for (const [record, text] of fixture.records) expect(textOf(journal.record(record))).toBe(text)
    const found = soundOf(lostOf(journal)).records.map(
      ({ name: record, value }) => [record, textOf(value)] as const,
    )
    expect(new Map(found)).toEqual(fixture.records)
    await journal.close()
    fixture.disk.restore(before)
  }
})

test('the records of a damaged checkpoint count as lost where the segment before is damaged, too', async () => {
  const fixture = await filled(39)
  await (await fixture.open()).close()
  const [before = '', name = ''] = fixture.segments.slice(-2)
  fixture.disk.flipBit(name, 130 * 8)
  fixture.disk.flipBit(before, 130 * 8)
  fixture.disk.flipBit(before, ((fixture.splitIntoFrames(before)[1]?.offset ?? 0) + 9) * 8)
  expect(lostOf(await fixture.open()).writes).toContain(undefined)
})

test('a damaged header costs nothing but its own bytes', async () => {
  const fixture = await filled(40)
  for (const name of fixture.segments) {
    const before = fixture.disk.image()
    fixture.disk.flipBit(name, 30 * 8)
    const journal = await fixture.open()
    expect(lostOf(journal).what).toContain(`${name} at byte 0`)
    expect(lostOf(journal).writes).not.toContain(undefined)
    for (const [number, text] of fixture.flushes) expect(readOf(journal, number)).toBe(text)
    await journal.close()
    fixture.disk.restore(before)
  }
})

test('JRN-8: each opening tells damage until its rest is put back, and none does after', async () => {
  const fixture = await filled(30)
  const { name, valueAt } = frameOf(fixture, 9)
  const whole = frameOf(fixture, 12)
  fixture.disk.flipBit(name, valueAt * 8)
  fixture.disk.flipBit(whole.name, whole.offset * 8)
  // As a restart in between leaves it: the damaged segments are old ones by then.
  for (let at = 0; at < 3; at++) {
    await fixture.open()
    await fixture.append(300)
    await fixture.journal.close()
  }
  const journal = await fixture.open()
  const lost = lostOf(journal)
  expect(lost.writes).toContain(undefined)
  const found = soundOf(lost)
  const mended = { number: 9, bytes: Buffer.from(fixture.flushes.get(9) ?? '') }
  await lost.putBack({ ...found, flushes: [mended, ...found.flushes] })
  for (const at of [0, 1]) {
    const again = at === 0 ? journal : await fixture.reopen()
    if (at === 1) expect(again.lost).toBeUndefined()
    expect(readOf(again, 9)).toBe(fixture.flushes.get(9))
    expect(readOf(again, 12)).toBe('corrupt')
    expect(readOf(again, 13)).toBe(fixture.flushes.get(13))
    expect(await again.last()).toBe(33)
  }
})

test('JRN-8: an opening tells damage again after a crash while its rest was put back', async () => {
  const fixture = await filled(30)
  const { name, offset } = frameOf(fixture, 28)
  fixture.disk.flipBit(name, offset * 8)
  for (let turns = 0; turns < 6; turns++) {
    const before = fixture.disk.image()
    const lost = lostOf(await fixture.open())
    let isDone = false
    const done = lost.putBack(soundOf(lost)).then(() => (isDone = true))
    done.catch(() => undefined)
    for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve))
    fixture.disk.crash({ kind: 'lost' })
    await fixture.open()
    expect(fixture.journal.lost === undefined).toBe(isDone)
    await fixture.journal.close()
    fixture.disk.restore(before)
  }
})

test.each([
  [
    'a segment in the middle is missing',
    'corrupt',
    /0000000002.segment is missing/,
    (one: Fixture) => one.disk.removeFile(one.segments[1] ?? ''),
  ],
  [
    'all segments are missing',
    'corrupt',
    /its segments are missing/,
    (one: Fixture) => {
      one.disk.addFile('spare-9.segment', Buffer.alloc(4096))
      for (const name of one.segments) one.disk.removeFile(name)
    },
  ],
  [
    'a segment was renamed',
    'corrupt',
    /was written as 0000000001.segment/,
    (one: Fixture) => {
      one.disk.addFile('0000000000.segment', Buffer.from(one.disk.bytesOf('0000000001.segment')))
    },
  ],
  [
    'a file is no segment',
    'corrupt',
    /is no segment of a journal/,
    (one: Fixture) => {
      one.disk.bytesOf('0000000002.segment').fill(7)
    },
  ],
])('a folder is refused, and stays as it is, where %s', async (_, code, words, damage) => {
  const fixture = await filled(40)
  damage(fixture)
  const before = [...fixture.disk.image()]
  await expect(fixture.open()).rejects.toMatchObject({
    code,
    message: expect.stringMatching(words),
  })
  expect([...fixture.disk.image()]).toEqual(before)
})

test('a segment of another journal is refused', async () => {
  const [fixture, other] = [await filled(40), await filled(40)]
  fixture.disk.bytesOf('0000000002.segment').set(other.disk.bytesOf('0000000002.segment'))
  await expect(fixture.open()).rejects.toMatchObject({
    code: 'corrupt',
    message: expect.stringMatching(/another journal/),
  })
})

test('a check passes over segments that are given up while it reads them', async () => {
  const fixture = await filled(40)
  const journal = await fixture.open()
  let letGo = (): void => undefined
  fixture.held = new Promise((resolve) => (letGo = resolve))
  const checked = journal.check()
  await journal.drop(35)
  for (let number = 41; number < 70; number++) {
    await journal.append({ number, bytes: Buffer.alloc(300, number) })
  }
  letGo()
  await expect(checked).resolves.toBeUndefined()
})

test('a check tells each damaged place and goes on, and rejects where it is to stop', async () => {
  const fixture = await filled(40)
  const journal = await fixture.open()
  const [one, other] = [frameOf(fixture, 4), frameOf(fixture, 30)]
  fixture.disk.flipBit(one.name, one.valueAt * 8)
  fixture.disk.flipBit(other.name, other.offset * 8)
  // The header and the first frame stand in it.
  fixture.disk.spoilSector(fixture.segments[1] ?? '', 0)
  const told: string[] = []
  const pace = { bytesPerSecond: () => 1e9, isOver: () => false, onProgress: () => undefined }
  await journal.check({ ...pace, onDamage: (what) => told.push(what) })
  expect(told).toHaveLength(4)
  expect(told[0]).toContain(`${one.name} at byte ${one.offset}`)
  expect(told[3]).toContain(`${other.name} at byte ${other.offset}`)
  await expect(journal.check()).rejects.toMatchObject({ code: 'corrupt' })
  await expect(journal.check({ ...pace, isOver: () => true })).rejects.toMatchObject({
    code: 'closed',
  })
})

const fault = fc.oneof(
  fc.record({ kind: fc.constant('flip' as const), file: fc.nat(), bit: fc.nat() }),
  fc.record({ kind: fc.constant('flip-used' as const), file: fc.nat(), bit: fc.nat() }),
  fc.record({ kind: fc.constant('sector' as const), file: fc.nat(), bit: fc.nat() }),
  fc.record({ kind: fc.constant('cut' as const), file: fc.nat(), bit: fc.nat() }),
)

function hurt(
  fixture: Fixture,
  { kind, file, bit }: { kind: string; file: number; bit: number },
): void {
  const names = fixture.segments
  const name = names[file % names.length] ?? ''
  const bytes = fixture.disk.bytesOf(name)
  const used = fixture.splitIntoFrames(name).at(-1)?.end ?? 128
  if (bytes.length === 0) return
  if (kind === 'flip') fixture.disk.flipBit(name, bit % (bytes.length * 8))
  if (kind === 'flip-used') fixture.disk.flipBit(name, bit % (Math.min(used, bytes.length) * 8))
  if (kind === 'sector') fixture.disk.spoilSector(name, bit % bytes.length)
  if (kind === 'cut') fixture.disk.cutShort(name, bit % bytes.length)
}

test('JRN-5, JRN-7: under any damage a journal shows the bytes of its writer, or says that they are damaged', async () => {
  const seen = { refused: 0, told: 0, torn: 0, sound: 0 }
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.nat({ max: 12 }), { minLength: 1, maxLength: 30 }),
      fc.array(fault, { minLength: 1, maxLength: 3 }),
      async (steps, faults) => {
        const fixture = new Fixture()
        await fixture.open()
        for (const one of steps) {
          if (one === 12) await fixture.reopen()
          else await fixture.append(one * 60, one % 3 === 0 ? ['meta', 'peers'] : [])
        }
        await fixture.journal.close()
        const isHurt = framesHurtBy(fixture, () => {
          for (const one of faults) hurt(fixture, one)
        })
        const journal = await fixture.open().catch((error: unknown) => {
          expect(error).toMatchObject({ code: 'corrupt' })
          return undefined
        })
        if (journal === undefined) seen.refused += 1
        else seen[await judge(fixture, journal, isHurt)] += 1
      },
    ),
    { numRuns: 600 },
  )
  expect(Math.min(...Object.values(seen))).toBeGreaterThan(10)
})

/** Which flushes' frames are not as they were before. */
function framesHurtBy(fixture: Fixture, work: () => void): (flush: number) => boolean {
  const frames = new Map(
    [...fixture.flushes.keys()].map((flush) => [flush, frameOf(fixture, flush)]),
  )
  const before = fixture.disk.image()
  work()
  return (flush) => {
    const { name, offset, end } = present(frames.get(flush), 'test: a flush has a frame')
    const { bytes, unreadable } = present(fixture.disk.contentOf(name), 'test: it has a segment')
    const was = Buffer.from(before.get(name) ?? []).subarray(offset, end)
    const isUnreadable = [...unreadable].some((at) => at < end && at + sectorBytes > offset)
    return isUnreadable || !was.equals(bytes.subarray(offset, end))
  }
}

async function judge(
  fixture: Fixture,
  journal: Journal,
  isHurt: (flush: number) => boolean,
): Promise<'told' | 'torn' | 'sound'> {
  const written = fixture.flushes.size
  // Writes at the end that are all damaged look as a crash leaves them.
  let sure = written
  while (sure > 0 && isHurt(sure)) sure -= 1
  const hasDamage = checkFlushes(fixture, journal, isHurt, sure)
  if (journal.lost === undefined) {
    const last = await journal.last()
    expect(last).toBeGreaterThanOrEqual(sure)
    if (hasDamage) await expect(journal.check()).rejects.toMatchObject({ code: 'corrupt' })
    if (last < written) return 'torn'
    for (const [name, text] of fixture.records) expect(textOf(journal.record(name))).toBe(text)
    return 'sound'
  }
  await checkPutBack(fixture, journal.lost)
  return 'told'
}

/** Whether the journal says of a flush that it is damaged. Those of which nothing is hurt are as they were written. */
function checkFlushes(
  fixture: Fixture,
  journal: Journal,
  isHurt: (flush: number) => boolean,
  sure: number,
): boolean {
  let hasDamage = false
  for (const [number, text] of fixture.flushes) {
    const read = readOf(journal, number)
    hasDamage ||= read === 'corrupt'
    if (!isHurt(number)) expect(read).toBe(text)
    // Of a lost flush before the first one that is there, `lost` tells, and no neighbour shows a gap.
    else if (read !== undefined || (number <= sure && journal.lost === undefined))
      expect([text, 'corrupt']).toContain(read)
  }
  return hasDamage
}

async function checkPutBack(fixture: Fixture, lost: LostWrites): Promise<void> {
  const found = soundOf(lost)
  for (const { number, bytes } of found.flushes) {
    expect(textOf(bytes)).toBe(fixture.flushes.get(number))
  }
  await lost.putBack(found)
  const again = await fixture.reopen()
  expect(again.lost).toBeUndefined()
  for (const { number, bytes } of found.flushes) expect(readOf(again, number)).toBe(textOf(bytes))
  for (const { name, value } of found.records) {
    expect(textOf(again.record(name))).toBe(textOf(value))
  }
}
