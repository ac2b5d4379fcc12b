/** A node notices that its data folder was removed, or that another one stands in its place. */
import { cp, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { JournalKind } from '../../src/adapters/journal-kind.ts'
import { systemClock } from '../../src/adapters/system-clock.ts'
import { FolderWatch } from '../../src/node/folder-watch.ts'
import type { Clock } from '../../src/ports/clock.ts'

/** A watched folder; `look` makes the watch look, and gives all that it has told. */
async function watched(
  logKind: JournalKind = 'leveldb',
): Promise<{ folder: string; look(): Promise<readonly string[]> }> {
  const parent = await mkdtemp(join(tmpdir(), 'trilithon-watch-'))
  onTestFinished(() => rm(parent, { recursive: true, force: true }))
  const folder = join(parent, 'a')
  for (const name of ['log', 'data']) await mkdir(join(folder, name), { recursive: true })
  const logFile = logKind === 'leveldb' ? 'log/LOCK' : 'log/0000000001.segment'
  for (const name of [logFile, 'data/LOCK', 'owner.json']) {
    await writeFile(join(folder, name), '')
  }
  let due: (() => void) | undefined
  const setTimer: Clock['setTimer'] = (_, run) => {
    due = run
    return { cancel: () => (due = undefined) }
  }
  const told: string[] = []
  const onLost = ({ message }: Error): unknown => told.push(message)
  const watch = await FolderWatch.start({ folder, logKind }, { ...systemClock, setTimer }, onLost)
  onTestFinished(() => watch.stop())
  const look = async (): Promise<readonly string[]> => {
    const run = due
    due = undefined
    run?.()
    await expect.poll(() => due !== undefined || told.length > 0).toBe(true)
    return told
  }
  return { folder, look }
}

const rest = (folder: string): string =>
  ` while this node ran: what it writes from now on is lost, so it stops; put back the data folder ${folder} that it had, or see "An old folder" in operating.md`

test('a folder that stays is looked at again and again, whatever is written in it', async () => {
  const { folder, look } = await watched()
  expect(await look()).toEqual([])
  await writeFile(join(folder, 'owner.json'), 'more')
  await writeFile(join(folder, 'log', '1.ldb'), '')
  await mkdir(join(folder, 'data.damaged'))
  expect(await look()).toEqual([])
})

test.each(['', 'log', 'data', 'log/LOCK', 'data/LOCK', 'owner.json'])(
  'the watch tells once that "%s" is gone',
  async (part) => {
    const { folder, look } = await watched()
    expect(await look()).toEqual([])
    await rm(join(folder, part), { recursive: true })
    const text = `${join(folder, part)} was removed${rest(folder)}`
    expect(await look()).toEqual([text])
    expect(await look()).toEqual([text])
  },
)

test.each(['', 'log', 'data', 'owner.json'])(
  'the watch tells that a copy stands in the place of "%s"',
  async (part) => {
    const { folder, look } = await watched()
    const [at, aside] = [join(folder, part), join(folder, '..', 'aside')]
    await rename(at, aside)
    await cp(aside, at, { recursive: true })
    expect(await look()).toEqual([`${at} was replaced by another one${rest(folder)}`])
  },
)

test('a log of segment files may begin and give up segments, but not lose all of them', async () => {
  const { folder, look } = await watched('files')
  expect(await look()).toEqual([])
  const segment = (number: number): string => join(folder, 'log', `000000000${number}.segment`)
  await rename(segment(1), segment(2))
  expect(await look()).toEqual([])
  await rm(segment(2))
  const text = `the files in ${join(folder, 'log')} were removed${rest(folder)}`
  expect(await look()).toEqual([text])
})
