/** The log of a stopped node is converted whole, or not at all. */
import { cp, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { journalKindOf, type JournalKind } from '../../src/adapters/journal-kind.ts'
import { convertLog, type ConvertOptions } from '../../src/inspect/convert-log.ts'
import { Findings, tellDamage } from '../../src/inspect/finding.ts'
import { openStoppedNode } from '../../src/inspect/stopped-node.ts'
import { verify } from '../../src/inspect/verify.ts'
import { flushKey } from '../../src/journal/ordered-journal.ts'
import { flipBit } from '../store/stores.ts'
import {
  changed,
  copyFolder,
  makeFolderOfRuns,
  remove,
  rowKey,
  runNode,
  snapshotFiles,
} from './node-folder.ts'

const made: string[] = []
const folders = { leveldb: '', files: '' }
beforeAll(async () => {
  for (const kind of ['leveldb', 'files'] as const) {
    folders[kind] = await makeFolderOfRuns(kind)
    made.push(folders[kind])
  }
}, 60_000)
afterAll(() => Promise.all(made.map(remove)))

async function copied(kind: JournalKind): Promise<string> {
  const copy = await copyFolder(folders[kind])
  made.push(copy)
  return copy
}

function optionsTo(to: JournalKind): ConvertOptions {
  return { to, isOver: () => false, onProgress: () => undefined }
}

/** All that a log shows. */
async function contentOf(folder: string): Promise<readonly string[]> {
  const node = await openStoppedNode(folder, (_, what) => {
    throw new Error(what)
  })
  const lines: string[] = []
  for await (const flushes of node.log.scan(0)) {
    for (const { number, bytes } of flushes) {
      lines.push(`${number} ${Buffer.from(bytes).toString('base64')}`)
    }
  }
  for (const name of (await node.log.recordNames()).toSorted()) {
    lines.push(`${name} ${Buffer.from(node.log.record(name) ?? []).toString('base64')}`)
  }
  await node.close()
  return lines
}

async function damagesOf(folder: string): Promise<readonly string[]> {
  const findings = new Findings()
  const node = await openStoppedNode(folder, (store, what) => tellDamage(findings, store, what))
  const options = { nameGroup: () => 'a group', isOver: () => false, onProgress: () => undefined }
  const verdict = await verify(node, findings, options)
  await node.close()
  return verdict.findings.map(({ text }) => text)
}

test.each([
  ['leveldb', 'files'],
  ['files', 'leveldb'],
] as const)('a log in %s goes to %s and back, and the node goes on each time', async (from, to) => {
  const folder = await copied(from)
  const before = await contentOf(folder)
  expect(await convertLog(folder, optionsTo(to))).toMatchObject({ first: 1 })
  expect(await journalKindOf(join(folder, 'log'))).toBe(to)
  expect((await readdir(folder)).toSorted()).toEqual(['data', 'log', 'replica-sets'])
  expect(await contentOf(folder)).toEqual(before)
  expect(await damagesOf(folder)).toEqual([])
  await runNode(
    folder,
    async (client) => {
      const cells = client.cells('trips')
      const key = { rowKey, column: 'BASE' }
      for (let refKey = 0; refKey < 60; refKey++) {
        expect((await cells.get({ ...key, refKey }))?.body).toMatchObject({ at: refKey % 20 })
      }
      await cells.put({ ...key, refKey: 60, body: { city: 'Cottbus' } })
    },
    to,
  )
  const later = await contentOf(folder)
  expect(later.length).toBeGreaterThan(before.length)
  await convertLog(folder, optionsTo(from))
  expect(await contentOf(folder)).toEqual(later)
  expect(await damagesOf(folder)).toEqual([])
  const read = runNode(
    folder,
    async (client) => {
      const cell = await client.cells('trips').get({ rowKey, column: 'BASE', refKey: 60 })
      expect(cell?.body).toEqual({ city: 'Cottbus' })
    },
    from,
  )
  await read
})

test('a log that is of the wanted kind already, or empty, is left as it is', async () => {
  const folder = await copied('files')
  const before = await snapshotFiles(folder)
  expect(await convertLog(folder, optionsTo('files'))).toBe('files')
  expect(await snapshotFiles(folder)).toEqual(before)
  await rm(join(folder, 'log'), { recursive: true })
  await mkdir(join(folder, 'log'))
  expect(await convertLog(folder, optionsTo('files'))).toBe('empty')
})

/** Flips a bit in the middle of the largest file of segments with flushes in them. */
async function rotSegment(folder: string): Promise<void> {
  const path = join(folder, 'log', '0000000002.segment')
  const bytes = await readFile(path)
  bytes[5000] = (bytes[5000] ?? 0) ^ 1
  await writeFile(path, bytes)
}

test.each([
  [
    'a damaged segment',
    'files',
    rotSegment,
    /^log\/ is damaged, or incomplete \(0000000002\.segment at byte \d+: /,
  ],
  [
    'a lost flush',
    'leveldb',
    (folder: string) => changed(join(folder, 'log'), (log) => log.write([{ key: flushKey(7) }])),
    /^log\/ is damaged, or incomplete \(flush 7 is missing\), and was not converted; /,
  ],
] as const)('a log with %s is refused and left as it is', async (_, kind, damage, message) => {
  const folder = await copied(kind)
  await damage(folder)
  const before = await snapshotFiles(folder)
  const to = kind === 'files' ? 'leveldb' : 'files'
  await expect(convertLog(folder, optionsTo(to))).rejects.toMatchObject({
    code: 'corrupt',
    message: expect.stringMatching(message),
  })
  expect(await snapshotFiles(folder)).toEqual(before)
})

test('a flush that does not match its checksums is the same damage in the other kind', async () => {
  const folder = await copied('leveldb')
  await changed(join(folder, 'log'), (log) => flipBit(log, flushKey(5), -1))
  const damages = await damagesOf(folder)
  expect(damages.join('\n')).toMatch(/ of flush 5\b/)
  await convertLog(folder, optionsTo('files'))
  expect(await damagesOf(folder)).toEqual(damages)
})

test('verify finds damage in segments by its place, and reads all other flushes', async () => {
  const folder = await copied('files')
  const before = await contentOf(folder)
  await rotSegment(folder)
  const damages = await damagesOf(folder)
  expect(damages[0]).toMatch(/^log\/0000000002\.segment at byte \d+: a /)
  const node = await openStoppedNode(folder, () => undefined)
  let flushes = 0
  for await (const chunk of node.log.scan(0)) flushes += chunk.length
  await node.close()
  const all = before.filter((line) => /^\d/.test(line)).length
  expect(flushes).toBe(all - 1)
})

test('a conversion that is ended early, or fails, leaves the folder as it was', async () => {
  const folder = await copied('leveldb')
  const before = await snapshotFiles(folder)
  for (const most of [0, 1, 3]) {
    let asked = 0
    const isOver = (): boolean => ++asked > most
    await expect(convertLog(folder, { ...optionsTo('files'), isOver })).rejects.toMatchObject({
      code: 'closed',
    })
    expect(await snapshotFiles(folder)).toEqual(before)
  }
})

test.each([
  ['before the new log was whole', ['log', 'log.converting']],
  ['before the old log had another name', ['log', 'log.converted']],
  ['before the new log had its name', ['log.replaced', 'log.converted']],
  ['before the old log was removed', ['log.replaced', 'log']],
])(
  'a conversion that was killed %s is repeated, and a start of either kind is possible',
  async (_, names) => {
    const [old = '', now = ''] = names
    const folder = await copied('leveldb')
    const before = await contentOf(folder)
    const other = await copied('leveldb')
    await convertLog(other, optionsTo('files'))
    await rename(join(folder, 'log'), join(folder, old))
    await cp(join(other, 'log'), join(folder, now), { recursive: true })
    const isSwitched = old === 'log.replaced'
    const outcome = await convertLog(folder, optionsTo('files'))
    expect(typeof outcome).toBe(isSwitched ? 'string' : 'object')
    expect((await readdir(folder)).toSorted()).toEqual(['data', 'log', 'replica-sets'])
    expect(await contentOf(folder)).toEqual(before)
    await runNode(folder, () => Promise.resolve(), 'files')
  },
)
