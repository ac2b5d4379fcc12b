/** How segments are written, begun, given up and used again. */
import { expect, test } from 'vitest'
import { Fixture, readOf, textOf } from './segment-fixture.ts'

async function filled(flushes: number, length = 300): Promise<Fixture> {
  const fixture = new Fixture()
  await fixture.open()
  for (let at = 0; at < flushes; at++) await fixture.append(length, at % 3 === 0 ? ['meta'] : [])
  return fixture
}

function expectAll(fixture: Fixture, from = 1): void {
  for (const [number, text] of fixture.flushes) {
    if (number >= from) expect(readOf(fixture.journal, number)).toBe(text)
  }
  for (const [name, text] of fixture.records)
    expect(textOf(fixture.journal.record(name))).toBe(text)
}

test('JRN-1: no byte of an older segment changes after an opening', async () => {
  const fixture = await filled(20)
  const before = fixture.disk.image()
  const segments = fixture.segments
  await fixture.reopen()
  for (let at = 0; at < 20; at++) await fixture.append()
  for (const name of segments)
    expect(fixture.disk.bytesOf(name).equals(before.get(name) ?? Buffer.alloc(0))).toBe(true)
  expect(fixture.segments.length).toBeGreaterThan(segments.length)
  expectAll(fixture)
})

test('JRN-1: a write that an opening took as never made stays so, even if the disk brings it back', async () => {
  const fixture = await filled(3)
  const name = fixture.segments.at(-1) ?? ''
  const whole = Buffer.from(fixture.disk.bytesOf(name))
  const last = fixture.splitIntoFrames(name).at(-1)
  fixture.disk.bytesOf(name).fill(0, last?.offset)
  fixture.flushes.delete(3)
  await fixture.reopen()
  expect(fixture.journal.lost).toBeUndefined()
  expect(await fixture.journal.last()).toBe(2)
  whole.copy(fixture.disk.bytesOf(name))
  await fixture.reopen()
  expect(await fixture.journal.last()).toBe(2)
  await fixture.append(50)
  await fixture.reopen()
  expectAll(fixture)
})

test('JRN-2: a write that a crash cuts short at any byte is there whole or not at all', async () => {
  const fixture = new Fixture()
  await fixture.open()
  await fixture.append(10, ['meta'])
  const before = fixture.disk.image()
  const name = fixture.segments.at(-1) ?? ''
  await fixture.append(700, ['meta'])
  const whole = fixture.disk.image().get(name) ?? new Uint8Array()
  const { offset = 0, end = 0 } = fixture.splitIntoFrames(name).at(-1) ?? {}
  for (let cut = offset; cut <= end; cut++) {
    fixture.disk.restore(before)
    fixture.disk.bytesOf(name).set(whole.subarray(offset, cut), offset)
    const journal = await fixture.open()
    expect(journal.lost).toBeUndefined()
    const isWhole = cut === end
    expect(await journal.last()).toBe(isWhole ? 2 : 1)
    expect(textOf(journal.record('meta'))).toMatch(isWhole ? /^meta\|2/ : /^meta\|1/)
    await journal.close()
  }
})

test('JRN-2: a number that does not follow the last one is a bug of the caller', async () => {
  const { journal } = await filled(2)
  expect(() => journal.append({ number: 4, bytes: Buffer.from('4') })).toThrow(/JRN-2/)
  expect(() => journal.append({ number: 2, bytes: Buffer.from('2') })).toThrow(/JRN-2/)
})

test('JRN-3: a crash at any call of the step to the next segment loses nothing', async () => {
  for (let turns = 0; turns < 12; turns++) {
    for (const fate of [
      { kind: 'lost' },
      { kind: 'kept' },
      { kind: 'torn', kept: 500_000 },
      { kind: 'sectors', bits: 0b01 },
      { kind: 'sectors', bits: 0b10 },
    ] as const) {
      const fixture = await filled(9)
      const before = fixture.segments.length
      // Longer than the room that is left, so the next segment begins.
      const text = 'x'.repeat(2000)
      const written = fixture.journal.append({ number: 10, bytes: Buffer.from(text) })
      written.catch(() => undefined)
      for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve))
      fixture.disk.crash(fate)
      const journal = await fixture.open()
      expect(journal.lost).toBeUndefined()
      expect([undefined, text]).toContain(readOf(journal, 10))
      expectAll(fixture)
      expect(fixture.segments.length).toBeGreaterThan(before)
      await journal.close()
    }
  }
})

test('JRN-4: after a write that failed, all later ones reject with the same error', async () => {
  const fixture = await filled(2)
  const { journal, disk } = fixture
  disk.refuseNextWrite()
  const failure = await journal
    .append({ number: 3, bytes: Buffer.from('3') })
    .catch((error: unknown) => error)
  expect(failure).toMatchObject({ code: 'unavailable' })
  await expect(journal.append({ number: 3, bytes: Buffer.from('3') })).rejects.toBe(failure)
  await expect(journal.checkpoint([])).rejects.toBe(failure)
  expectAll(fixture)
  disk.crash({ kind: 'kept' })
  expect(await (await fixture.open()).last()).toBe(3)
})

test('JRN-5: frames that a file has from an earlier use are never believed', async () => {
  const fixture = new Fixture()
  await fixture.open()
  // Every segment looks like the one that its file was before: same lengths, same places.
  for (let round = 0; round < 200; round++) {
    await fixture.append(300)
    if (round % 5 === 0) await fixture.journal.drop(fixture.flushes.size)
  }
  expect(fixture.disk.names.length).toBeLessThan(8)
  for (const kept of [0, 100_000, 400_000, 900_000]) {
    await fixture.append(300)
    const number = fixture.flushes.size + 1
    const written = fixture.journal.append({ number, bytes: Buffer.alloc(300, 1) })
    written.catch(() => undefined)
    fixture.disk.crash({ kind: 'torn', kept })
    const journal = await fixture.open()
    expect(journal.lost).toBeUndefined()
    expect(await journal.last()).toBe(number - 1)
    expect(readOf(journal, number - 1)).toBe(fixture.flushes.get(number - 1))
  }
})

test('JRN-6: a drop gives up whole segments alone, never the last flush, and keeps few files', async () => {
  const fixture = await filled(60)
  const segments = fixture.segments.length
  await fixture.journal.drop(1000)
  expect(fixture.segments.length).toBeLessThan(3)
  expect(fixture.disk.names.length).toBeLessThanOrEqual(fixture.segments.length + 2)
  expect(segments).toBeGreaterThan(5)
  expectAll(fixture, 60)
  await fixture.reopen()
  await fixture.journal.drop(1000)
  expect(await fixture.journal.last()).toBe(60)
  await fixture.append()
  expectAll(fixture, 60)
})

test('JRN-6: a flush that was given up while a scan is on its way is left out, and is no damage', async () => {
  const fixture = await filled(40)
  const scan = fixture.journal.scan(1)[Symbol.asyncIterator]()
  const first = await scan.next()
  expect(first.done === true ? 0 : first.value[0]?.number).toBe(1)
  await fixture.journal.drop(35)
  for (let at = 0; at < 20; at++) await fixture.append()
  const numbers: number[] = []
  for (let next = await scan.next(); next.done !== true; next = await scan.next()) {
    numbers.push(...next.value.map(({ number }) => number))
  }
  expect(numbers).toContain(40)
  expect(numbers).toContain(35)
  expect(numbers).not.toContain(41)
})

test('a write that is longer than a segment gets a file of its own length, and that file is not kept', async () => {
  const fixture = await filled(2)
  await fixture.append(50_000)
  await fixture.append(10)
  await fixture.reopen()
  expectAll(fixture)
  await fixture.journal.drop(4)
  const lengths = fixture.disk.names.map((name) => fixture.disk.bytesOf(name).length)
  expect(Math.max(...lengths)).toBe(4096)
  expectAll(fixture, 4)
})

test('JRN-5: frames of another life of the folder, with the right numbers, are never believed', async () => {
  const fixture = await filled(3)
  await fixture.journal.close()
  const before = fixture.disk.image()
  await fixture.open()
  for (let at = 0; at < 3; at++) await fixture.append(300, ['meta'])
  const name = fixture.segments.at(-1) ?? ''
  const other = Buffer.from(fixture.disk.bytesOf(name))
  const offset = fixture.splitIntoFrames(name)[1]?.offset ?? 0
  // A copy of the folder is put back, all but a file that is used again.
  fixture.disk.restore(before)
  await (await fixture.open()).close()
  other.copy(fixture.disk.bytesOf(name), offset, offset)
  const journal = await fixture.open()
  expect(journal.lost).toBeUndefined()
  expect(await journal.last()).toBe(3)
  expect(textOf(journal.record('meta'))).toMatch(/^meta\|1/)
})

test('JRN-5: a copy of a frame within a value is never taken for a frame', async () => {
  const fixture = await filled(2)
  const name = fixture.segments.at(-1) ?? ''
  const [first, second] = fixture.splitIntoFrames(name).slice(-2)
  const copy = Buffer.from(fixture.disk.bytesOf(name).subarray(first?.offset, second?.offset))
  const value = Buffer.alloc(2048)
  // Somewhere in it the copies stand at multiples of 64 bytes of the file.
  const headBytes = 64 + 17
  const valueAt = (Math.ceil((second?.end ?? 0) / 64) * 64 + headBytes) % 64
  for (
    let at = 64 - valueAt;
    at + copy.length < value.length;
    at += Math.ceil(copy.length / 64) * 64
  )
    copy.copy(value, at)
  const written = fixture.journal.append({ number: 3, bytes: value })
  written.catch(() => undefined)
  fixture.disk.crash({ kind: 'sectors', bits: 0b111110 })
  const journal = await fixture.open()
  expect(journal.lost).toBeUndefined()
  expect(await journal.last()).toBe(2)
  expectAll(fixture)
})

test('JRN-6: a scan does not show what a file holds that was used again under it', async () => {
  const fixture = await filled(40)
  const scan = fixture.journal.scan(1)[Symbol.asyncIterator]()
  // The first segment becomes a spare, and is written over.
  let letGo = (): void => undefined
  fixture.held = new Promise((resolve) => (letGo = resolve))
  const next = scan.next()
  await fixture.journal.drop(35)
  for (let at = 0; at < 30; at++) await fixture.append()
  letGo()
  const found = await next
  const flush = found.done === true ? undefined : found.value[0]
  // The first one of the segment that flush 35 stands in.
  expect(flush?.number).toBeGreaterThan(20)
  expect(flush?.number).toBeLessThanOrEqual(35)
  expect(textOf(flush?.bytes)).toBe(fixture.flushes.get(flush?.number ?? 0))
})
