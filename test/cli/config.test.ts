/** `trilithon config` as users meet it: good, doubtful and wrong files, for people and scripts. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runProgram, type ProgramResult } from '../cluster/harness.ts'

const one = 'cluster: t\nnode: a\ndata: ./d\nnodes: [{ id: a, url: "http://127.0.0.1:4700" }]\n'
const warning = 'one node: there is one copy of all data, and it survives no failure'

let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trilithon-cli-config-'))
  await writeFile(join(folder, 'one.yaml'), one)
  await writeFile(join(folder, 'wrong.yaml'), `${one}secret_file: secret\n`)
  await writeFile(join(folder, 'secret'), '\n')
  await writeFile(join(folder, 'gateway.yaml'), 'nodes: ["http://127.0.0.1:4700"]\nname: g\n')
})
afterAll(() => rm(folder, { recursive: true, force: true }))

function config(...arguments_: readonly string[]): Promise<ProgramResult> {
  return runProgram(['config', ...arguments_], { folder })
}

test('config validate warns on stderr about a doubtful setting and still exits with 0', async () => {
  expect(await config('validate', '--config', 'one.yaml')).toMatchObject({
    code: 0,
    stdout: 'ok: node a of cluster t, which has 1 node\n',
    stderr: `warning: one.yaml:4:8: ${warning}\n`,
  })
  const { stdout } = await config('validate', '--config', 'one.yaml', '--json')
  expect(JSON.parse(stdout)).toMatchObject({
    ...{ ok: true, node: 'a' },
    warnings: [{ where: 'one.yaml:4:8', setting: 'nodes', text: warning }],
  })
})

test('config validate exits with 2 on a faulty configuration and reports it as JSON on request', async () => {
  const text = `the secret in ${join(folder, 'secret')} is empty; openssl rand -hex 32 makes a good one`
  expect(await config('validate', '--config', 'wrong.yaml')).toMatchObject({
    ...{ code: 2, stdout: '' },
    stderr: `error: the configuration has a problem:\n  wrong.yaml:5:14: ${text}\n`,
  })
  const { code, stdout } = await config('validate', '--config', 'wrong.yaml', '--json')
  expect(code).toBe(2)
  expect(JSON.parse(stdout)).toEqual({
    ok: false,
    problems: [{ where: 'wrong.yaml:5:14', text }],
  })
})

test('a gateway is looked at by the same rules', async () => {
  expect(await config('validate-gateway', '--config', 'gateway.yaml')).toMatchObject({
    ...{ code: 0, stderr: '' },
    stdout: 'ok: gateway g, which asks http://127.0.0.1:4700\n',
  })
  const wrong = ['--config', 'gateway.yaml', '--secret-file', 'secret', '--json']
  const { code, stdout } = await config('validate-gateway', ...wrong)
  expect(code).toBe(2)
  expect(JSON.parse(stdout)).toMatchObject({ ok: false, problems: [{ where: '--secret-file' }] })
  const printed = await config('print-gateway', '--config', 'gateway.yaml', '--json')
  expect(JSON.parse(printed.stdout)).toMatchObject({ name: { value: 'g' } })
})
