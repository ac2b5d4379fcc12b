/** How errors end a command: mistakes of its caller apart from bugs. */
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { expect, test, vi } from 'vitest'
import {
  exitBug,
  exitFailure,
  exitOk,
  reportFailure,
  reportLostOutput,
  shortageOfFiles,
} from '../../src/cli/exit.ts'

/** The code, and the text on stderr. */
function told(report: () => number): readonly [code: number, said: string] {
  let said = ''
  const write = vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    said += String(text)
    return true
  })
  try {
    return [report(), said]
  } finally {
    write.mockRestore()
  }
}

test('a refusal of the file system is no bug, from whatever call', async () => {
  const error: unknown = await readFile(tmpdir()).catch((found: unknown) => found)
  expect(told(() => reportFailure(error))).toEqual([
    exitFailure,
    'error: a file: it is a folder (EISDIR)\n',
  ])
  const missing: unknown = await readFile('/none/at/all').catch((found: unknown) => found)
  expect(told(() => reportFailure(missing))).toEqual([
    exitFailure,
    'error: /none/at/all: there is no such file (ENOENT)\n',
  ])
})

test('an unforeseen error counts as a bug, even if it has the code of a file error', () => {
  for (const error of [new TypeError('x'), Object.assign(new Error('x'), { code: 'ENOENT' }), 5]) {
    const [code, said] = told(() => reportFailure(error))
    expect(code).toBe(exitBug)
    expect(said).toMatch(/this is a bug of trilithon/)
  }
})

test('a reader that has had enough is no failure, and a full disk is', () => {
  const closed = Object.assign(new Error('write EPIPE'), { code: 'EPIPE' })
  expect(told(() => reportLostOutput(closed))).toEqual([exitOk, ''])
  const full = Object.assign(new Error('write'), { code: 'ENOSPC', syscall: 'write' })
  expect(told(() => reportLostOutput(full))).toEqual([
    exitFailure,
    'error: the output could not be written: the disk is full (ENOSPC)\n',
  ])
})

test('a process that may open too few files says so, whatever Node.js makes of it', () => {
  const coded = (code: string): Error => Object.assign(new Error('x'), { code })
  const text = (most: string): string =>
    `this process may have ${most} open, and needs more: raise the limit (ulimit -n 4096, or LimitNOFILE=4096 for systemd) and start it again`
  expect(shortageOfFiles(coded('EMFILE'), () => 60)).toBe(text('60 files'))
  expect(shortageOfFiles(coded('ENFILE'), () => undefined)).toBe(text('too few files'))
  expect(shortageOfFiles(coded('ERR_MODULE_NOT_FOUND'), () => 100)).toBe(text('100 files'))
  expect(shortageOfFiles(coded('ERR_MODULE_NOT_FOUND'), () => 1_024)).toBeUndefined()
  expect(shortageOfFiles(coded('ENOENT'), () => 60)).toBeUndefined()
  expect(shortageOfFiles(new Error('x'), () => 60)).toBeUndefined()
})
