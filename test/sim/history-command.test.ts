/** `sim history FILE` as a person uses it: its words, its streams and its exit codes. */
import { spawnSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { programPath } from '../cluster/harness.ts'

const simPath = fileURLToPath(new URL('../../sim/main.js', pathToFileURL(programPath)))
let folder = ''

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trilithon-test-'))
})

afterAll(async () => {
  await rm(folder, { recursive: true, force: true })
})

interface Ended {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

async function judge(lines: readonly string[], ...flags: readonly string[]): Promise<Ended> {
  const file = join(folder, 'h.jsonl')
  await writeFile(file, lines.join('\n'))
  const args = [simPath, 'history', file, ...flags]
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  return { status, stdout, stderr: stderr.replaceAll(folder, '') }
}

const appended = '{"client":"a","op":"append","key":"x","value":5,"start":1,"end":2,"outcome":"ok"}'
const stale = '{"client":"b","op":"read","key":"x","value":[],"start":3,"end":4,"outcome":"ok"}'

test('a good history ends with 0 and says how much was judged', async () => {
  expect(await judge([appended, ''])).toEqual({
    ...{ status: 0, stderr: '', stdout: 'no anomaly in 1 operations, 1 acknowledged\n' },
  })
})

test('LEASE-3: a wrong history ends with 10 and is explained; less may be promised', async () => {
  const { status, stdout } = await judge([appended, stale])
  expect(status).toBe(10)
  expect(stdout).toContain('T1 appended 5 to x and was told so; T2 began after that')
  expect((await judge([appended, stale], '--promised', 'serializable')).status).toBe(0)
})

test('a text that is no history ends with 2 and one error, with its line', async () => {
  const errors: readonly (readonly [string, readonly string[]])[] = [
    ['/h.jsonl:3: this is no JSON (and 1 more line)', [appended, '', 'x', '{}']],
    ['/h.jsonl:1: "op" must be "append", "read" or "txn"', ['{"client":"a"}']],
    ['/h.jsonl:2: "end" is before "start"', [appended, stale.replace('"end":4', '"end":1')]],
    ['/h.jsonl holds no operation', ['', '']],
  ]
  for (const [error, lines] of errors) {
    const ended = { status: 2, stdout: '', stderr: `error: ${error}\n` }
    expect(await judge(lines), error).toEqual(ended)
  }
})
