/** Files that a configuration is in, or names, and that are none to be read whole. */
import { execFileSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
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
