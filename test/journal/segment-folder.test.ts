/** The folder of segment files on a real disk, and other things in its place. */
import { execFileSync } from 'node:child_process'
import {
  mkdir,
  mkdtemp,
  open,
  readdir,
  readlink,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { journalKindOf } from '../../src/adapters/journal-kind.ts'
import { openLevelStore } from '../../src/adapters/level-storage.ts'
import { openSegmentFolder } from '../../src/adapters/segment-folder.ts'
import { systemRandom } from '../../src/adapters/system-random.ts'
import { WriteTimes } from '../../src/adapters/write-times.ts'
import { openSegmentJournal } from '../../src/journal/segment-journal.ts'
import type { Journal } from '../../src/ports/journal.ts'

async function place(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'trilithon-segments-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return join(folder, 'log')
}

async function openAt(path: string, segmentBytes = 16 * 1024): Promise<Journal> {
  const folder = await openSegmentFolder(path)
  return openSegmentJournal({ folder, random: systemRandom, segmentBytes })
}

async function fill(path: string, flushes: number): Promise<void> {
  const journal = await openAt(path)
  const first = (await journal.last()) + 1
  for (let number = first; number < first + flushes; number++) {
    await journal.append({ number, bytes: Buffer.alloc(1000, number) })
  }
  await journal.close()
}

test('files keep their length, and a spare one is ready before a segment is full', async () => {
  const path = await place()
  await fill(path, 12)
  const names = await readdir(path)
  expect(names.filter((name) => name.startsWith('spare-')).length).toBeGreaterThan(0)
  for (const name of names) expect((await stat(join(path, name))).size).toBe(16 * 1024)
})

test('a journal of many segments keeps few of them open, and reads, checks and gives up all of them', async () => {
  const path = await place()
  const openFilesMax = 4
  const descriptors = async (): Promise<number> => {
    const links = await readdir('/proc/self/fd')
    const targets = links.map((link) => readlink(join('/proc/self/fd', link)).catch(() => ''))
    return (await Promise.all(targets)).filter((target) => target.startsWith(path)).length
  }
  const folder = await openSegmentFolder(path, { openFilesMax })
  const journal = await openSegmentJournal({ folder, random: systemRandom, segmentBytes: 4096 })
  onTestFinished(() => journal.close())
  for (let number = 1; number <= 60; number++) {
    await journal.append({ number, bytes: Buffer.alloc(1000, number) })
  }
  expect((await readdir(path)).length).toBeGreaterThan(3 * openFilesMax)
  // A spare that is being made has a descriptor more.
  await expect.poll(descriptors).toBeLessThanOrEqual(openFilesMax)
  expect(journal.read(1)).toEqual(Buffer.alloc(1000, 1))
  const read: number[] = []
  for await (const flushes of journal.scan(1)) read.push(...flushes.map(({ number }) => number))
  expect(read).toEqual(Array.from({ length: 60 }, (__, at) => at + 1))
  await journal.check()
  await journal.drop(50)
  for (let number = 61; number <= 90; number++) {
    await journal.append({ number, bytes: Buffer.alloc(1000, number) })
  }
  expect(journal.read(55)).toEqual(Buffer.alloc(1000, 55))
  // A spare that is being made has a descriptor more.
  await expect.poll(descriptors).toBeLessThanOrEqual(openFilesMax)
})

test('neither kind of journal opens a folder of the other, and both errors name the command', async () => {
  const [level, files, nothing] = [await place(), await place(), await place()]
  await (await openLevelStore(level)).close()
  await fill(files, 1)
  expect(await journalKindOf(level)).toBe('leveldb')
  expect(await journalKindOf(files)).toBe('files')
  expect(await journalKindOf(nothing)).toBe('empty')
  await expect(openAt(level)).rejects.toMatchObject({
    code: 'invalid',
    message: expect.stringMatching(/holds a log in LevelDB, .*store convert .* --to files$/),
  })
  await expect(openLevelStore(files)).rejects.toMatchObject({
    code: 'invalid',
    message: expect.stringMatching(
      /holds a log in segment files, .*store convert .* --to leveldb$/,
    ),
  })
  expect(await readdir(files)).not.toContain('CURRENT')
})

test('a folder, a link or a pipe in the place of a segment is refused, and nothing waits for it', async () => {
  const path = await place()
  await fill(path, 1)
  const name = join(path, '0000000002.segment')
  await mkdir(name)
  await expect(openAt(path)).rejects.toMatchObject({
    code: 'invalid',
    message: expect.stringMatching(/0000000002.segment/),
  })
  await rm(name, { recursive: true })
  await symlink(join(path, '0000000001.segment'), name)
  await expect(openAt(path)).rejects.toMatchObject({ code: 'invalid' })
  await rm(name)
  execFileSync('mkfifo', [name])
  await expect(openAt(path)).rejects.toMatchObject({ code: 'invalid' })
})

test('a file in the place of the folder, or above it, is refused in words', async () => {
  const path = await place()
  await writeFile(path, 'a file')
  await expect(openAt(path)).rejects.toMatchObject({
    code: 'invalid',
    message: expect.stringMatching(/name another folder/),
  })
  await expect(openAt(join(path, 'below'))).rejects.toMatchObject({ code: 'invalid' })
})

test('other files in the folder are left alone', async () => {
  const path = await place()
  await fill(path, 1)
  await writeFile(join(path, 'notes.txt'), 'of the operator')
  await fill(path, 30)
  expect(await readdir(path)).toContain('notes.txt')
})

test('a bit that flips on the disk is found by a read and by a check', async () => {
  const path = await place()
  await fill(path, 3)
  await fill(path, 3)
  const journal = await openAt(path)
  const file = await open(join(path, '0000000001.segment'), 'r+')
  await file.write(Buffer.from([0xff]), 0, 1, 1000)
  await file.close()
  expect(() => journal.read(1)).toThrow(/0000000001.segment at byte .*does not match/)
  await expect(journal.check()).rejects.toMatchObject({ code: 'corrupt' })
  expect(journal.read(4)).toEqual(Buffer.alloc(1000, 4))
  await journal.close()
})

test('a check keeps to its pace and ends when the journal closes', async () => {
  const path = await place()
  await fill(path, 100)
  const journal = await openAt(path)
  const pace = { bytesPerSecond: () => 200_000, isOver: () => false, onProgress: () => undefined }
  const startMs = performance.now()
  await journal.check(pace)
  expect(performance.now() - startMs).toBeGreaterThan(500)
  const ended = journal.check({ ...pace, bytesPerSecond: () => 100_000 })
  await journal.close()
  await expect(ended).rejects.toMatchObject({ code: 'closed' })
})

test('a short write after a pause is done on the calling thread, and not beside others or on a slow disk', () => {
  const times = new WriteTimes()
  let now = 0
  const write = (micros: number, pauseMicros: number, bytes = 4096): boolean => {
    now += pauseMicros
    const isSync = times.isSync(bytes, now)
    times.took(now, now + micros, isSync)
    now += micros
    return isSync
  }
  for (let at = 0; at < 20; at++) write(100, 1000)
  expect(write(100, 1000)).toBe(true)
  expect(write(100, 10)).toBe(false)
  expect(write(100, 1000, 1_000_000)).toBe(false)
  expect(write(100, 1000)).toBe(true)
  expect(write(5000, 1000)).toBe(true)
  for (let at = 0; at < 900; at++) expect(write(100, 1000)).toBe(false)
  for (let at = 0; at < 200; at++) write(100, 1000)
  expect(write(100, 1000)).toBe(true)
  for (let at = 0; at < 20; at++) write(800, 1000)
  expect(write(800, 1000)).toBe(false)
})
