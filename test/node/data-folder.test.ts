/** Data folders that cannot be used are refused in one sentence; damaged derived data is put aside. */
import { OrderedJournal } from '../../src/journal/ordered-journal.ts'
import { mkdir, mkdtemp, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { execFile } from 'node:child_process'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openLevelStore } from '../../src/adapters/level-storage.ts'
import { systemClock } from '../../src/adapters/system-clock.ts'
import { defaultLimits } from '../../src/base/limits.ts'
import { keepReplicaSets } from '../../src/config/replica-sets.ts'
import {
  openDataFolder,
  resetData,
  type DataFolder,
  type StoreAccess,
} from '../../src/node/data-folder.ts'
import { openLog } from '../../src/node/open-log.ts'
import { silentTrace } from '../../src/ports/trace.ts'
import { encodeMarker } from '../../src/store/batch-marker.ts'
import { DataStore } from '../../src/store/data-store.ts'
import { snapshotFiles } from '../inspect/node-folder.ts'

let folder = ''
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trilithon-folder-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const access: StoreAccess = {
  logKind: 'leveldb',
  openLog: async (path) => new OrderedJournal(await openLevelStore(path)),
  open: (path) => openLevelStore(path),
  probeData: (data) =>
    DataStore.open(data, { clock: systemClock, trace: silentTrace, limits: defaultLimits }),
}

const name = 'key'
const key = Buffer.from(name)
const value = Buffer.from('value')

/** The same with a log in segment files. */
const filesAccess: StoreAccess = {
  ...access,
  logKind: 'files',
  openLog: (path) => openLog(path, 'files', 64),
}

/** A folder that was used and closed. */
async function used(path: string, by = access): Promise<void> {
  const opened = await openDataFolder(path, by)
  await opened.log.checkpoint([{ name, value }])
  await opened.close()
}

test('a folder is made, keeps what was written, and leaves no owner behind when closed', async () => {
  const path = join(folder, 'deep', 'data')
  await used(path)
  expect((await readdir(path)).toSorted()).toEqual(['data', 'log'])
  const again = await openDataFolder(path, access)
  expect(again.wasDataReset).toBe(false)
  expect(Buffer.from(again.log.record(name) ?? [])).toEqual(value)
  await again.close()
})

test('a folder in use is refused with the process that uses it', async () => {
  const first = await openDataFolder(folder, access)
  await expect(openDataFolder(folder, access)).rejects.toMatchObject({
    code: 'unavailable',
    message: `the data folder ${folder} is in use by process ${process.pid} on ${hostname()}; stop it, or give this node a folder of its own with --data`,
  })
  await first.close()
  await (await openDataFolder(folder, access)).close()
})

test('a folder of segment files in use is refused before its log is looked at', async () => {
  await used(folder, filesAccess)
  const first = await openDataFolder(folder, filesAccess)
  const before = await readdir(join(folder, 'log'))
  await expect(openDataFolder(folder, filesAccess)).rejects.toMatchObject({
    code: 'unavailable',
    message: expect.stringMatching(/ is in use by process /),
  })
  expect(await readdir(join(folder, 'log'))).toEqual(before)
  await first.close()
})

test.each([
  ['leveldb', access, 'files', filesAccess],
  ['files', filesAccess, 'leveldb', access],
] as const)(
  'a log of kind %s is refused by a node of the other kind, which changes nothing in the folder',
  async (kind, maker, other, opener) => {
    await used(folder, maker)
    const before = await snapshotFiles(folder)
    await expect(openDataFolder(folder, opener)).rejects.toMatchObject({
      code: 'invalid',
      message: expect.stringMatching(
        `; set log_store: ${kind}, or stop the node and run: trilithon store convert ${folder} --to ${other}$`,
      ),
    })
    expect(await snapshotFiles(folder)).toEqual(before)
    await used(folder, maker)
  },
)

test.each([
  ['before the new log was whole', ['log', 'log.converting'], 'old'],
  ['before the old log had another name', ['log', 'log.converted'], 'old'],
  ['before the new log had its name', ['log.replaced', 'log.converted'], 'new'],
  ['before the old log was removed', ['log.replaced', 'log'], 'new'],
])('a conversion that was killed %s is settled by the next start', async (_, names, kept) => {
  const [path, other] = [join(folder, 'a'), join(folder, 'b')]
  await used(path)
  await used(other)
  const change = await openDataFolder(other, access)
  await change.log.checkpoint([{ name, value: Buffer.from('new') }])
  await change.close()
  await rename(join(path, 'log'), join(folder, 'old'))
  await rename(join(other, 'log'), join(folder, 'new'))
  const [first = '', second = ''] = names
  await rename(join(folder, 'old'), join(path, first))
  await rename(join(folder, 'new'), join(path, second))
  const opened = await openDataFolder(path, access)
  const wanted = kept === 'new' ? Buffer.from('new') : value
  expect(Buffer.from(opened.log.record(name) ?? [])).toEqual(wanted)
  await opened.close()
  expect((await readdir(path)).toSorted()).toEqual(['data', 'log'])
})

test('the name of a folder says nothing of its state', async () => {
  const path = join(folder, 'checksum corruption', 'No such file')
  await used(path)
  const first = await openDataFolder(path, access)
  await expect(openDataFolder(path, access)).rejects.toMatchObject({
    code: 'unavailable',
    message: expect.stringMatching(/ is in use by process /),
  })
  await first.log.close()
  await expect(openDataFolder(path, access)).rejects.toMatchObject({ code: 'unavailable' })
  expect(await readdir(path)).not.toContain('data.damaged')
  await first.close()
})

test('a path through a file is refused, and names the path', async () => {
  await writeFile(join(folder, 'file'), '')
  const path = join(folder, 'file', 'data')
  await expect(openDataFolder(path, access)).rejects.toMatchObject({
    code: 'invalid',
    message: expect.stringMatching(/cannot be made: a part of its path is a file.*--data$/),
  })
})

test.each([
  ['points nowhere', (current: string) => writeFile(current, 'MANIFEST-nonsense\n')],
  ['is gone', (current: string) => rm(current)],
])('a log whose CURRENT %s is refused and left as it is', async (_title, damage) => {
  await used(folder)
  await damage(join(folder, 'log', 'CURRENT'))
  const before = await readdir(join(folder, 'log'))
  await expect(openDataFolder(folder, access)).rejects.toMatchObject({
    code: 'corrupt',
    detail: { store: 'log' },
    message: expect.stringMatching(/must not vote again; keep .* operating\.md$/),
  })
  const tables = (names: readonly string[]): readonly string[] =>
    names.filter((name) => name.endsWith('.log') || name.endsWith('.ldb'))
  expect(tables(await readdir(join(folder, 'log')))).toEqual(tables(before))
})

test('a node refuses a folder with a pipe, reports one in a store as damage, and waits for neither', async () => {
  await used(folder)
  const note = join(folder, 'owner.json')
  await promisify(execFile)('mkfifo', [note])
  await expect(openDataFolder(folder, access)).rejects.toMatchObject({
    code: 'invalid',
    message: `the data folder ${folder} has owner.json in it, which is a pipe and must be a file; remove that, or give another folder with --data`,
  })
  await rm(note)
  const current = join(folder, 'log', 'CURRENT')
  await rm(current)
  await promisify(execFile)('mkfifo', [current])
  await expect(openDataFolder(folder, access)).rejects.toMatchObject({ code: 'corrupt' })
})

test.each([
  ['owner.json', '/dev/zero', 'a device', 'a file'],
  ['replica-sets', '/dev/zero', 'a device', 'a file'],
  ['replica-sets', '/', 'a folder', 'a file'],
  ['replica-sets.new', '/dev/full', 'a device', 'a file'],
  ['log', '/dev/null', 'a device', 'a folder'],
  ['data', '/proc/self/status', 'a file', 'a folder'],
])('%s that leads to %s is refused before it is read', async (name, target, found, wanted) => {
  await symlink(target, join(folder, name))
  await expect(openDataFolder(folder, access)).rejects.toMatchObject({
    code: 'invalid',
    message: `the data folder ${folder} has ${name} in it, which is ${found} and must be ${wanted}; remove that, or give another folder with --data`,
  })
})

test('a folder whose log lies behind a link is opened', async () => {
  const elsewhere = join(folder, 'elsewhere')
  await mkdir(elsewhere)
  const path = join(folder, 'a')
  await mkdir(path)
  await symlink(elsewhere, join(path, 'log'))
  await used(path)
  expect(await readdir(elsewhere)).toContain('CURRENT')
})

test('damaged derived data is put aside and begun again, whether LevelDB or its reader notices', async () => {
  await used(folder)
  await writeFile(join(folder, 'data', 'CURRENT'), 'MANIFEST-nonsense\n')
  const first = await openDataFolder(folder, access)
  expect(first.wasDataReset).toBe(true)
  // A batch that names its number 3 with 1 and 2 missing: LevelDB lost them without a word.
  await first.data.write([encodeMarker(3), { key, value }])
  await first.close()
  const second = await openDataFolder(folder, access)
  expect(second.wasDataReset).toBe(true)
  expect(second.data.getSync(key)).toBeUndefined()
  expect(Buffer.from(second.log.record(name) ?? [])).toEqual(value)
  await second.close()
  expect((await readdir(folder)).toSorted()).toEqual(['data', 'data.damaged', 'log'])
})

const sets = [
  { name: 'main', nodes: ['a', 'b'] },
  { name: 'east', region: 'eu', nodes: ['c'] },
]

test('the replica sets of a folder are written whole, once, and are checked at each start', async () => {
  // The file that a start left which lost its power.
  await writeFile(join(folder, 'replica-sets.new'), 'a')
  await keepReplicaSets(folder, sets)
  expect(await readdir(folder)).toEqual(['replica-sets'])
  expect(await readFile(join(folder, 'replica-sets'), 'utf8')).toBe('main: a b\neast@eu: c')
  await keepReplicaSets(folder, sets)
  await expect(keepReplicaSets(folder, sets.slice(0, 1))).rejects.toMatchObject({
    code: 'invalid',
    message: expect.stringMatching(/is of nodes a b \| c, and the configuration names a b;/),
  })
})

test('replica sets that cannot be read are not taken for none', async () => {
  const path = join(folder, 'replica-sets')
  await symlink(path, path)
  await expect(keepReplicaSets(folder, sets)).rejects.toMatchObject({
    code: 'invalid',
    message: expect.stringMatching(/replica-sets cannot be read: /),
  })
  expect(await readdir(folder)).toEqual(['replica-sets'])
})

test('data put aside while the node ran counts as reset at the next start, and only then', async () => {
  await used(folder)
  await resetData(folder)
  const next = await openDataFolder(folder, access)
  expect(next.wasDataReset).toBe(true)
  await next.close()
  const later = await openDataFolder(folder, access)
  expect(later.wasDataReset).toBe(false)
  await later.close()
})

test('DISK-17: all of data/ is read after a run that ended soon and not in order, and else not', async () => {
  const asked: boolean[] = []
  const open: StoreAccess['open'] = (path, readsAll) => {
    asked.push(readsAll)
    return openLevelStore(path)
  }
  const run = (): Promise<DataFolder> => openDataFolder(folder, { ...access, open })
  /** As a process ends that is killed: its note stays. */
  const kill = async ({ log, data }: DataFolder): Promise<void> => {
    await data.close()
    await log.close()
  }
  await (await run()).close()
  await kill(await run())
  const third = await run()
  await third.settle()
  await kill(third)
  await kill(await run())
  await writeFile(join(folder, 'owner.json'), '{"pid":')
  await (await run()).close()
  await (await run()).close()
  expect(asked).toEqual([false, false, true, false, true, false])
})

test('a note of replica sets that no node wrote is not read to its end', async () => {
  await writeFile(join(folder, 'replica-sets'), Buffer.alloc(1_048_577, 'a'))
  await expect(keepReplicaSets(folder, sets)).rejects.toMatchObject({
    code: 'invalid',
    message: expect.stringMatching(/replica-sets has more than 1048576 bytes: no node wrote it; /),
  })
})
