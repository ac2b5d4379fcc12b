/** Files of another form than their name says: refused in words, or read as what they are; never misread. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { loadRows, type LoadReport, type Rejection } from '../../src/cli/load-run.ts'
import type { Blank } from '../../src/cli/load-csv.ts'
import type { Json } from '../../src/cells/body.ts'

let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trilithon-forms-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

interface Loaded {
  readonly report: LoadReport
  readonly bodies: readonly Json[]
  /** `line: reason`. */
  readonly rejected: readonly string[]
}

async function load(
  name: string,
  bytes: Uint8Array | string,
  blank: Blank = '',
  isOneColumn: boolean = false,
): Promise<Loaded> {
  const path = join(folder, name)
  await writeFile(path, bytes)
  const rejections: Rejection[] = []
  const bodies: Json[] = []
  const report = await loadRows<Json>(
    {
      ...{ path, format: name.includes('.csv') ? 'csv' : 'jsonl', isGzip: name.endsWith('.gz') },
      ...{
        blank,
        isOneColumn,
        batchRows: 2,
        batchesInFlight: 1,
        signal: new AbortController().signal,
      },
      onProgress: () => undefined,
      onRejection: (rejection) => rejections.push(rejection),
      monotonicMs: () => performance.now(),
    },
    (body) => ({ ok: true, item: body }),
    {
      put: async (items) => {
        bodies.push(...items)
        return items.map(() => ({ kind: 'created' }) as const)
      },
    },
  )
  return { report, bodies, rejected: rejections.map(({ line, reason }) => `${line}: ${reason}`) }
}

function utf16(text: string, { mark = false, isBig = false } = {}): Buffer {
  const bytes = Buffer.from(`${mark ? '\uFEFF' : ''}${text}`, 'utf16le')
  return isBig ? bytes.swap16() : bytes
}

const plain = 'id,name\n1,a\n2,b\n'
const lines = '{"a":1}\n{"a":2}\n'

test.each([
  ['lines that end with CR alone', 'a.csv', plain.replaceAll('\n', '\r'), /CR alone/],
  ['the same with quotes', 'a.csv', '"id","name"\r"1","a"\r', /CR alone/],
  ['lines that end with CR CR LF', 'a.csv', plain.replaceAll('\n', '\r\r\n'), /CR CR LF/],
  ['UTF-16 with its mark', 'a.csv', utf16(plain, { mark: true }), /is UTF-16, not UTF-8/],
  ['UTF-16 of the other end', 'a.csv', utf16(plain, { mark: true, isBig: true }), /is UTF-16, not/],
  ['UTF-16 without a mark', 'a.csv', utf16(plain), /UTF-16 without a mark .*-f UTF-16LE/],
  ['the same the other way', 'a.csv', utf16(plain, { isBig: true }), /without a mark .*UTF-16BE/],
  ['UTF-16 that begins with no ASCII', 'a.csv', utf16('и,й\n1,2\n'), /UTF-16/],
  ['UTF-16 with no ASCII in four bytes', 'a.csv', utf16('ид,й\n1,2\n'), /UTF-16/],
  ['a NUL in its header', 'a.csv', 'id,na\0me\n1,a\n', /header \(line 1\): a NUL stands in it/],
  ['semicolons', 'a.csv', 'id;name\n1;a\n', /"id;name": .*commas, not by semicolons/],
  ['tabs', 'a.csv', 'id\tname\n1\ta\n', /not by tabs/],
  ['bars', 'a.csv', 'id|name\n1|a\n', /not by bars/],
  ['quotes around whole lines', 'a.csv', '"id,name"\n"1,a"\n', /quotes stand around all of/],
  ['quotes around whole lines with blanks', 'a.csv', '"id, name,x"\n"1, a,b"\n', /--one-column/],
  ['another separator told first', 'a.csv', 'sep=;\nid;name\n1;a\n', /"sep=;", says/],
  ['a name twice', 'a.csv', '\uFEFFid,"id"\n1,a\n', /names "id" twice/],
  ['a blank name', 'a.csv', 'id, ,x\n1,a,b\n', /a column without a name/],
  ['gzip under a plain name', 'a.csv', gzipSync(plain), /is packed by gzip/],
  ['gzip in gzip', 'a.csv.gz', gzipSync(gzipSync(plain)), /is packed by gzip/],
  ['plain text under the name of a .gz', 'a.csv.gz', plain, /is not packed by gzip/],
  ['a .zip', 'a.csv', 'PK\u0003\u0004 and more', /is a \.zip/],
  ['a web page', 'a.csv', '\n<!DOCTYPE html>\n<html>\n', /is a web page/],
  ['a pointer of Git', 'a.csv', 'version https://git-lfs.github.com/spec/v1\nsize 1\n', /git lfs/],
  ['JSON lines as CSV', 'a.csv', lines, /begins as JSON/],
  ['a list of JSON as CSV', 'a.csv', '[\n1,\n2]\n', /begins as JSON/],
  ['a list over several lines', 'a.jsonl', '[\n1,\n2\n]\n', /line 1 begins a value that goes on/],
  ['the same with a row in its first line', 'a.jsonl', '[{"a":1},\n{"a":2}]\n', /goes on/],
  ['the same behind blank lines', 'a.jsonl', '\n\n[[1,\n[2]]]\n', /line 3 begins a value/],
  ['an object over several lines', 'a.jsonl', '{\n"a":\n1\n}\n', /goes on in the lines below/],
  [
    'a list of objects as its only line',
    'a.jsonl',
    '[{"a":1},{"a":2}]\n\n',
    /its only line is a list/,
  ],
  ['UTF-16 of JSON', 'a.jsonl', utf16(lines), /UTF-16 without a mark/],
  ['UTF-16 of JSON with its mark', 'a.jsonl', utf16(lines, { mark: true }), /is UTF-16, not UTF-8/],
])('a file with %s is refused as a whole', async (_title, name, bytes, said) => {
  await expect(load(name, bytes)).rejects.toThrow(said)
})

test.each([
  [
    'marks twice',
    `\uFEFF\uFEFF${plain}`,
    [
      { id: '1', name: 'a' },
      { id: '2', name: 'b' },
    ],
  ],
  ['commas told first', 'sep=,\r\nid\r\n7\r\n', [{ id: '7' }]],
  ['a quoted name with a comma of prose', '"Last, First"\n"x, y"\n', [{ 'Last, First': 'x, y' }]],
  ['a quoted name with semicolons', '"a;b"\n1\n', [{ 'a;b': '1' }]],
  ['names in brackets', '[id],[x]\n1,2\n', [{ '[id]': '1', '[x]': '2' }]],
  ['CR inside of quotes', 'id\n"a\rb"\n', [{ id: 'a\rb' }]],
  ['a short file', 'a\n1', [{ a: '1' }]],
])('a CSV with %s is read', async (_title, text, bodies) => {
  const { report, bodies: found } = await load('good.csv', text)
  expect(found).toEqual(bodies)
  expect(report).toMatchObject({ created: bodies.length, rejected: 0 })
})

test('a list that is a line among others is a row, and so is a list of other things', async () => {
  expect((await load('lists.jsonl', '[{"a":1}]\n[{"a":2}]\n')).bodies).toEqual([
    [{ a: 1 }],
    [{ a: 2 }],
  ])
  expect((await load('list.jsonl', '\n[1,{}]\n')).bodies).toEqual([[1, {}]])
  const { bodies, report } = await load('held.jsonl', '[{"a":1}]\n\nbad\n')
  expect(bodies).toEqual([[{ a: 1 }]])
  expect(report).toMatchObject({ rows: 2, created: 1, rejected: 1, blankLines: 1 })
})

test('load rejects the lines of a CSV that may be misread, and no others', async () => {
  const text =
    'id,name\n1,a\r2,b\n3,c\0\n"4\0",d\n\uFEFF5,e\n"6",f\rg\n7,"h"\r\r\n8,"i" \n9,j"k"\n10,l\n'
  const { bodies, rejected } = await load('odd.csv', text)
  expect(bodies).toEqual([{ id: '10', name: 'l' }])
  expect(rejected).toEqual([
    expect.stringMatching(/^2: a CR stands alone/),
    expect.stringMatching(/^3: a NUL/),
    expect.stringMatching(/^4: a NUL/),
    expect.stringMatching(/^5: it begins with a byte order mark/),
    expect.stringMatching(/^6: a CR stands alone/),
    expect.stringMatching(/^7: not CSV: behind a closing quote/),
    expect.stringMatching(/^8: not CSV: behind a closing quote/),
    expect.stringMatching(/^9: not CSV: a quote stands inside a field/),
  ])
})

test('the header of another file behind the first one is no row', async () => {
  const text = 'id,name\n1,a\nid,name\n"id","name"\n2,b\nid,b\n'
  const { bodies, rejected } = await load('two.csv', text)
  expect(bodies).toHaveLength(3)
  expect(rejected).toEqual([
    '3: it repeats the header: another file may begin here',
    '4: it repeats the header: another file may begin here',
  ])
})

test('a CR alone is no part of the only field of a line', async () => {
  const { bodies, rejected } = await load('one.csv', 'id\n1\r2\n3\n')
  expect(bodies).toEqual([{ id: '3' }])
  expect(rejected).toHaveLength(1)
})

test('load rejects the JSON lines that may be misread, and no others', async () => {
  const text = `{"a":1}{"a":2}\n{"a":3}\r{"a":4}\n{"a":"\0"}\n\uFEFF{"a":5}\n{"a":6},\n{"a":9007199254740993.0}\n{"a":"\\u0000"}\n`
  const { bodies, rejected } = await load('odd.jsonl', text)
  expect(bodies).toEqual([{ a: '\0' }])
  expect(rejected).toEqual([
    expect.stringMatching(/^1: not JSON: .*each value has a line of its own$/),
    expect.stringMatching(/^2: not JSON: .*a CR stands alone/),
    expect.stringMatching(/^3: a NUL stands in it/),
    expect.stringMatching(/^4: it begins with a byte order mark/),
    expect.stringMatching(/^5: not JSON: /),
    expect.stringMatching(/^6: the number 9007199254740993\.0 does not fit/),
  ])
})

test('a blank field becomes the requested value, and a quoted blank the empty text', async () => {
  const text = 'a,b,c\n,"",x\n"",,\n"y","",\n'
  expect((await load('blank.csv', text, null)).bodies).toEqual([
    { a: null, b: '', c: 'x' },
    { a: '', b: null, c: null },
    { a: 'y', b: '', c: null },
  ])
  expect((await load('blank.csv', text, '')).bodies).toEqual([
    { a: '', b: '', c: 'x' },
    { a: '', b: '', c: '' },
    { a: 'y', b: '', c: '' },
  ])
})

test('lines before a damage are read however short they are', async () => {
  const cut = gzipSync('{"a":1}\n{"a":2}\n{"a":').subarray(0, -8)
  const { bodies, report } = await load('cut.jsonl.gz', cut)
  expect(report.stopped).toMatchObject({ kind: 'damaged', lastLine: bodies.length })
  expect(bodies).toEqual([{ a: 1 }, { a: 2 }])
})

test.each([
  ['price;eur\n1,\n5;2\n"5,2"\n', [{ 'price;eur': '5;2' }, { 'price;eur': '5,2' }], 1],
  ['a\tb\n1\t2\n', [{ 'a\tb': '1\t2' }], 0],
  ['"Last,First"\n"x,y"\nz\n', [{ 'Last,First': 'x,y' }, { 'Last,First': 'z' }], 0],
  ['id\n7\n', [{ id: '7' }], 0],
] as const)(
  'a file that is said to have one column is read so: %j',
  async (text, bodies, rejected) => {
    const loaded = await load('one.csv', text, '', true)
    expect(loaded.bodies).toEqual(bodies)
    expect(loaded.report.rejected).toBe(rejected)
  },
)

test('a file of two columns is not said to have one', async () => {
  await expect(load('two.csv', plain, '', true)).rejects.toThrow(
    'the header (line 1) has 2 columns, and --one-column says it has one',
  )
})
