import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { packageRoot } from '../../sim/mutant-copy.ts'
import { compareRuns, runSeed } from '../../sim/run.ts'

interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

async function sim(...args: readonly string[]): Promise<Ended> {
  const root = await packageRoot()
  const command = ['--import', 'tsx', join(root, 'sim', 'main.ts'), ...args]
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, command, { cwd: root })
    let stdout = ''
    let stderr = ''
    child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
    child.on('error', reject)
    child.on('close', (code) => {
      resolve({ code, stdout, stderr })
    })
  })
}

test('wrong usage ends with 2 and says what was expected', async () => {
  for (const args of [['run'], ['run', '--seeds', '5..1'], ['run', '--seed', 'x'], ['unknown']]) {
    const { code, stdout, stderr } = await sim(...args)
    expect(code, args.join(' ')).toBe(2)
    expect(stdout).toBe('')
    expect(stderr).toContain('error:')
  }
}, 60_000)

test('a clean seed ends with 0 and prints its options and its hash', async () => {
  const { code, stdout } = await sim('run', '--seed', '2', '--check')
  expect(code).toBe(0)
  expect(stdout).toContain('options {"seed":2,')
  expect(stdout).toMatch(/seed 2: clean, hash [0-9a-f]{16}/)
}, 60_000)

test('META-1: seeds spread over processes take the same course as one after another', async () => {
  const { code, stdout } = await sim('run', '--seeds', '3..5', '--jobs', '2', '--json')
  expect(code).toBe(0)
  const summary: unknown = JSON.parse(stdout)
  let events = 0
  let commits = 0
  for (const seed of [3, 4, 5]) {
    const alone = await runSeed(seed)
    events += alone.events
    commits += alone.commits
  }
  expect(summary).toMatchObject({ seeds: 3, violations: 0, failed: [], events, commits })
}, 120_000)

test('META-1: two runs of a seed with different hashes are reported as such', async () => {
  const result = await runSeed(2)
  expect(compareRuns(result, result)).toBe(result)
  const other = compareRuns(result, { ...result, hash: '0000000000000000' })
  expect(other.outcome).toBe('nondeterminism')
  expect(other.violations[0]?.rule).toBe('META-1')
})
