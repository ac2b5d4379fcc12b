/** Commands on what a cluster does not have, and loads that a signal ends: words, and the code that fits. */
import { readFile, writeFile } from 'node:fs/promises'
import { constants } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  eventually,
  runProgram,
  startCluster,
  startProgram,
  withFolder,
  type ProgramResult,
  type TestCluster,
} from './harness.ts'

let cluster: TestCluster
beforeAll(async () => {
  cluster = await startCluster({ ids: ['a'] })
})
afterAll(() => cluster?.close())

function environment(): Record<string, string> {
  return { TRILITHON_URL: cluster.urls.join(',') }
}

async function run(...words: readonly string[]): Promise<ProgramResult> {
  return runProgram(words, { environment: environment() })
}

test('the queue commands refuse an unknown queue, and say so if a known one is empty', async () => {
  const schema =
    'CREATE SCHEMA Post; CREATE TABLE T { required int64 id; } PRIMARY KEY(id), ENTITY GROUP ROOT;'
  const apply = ['schema', 'apply', '-']
  const applied = await runProgram(apply, { environment: environment(), input: schema })
  expect(applied, applied.stderr).toMatchObject({ code: 0 })
  const [show, dead, redrive, other, one, empty] = await Promise.all([
    run('queue', 'show', 'nope'),
    run('queue', 'dead', 'list', 'Nope.mail'),
    run('queue', 'redrive', 'Nope.mail'),
    run('queue', 'redrive', 'Nope.mail', '--group', '00ff', '--id', '3'),
    run('queue', 'redrive', 'Post.mail', '--group', '00ff', '--id', '3'),
    run('queue', 'show', 'Post.mail'),
  ])
  expect(show).toMatchObject({ code: 1, stdout: '' })
  expect(show.stderr).toMatch(/^error: there is no queue nope: .* \(not-found\)$/m)
  for (const { code, stderr } of [dead, redrive, other]) {
    expect(code).toBe(1)
    expect(stderr).toMatch(/^error: there is no queue Nope\.mail: the cluster has no schema Nope/m)
  }
  expect(one).toMatchObject({ code: 1 })
  expect(one.stderr).toMatch(/1 letter named by --id cannot be found among the dead letters/)
  expect(empty).toMatchObject({
    ...{ code: 0, stdout: '' },
    stderr: 'queue Post.mail has no message that waits (is the name right?)\n',
  })
})

test('index and schema commands report a missing index or message, and check lists of names', async () => {
  const query = ['index', 'query', 'nope', '-d', 'd', '--where', '{"a":1}']
  const [status, message, twice, all] = await Promise.all([
    run('index', 'status', 'nope', '-d', 'd'),
    run('schema', 'message', '/dev/null'),
    run(...query, '--select', 'n,n'),
    run(...query, '--columns', 'all,BASE'),
  ])
  expect(status).toMatchObject({
    ...{ code: 1, stderr: 'error: datastore d: there is no index nope (not-found)\n' },
  })
  expect(message).toMatchObject({ code: 2, stdout: '' })
  expect(message.stderr).toMatch(/^error: \/dev\/null has no messages: /)
  expect(twice).toMatchObject({ code: 2, stderr: 'error: --select names "n" twice\n' })
  expect(all).toMatchObject({
    code: 2,
    stderr: 'error: --columns is all, or names of columns: all goes with no others\n',
  })
})

test('lists of names in a URL are understood or refused', async () => {
  const index = `${cluster.node('a').url}/v1/datastores/d/indexes/nope?a=1`
  const said = async (more: string): Promise<unknown> => (await fetch(`${index}${more}`)).json()
  expect(await said('&select=n,n')).toMatchObject({ status: 400, detail: 'select names "n" twice' })
  expect(await said('&columns=all,BASE')).toMatchObject({
    ...{ status: 400, code: 'invalid' },
    detail: 'columns is all, or names of columns: all goes with no others',
  })
})

test.runIf(process.platform === 'linux').each(['SIGTERM', 'SIGINT'] as const)(
  '%s ends a load with its figures and the last line that was dealt with',
  (signal) =>
    withFolder(async (folder) => {
      const lines = Array.from({ length: 200_000 }, (_, i) => `{"i":${i}}\n`)
      await writeFile(join(folder, 'many.jsonl'), lines.join(''))
      const words = ['cells', 'load', 'many.jsonl', '-d', 'd', '--column', 'B']
      const program = startProgram(words, { folder, environment: environment() })
      const { pid } = program.child
      // Node.js itself catches the other two.
      const bit = BigInt(constants.signals.SIGHUP - 1)
      await eventually('it listens to signals', async () => {
        const status = await readFile(`/proc/${pid}/status`, 'utf8')
        const caught = BigInt(`0x${/SigCgt:\s*([0-9a-f]+)/.exec(status)?.[1] ?? '0'}`)
        return ((caught >> bit) & 1n) === 1n ? true : undefined
      })
      program.child.kill(signal)
      expect(await program.exited(), program.stderr()).toEqual({ code: 1, signal: undefined })
      expect(program.stdout()).toMatch(/^[\d,]+ rows?: [\d,]+ created, /)
      const last = /interrupted; the rows up to line ([\d,]+) were dealt with/
      expect(program.stderr()).toMatch(last)
    }),
)
