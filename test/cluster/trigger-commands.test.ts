/** `trilithon trigger` as its users meet it, with the program that the documentation shows. */
import { readFileSync, symlinkSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  eventually,
  runProgram,
  startCluster,
  startProgram,
  type ProgramResult,
  type TestCluster,
} from './harness.ts'

const root = resolve(import.meta.dirname, '../..')
let cluster: TestCluster
let folder = ''

beforeAll(async () => {
  cluster = await startCluster({ ids: ['a'] })
  folder = await mkdtemp(join(tmpdir(), 'trilithon-triggers-'))
  await mkdir(join(folder, 'node_modules'))
  symlinkSync(root, join(folder, 'node_modules', 'trilithon'))
  const page = readFileSync(join(root, 'src/docs/triggers.md'), 'utf8')
  const program = /```js\n([^]*?)```/.exec(page)?.[1] ?? ''
  await writeFile(join(folder, 'package.json'), '{"type":"module"}')
  await writeFile(join(folder, 'billing.js'), program)
})
afterAll(async () => {
  await cluster?.close()
  await rm(folder, { recursive: true, force: true })
})

function environment(): Record<string, string> {
  return { TRILITHON_URL: cluster.urls.join(',') }
}

/** Unjoined: the program of the page and the command share one copy of the library, as in a package. */
function unjoined(): Record<string, string> {
  return { ...environment(), NODE_OPTIONS: '' }
}

async function trigger(...arguments_: readonly string[]): Promise<ProgramResult> {
  // All others load no program, and start in a fraction of the time.
  const own = arguments_[0] === 'run' ? unjoined() : environment()
  return runProgram(['trigger', ...arguments_], { folder, environment: own })
}

/** Rows of two riders, in two shards. */
const ann = '0b2f6f0e-6f0a-4c0e-8f59-6d1f5a2c7e31'
const bob = '5a0bc1f5-b5fb-4117-9799-5a615c365c49'

async function put(row: string, body: unknown): Promise<void> {
  const command = ['cells', 'put', row, 'BASE', '0', JSON.stringify(body), '-d', 'trips']
  expect(await runProgram(command, { folder, environment: environment() })).toMatchObject({
    code: 0,
  })
}

test('the documented program bills riders, and the commands show it and mend failures', async () => {
  const running = startProgram(['trigger', 'run', 'billing.js', '--workers', '2'], {
    folder,
    environment: unjoined(),
  })
  try {
    const told = 'datastore trips has no cells yet'
    await eventually(told, async () => (running.stderr().includes(told) ? true : undefined))
    await put(ann, { rider: 'Ann', fare: 7 })
    await eventually('Ann pays', async () =>
      running.stdout().includes('Ann pays 7') ? true : undefined,
    )
    expect(running.stderr()).toContain(
      'service billing: 2 workers for bill-rider; Ctrl-C ends them',
    )

    const shown = await eventually('both have shards', async () => {
      const { stdout } = await trigger('status', 'billing', '--json')
      const status: { workers: { shards: number }[]; moving: number } = JSON.parse(stdout)
      const isSpread =
        status.workers.length === 2 && status.workers.every(({ shards }) => shards === 2048)
      return isSpread ? status : undefined
    })
    expect(shown).toMatchObject({
      service: 'billing',
      triggers: [{ trigger: 'bill-rider', state: 'running' }],
    })

    expect(await trigger('pause', 'billing', 'bill-rider')).toMatchObject({
      ...{ code: 0, stdout: 'bill-rider: paused, paused by hand\n', stderr: '' },
    })
    await eventually('both workers know', async () => {
      const told = running.stderr().match(/bill-rider is paused/g) ?? []
      return told.length === 2 ? true : undefined
    })
    await put(bob, { rider: 'Bob', fare: 8 })
    const { stdout } = await runProgram(
      ['cells', 'get', bob, 'BASE', '0', '--json', '-d', 'trips'],
      {
        ...{ folder, environment: environment() },
      },
    )
    expect(JSON.parse(stdout)).toMatchObject({ addedId: 1 })
    const offsets = await trigger('status', 'billing', '--shards', '--json')
    const { offsets: found }: { offsets: { shards: { shard: number; after: number }[] }[] } =
      JSON.parse(offsets.stdout)
    const shard = String(found[0]?.shards.find(({ after }) => after === 0)?.shard)
    const skipped = await trigger('skip', 'billing', 'bill-rider', '--shard', shard)
    expect(skipped.stderr).toBe('')
    expect(skipped.stdout).toBe(`skipped ${bob} BASE 0: it is among the marked cells now\n`)
    const listed = await trigger('marked', 'list', 'billing', 'bill-rider')
    expect(listed.stdout).toContain(`${bob} BASE 0`)
    expect(listed.stdout).toContain('skipped by hand')
    expect((await trigger('resume', 'billing', 'bill-rider')).stdout).toBe('bill-rider: running\n')
    expect(running.stdout()).not.toContain('Bob')
    expect((await trigger('marked', 'retry', 'billing', 'bill-rider')).stdout).toBe(
      '1 cell to be handled again\n',
    )
    await eventually('Bob pays', async () =>
      running.stdout().includes('Bob pays 8') ? true : undefined,
    )
    await eventually('no cell is marked', async () => {
      const { stderr } = await trigger('marked', 'list', 'billing', 'bill-rider')
      return stderr === 'no cell is marked\n' ? true : undefined
    })

    const again = await trigger('replay', 'billing', 'bill-rider', '--since', '2020-01-01')
    expect(again.stdout).toBe('bill-rider goes back in 2 shards\n')
    running.child.kill('SIGTERM')
    expect(await running.exited()).toMatchObject({ code: 0 })
    // A rider who has paid does not pay again.
    expect(running.stdout().match(/Ann pays/g)).toHaveLength(1)
  } finally {
    running.child.kill('SIGKILL')
  }
})

test('workers end with the command that started them, though it is killed while they start', async () => {
  const running = startProgram(['trigger', 'run', 'billing.js', '--workers', '3'], {
    folder,
    environment: unjoined(),
  })
  const started = (): readonly number[] =>
    [...running.stderr().matchAll(/worker \d: process (\d+)/g)].map(([, pid]) => Number(pid))
  await eventually('all are started', async () => (started().length === 3 ? true : undefined))
  running.child.kill('SIGKILL')
  const left = (): readonly number[] => started().filter(isRunning)
  try {
    const ended = async (): Promise<true | undefined> => (left().length === 0 ? true : undefined)
    expect(await eventually('all have ended', ended)).toBe(true)
  } finally {
    for (const pid of left()) process.kill(pid, 'SIGKILL')
  }
})

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

test.each([
  [['run', 'nothing.js'], 2, 'error: nothing.js cannot be read: there is no such file'],
  [
    ['run', 'billing.js', '--workers', '0'],
    2,
    'error: --workers wants a number from 1 to 256, not "0"',
  ],
  [
    ['run', 'billing.js', '--workers', '1.5'],
    2,
    'error: --workers wants a whole number, not "1.5"',
  ],
  [['run', 'empty.js'], 2, 'error: empty.js has no triggers'],
  [['run', 'broken.js'], 1, 'error: broken.js does not run: no such card'],
  [['run', 'datastore.js'], 2, 'error: datastore.js: service s: the datastore name "Trips" is not'],
  [['status', 'nobody'], 1, 'error: there is no service nobody'],
  [['pause', 'nobody', 'x'], 1, 'error: there is no service nobody'],
  [['skip', 's', 't', '--shard', '5000'], 2, 'error: --shard wants a number from 0 to 4095'],
  [['replay', 's', 't'], 2, 'error: replay wants a place'],
  [['replay', 's', 't', '--after', '3'], 2, 'error: --after wants --shard'],
  [['marked', 'retry', 's', 't', '--id', '3'], 2, 'error: --id wants --shard'],
])('%j is refused with one sentence', async (arguments_, code, message) => {
  await writeFile(join(folder, 'empty.js'), 'export const a = 1\n')
  await writeFile(join(folder, 'broken.js'), "throw new Error('no such card')\n")
  const bad = "export default defineTriggers({ service: 's', datastore: 'Trips', triggers: [] })\n"
  const text = `import { defineTriggers } from 'trilithon/triggers'\n${bad}`
  await writeFile(join(folder, 'datastore.js'), text)
  const said = await trigger(...arguments_)
  expect(said).toMatchObject({ code, stdout: '' })
  expect(said.stderr).toContain(message)
  expect(said.stderr.trim().split('\n')).toHaveLength(1)
})
