/** Slips that a command refuses before it does anything: flags, files and folders that are none of its own. */
import { spawnSync } from 'node:child_process'
import { mkdir, mkdtemp, open, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { programPath, runProgram } from '../cluster/harness.ts'

let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trilithon-slips-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

test('a flag of the program behind a verb is none, and help is of commands that there are', async () => {
  const shown = await runProgram(['schema', 'show', 'Shop', '--version', '1'])
  expect(shown).toMatchObject({ code: 2, stdout: '' })
  expect(shown.stderr).toMatch(/unknown option '--version'/)
  expect(await runProgram(['help', 'shema'])).toMatchObject({
    ...{ code: 2, stdout: '', stderr: 'error: unknown command "shema"; did you mean "schema"?\n' },
  })
  const version = await runProgram(['--version'])
  expect(version).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) })
})

test('few files, a folder as stdin, and a folder of a node for the demonstration: refused in words', async () => {
  // With a file for each module, as a user starts it.
  const environment = { NODE_OPTIONS: '' }
  const few = await runProgram(['node', '--data', 'x'], { folder, environment, openFiles: 60 })
  expect(few.code).toBe(1)
  expect(few.stderr).toContain(
    'error: this process may have 60 files open, and needs more: raise the limit (ulimit -n 4096, or LimitNOFILE=4096 for systemd) and start it again\n',
  )
  const stdin = await open(folder)
  const program = spawnSync(process.execPath, [programPath, 'schema', 'check', '-'], {
    ...{ stdio: [stdin.fd, 'pipe', 'pipe'], encoding: 'utf8' },
  })
  await stdin.close()
  expect(program.stderr).toContain('error: stdin cannot be read: it is a folder\n')
  expect(program.status).toBe(2)
  const data = join(folder, 'node')
  await mkdir(data)
  await writeFile(join(data, 'owner.json'), '')
  expect(await runProgram(['demo', '--data', data, '--exit'])).toMatchObject({
    ...{ code: 1, stdout: '' },
    stderr: `error: the folder ${data} is the data folder of a node, by the owner.json in it; name another one with --data\n`,
  })
  expect(await readdir(data)).toEqual(['owner.json'])
})

test('a module of triggers that ends the process while it is loaded is no success', async () => {
  const path = join(folder, 'ends.mjs')
  await writeFile(path, 'process.exit(0)\n')
  expect(await runProgram(['trigger', 'run', path])).toMatchObject({
    ...{ code: 1, stdout: '' },
    stderr: `error: ${path} ended the process while it was loaded: take process.exit out of it\n`,
  })
})
