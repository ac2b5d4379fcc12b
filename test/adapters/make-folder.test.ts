/** Folders are made with those above them, or refused with the words of the system, and never without end. */
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { makeFolder } from '../../src/adapters/make-folder.ts'

let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trilithon-make-folder-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

test('a folder is made with those above it, also by several at once, and one that is there is kept', async () => {
  const path = join(folder, 'a', 'b', 'c')
  await Promise.all(Array.from({ length: 8 }, () => makeFolder(path)))
  expect((await stat(path)).isDirectory()).toBe(true)
  await writeFile(join(path, 'kept'), '')
  await makeFolder(path)
  expect((await stat(join(path, 'kept'))).isFile()).toBe(true)
})

test('folders beside one another are made at once, whichever call makes those above them first', async () => {
  for (let round = 0; round < 200; round++) {
    const above = join(folder, 'nodes', String(round), 'data')
    await Promise.all(['a', 'b', 'c'].map((node) => makeFolder(join(above, node))))
    for (const node of ['a', 'b', 'c'])
      expect((await stat(join(above, node))).isDirectory()).toBe(true)
  }
})

test('a folder of a secret is made for its user alone', async () => {
  const path = join(folder, 'private', 'one')
  await makeFolder(path, 0o700)
  expect((await stat(path)).mode & 0o077).toBe(0)
})

test('a file on the way, or in its place, is refused', async () => {
  await writeFile(join(folder, 'file'), '')
  await expect(makeFolder(join(folder, 'file', 'x', 'y'))).rejects.toMatchObject({
    code: 'ENOTDIR',
  })
  await expect(makeFolder(join(folder, 'file'))).rejects.toMatchObject({ code: 'EEXIST' })
})

test.runIf(process.platform === 'linux')(
  'below a folder that takes no others, the refusal of the system comes at once',
  async () => {
    await expect(makeFolder('/proc/trilithon')).rejects.toMatchObject({ code: 'ENOENT' })
    await expect(makeFolder('/proc/trilithon/data')).rejects.toMatchObject({ code: 'ENOENT' })
  },
)
