/**
 * Real trips, where the data folder is present (TRILITHON_DATA, or `shared/data` beside the
 * repository): both files are loaded into three processes through the command line, and every cell
 * is read back from each replica alone and compared with the file. A second load adds nothing. Of each file
 * the first 8,000 trips are loaded; TRILITHON_ALL_TRIPS=1 loads all of them.
 */
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { parse } from 'csv-parse/sync'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { makeRowKey } from '../../src/cli/uuid-v5.ts'
import { runProgram, startCluster, type TestCluster } from './harness.ts'
import { contentsAt } from './ledger.ts'

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..')
const folder = join(process.env['TRILITHON_DATA'] ?? join(root, '../shared/data'), 'trips')
const isPresent = existsSync(folder)
const loadTimeoutMs = 300_000
const taxiFile = 'nyc_yellow_2018-10_2019-09.csv'
const isWhole = process.env['TRILITHON_ALL_TRIPS'] === '1'
const taxiRows = isWhole ? 96_000 : 8_000
const pickupRows = isWhole ? 21_585 : 8_000

let cluster: TestCluster | undefined
let scratch: string
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'trilithon-trips-'))
  if (isPresent) cluster = await startCluster()
})
afterAll(async () => {
  await cluster?.close()
  await rm(scratch, { recursive: true, force: true })
})

interface Report {
  readonly rows: number
  readonly created: number
  readonly seconds: number
}

async function load(file: string, datastore: string): Promise<Report> {
  const urls = cluster?.urls.join(',') ?? ''
  const flags = ['--url', urls, '--datastore', datastore, '--column', 'BASE', '--json']
  const result = await runProgram(['cells', 'load', file, ...flags], {
    timeoutMs: loadTimeoutMs,
  })
  expect(result, result.stderr).toMatchObject({ code: 0 })
  const report: unknown = JSON.parse(result.stdout)
  if (!isReport(report)) throw new Error(`no report: ${result.stdout}`)
  return report
}

function isReport(value: unknown): value is Report {
  return typeof value === 'object' && value !== null && 'created' in value && 'rows' in value
}

async function textOf(file: string): Promise<string> {
  return gunzipSync(await readFile(join(folder, file))).toString('utf8')
}

/** Every replica alone holds exactly these bodies, in shard logs that are equal everywhere. */
async function expectEverywhere(
  datastore: string,
  expected: ReadonlyMap<string, unknown>,
): Promise<number> {
  let logs: ReadonlyMap<number, readonly string[]> | undefined
  for (const { id, url } of cluster?.nodes ?? []) {
    const contents = await contentsAt(url, { name: datastore })
    expect(contents.bodies.size, `replica ${id}`).toBe(expected.size)
    for (const [rowKey, body] of expected) {
      expect(contents.bodies.get(`${rowKey}/BASE/0`), `replica ${id}, ${rowKey}`).toEqual(body)
    }
    logs ??= contents.logs
    expect(contents.logs).toEqual(logs)
  }
  const lengths = [...(logs?.values() ?? [])].map((log) => log.length)
  expect(lengths.reduce((sum, length) => sum + length, 0)).toBe(expected.size)
  return lengths.length
}

test.runIf(isPresent)(
  'taxi trips load from CSV, are equal on each replica, and load again without duplicates',
  { timeout: 2 * loadTimeoutMs },
  async () => {
    // This file has no line breaks inside fields.
    const lines = (await textOf(`${taxiFile}.gz`)).split('\n', taxiRows + 1)
    const text = `${lines.join('\n')}\n`
    const file = join(scratch, taxiFile)
    await writeFile(file, text)
    const first = await load(file, 'taxi')
    expect(first).toMatchObject({ rows: taxiRows, created: taxiRows })
    const records: unknown[] = parse(text, { columns: true })
    const dataset = 'nyc_yellow_2018-10_2019-09'
    const expected = new Map(
      // The header is line 1.
      records.map((record, i) => [makeRowKey(dataset, { kind: 'line', line: i + 2 }), record]),
    )
    const shards = await expectEverywhere('taxi', expected)
    const again = await load(file, 'taxi')
    expect(again).toMatchObject({ rows: taxiRows, created: 0 })
    say(taxiFile, first, shards)
  },
)

test.runIf(isPresent)(
  'pick-ups load from JSON lines, equal lines as records of their own',
  { timeout: loadTimeoutMs },
  async () => {
    const file = 'uber_pickups_2014-08-01.jsonl.gz'
    const lines = (await textOf(file)).trimEnd().split('\n', pickupRows)
    const path = join(scratch, 'uber_pickups_2014-08-01.jsonl')
    await writeFile(path, `${lines.join('\n')}\n`)
    const first = await load(path, 'pickups')
    expect(first).toMatchObject({ rows: pickupRows, created: pickupRows })
    const dataset = 'uber_pickups_2014-08-01'
    const expected = new Map(
      lines.map((line, i): [string, unknown] => {
        return [makeRowKey(dataset, { kind: 'line', line: i + 1 }), JSON.parse(line)]
      }),
    )
    expect(expected.size).toBe(pickupRows)
    say(file, first, await expectEverywhere('pickups', expected))
  },
)

function say(file: string, report: Report, shards: number): void {
  const rate = Math.round(report.created / report.seconds)
  process.stdout.write(
    `trips: ${file}: ${report.created} rows in ${report.seconds.toFixed(1)} s (${rate}/s), ${shards} shards\n`,
  )
}
