/** `trilithon schema` as its users meet it: stdout, stderr and the exit code. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runProgram, type ProgramResult } from '../cluster/harness.ts'

const photos = fileURLToPath(new URL('../../schema/examples/photos.ddl', import.meta.url))
const fingerprint = 'd5dd26f63a145beff210f703cf01b072'
const badText = `CREATE SCHEMA S;
CREATE TABLE T {
  required strng name;
} PRIMARY KEY(name), ENTITY GROUP ROOT;
`

let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trilithon-schema-'))
  await writeFile(join(folder, 'bad.ddl'), badText)
})
afterAll(() => rm(folder, { recursive: true, force: true }))

function schema(arguments_: readonly string[], input = ''): Promise<ProgramResult> {
  return runProgram(['schema', ...arguments_], { folder, input })
}

test('check says what a good schema has, for people and for programs', async () => {
  expect(await schema(['check', photos])).toMatchObject({
    code: 0,
    stdout: `ok: schema PhotoApp, 2 tables, 2 indexes, ${fingerprint}\n`,
    stderr: '',
  })
  const { code, stdout } = await schema(['check', photos, '--json'])
  expect(code).toBe(0)
  expect(JSON.parse(stdout)).toEqual({
    ...{ ok: true, name: 'PhotoApp', fingerprint },
    ...{ tables: ['User', 'Photo'], indexes: ['PhotosByTime', 'PhotosByTag'] },
  })
})

test('check points at what is wrong, on stderr, and ends with 2', async () => {
  expect(await schema(['check', 'bad.ddl'])).toMatchObject({
    code: 2,
    stdout: '',
    stderr: `bad.ddl:3:12: strng is not a type; did you mean string?
  3 |   required strng name;
    |            ^^^^^
error: bad.ddl has 1 problem
`,
  })
  expect(await schema(['check', 'none.ddl'])).toMatchObject({
    code: 2,
    stderr: 'error: none.ddl cannot be read: there is no such file (ENOENT)\n',
  })
})

test('check tells programs the kind, the rule and the place of each problem', async () => {
  const { code, stdout } = await schema(['check', 'bad.ddl', '--json'])
  expect(code).toBe(2)
  expect(JSON.parse(stdout)).toMatchObject({
    ok: false,
    problems: [{ kind: 'unknown-type', rule: 'SCH-2', line: 3, column: 12 }],
  })
})

test('print gives the one form of the text, and takes the JSON that it gives', async () => {
  const text = await schema(['print', photos])
  expect(text).toMatchObject({ code: 0, stderr: '' })
  const json = await schema(['print', '-', '--json'], text.stdout)
  expect(JSON.parse(json.stdout)).toMatchObject({ format: 1, name: 'PhotoApp' })
  expect(await schema(['print', '-'], json.stdout)).toMatchObject({ code: 0, stdout: text.stdout })
  const spread = text.stdout.replaceAll(/\s+/g, '\n').replaceAll('CREATE', 'create')
  expect(await schema(['print', '-'], spread)).toMatchObject({ code: 0, stdout: text.stdout })
})

test('print prints nothing of a bad schema', async () => {
  expect(await schema(['print', 'bad.ddl'])).toMatchObject({ code: 2, stdout: '' })
  expect(await schema(['print', '-', '--json'], '{"format":2}')).toMatchObject({
    code: 2,
    stdout: '',
    stderr: 'stdin: format is 2, and this program knows 1\nerror: stdin has 1 problem\n',
  })
})

const descriptors = fileURLToPath(new URL('../tables/protobuf/exif.binpb', import.meta.url))

test('message lists the messages of Protocol Buffers, and prints one as properties that parse', async () => {
  const names = ['photos.Exif', 'photos.Point', 'photos.Edit', 'photos.Unfit']
  const listed = await schema(['message', descriptors])
  expect(listed).toMatchObject({ code: 0, stdout: `${names.join('\n')}\n` })
  const { stdout } = await schema(['message', descriptors, 'photos.Exif'])
  const table = `CREATE TABLE T { required int64 id; optional message exif {\n${stdout}}; }`
  const text = `CREATE SCHEMA S; ${table} PRIMARY KEY(id), ENTITY GROUP ROOT;`
  expect(await schema(['check', '-'], text)).toMatchObject({ code: 0, stderr: '' })
})

test('message says in one error what is wrong with a file or a name', async () => {
  const refused = async (...given: readonly string[]): Promise<string> => {
    const { code, stdout, stderr } = await schema(['message', ...given])
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    return stderr
  }
  expect(await refused(descriptors, 'photos.Exf')).toMatch(/did you mean "?photos\.Exif"?\?/)
  expect(await refused(descriptors, 'photos.Unfit')).toMatch(/counts is a map.*\n.*64 bits/)
  expect(await refused('bad.ddl')).toMatch(/is no file of descriptors/)
  expect(await refused('nowhere.binpb')).toMatch(/cannot be read/)
})

const wrapped = (properties: string): string =>
  `CREATE SCHEMA S;\nCREATE TABLE A { required int32 id; ${properties} } PRIMARY KEY(id), ENTITY GROUP ROOT;\n`

test('schema refuses text that is not UTF-8 with its line and column, from a file and from stdin', async () => {
  const text = wrapped('required string b DEFAULT "caf\u00e9";')
  const at = text.split('\n')[1]?.indexOf('\u00e9') ?? 0
  await writeFile(join(folder, 'latin.ddl'), Buffer.from(text, 'latin1'))
  for (const verb of ['check', 'print']) {
    expect(await schema([verb, 'latin.ddl'])).toMatchObject({
      ...{ code: 2, stdout: '' },
      stderr: `error: latin.ddl:2:${at + 1}: this is not UTF-8\n`,
    })
  }
  await writeFile(join(folder, 'mark.ddl'), `\ufeff${text}`)
  expect(await schema(['check', 'mark.ddl'])).toMatchObject({ code: 0, stderr: '' })
  const json = await schema(['print', 'mark.ddl', '--json'])
  expect(await schema(['check', '-'], `\ufeff${json.stdout}`)).toMatchObject({
    code: 0,
    stderr: '',
  })
})

test.each([
  [
    'required string b DEFAULT "\\ud800";',
    /the default "\\ud800" of b does not fit string; .* whole characters/,
  ],
  ['required string b DEFAULT "a\tb";', /a control character stands in the text; write \\t for it/],
  [
    'required string b DEFAULT "a\0b";',
    /a control character stands in the text; write \\u0000 for it[^]*"a\ufffdb"/,
  ],
  ['required string b DEFAULT "a\\q";', /has a \\ before what needs none/],
  ['required int32 b DEFAULT 2147483648;', /does not fit int32/],
  ['required float b DEFAULT 1e39;', /does not fit float/],
  ['required double b DEFAULT 1e999;', /does not fit double/],
  ['required timestamp b DEFAULT 9007199254740992;', /does not fit timestamp/],
  ['required int64 b DEFAULT 9223372036854775808;', /does not fit int64/],
  ['required bytes b DEFAULT "0";', /does not fit bytes/],
  ['required json b DEFAULT "{}";', /json has no default/],
  ['required string \0b;', /"\\u0000", which means nothing here/],
])('a default or name like that of %s is refused with its place', async (properties, said) => {
  const { code, stderr } = await schema(['check', '-'], wrapped(properties))
  expect(code).toBe(2)
  expect(stderr).toMatch(/^stdin:2:\d+: /)
  expect(stderr).toMatch(said)
})

test('a comment ends with its line, also where lines end as they once did on a Mac', async () => {
  const table = (name: string): string =>
    `CREATE TABLE ${name} { required int32 id; } PRIMARY KEY(id), ENTITY GROUP ROOT;`
  const text = ['CREATE SCHEMA S;', table('A'), '-- the second one', table('B'), '// the end', '']
  for (const ending of ['\n', '\r\n', '\r']) {
    const { stdout, stderr } = await schema(['check', '-'], text.join(ending))
    expect(stderr).toBe('')
    expect(stdout).toContain('2 tables')
  }
})

test('check refuses what apply always refuses, in the same words', async () => {
  const text = `CREATE SCHEMA S;
CREATE TABLE T { required int64 id; required string name; } PRIMARY KEY(id), ENTITY GROUP ROOT;
CREATE UNIQUE GLOBAL INDEX ByName ON T(name);
`
  const message =
    'index ByName on T is unique and global, which needs transactions over several groups; they are not there yet: make it LOCAL, or leave UNIQUE out'
  expect(await schema(['check', '-'], text)).toMatchObject({
    ...{ code: 2, stdout: '', stderr: `error: stdin: ${message}\n` },
  })
  const asJson = await schema(['check', '-', '--json'], text)
  expect(asJson.code).toBe(2)
  expect(JSON.parse(asJson.stdout)).toEqual({
    ...{ ok: false, problems: [{ kind: 'not-kept', message }] },
  })
})

test('a schema as JSON that gives a name twice is refused', async () => {
  const { stdout } = await schema(['print', photos, '--json'])
  const twice = stdout.replace('"name":', '"name":"Evil","name":')
  expect(await schema(['check', '-'], twice)).toMatchObject({
    code: 2,
    stderr: 'stdin: the name "name" is given twice in one object\nerror: stdin has 1 problem\n',
  })
})
