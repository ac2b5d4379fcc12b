/** The loader: row keys, lines, CSV and JSON rows, damaged files; against a map of cells. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import * as fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { StoreError } from '../../src/base/errors.ts'
import { splitLines, type Line } from '../../src/cli/load-lines.ts'
import { CsvRows, recordLinesMax } from '../../src/cli/load-csv.ts'
import type { Row } from '../../src/cli/load-rows.ts'
import { loadCells, type CellLoadOptions, type CellSink } from '../../src/cli/cells-load-run.ts'
import type { LoadReport, Rejection } from '../../src/cli/load-run.ts'
import { makeRowKey, uuidV5 } from '../../src/cli/uuid-v5.ts'

let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trilithon-load-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

/** A datastore of one column: insert if absent. */
function mapSink(cells: Map<string, string>): CellSink {
  return {
    put: async (batch) =>
      batch.map(({ rowKey, body }) => {
        const text = JSON.stringify(body)
        const before = cells.get(rowKey)
        if (before === undefined) cells.set(rowKey, text)
        if (before === undefined) return { kind: 'created' }
        if (before === text) return { kind: 'already-there' }
        return { kind: 'rejected', reason: 'another body is there' }
      }),
  }
}

interface Loaded {
  readonly report: LoadReport
  readonly rejections: readonly Rejection[]
}

async function load(
  name: string,
  bytes: Uint8Array | string,
  sink: CellSink,
  options: Partial<CellLoadOptions> = {},
): Promise<Loaded> {
  const path = join(folder, name)
  await writeFile(path, bytes)
  const rejections: Rejection[] = []
  const report = await loadCells(
    {
      path,
      format: name.includes('.csv') ? 'csv' : 'jsonl',
      isGzip: name.endsWith('.gz'),
      dataset: 'trips',
      keyField: undefined,
      batchRows: 7,
      batchesInFlight: 3,
      signal: new AbortController().signal,
      onProgress: () => undefined,
      onRejection: (rejection) => rejections.push(rejection),
      monotonicMs: () => performance.now(),
      ...options,
    },
    sink,
  )
  return { report, rejections }
}

test('row keys are UUIDs of version 5: the published vectors come out', () => {
  const dns = '6ba7b810-9dad-11d1-80b4-00c04fd430c8'
  expect(uuidV5(dns, 'www.example.com')).toBe('2ed6657d-e927-568b-95e1-2665a8aea6a2')
  expect(uuidV5(dns, 'python.org')).toBe('886313e1-3b8a-5372-9b90-0c9aee199e5d')
})

test('row keys stay what they are: a change would double every loaded data set', () => {
  expect(makeRowKey('trips', { kind: 'line', line: 2 })).toBe(
    'bc8c708c-387b-5f4d-a9f2-8b7ea291eb21',
  )
  expect(makeRowKey('trips', { kind: 'key', key: '2' })).toBe(
    '18ee2c30-4dc7-5e7c-9496-d29f1f8fcb3d',
  )
})

function csv(text: string): readonly Row[] {
  const parser = new CsvRows('')
  const lines = text.split('\n').map((whole, i): Line => {
    const hasReturn = whole.endsWith('\r')
    const line = hasReturn ? whole.slice(0, -1) : whole
    return { kind: 'text', number: i + 1, text: line, ending: hasReturn ? '\r\n' : '\n' }
  })
  return [...lines.flatMap((line) => parser.push(line)), ...parser.end()]
}

/** `line: body` or `line! reason`, one a row. */
function told(rows: readonly Row[]): readonly string[] {
  return rows.map((row) => {
    if (row.kind === 'row') return `${row.line}: ${JSON.stringify(row.body)}`
    return row.kind === 'rejected' ? `${row.line}! ${row.reason}` : `${row.line} blank`
  })
}

test('CSV fields stay text, blank ones too, and quoted ones may hold commas, quotes and lines', () => {
  expect(told(csv('a,b\n1,\n01,"x, ""y"""\n"two\nlines",3\n,'))).toEqual([
    '2: {"a":"1","b":""}',
    '3: {"a":"01","b":"x, \\"y\\""}',
    '4: {"a":"two\\nlines","b":"3"}',
    '6: {"a":"","b":""}',
  ])
})

test('a line that is no row is rejected by number, and the lines after it are rows', () => {
  expect(told(csv('a,b\n1\n1,2,3\n4,5\n\n6,x"y\n7,8\n"9",10'))).toEqual([
    '2! has 1 field; the header has 2',
    '3! has 3 fields; the header has 2',
    '4: {"a":"4","b":"5"}',
    '5 blank',
    expect.stringMatching(/^6! a quote is not closed/),
    '7: {"a":"7","b":"8"}',
    '8: {"a":"9","b":"10"}',
  ])
})

test('a quote that is never closed costs its line alone, however long the file', () => {
  const rows = csv(`a,b\n1,"open\n${'5,6\n'.repeat(recordLinesMax + 50)}7,8`)
  expect(told(rows.slice(0, 2))).toEqual([
    `2! a quote is not closed before the end or within ${recordLinesMax} lines`,
    '3: {"a":"5","b":"6"}',
  ])
  expect(rows.filter(({ kind }) => kind === 'row')).toHaveLength(recordLinesMax + 51)
})

test.each([
  ['no line at all', '', /is empty/],
  ['a column twice', 'a,b,a\n1,2,3', /names "a" twice/],
  ['a column without name', 'a,,b\n1,2,3', /a column without a name/],
  ['an open quote', 'a,"b\n1,2', /the header \(line 1\): a quote is not closed/],
])('a CSV whose header has %s is refused as a whole', async (_title, text, said) => {
  await expect(load('bad.csv', text, mapSink(new Map()))).rejects.toThrow(said)
})

test('every CSV row that a writer may quote comes back as it was', () => {
  const field = fc.string({ unit: fc.constantFrom('a', '"', ',', ' ', '\n', '\r\n', 'é', '0') })
  const quote = (value: string): string => `"${value.replaceAll('"', '""')}"`
  fc.assert(
    fc.property(fc.array(fc.tuple(field, field), { minLength: 1, maxLength: 20 }), (rows) => {
      const text = rows.map((row) => row.map(quote).join(',')).join('\n')
      const bodies = csv(`x,y\n${text}`).map((row) => (row.kind === 'row' ? row.body : row))
      expect(bodies).toEqual(rows.map(([x, y]) => ({ x, y })))
    }),
    { numRuns: 200, seed: 4180 },
  )
})

test('JSON lines: load rejects, by line, text that is not JSON or that parsing would change', async () => {
  const text = '{"a":9007199254740993}\n{"a":1\n{"a":1,"a":2}\n{"a":"9007199254740993"}\n[1]\n"x"'
  const { report, rejections } = await load('lossy.jsonl', text, mapSink(new Map()))
  expect(report).toMatchObject({ rows: 6, created: 3, rejected: 3 })
  expect(rejections).toEqual([
    { line: 1, reason: expect.stringMatching(/9007199254740993 does not fit/) },
    { line: 2, reason: expect.stringMatching(/^not JSON: /) },
    { line: 3, reason: expect.stringMatching(/"a" is given twice/) },
  ])
})

async function* pieces(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

test('lines are the same however the file is cut into pieces', async () => {
  const cut = fc.record({
    text: fc.string({ unit: fc.constantFrom('a', 'é', '\n', '\r\n', '😀') }),
    size: fc.integer({ min: 1, max: 9 }),
  })
  await fc.assert(
    fc.asyncProperty(cut, async ({ text, size }) => {
      const found: string[] = []
      for await (const lines of splitLines(pieces(Buffer.from(text), size))) {
        for (const line of lines) found.push(line.kind === 'text' ? line.text : line.reason)
      }
      const expected = text.split('\n').map((line) => line.replace(/\r$/, ''))
      if (text === '' || text.endsWith('\n')) expected.pop()
      expect(found).toEqual(expected)
    }),
    { numRuns: 200, seed: 4180 },
  )
})

test('a line that is not UTF-8 is rejected, not changed; a byte order mark is no part of a name', async () => {
  const cells = new Map<string, string>()
  const bytes = Buffer.concat([
    Buffer.from('\uFEFFa\nok\n'),
    Buffer.from([0xc3, 0x28, 0x0a]),
    Buffer.from('fine\n'),
  ])
  const { report, rejections } = await load('latin.csv', bytes, mapSink(cells))
  expect(report).toMatchObject({ rows: 3, created: 2, rejected: 1 })
  expect(rejections).toEqual([{ line: 3, reason: 'the line is not UTF-8' }])
  expect([...cells.values()]).toEqual(['{"a":"ok"}', '{"a":"fine"}'])
})

test('equal lines are different records; the same file again makes no duplicates', async () => {
  const cells = new Map<string, string>()
  const text = '{"a":1}\n{"a":1}\n\n{"a":2}'
  const first = await load('rows.jsonl', text, mapSink(cells))
  expect(first.report).toMatchObject({ rows: 3, created: 3, alreadyThere: 0, blankLines: 1 })
  const second = await load('rows.jsonl', text, mapSink(cells))
  expect(second.report).toMatchObject({ rows: 3, created: 0, alreadyThere: 3, rejected: 0 })
  expect(cells.size).toBe(3)
})

test('with a key, rows are named by it; one without it, or with another body, is rejected', async () => {
  const text = '{"id":7,"a":1}\n{"id":7,"a":1}\n{"id":7,"a":2}\n{"a":3}\n{"id":""}\n[1]\n{"id":{}}'
  const sink = mapSink(new Map())
  const { report, rejections } = await load('keyed.jsonl', text, sink, {
    keyField: 'id',
    batchRows: 1,
  })
  expect(report).toMatchObject({ rows: 7, created: 1, alreadyThere: 1, rejected: 5 })
  expect(rejections.map(({ line }) => line).toSorted((a, b) => a - b)).toEqual([3, 4, 5, 6, 7])
})

test('with a key field, load rejects a CSV row whose key is blank', async () => {
  const text = 'id,a\n,1\n"",2\n__proto__,3\n'
  const { report, rejections } = await load('blank.csv', text, mapSink(new Map()), {
    keyField: 'id',
  })
  expect(report).toMatchObject({ rows: 3, created: 1, rejected: 2 })
  expect(rejections.map(({ reason }) => reason)).toEqual([
    'its key "id" is blank',
    'its key "id" is blank',
  ])
  const inherited = await load('blank.csv', text, mapSink(new Map()), { keyField: 'toString' })
  expect(inherited.report).toMatchObject({ rows: 3, created: 0, rejected: 3 })
})

const many: string = Array.from({ length: 5000 }, (_, i) => `{"n":${i},"x":"${i ** 7}"}\n`).join('')

test('a .gz gives what the plain file gives', async () => {
  const cells = new Map<string, string>()
  const { report } = await load('many.jsonl.gz', gzipSync(many), mapSink(cells))
  expect(report).toMatchObject({ rows: 5000, created: 5000, rejected: 0 })
  expect([...cells.values()].join('\n')).toBe(many.trim())
})

test('a truncated .gz loads every whole line before its end, says so, and can be continued', async () => {
  const whole = gzipSync(many)
  for (const keep of [0, 5, 1000, whole.length - 8, whole.length - 1]) {
    const cells = new Map<string, string>()
    const { report } = await load('cut.jsonl.gz', whole.subarray(0, keep), mapSink(cells))
    expect(report.stopped).toMatchObject({
      kind: 'damaged',
      reason: /truncated/,
      lastLine: report.rows,
    })
    expect(report.created).toBe(cells.size)
    const loaded = [...cells.values()].map((body) => `${body}\n`).join('')
    expect(many.startsWith(loaded)).toBe(true)
    const again = await load('cut.jsonl.gz', whole, mapSink(cells))
    expect(again.report).toMatchObject({ alreadyThere: report.created, rejected: 0 })
    expect(cells.size).toBe(5000)
  }
})

test('a damaged .gz ends the load with its reason', async () => {
  const bytes = gzipSync(many)
  bytes.fill(0xff, bytes.length >> 1, (bytes.length >> 1) + 64)
  const { report } = await load('damaged.jsonl.gz', bytes, mapSink(new Map()))
  expect(report.stopped).toMatchObject({ kind: 'damaged', reason: /damaged/ })
})

test('load takes the sound members of a damaged .gz and nothing else, and the good file later', async () => {
  const rows = (from: number, count: number): string =>
    Array.from({ length: count }, (_, i) => `{"n":${from + i},"x":"${(from + i) ** 7}"}\n`).join('')
  const [one, two] = [gzipSync(rows(0, 3000)), gzipSync(rows(3000, 3000))]
  const hurt = Buffer.from(two)
  for (let at = two.length >> 1; at < (two.length >> 1) + 40; at++)
    hurt[at] = (hurt[at] ?? 0) ^ 0x55
  const wrongSum = Buffer.from(two)
  wrongSum[two.length - 8] = (wrongSum[two.length - 8] ?? 0) ^ 1
  const good = Buffer.concat([one, two])
  const named = gzipSync(rows(0, 10))
  const withName = Buffer.concat([
    named.subarray(0, 3),
    Buffer.from([8]),
    named.subarray(4, 10),
    Buffer.from('a.jsonl\0'),
    named.subarray(10),
  ])
  for (const [bytes, created, damage] of [
    [Buffer.concat([one, hurt]), 3000, /damaged/],
    [Buffer.concat([one, wrongSum]), 3000, /checksum/],
    [Buffer.concat([one, Buffer.from('garbage')]), 3000, /behind its first/],
    [hurt, 0, /damaged/],
    [Buffer.concat([one, two, Buffer.alloc(600)]), 6000, undefined],
    [good, 6000, undefined],
    [withName, 10, undefined],
  ] as const) {
    const cells = new Map<string, string>()
    const { report } = await load('hurt.jsonl.gz', bytes, mapSink(cells))
    expect(report).toMatchObject({ created, rejected: 0 })
    if (damage === undefined) expect(report.stopped).toBeUndefined()
    else expect(report.stopped).toMatchObject({ kind: 'damaged', reason: damage })
    if (bytes === hurt || bytes === withName) continue
    const again = await load('hurt.jsonl.gz', good, mapSink(cells))
    expect(again.report).toMatchObject({ created: 6000 - created, rejected: 0 })
  }
})

test('a failing sink ends the load at once, and the report counts the cells it had answered', async () => {
  const cells = new Map<string, string>()
  const inner = mapSink(cells)
  let calls = 0
  const failing: CellSink = {
    put: async (batch) => {
      calls += 1
      if (calls > 5) throw new Error('no majority')
      return inner.put(batch)
    },
  }
  const { report } = await load('fails.jsonl', many, failing)
  expect(report.stopped).toMatchObject({ kind: 'failed', error: { message: 'no majority' } })
  expect(report.created).toBe(35)
  expect(calls).toBeLessThan(10)
})

test('the report counts the cells written beside a failed one', async () => {
  const sink: CellSink = {
    put: async (batch) =>
      batch.map((_, i) =>
        i < 4
          ? { kind: 'created' }
          : { kind: 'failed', error: new StoreError('unavailable', 'no majority') },
      ),
  }
  const { report } = await load('partly.jsonl', '1\n2\n3\n4\n5\n6\n', sink)
  expect(report).toMatchObject({ rows: 6, created: 4, rejected: 0, stopped: { kind: 'failed' } })
})

test('an interrupted load finishes what is in flight and reports it', async () => {
  const abort = new AbortController()
  const cells = new Map<string, string>()
  const onProgress: CellLoadOptions['onProgress'] = ({ rowsDone }) => {
    if (rowsDone >= 70) abort.abort()
  }
  const options = { signal: abort.signal, onProgress }
  const { report } = await load('stop.jsonl', many, mapSink(cells), options)
  expect(report.stopped).toEqual({ kind: 'interrupted', lastLine: cells.size })
  expect(report.created).toBe(cells.size)
  expect(cells.size).toBeLessThan(200)
})

test('no more batches are in flight than allowed', async () => {
  let now = 0
  let most = 0
  const slow: CellSink = {
    put: async (batch) => {
      now += 1
      most = Math.max(most, now)
      await new Promise((resolve) => setImmediate(resolve))
      now -= 1
      return batch.map(() => ({ kind: 'created' as const }))
    },
  }
  await load('slow.jsonl', many, slow)
  expect(most).toBe(3)
})
