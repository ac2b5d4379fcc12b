/** Reports say of which sources they are. */
import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { buildIn, describeBuild } from '../../bench/build.ts'
import { findProgram } from '../../bench/compare/servers.ts'
import { withFolder } from '../cluster/harness.ts'
import { benchPath, runBench } from './program.ts'

const hasGit = (await findProgram('git')) !== undefined

async function commitAll(folder: string): Promise<void> {
  const who = ['-c', 'user.name=bench', '-c', 'user.email=bench@localhost']
  for (const args of [
    ['init', '-q'],
    ['add', '.'],
    [...who, 'commit', '-q', '-m', 'All'],
  ]) {
    await promisify(execFile)('git', ['-C', folder, ...args])
  }
}

test.runIf(hasGit)('a build is a commit, and whether its files have changed', () =>
  withFolder(async (folder) => {
    const source = join(folder, 'bench', 'main.ts')
    await mkdir(dirname(source))
    await writeFile(source, 'as it was')
    expect(await buildIn(folder)).toBeUndefined()
    await commitAll(folder)
    await writeFile(join(folder, 'report.html'), 'new')
    const build = await buildIn(dirname(source))
    expect(build).toEqual({ revision: expect.stringMatching(/^[0-9a-f]{40}$/), isChanged: false })
    await writeFile(source, 'as it is')
    expect(await buildIn(folder)).toEqual({ ...build, isChanged: true })
  }),
)

test.runIf(hasGit)('a repository other than this project’s gives no build', () =>
  withFolder(async (folder) => {
    await writeFile(join(folder, 'their.ts'), '')
    await commitAll(folder)
    expect(await buildIn(folder)).toBeUndefined()
  }),
)

test('every report has the build, in JSON and in words', () =>
  withFolder(async (folder) => {
    const rows = join(folder, 'rows.jsonl')
    await writeFile(rows, '{"a":1}\n{"a":2}\n')
    const build = await buildIn(dirname(benchPath))
    const { stdout } = await runBench(['bodies', rows, '--rounds', '1', '--json'])
    const report: unknown = JSON.parse(stdout)
    expect(report).toMatchObject({ bench: 'bodies', ...(build !== undefined && { build }) })
    const words = await runBench(['bodies', rows, '--rounds', '1'])
    expect(words.stdout).toContain(build === undefined ? 'rows.jsonl' : describeBuild(build))
  }))
