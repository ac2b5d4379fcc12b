/** No file that a command writes is one that it reads, whatever it is called there. */
import { link, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runProgram, withFolder } from './harness.ts'

const text = 'id,n\n1,a\nbad\n2,b\n'

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
      const url = ['--url', 'http://127.0.0.1:1']
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
