/** Files and streams that commands read whole: bounded, and without marks before their text. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { expect, onTestFinished, test } from 'vitest'
import { exitUsage } from '../../src/cli/exit.ts'
import { readInput, readInputBytes } from '../../src/cli/input-file.ts'
import { readBounded, readBoundedStream } from '../../src/adapters/bounded-file.ts'

async function file(bytes: string | Buffer): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'trilithon-input-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const path = join(folder, 'file')
  await writeFile(path, bytes)
  return path
}

test('a file is read up to its bound, and refused above it', async () => {
  const path = await file('a'.repeat(1_000))
  expect((await readBounded(path, 1_000))?.length).toBe(1_000)
  expect(await readBounded(path, 999)).toBeUndefined()
})

test('a stream is read up to its bound, and refused above it', async () => {
  const pieces = (): Readable => Readable.from([Buffer.from('ab'), Buffer.from('cd')])
  expect((await readBoundedStream(pieces(), 4))?.toString()).toBe('abcd')
  expect(await readBoundedStream(pieces(), 3)).toBeUndefined()
})

test.runIf(process.platform === 'linux')(
  'a file without an end is refused in a sentence',
  async () => {
    await expect(readInput('/dev/zero')).rejects.toMatchObject({
      message: '/dev/zero cannot be read: it has more than 67108864 bytes',
      exitCode: exitUsage,
    })
    await expect(readInputBytes('/dev/zero', 'the secret file')).rejects.toMatchObject({
      message: 'the secret file /dev/zero cannot be read: it has more than 67108864 bytes',
    })
  },
)

test('marks before a text are passed over, however many there are', async () => {
  expect(await readInput(await file('\uFEFF\uFEFFtable: x'))).toBe('table: x')
})
