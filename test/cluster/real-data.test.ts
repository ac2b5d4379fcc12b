/**
 * Real trips with their real dirt, loaded into three processes and compared, cell by cell at each
 * replica alone, with the files. Runs where the files are: in the folder that TRILITHON_TEST_DATA
 * names, or in `shared/data/trips` beside this repository.
 */
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { canonicalJson, type Json } from '../../src/cells/body.ts'
import { shardCount, shardOf } from '../../src/cells/shard.ts'
import { rowKeyOf } from '../../src/cli/uuid-v5.ts'
import { connect } from '../../src/client/connect.ts'
import { eventually, runProgram, startCluster, type TestCluster } from './harness.ts'

const folder =
  process.env['TRILITHON_TEST_DATA'] ??
  fileURLToPath(new URL('../../../shared/data/trips', import.meta.url))
const yellow = 'nyc_yellow_2018-10_2019-09'
const uber = 'uber_pickups_2014-08-01'
const timeoutMs = 400_000

let cluster: TestCluster
beforeAll(async () => {
  if (existsSync(folder)) cluster = await startCluster()
}, 60_000)
afterAll(() => cluster?.close())

/** What the loader is to make of the file, found without the loader: row key → canonical body. */
async function expectedCells(name: string): Promise<ReadonlyMap<string, string>> {
  const ending = name === yellow ? 'csv' : 'jsonl'
  const text = gunzipSync(await readFile(join(folder, `${name}.${ending}.gz`))).toString('utf8')
  const lines = text.trimEnd().split('\n')
  const header = ending === 'csv' ? (lines[0] ?? '').split(',') : undefined
  const cells = new Map<string, string>()
  for (const [i, line] of lines.entries()) {
    if (header !== undefined && i === 0) continue
    const body: Json =
      header === undefined
        ? JSON.parse(line)
        : Object.fromEntries(line.split(',').map((field, at) => [header[at] ?? '', field]))
    cells.set(rowKeyOf(name, { kind: 'line', line: i + 1 }), canonical(body))
  }
  return cells
}

function canonical(body: Json): string {
  const found = canonicalJson(body)
  return found.kind === 'ok' ? found.text : 'not canonical'
}

async function load(file: string, datastore: string): Promise<unknown> {
  const words = ['cells', 'load', join(folder, file), '--datastore', datastore, '--column', 'BASE']
  const environment = { TRILITHON_URL: cluster.urls.join(',') }
  const result = await runProgram([...words, '--json'], { environment, timeoutMs })
  expect(result, result.stderr).toMatchObject({ code: 0 })
  return JSON.parse(result.stdout)
}

/** Everything one replica has of a datastore, without asking the others; with every added id. */
async function replicaCells(
  url: string,
  datastore: string,
): Promise<{ readonly cells: ReadonlyMap<string, string>; readonly log: readonly string[] }> {
  const client = await connect({ nodes: [url] })
  const found = new Map<string, string>()
  const log: string[] = []
  try {
    for (let shard = 0; shard < shardCount; shard++) {
      const page = await client.cells(datastore).shardLog(shard, { read: 'any' })
      for (const [i, { rowKey, addedId, createdAt, body }] of page.cells.entries()) {
        expect(addedId, `added ids of shard ${shard} are dense`).toBe(i + 1)
        expect(shardOf(rowKey)).toBe(shard)
        found.set(rowKey, canonical(body))
        log.push(`${shard} ${addedId} ${createdAt} ${rowKey}`)
      }
    }
  } finally {
    await client.close()
  }
  return { cells: found, log }
}

async function compareAtEachReplica(datastore: string, name: string): Promise<void> {
  const expected = await expectedCells(name)
  const logs: (readonly string[])[] = []
  for (const url of cluster.urls) {
    // A replica may be a moment behind.
    const { cells, log } = await eventually(`${url} has all of ${datastore}`, async () => {
      const found = await replicaCells(url, datastore)
      return found.cells.size >= expected.size ? found : undefined
    })
    expect(cells.size).toBe(expected.size)
    for (const [rowKey, body] of expected) {
      if (cells.get(rowKey) !== body) expect(cells.get(rowKey), rowKey).toBe(body)
    }
    logs.push(log)
  }
  expect(logs[1]).toEqual(logs[0])
  expect(logs[2]).toEqual(logs[0])
}

test.runIf(existsSync(folder))(
  'pick-ups as JSON lines, equal lines included, are the same at all three replicas',
  async () => {
    const report = await load(`${uber}.jsonl.gz`, 'uber')
    expect(report).toMatchObject({ rows: 21_585, created: 21_585, rejected: 0 })
    await compareAtEachReplica('uber', uber)
    expect(await load(`${uber}.jsonl.gz`, 'uber')).toMatchObject({
      created: 0,
      alreadyThere: 21_585,
    })
  },
  timeoutMs,
)

test.runIf(existsSync(folder))(
  'yellow-taxi trips as CSV, dirt and blanks included, are the same at all three replicas',
  async () => {
    const report = await load(`${yellow}.csv.gz`, 'yellow')
    expect(report).toMatchObject({ rows: 96_000, created: 96_000, rejected: 0 })
    await compareAtEachReplica('yellow', yellow)
  },
  timeoutMs,
)
