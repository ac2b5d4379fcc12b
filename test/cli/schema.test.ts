/** `trilithon schema` as its users meet it: what stands on stdout, what on stderr, the exit code. */
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
