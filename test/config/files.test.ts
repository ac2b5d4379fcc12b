/** Files that a configuration is in, or names, and that are none to be read whole. */
import { execFileSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { buildConfig } from '../../src/config/config.ts'
import { loadConfig, type LoadResult } from '../../src/config/load.ts'

const one = 'cluster: t\nnode: a\ndata: ./d\nnodes: [{ id: a, url: "http://127.0.0.1:4700" }]\n'

function reasonOf(result: LoadResult<unknown>): string | undefined {
  const [first] = result.ok ? [] : result.problems
  return first && `${first.where}: ${first.text}`
}

test('the loader refuses an endless configuration or secret, and a pipe, in one sentence', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'trilithon-config-'))
  try {
    const pipe = join(folder, 'pipe')
    execFileSync('mkfifo', [pipe])
    await writeFile(join(folder, 'large.yaml'), Buffer.alloc(9 * 1024 * 1024, 0x23))
    await writeFile(join(folder, 'a.yaml'), `${one}secret_file: /dev/zero\n`)
    await writeFile(join(folder, 'b.yaml'), `${one}secret_file: pipe\n`)
    const said = async (file: string): Promise<string | undefined> => {
      const sources = { environment: {}, flags: new Map(), workingFolder: folder }
      return reasonOf(await loadConfig({ file, ...sources }, buildConfig))
    }
    const tooLarge = 'cannot be read: it has more than 8388608 bytes'
    expect(await said('/dev/zero')).toBe(`/dev/zero: ${tooLarge}`)
    expect(await said(join(folder, 'large.yaml'))).toContain(tooLarge)
    expect(await said(join(folder, 'a.yaml'))).toContain(`secret_file /dev/zero ${tooLarge}`)
    expect(await said(pipe)).toBe(`${pipe}: cannot be read: it is a pipe; name a file`)
    expect(await said(join(folder, 'b.yaml'))).toContain('it is a pipe; name a file')
    expect(await said(folder)).toBe(`${folder}: cannot be read: it is a folder (EISDIR)`)
    expect(await said('/dev/null')).toMatch(/^\/dev\/null: is empty or not a map/)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})

test('a data folder that no start can make is refused beforehand', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'trilithon-config-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  await writeFile(join(folder, 'file'), '')
  const withData = async (data: string): Promise<string> => {
    const flags = new Map([
      ...([
        ['cluster', 'c'],
        ['node', 'a'],
        ['nodes', 'a=http://127.0.0.1:4700'],
      ] as const),
      ...([
        ['listen', '127.0.0.1:4700'],
        ['data', data],
      ] as const),
    ])
    const sources = { file: undefined, environment: {}, flags, workingFolder: folder }
    return reasonOf(await loadConfig(sources, buildConfig)) ?? ''
  }
  expect(await withData('new/deep')).toBe('')
  expect(await withData('file/deep/x')).toBe(
    `--data: data ${folder}/file/deep/x cannot be made: a part of its path is a file, not a folder (ENOTDIR)`,
  )
  expect(await withData('n'.repeat(300))).toContain('cannot be made: its name is too long')
  expect(await withData('a\0b')).toBe(
    '--data: data: "a\\u0000b" is not allowed: it names a file or folder',
  )
  if (process.platform !== 'linux') return
  const unkept = 'lies where the system keeps no files'
  expect(await withData('/sys/kernel/x')).toBe(`--data: data /sys/kernel/x ${unkept}`)
})
