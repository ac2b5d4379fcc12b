/** The command line as its users meet it: stdout, stderr and the exit code. */
import { randomUUID } from 'node:crypto'
import { readFile, rm, writeFile, mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePorts } from '../../sim/processes/free-ports.ts'
import {
  eventually,
  runProgram,
  startCluster,
  type ProgramResult,
  type TestCluster,
} from './harness.ts'

let cluster: TestCluster
let folder = ''
beforeAll(async () => {
  cluster = await startCluster({ ids: ['a'] })
  folder = await mkdtemp(join(tmpdir(), 'trilithon-commands-'))
})
afterAll(async () => {
  await cluster?.close()
  await rm(folder, { recursive: true, force: true })
})

async function cells(arguments_: readonly string[], input?: string): Promise<ProgramResult> {
  const environment = { TRILITHON_URL: cluster.urls.join(',') }
  const options = { folder, environment, ...(input !== undefined && { input }) }
  return runProgram(['cells', ...arguments_, '--datastore', 'trips'], options)
}

/** Written, loaded, and what the report says, as JSON. */
async function load(name: string, bytes: string | Uint8Array): Promise<unknown> {
  await writeFile(join(folder, name), bytes)
  const { stdout } = await cells(['load', name, '--column', 'BASE', '--json'])
  return JSON.parse(stdout)
}

test('put, get and latest print data on stdout, and the exit code says how it went', async () => {
  const row = randomUUID()
  expect(await cells(['put', row, 'BASE', '0', '{"a":1}'])).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^created: shard \d+, added id 1\n$/),
    stderr: '',
  })
  expect(await cells(['put', row, 'BASE', '0', '-'], '{ "a" : 1 }')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^already there: /),
  })
  expect(await cells(['put', row, 'BASE', '0', '{"a":2}'])).toMatchObject({ code: 3, stdout: '' })
  expect(await cells(['put', row, 'BASE', '1', '{"a":2}'])).toMatchObject({ code: 0 })
  expect((await cells(['latest', row, 'BASE'])).stdout).toBe('{"a":2}\n')
  expect((await cells(['get', row, 'BASE'])).stdout).toBe('BASE\t0\t{"a":1}\nBASE\t1\t{"a":2}\n')
  const whole = await cells(['get', row, 'BASE', '0', '--json', '--read', 'snapshot'])
  expect(JSON.parse(whole.stdout)).toMatchObject({ rowKey: row, addedId: 1, body: { a: 1 } })
  expect(await cells(['get', row, 'OTHER', '0'])).toMatchObject({ code: 1, stdout: '' })
})

test.each([
  ['an unknown command', ['frobnicate'], /unknown command/],
  ['an unknown flag', ['get', randomUUID(), 'BASE', '--frm'], /unknown option '--frm'/],
  ['a bad UUID', ['get', 'xyz', 'BASE', '0'], /"xyz" is not a UUID/],
  ['a negative ref key', ['put', randomUUID(), 'BASE', '-1', '1'], /from 0 to/],
  ['a fractional ref key', ['put', randomUUID(), 'BASE', '1.5', '1'], /whole number/],
  ['a body that is not JSON', ['put', randomUUID(), 'BASE', '0', '{a'], /not JSON/],
  [
    'a number that would change',
    ['put', randomUUID(), 'BASE', '0', '12345678901234567890'],
    /string/,
  ],
  ['a shard out of range', ['tail', '--shard', '4096', '--no-follow'], /from 0 to 4095/],
  ['a name that no column has', ['load', 'x.csv', '--column', 'a b'], /column name "a b" is not/],
  ['a file of another kind', ['load', 'x.txt', '--column', 'BASE'], /none of \.csv/],
])('%s ends with 2, one sentence on stderr and nothing on stdout', async (_title, words, said) => {
  const result = await cells(words)
  expect(result, result.stderr).toMatchObject({ code: 2, stdout: '' })
  expect(result.stderr).toMatch(said)
  expect(result.stderr).not.toMatch(/^ +at /m)
})

test('a cell over its limit is refused with the limit', async () => {
  const result = await cells(['put', randomUUID(), 'BASE', '0', '-'], `"${'x'.repeat(2 ** 21)}"`)
  expect(result).toMatchObject({ code: 2, stderr: expect.stringContaining('1048576 bytes') })
})

test('a command exits with 4 in the given time if no node is at the address', async () => {
  const [port = 0] = await freePorts(1)
  const url = ['--url', `http://127.0.0.1:${port}`]
  const got = await cells(['get', randomUUID(), 'BASE', '0', ...url, '--timeout', '0.5'])
  expect(got).toMatchObject({
    code: 4,
    stderr: expect.stringContaining('no node could be reached'),
  })
  const status = await runProgram(['status', ...url])
  expect(status).toMatchObject({ code: 4, stdout: '' })
})

test('a load accounts for every line, and the same again adds nothing', async () => {
  const csv = 'id,fare\n1,10\n2\n3,"30"\n\n4,x"y\n5,\n'
  expect(await load('fares.csv', csv)).toMatchObject({
    ...{ rows: 5, created: 3, alreadyThere: 0, rejected: 2, blankLines: 1 },
    rejections: [{ line: 3 }, { line: 6 }],
  })
  expect(await load('fares.csv', csv)).toMatchObject({ created: 0, alreadyThere: 3, rejected: 2 })
  const rejects = join(folder, 'rejects.jsonl')
  const again = await cells(['load', 'fares.csv', '--column', 'BASE', '--rejects', rejects])
  expect(again).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(
      /^5 rows: 0 created, 3 already there, 2 rejected, 1 blank line; /,
    ),
    stderr: expect.stringContaining('line 3: has 1 field; the header has 2'),
  })
  expect((await readFile(rejects, 'utf8')).trim().split('\n')).toHaveLength(2)
})

test('a truncated .gz loads what is whole, ends with 1, and is continued by the whole file', async () => {
  const lines = Array.from({ length: 500 }, (_, i) => `{"n":${i},"x":"${i ** 9}"}\n`).join('')
  const whole = gzipSync(lines)
  await writeFile(join(folder, 'rows.jsonl.gz'), whole.subarray(0, whole.length - 900))
  const cut = await cells(['load', 'rows.jsonl.gz', '--column', 'BASE'])
  expect(cut).toMatchObject({ code: 1, stderr: expect.stringMatching(/truncated.*up to line \d+/) })
  const [, created] = /^\d+ rows: (\d+) created/.exec(cut.stdout) ?? []
  expect(Number(created)).toBeGreaterThan(0)
  expect(await load('rows.jsonl.gz', whole)).toMatchObject({
    rows: 500,
    alreadyThere: Number(created),
    rejected: 0,
  })
})

test('tail prints what was added, shard by shard in order', async () => {
  const { stdout, code } = await cells(['tail', '--no-follow'])
  expect(code).toBe(0)
  const lastByShard = new Map<number, number>()
  for (const line of stdout.trim().split('\n')) {
    const { shard, addedId }: { shard: number; addedId: number } = JSON.parse(line)
    expect(addedId).toBe((lastByShard.get(shard) ?? 0) + 1)
    lastByShard.set(shard, addedId)
  }
  expect(lastByShard.size).toBeGreaterThan(100)
})

test('a completion script names the commands', async () => {
  const { stdout, code } = await runProgram(['completion', 'bash'])
  expect(code).toBe(0)
  expect(stdout).toMatch(/'cells'\) words='get latest put tail load/)
})

test('status, its JSON and the metrics tell what the stores take of the disk', async () => {
  const [url = ''] = cluster.urls
  const line = await eventually('it was measured', async () => {
    const { stdout } = await runProgram(['status', '--url', url])
    const [, row = ''] = stdout.split('\n').slice(1)
    return row.includes('iB') || / \d+ B/.test(row) ? row : undefined
  })
  // However far its scrubs are by then.
  const passes = String.raw`\d+ pass(es)?`
  const scrubbed = String.raw`\d+ %(, ${passes})?(, log \d+ %)?(, rows ${passes})?`
  expect(line).toMatch(
    new RegExp(String.raw`^a +ready .* [\d.]+ ([KM]i)?B +[\d.]+ ([KM]i)?B +${scrubbed} +http`),
  )
  const told = await runProgram(['status', '--url', url, '--json'])
  const count = expect.any(Number)
  const disk = { logBytes: count, dataBytes: count }
  expect(JSON.parse(told.stdout)).toMatchObject({ nodes: [{ id: 'a', report: { disk } }] })
  const page = await (await fetch(`${url}/metrics`)).text()
  for (const store of ['log', 'data'])
    expect(page).toMatch(
      new RegExp(`^trilithon_disk_bytes\\{[^}]*store="${store}"[^}]*\\} [1-9]\\d*$`, 'm'),
    )
})
