/** `trilithon store` as its users meet it: what the page shows, refusals, exit codes, and closed outputs. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { connect } from '../../src/client/connect.ts'
import { shardOf } from '../../src/client/row-shard.ts'
import { flushKey } from '../../src/journal/ordered-journal.ts'
import { changed, copyFolder, snapshotFiles, remove } from '../inspect/node-folder.ts'
import { flipBit } from '../store/stores.ts'
import {
  patienceMs,
  programPath,
  runProgram,
  startCluster,
  type ProgramResult,
  type TestCluster,
} from './harness.ts'

const rowKey = '7b8cde22-8396-45e4-978c-76dd7311daa0'
const shard = `trips/${shardOf(rowKey)}`
let cluster: TestCluster
/** Of a node that ran, and was stopped. */
let folder = ''
let whileRunning: ProgramResult
beforeAll(async () => {
  cluster = await startCluster({ ids: ['a'], cluster: 'trips' })
  const [node] = cluster.nodes
  const client = await connect({ endpoints: cluster.urls, timeoutMs: patienceMs })
  for (let refKey = 0; refKey < 12; refKey++) {
    await client.cells('trips').put({ rowKey, column: 'BASE', refKey, body: { city: 'Berlin' } })
  }
  await client.close()
  folder = node?.dataFolder ?? ''
  whileRunning = await store(['verify', folder])
  await node?.stop()
})
afterAll(() => cluster?.close())

function store(words: readonly string[], input = ''): Promise<ProgramResult> {
  return runProgram(['store', ...words], { input })
}

/** Numbers, names of shards and stores, and what follows from their width, as one word each. */
function masked(text: string): string {
  return text
    .replaceAll(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'STORE')
    .replaceAll(/[\d,]*\d(?:\.\d+)?(?: (?:KiB|MiB|B)\b)?/g, 'N')
    .replaceAll(/\bflush(?:es)? after/g, 'flushes after')
    .replaceAll(/ +/g, ' ')
    .trim()
}

test('the page shows what the commands print', async () => {
  const page = readFileSync(new URL('../../src/docs/operating.md', import.meta.url), 'utf8')
  const [, transcript = ''] = /```console\n(\$ trilithon store [^]*?)```/.exec(page) ?? []
  const steps = transcript.split(/^\$ trilithon store /m).slice(1)
  expect(steps).toHaveLength(4)
  for (const step of steps) {
    const [command = '', ...shown] = step.trimEnd().split('\n')
    const words = command
      .split(' ')
      .map((word) => word.replace(/^data\/a$/, folder).replace('trips/2406', shard))
    const { code, stdout, stderr } = await store(words)
    expect([code, stderr], command).toEqual([0, ''])
    if (shown.length > 0) {
      const printed = new Set(stdout.split('\n').map(masked))
      expect(
        shown.map(masked).filter((line) => !printed.has(line)),
        command,
      ).toEqual([])
    }
  }
})

test('verify changes nothing, and says the same as one JSON object', async () => {
  const before = await snapshotFiles(folder)
  const { code, stdout } = await store(['verify', folder, '--json'])
  expect(await snapshotFiles(folder)).toEqual(before)
  expect(code).toBe(0)
  expect(JSON.parse(stdout)).toMatchObject({
    ...{ sound: true, node: 'a', cluster: 'trips', damages: 0, findings: [], notes: [] },
    log: { first: 1 },
  })
})

test('damage ends verify with 6 and a sentence for each place', async () => {
  const copy = await copyFolder(folder)
  try {
    await changed(join(copy, 'log'), (log) => flipBit(log, flushKey(5), -1))
    const { code, stdout, stderr } = await store(['verify', copy])
    expect(code).toBe(6)
    const place = `the value of Shard \\(datastore "trips", shard ${shardOf(rowKey)}\\) at position \\d+`
    expect(stdout).toMatch(
      new RegExp(`^damaged: ${place}, record \\d+ of flush 5, does not match its checksum$`, 'm'),
    )
    expect(stderr).toMatch(/^error: 1 place damaged; keep the folder .* see "A damaged log" in op/)
    const json = await store(['verify', copy, '--json'])
    expect(json.code).toBe(6)
    expect(JSON.parse(json.stdout)).toMatchObject({
      ...{ sound: false, damages: 1, findings: [{ store: 'log', flush: 5 }] },
    })
    const stats = await store(['stats', copy, '--json'])
    expect(stats.code).toBe(0)
    expect(JSON.parse(stats.stdout)).toMatchObject({ damages: [], log: { first: 1 } })
  } finally {
    await remove(copy)
  }
})

test('a folder in use is refused with the process that uses it', () => {
  expect(whileRunning).toMatchObject({ code: 4, stdout: '' })
  expect(whileRunning.stderr).toMatch(
    new RegExp(
      `^error: the data folder ${folder} is in use by process \\d+ on ${hostname()}; stop`,
    ),
  )
})

test('a command refuses anything but a data folder before it reads it', async () => {
  const odd = join(cluster.folder, 'odd')
  await mkdir(join(odd, 'log'), { recursive: true })
  await promisify(execFile)('mkfifo', [join(odd, 'pipe'), join(odd, 'log', 'CURRENT')])
  await writeFile(join(odd, 'file'), '')
  await mkdir(join(odd, 'other', 'data'), { recursive: true })
  await mkdir(join(odd, 'linked'))
  await symlink('/dev/zero', join(odd, 'linked', 'log'))
  const refused: readonly (readonly [string, RegExp])[] = [
    ['nothing', /^error: there is no folder .*nothing; give the data folder of a stopped node/],
    ['file', /file is a file; give/],
    ['pipe', /pipe is a pipe; give/],
    ['other', /other has no log\/ in it; give/],
    ['linked', /linked\/log is a device and must be a folder; give/],
    ['.', /log has CURRENT in it, which is a pipe; remove that$/m],
    [join(folder, 'log'), /log is one store of a node; give/],
  ]
  for (const [name, words] of refused) {
    const { code, stdout, stderr } = await store([
      'verify',
      join(name.startsWith('/') ? '' : odd, name),
    ])
    expect([code, stdout, stderr]).toEqual([2, '', expect.stringMatching(words)])
  }
})

test('dump prints what its flags name, and refuses what they do not take', async () => {
  const lines = async (
    ...words: readonly string[]
  ): Promise<readonly Record<string, unknown>[]> => {
    const { code, stdout, stderr } = await store(['dump', folder, ...words])
    expect([code, stderr]).toEqual([0, ''])
    return stdout
      .trimEnd()
      .split('\n')
      .map((line) => {
        const parsed: Record<string, unknown> = JSON.parse(line)
        return parsed
      })
  }
  const listKinds = (list: readonly Record<string, unknown>[]): readonly unknown[] => [
    ...new Set(list.map(({ kind }) => kind)),
  ]
  expect(listKinds(await lines())).toEqual(
    expect.arrayContaining(['identity', 'mark', 'flush', 'record', 'row', 'state']),
  )
  const flushes = await lines('--flushes', '3..5')
  expect(flushes.map(({ kind, flush }) => [kind, flush])).toEqual(
    [3, 4, 5].map((one) => ['flush', one]),
  )
  expect(listKinds(await lines('--flushes', '3', '--records'))).toEqual(['flush', 'record'])
  const rows = await lines('--rows', '--group', shard)
  expect(listKinds(rows)).toEqual(['row', 'state'])
  expect(rows[0]).toMatchObject({
    of: `Shard (datastore "trips", shard ${shardOf(rowKey)})`,
    value: { row_key: rowKey, column: 'BASE', ref_key: 0, body: { city: 'Berlin' } },
  })
  for (const [flag, value] of [
    ['--flushes', '5..3'],
    ['--flushes', 'x'],
    ['--group', 'Trips/9999'],
  ] as const) {
    const { code, stderr } = await store(['dump', folder, flag, value])
    expect([code, stderr]).toEqual([2, expect.stringMatching(new RegExp(`^error: ${flag} wants `))])
  }
})

test('a reader that has had enough ends dump in silence', async () => {
  const line = `'${process.execPath}' '${programPath}' store dump '${folder}' | head -1 > /dev/null; echo \${PIPESTATUS[0]}`
  const { stdout, stderr } = await promisify(execFile)('/bin/bash', ['-c', line], {
    timeout: 20_000,
  })
  expect([stdout, stderr]).toEqual(['0\n', ''])
})
