/** Segment files: flushes that are given up and erased are in no file, spares and the rest of used files included. */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openSegmentFolder } from '../../src/adapters/segment-folder.ts'
import { systemRandom } from '../../src/adapters/system-random.ts'
import { openSegmentJournal } from '../../src/journal/segment-journal.ts'
import type { Journal } from '../../src/ports/journal.ts'

async function filesWith(path: string, text: string): Promise<readonly string[]> {
  const found: string[] = []
  for (const name of await readdir(path)) {
    if ((await readFile(join(path, name))).includes(text)) found.push(name)
  }
  return found
}

async function appendMany(
  journal: Journal,
  from: number,
  count: number,
  text: string,
): Promise<number> {
  for (let number = from; number < from + count; number++) {
    await journal.append({ number, bytes: Buffer.from(text.padEnd(400, '.')) })
  }
  return from + count
}

test('ERASE-1: neither a spare nor the end of a file that was used again keeps a flush that was erased', async () => {
  const path = await mkdtemp(join(tmpdir(), 'trilithon-segments-'))
  onTestFinished(() => rm(path, { recursive: true, force: true }))
  const folder = await openSegmentFolder(path)
  const journal = await openSegmentJournal({ folder, random: systemRandom, segmentBytes: 4_096 })
  onTestFinished(() => journal.close())
  const marker = 'f3a9c61be04d7a5832c0de91b75f64aa'
  let next = await appendMany(journal, 1, 40, marker)
  // Some segments become spares, and one of these the file that is written to.
  await journal.drop(20)
  next = await appendMany(journal, next, 12, 'later')
  await journal.drop(next - 1)
  expect((await filesWith(path, marker)).some((name) => name.startsWith('spare-'))).toBe(true)
  journal.separate?.()
  expect(await journal.erased?.(), 'before the next write').toBe(false)
  const first = next
  next = await appendMany(journal, next, 1, 'after')
  expect(await journal.erased?.(), 'before the flushes are given up').toBe(false)
  await journal.drop(first)
  expect(await journal.erased?.()).toBe(true)
  expect(await filesWith(path, marker)).toEqual([])
  // Files are used again from then on.
  await appendMany(journal, next, 40, 'more')
  await journal.drop(next + 38)
  expect((await readdir(path)).some((name) => name.startsWith('spare-'))).toBe(true)
})

test('ERASE-1: a round that begins before the first flush ends with it', async () => {
  const path = await mkdtemp(join(tmpdir(), 'trilithon-segments-'))
  onTestFinished(() => rm(path, { recursive: true, force: true }))
  const folder = await openSegmentFolder(path)
  const journal = await openSegmentJournal({ folder, random: systemRandom, segmentBytes: 4_096 })
  onTestFinished(() => journal.close())
  journal.separate?.()
  expect(await journal.erased?.(), 'before the first write').toBe(false)
  await appendMany(journal, 1, 1, 'first')
  expect(await journal.erased?.()).toBe(true)
  expect(journal.read(1)).toEqual(Buffer.from('first'.padEnd(400, '.')))
})
