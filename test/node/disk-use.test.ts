/**
 * The disk space that the stores of a node take is measured beside its work, and told as it was found last.
 */
import { link, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../src/adapters/system-clock.ts'
import { DiskWatch } from '../../src/node/disk-use.ts'
import type { Clock } from '../../src/ports/clock.ts'

async function folderOf(files: Readonly<Record<string, number>>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'trilithon-disk-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  for (const name of ['log', 'data']) await mkdir(join(folder, name))
  for (const [name, bytes] of Object.entries(files)) {
    await writeFile(join(folder, name), Buffer.alloc(bytes))
  }
  return folder
}

/** The test sets off its timers. */
function handClock(): { readonly clock: Clock; readonly delays: number[]; goOff(): void } {
  const delays: number[] = []
  let due = (): void => undefined
  const setTimer: Clock['setTimer'] = (delayMs, run) => {
    delays.push(delayMs)
    due = run
    return { cancel: () => (due = () => undefined) }
  }
  return { clock: { ...systemClock, setTimer }, delays, goOff: () => due() }
}

test('the files of each store are added up, and again later', async () => {
  const many = Array.from({ length: 100 }, (_, n) => [`data/${n}.ldb`, n + 1] as const)
  const folder = await folderOf({
    'log/1.log': 1_000,
    'log/CURRENT': 16,
    ...Object.fromEntries(many),
  })
  const { clock, delays, goOff } = handClock()
  const watch = new DiskWatch(folder, clock)
  onTestFinished(() => watch.stop())
  expect(watch.use).toBeUndefined()
  await expect.poll(() => watch.use).toEqual({ logBytes: 1_016, dataBytes: 5_050 })
  await writeFile(join(folder, 'log', '2.log'), Buffer.alloc(4_000))
  await rm(join(folder, 'data', '0.ldb'))
  expect(watch.use).toEqual({ logBytes: 1_016, dataBytes: 5_050 })
  goOff()
  await expect.poll(() => watch.use).toEqual({ logBytes: 5_016, dataBytes: 5_049 })
  for (const delayMs of delays) expect(delayMs).toBeGreaterThanOrEqual(10_000)
})

test('a table with a second name counts once, and as long as it has either', async () => {
  const folder = await folderOf({ 'log/1.log': 10, 'data/1.ldb': 20, 'data/2.ldb': 300 })
  const kept = join(folder, 'data', 'unchecked')
  await mkdir(kept)
  for (const name of ['1.ldb', '2.ldb']) {
    await link(join(folder, 'data', name), join(kept, name))
  }
  const { clock, goOff } = handClock()
  const watch = new DiskWatch(folder, clock)
  onTestFinished(() => watch.stop())
  await expect.poll(() => watch.use).toEqual({ logBytes: 10, dataBytes: 320 })
  // LevelDB has compacted it before all of it was read.
  await rm(join(folder, 'data', '2.ldb'))
  await writeFile(join(folder, 'data', '3.ldb'), Buffer.alloc(4_000))
  goOff()
  await expect.poll(() => watch.use).toEqual({ logBytes: 10, dataBytes: 4_320 })
})

test('the last measured sizes stand while a folder is away, and no measuring follows a stop', async () => {
  const folder = await folderOf({ 'log/1.log': 10, 'data/1.ldb': 20 })
  const { clock, delays, goOff } = handClock()
  const watch = new DiskWatch(folder, clock)
  await expect.poll(() => watch.use).toEqual({ logBytes: 10, dataBytes: 20 })
  await rm(join(folder, 'data'), { recursive: true })
  goOff()
  await expect.poll(() => delays.length).toBe(2)
  expect(watch.use).toEqual({ logBytes: 10, dataBytes: 20 })
  watch.stop()
  goOff()
  expect(delays).toHaveLength(2)
})
