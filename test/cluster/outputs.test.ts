/**
 * Files of commands: inputs and outputs that are no files, outputs that cannot be written, or are the input.
 */
import { execFile } from 'node:child_process'
import { link, mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { programPath, runProgram, withFolder } from './harness.ts'

const text = 'id,n\n1,a\nbad\n2,b\n'
const url = ['--url', 'http://127.0.0.1:1']

test.each(['my.csv', 'soft.csv', 'hard.csv', '../my.csv'])(
  '--rejects %s is the input',
  async (name) => {
    await withFolder(async (folder) => {
      const input = join(folder, 'my.csv')
      await writeFile(input, text)
      await symlink(input, join(folder, 'soft.csv'))
      await link(input, join(folder, 'hard.csv'))
      const rejects = name.startsWith('..')
        ? join(folder, '..', folder.split('/').at(-1) ?? '', 'my.csv')
        : join(folder, name)
      for (const words of [
        ['cells', 'load', ...url, '-d', 'd', '--column', 'B', input, '--rejects', rejects],
        ['load', ...url, '--schema', 'S', '--table', 'T', input, '--rejects', rejects],
      ]) {
        const { code, stderr } = await runProgram(words)
        expect([code, stderr]).toEqual([2, expect.stringContaining('is the file that is read')])
        expect(await readFile(input, 'utf8')).toBe(text)
      }
    })
  },
)

test.each([
  ['cells load', ['cells', 'load', ...url, '-d', 'd', '--column', 'B', 'x.csv'], 1],
  ['load', ['load', ...url, '--schema', 'S', '--table', 'T', 'x.csv'], 1],
  ['schema check', ['schema', 'check', 'x.csv'], 2],
  ['schema apply', ['schema', 'apply', ...url, 'x.csv'], 2],
  ['schema message', ['schema', 'message', 'x.csv'], 2],
  ['index apply', ['index', 'apply', ...url, 'x.csv'], 2],
  ['trigger run', ['trigger', 'run', ...url, 'x.csv'], 2],
  ['config validate', ['config', 'validate', '--config', 'x.csv'], 2],
  ['node', ['node', '--config', 'x.csv'], 2],
  ['a secret', ['cells', 'latest', ...url, '-d', 'd', 'r', '--secret-file', 'x.csv'], 2],
  [
    'rejected lines',
    ['cells', 'load', ...url, '-d', 'd', '--column', 'B', 'good.csv', '--rejects', 'x.csv'],
    2,
  ],
] as const)(
  '%s with a folder, a circle of links or nothing ends with a sentence',
  async (_title, words, code) => {
    await withFolder(async (folder) => {
      await writeFile(join(folder, 'good.csv'), text)
      await mkdir(join(folder, 'folder'))
      await symlink('circle', join(folder, 'circle'))
      for (const kind of ['folder', 'circle', 'good.csv/x.csv']) {
        const name = kind.includes('/') ? kind : `${kind}.csv`
        if (!kind.includes('/')) await symlink(kind, join(folder, name))
        const given = words.map((word) => (word === 'x.csv' ? name : word))
        const result = await runProgram(given, { folder })
        expect(result, result.stderr).toMatchObject({ code, stdout: '' })
        expect(result.stderr).toMatch(/^error: /)
        expect(result.stderr).toMatch(/folder|go round|not a folder|a file, not/)
        expect(result.stderr).not.toMatch(/bug of trilithon|\n +at /)
      }
    })
  },
)

/** The command in a shell line, as `$T`: how it ended and what it said. */
function inShell(line: string): Promise<{ readonly code: number; readonly stderr: string }> {
  const T = `'${process.execPath}' '${programPath}'`
  return new Promise((resolve) => {
    const options = { timeout: 20_000 }
    execFile('/bin/bash', ['-c', line.replaceAll('$T', T)], options, (error, _stdout, stderr) => {
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, stderr })
    })
  })
}

test('a command reports an output that cannot be written, also when it is the last thing', async () => {
  for (const words of ['--version', 'completion bash', 'cells --help']) {
    const { code, stderr } = await inShell(`$T ${words} > /dev/full`)
    expect([code, stderr]).toEqual([
      1,
      'error: the output could not be written: the disk is full (ENOSPC)\n',
    ])
  }
  expect(await inShell('$T --version 2> /dev/full')).toMatchObject({ code: 0 })
})

test('a reader that has had enough ends a command in silence', async () => {
  const line = '$T completion bash | head -1 > /dev/null; exit ${PIPESTATUS[0]}'
  expect(await inShell(line)).toEqual({ code: 0, stderr: '' })
  const failing = '$T config validate --json --config /none | true; exit ${PIPESTATUS[0]}'
  expect(await inShell(failing)).toMatchObject({ code: 2 })
  expect(await inShell('$T completion bash | true; exit ${PIPESTATUS[0]}')).toEqual({
    code: 0,
    stderr: '',
  })
})

test('load reports that it cannot write the rejected lines', async () => {
  await withFolder(async (folder) => {
    await writeFile(join(folder, 'bad.jsonl'), 'bad\n')
    const load = ['cells', 'load', ...url, '-d', 'd', '--column', 'B', 'bad.jsonl']
    const result = await runProgram([...load, '--rejects', '/dev/full'], { folder })
    expect(result).toMatchObject({ code: 1 })
    expect(result.stderr).toMatch(
      /^error: --rejects \/dev\/full could not be written: the disk is/m,
    )
  })
})
