/** Loading into tables by the command line: each wrong use is one clear error, each line accounted for. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runProgram, startCluster, type ProgramResult, type TestCluster } from './harness.ts'

const ddl = `CREATE SCHEMA Shop;
CREATE TABLE Customer {
  required integer id;
  required string name;
  optional int32 born;
} PRIMARY KEY(id), ENTITY GROUP ROOT;
CREATE LOCAL INDEX CustomersByBirth
  ON Customer(id, born);
CREATE TABLE Purchase {
  required integer customer_id;
  required integer id;
  required int64 cents;
} PRIMARY KEY(customer_id, id),
  IN TABLE Customer,
  ENTITY GROUP KEY(customer_id) REFERENCES Customer;
CREATE TABLE Note {
  required integer customer_id;
  required sequence number;
  required string text;
} PRIMARY KEY(customer_id, number),
  IN TABLE Customer,
  ENTITY GROUP KEY(customer_id) REFERENCES Customer;
`

let cluster: TestCluster
let folder = ''
beforeAll(async () => {
  cluster = await startCluster({ ids: ['a'] })
  folder = await mkdtemp(join(tmpdir(), 'trilithon-tables-'))
  await writeFile(join(folder, 'shop.ddl'), ddl)
  await writeFile(join(folder, 'customers.jsonl'), '{"id":1,"name":"Mary"}\n')
  const applied = await command('schema', 'apply', 'shop.ddl')
  if (applied.code !== 0) throw new Error(applied.stderr)
})
afterAll(async () => {
  await cluster?.close()
  await rm(folder, { recursive: true, force: true })
})

function command(...words: readonly string[]): Promise<ProgramResult> {
  return runProgram(words, { folder, environment: { TRILITHON_URL: cluster.urls.join(',') } })
}

function load(file: string, table: string, ...words: readonly string[]): Promise<ProgramResult> {
  return command('load', file, '--schema', 'Shop', '--table', table, ...words)
}

test.each([
  [
    'an unknown table',
    2,
    'Costumer',
    [],
    /^error: schema Shop: unknown table "Costumer"; did you mean "Customer"\?\n$/,
  ],
  [
    '--from without a field',
    2,
    'Customer',
    ['--from', 'id'],
    /^error: --from wants PROPERTY=FIELD, not "id"\n$/,
  ],
  [
    '--from with nothing behind it',
    2,
    'Customer',
    ['--from', 'id='],
    /^error: --from wants PROPERTY=FIELD/,
  ],
  [
    '--from for a property twice',
    2,
    'Customer',
    ['--from', 'id=a', '--from', 'id=b'],
    /^error: --from names id twice\n$/,
  ],
  [
    '--from for what no line has',
    2,
    'Customer',
    ['--from', 'born=nam'],
    /^error: --from born=nam names nothing in any line of customers\.jsonl; did you mean "name"\?\n$/,
  ],
  [
    '--from for a path that ends nowhere',
    2,
    'Customer',
    ['--from', 'born=name.length'],
    /^error: --from born=name\.length names nothing .*; name is there, and nothing at the rest/,
  ],
  [
    '--from for what all objects have',
    2,
    'Customer',
    ['--from', 'born=constructor.name'],
    /^error: --from born=constructor\.name names nothing in any line of .*; it has id, name\n$/,
  ],
  [
    '--from for no property',
    2,
    'Customer',
    ['--from', 'nam=n'],
    /^error: table Customer: unknown property "nam"; did you mean "name"\?\n$/,
  ],
  ['a table with a sequence', 2, 'Note', [], /^error: rows of table Note get a number each/],
] as const)('%s ends with %d and one sentence', async (_title, code, table, words, said) => {
  const result = await load('customers.jsonl', table, ...words)
  expect(result, result.stderr).toMatchObject({ code, stdout: '' })
  expect(result.stderr).toMatch(said)
  expect(result.stderr.trimEnd().split('\n')).toHaveLength(1)
})

test.each([
  [
    'a schema that the cluster does not have',
    ['--schema', 'Shoe', '--table', 'Customer'],
    1,
    /^error: the cluster has no schema Shoe; apply it: trilithon schema apply FILE\n$/,
  ],
  ['no table', ['--schema', 'Shop'], 2, /^error: required option '--table <NAME>' not specified\n/],
] as const)('%s is said, and nothing is loaded', async (_title, words, code, said) => {
  const result = await command('load', 'customers.jsonl', ...words)
  expect(result, result.stderr).toMatchObject({ code, stdout: '' })
  expect(result.stderr).toMatch(said)
})

test('load reports a missing file and one of another kind before it sends a request', async () => {
  expect(await load('none.jsonl', 'Customer')).toMatchObject({
    ...{
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/^error: none\.jsonl cannot be read: /),
    },
  })
  expect(await load('shop.ddl', 'Customer')).toMatchObject({
    ...{ code: 2, stdout: '', stderr: expect.stringContaining('none of .csv') },
  })
})

test('lines that are no rows of the table are rejected with line and reason, the others loaded', async () => {
  const lines = [
    '{"id":10,"name":"Ann","born":1980}',
    '{"id":11,"name":"Bob","born":"long ago"}',
    '{"id":12}',
    '{"id":"13","name":"Cy","born":null,"shoe":42}',
    '{"id":14,"name":7}',
    '[1,2]',
    '{"id":15,',
  ]
  await writeFile(join(folder, 'more.jsonl'), `${lines.join('\n')}\n`)
  const rejects = join(folder, 'rejects.jsonl')
  const result = await load('more.jsonl', 'Customer', '--rejects', rejects, '--json')
  expect(result, result.stderr).toMatchObject({ code: 1 })
  expect(JSON.parse(result.stdout)).toMatchObject({ rows: 7, created: 2, changed: 0, rejected: 5 })
  expect(result.stderr).toMatch(/^line 2: invalid: table Customer: born is .*\n/m)
  expect(result.stderr).toMatch(
    /^line 3: invalid: table Customer: name is absent; it is required$/m,
  )
  expect(result.stderr).toMatch(/^line 5: invalid: table Customer: name is /m)
  expect(result.stderr).toMatch(/^line 6: /m)
  expect(result.stderr).toMatch(/^line 7: /m)
  expect(result.stderr).toMatch(/^fields that no property takes: shoe \(1 row\)$/m)
  expect(result.stderr).not.toMatch(/^ +at /m)
  const written = (await readFile(rejects, 'utf8')).trim().split('\n')
  const numbers = written.map((line): unknown => JSON.parse(line))
  expect(numbers).toHaveLength(5)
})

test('a load counts what it changes, from JSON lines and from CSV', async () => {
  await writeFile(
    join(folder, 'buys.jsonl'),
    '{"n":{"c":[1]},"id":1,"cents":"5"}\n{"n":{"c":[2]},"id":1,"cents":7}\n',
  )
  const from = ['--from', 'customer_id=n.c.0']
  expect(await load('buys.jsonl', 'Purchase', ...from)).toMatchObject({
    ...{
      code: 0,
      stdout: expect.stringMatching(/^2 rows: 2 created, 0 already there, 0 rejected; /),
    },
  })
  await writeFile(join(folder, 'buys.csv'), 'customer_id,id,price\n1,1,5\n2,1,8\n2,2,9\n')
  expect(await load('buys.csv', 'Purchase', '--from', 'cents=price')).toMatchObject({
    ...{
      code: 0,
      stdout: expect.stringMatching(/^3 rows: 1 created, 1 changed, 1 already there, 0 rejected; /),
    },
  })
})

test('blanks of a CSV are absent, and load rejects them where a value is required', async () => {
  await writeFile(
    join(folder, 'people.csv'),
    'id,name,born\n20,Ada,1815\n21,Nobody,\n22,,5\n23,"",\n',
  )
  const result = await load('people.csv', 'Customer', '--json')
  expect(result, result.stderr).toMatchObject({ code: 1 })
  expect(JSON.parse(result.stdout)).toMatchObject({ rows: 4, created: 3, rejected: 1 })
  expect(result.stderr).toMatch(/^line 4: invalid: table Customer: name is blank; it is required/m)
  const rows = await command('rows', 'Customer', '--schema', 'Shop', '--key', '{"id":21}')
  expect(JSON.parse(rows.stdout)).toEqual({ id: 21, name: 'Nobody' })
})

test('columns with points and digits in their names are named as they are', async () => {
  await writeFile(join(folder, 'names.csv'), 'id,full.name,007\n30,Ann,1980\n')
  const from = ['--from', 'name=full.name', '--from', 'born=007']
  expect(await load('names.csv', 'Customer', ...from)).toMatchObject({ code: 0 })
  const rows = await command('rows', 'Customer', '--schema', 'Shop', '--key', '{"id":30}')
  expect(JSON.parse(rows.stdout)).toEqual({ id: 30, name: 'Ann', born: 1980 })
  expect(await load('names.csv', 'Customer', '--from', 'name=full')).toMatchObject({
    ...{ code: 2, stdout: '', stderr: expect.stringContaining('names no column of names.csv') },
  })
})

test('load reports a file without rows, and rows refuses a time outside 1970 to 2255', async () => {
  await writeFile(join(folder, 'none.csv'), 'id,name\n')
  expect(await load('none.csv', 'Customer')).toMatchObject({
    ...{ code: 0, stderr: 'none.csv has no rows\n' },
  })
  const at = ['--key', '{"id":1}', '--at', '1969-12-31']
  expect(await command('rows', 'Customer', '--schema', 'Shop', ...at)).toMatchObject({
    ...{ code: 2, stderr: expect.stringContaining('is no time from 1970 to 2255') },
  })
})

test('null in the key of an index asks for rows without a value', async () => {
  const born = [
    { id: 41, name: 'Ann', born: 1980 },
    { id: 42, name: 'Bea' },
  ]
  await writeFile(
    join(folder, 'born.jsonl'),
    born.map((one) => `${JSON.stringify(one)}\n`).join(''),
  )
  expect(await load('born.jsonl', 'Customer')).toMatchObject({ code: 0 })
  const index = (key: object): Promise<ProgramResult> =>
    command(
      ...['rows', 'Customer', '--schema', 'Shop', '--index', 'CustomersByBirth'],
      ...['--key', JSON.stringify(key)],
    )
  const found = await index({ id: 42, born: null })
  expect(found, found.stderr).toMatchObject({ code: 0 })
  expect(JSON.parse(found.stdout)).toMatchObject({ id: 42 })
  expect(await index({ id: 41, born: null })).toMatchObject({ code: 0, stdout: '' })
  expect(await index({ id: null, born: null })).toMatchObject({
    ...{ code: 2, stderr: expect.stringContaining('id is null') },
  })
})
