/**
 * Faults on real processes: a few seconds of every kind, and the processes and files that an ended
 * run leaves behind. The nodes are those that `npm test` builds first.
 */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Fault } from '../../sim/faults/fault.ts'
import { drawProcessPlan, nameFault } from '../../sim/processes/plan.ts'
import { runOpenLoad } from '../../sim/processes/open-load.ts'
import { runOnProcesses } from '../../sim/processes/run.ts'
import { WayProxy } from '../../sim/processes/way-proxy.ts'
import { programPath } from '../cluster/harness.ts'
import { simHere } from './command.ts'

const simPath = fileURLToPath(new URL('../../sim/main.js', pathToFileURL(programPath)))
const oldFolder = process.env['TMPDIR']
let folder = ''

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trilithon-test-'))
  process.env['TMPDIR'] = folder
})

afterAll(async () => {
  if (oldFolder === undefined) delete process.env['TMPDIR']
  else process.env['TMPDIR'] = oldFolder
  await rm(folder, { recursive: true, force: true })
})

const [second, half] = [1_000_000, 500_000]

/** One of each kind within six seconds; several are under way at once. */
const faults: readonly Fault[] = [
  { kind: 'reset', atMicros: half, between: ['n1', 'n2'] },
  { kind: 'crash', atMicros: second, node: 'n1', downMicros: 200_000 },
  { kind: 'lose-reply', atMicros: second, node: 'n2' },
  {
    ...{ kind: 'cut', atMicros: 1_500_000, lengthMicros: half, resets: true, name: 'split' },
    ways: waysAround('n3'),
  },
  {
    ...{ kind: 'cut', atMicros: 2_200_000, lengthMicros: half, resets: false, name: 'one-way' },
    ways: [['n2', 'n1']],
  },
  { kind: 'pause', atMicros: 2_600_000, node: 'n3', lengthMicros: half },
  { kind: 'client-death', atMicros: 2_800_000, client: 'c1', downMicros: 300_000 },
  { kind: 'clog', atMicros: 3_200_000, lengthMicros: 400_000, ways: [['n1', 'n3']] },
  { kind: 'slow-node', atMicros: 3_400_000, node: 'n2', lengthMicros: half, extraMicros: 30_000 },
  { kind: 'storm', atMicros: 3_500_000, lengthMicros: half },
  { kind: 'stop', atMicros: 4_200_000, node: 'n2', downMicros: 100_000 },
  { kind: 'crash', atMicros: 5_000_000, node: 'n1', downMicros: 100_000, name: 'crash-all' },
  { kind: 'crash', atMicros: 5_000_000, node: 'n3', downMicros: 300_000, name: 'crash-all' },
]

function waysAround(node: string): readonly (readonly [string, string])[] {
  const others = ['n1', 'n2', 'n3', 'c1', 'c2'].filter((name) => name !== node)
  return others.flatMap((other) => [[node, other] as const, [other, node] as const])
}

test('TXN-1, LEASE-3: answers of real nodes are strictly serialisable under every kind of fault', async () => {
  expect(existsSync(programPath), `${programPath}: npm run build`).toBe(true)
  const seen: number[] = []
  const result = await runOnProcesses({
    plan: { seed: 1, seconds: 6, clientCount: 4, faults },
    program: programPath,
    onProgress: ({ seconds }) => void seen.push(seconds),
  })
  expect(result.violations).toEqual([])
  expect(result.outcome).toBe('clean')
  expect(result.neverStruck).toEqual([])
  expect(Object.keys(result.faults).sort()).toEqual([...new Set(faults.map(nameFault))].sort())
  expect(result.acknowledged).toBeGreaterThan(100)
  expect(result.history.length).toBe(result.operations)
  expect(seen.length).toBeGreaterThan(3)
  expect(await readdir(folder)).toEqual([])
})

test('META-3: a run that is ended by Ctrl-C says so in one line and leaves no process and no folder', async () => {
  const flags = ['--seed', '3', '--seconds', '60', '--replace', '1']
  const child = spawn(process.execPath, [simPath, 'processes', ...flags], {
    env: { ...process.env, NO_COLOR: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  try {
    const said = textOf(child)
    await said.until('faults and load')
    const nodes = childrenOf(child)
    expect(nodes.length).toBe(3)
    const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
    child.kill('SIGINT')
    // An impatient operator presses it twice.
    child.kill('SIGINT')
    expect(await ended).toBe(130)
    expect(said.text().trim().split('\n').at(-1)).toBe('ended by SIGINT; nothing was judged')
    expect(nodes.filter(isAlive)).toEqual([])
    expect(await readdir(folder)).toEqual([])
  } finally {
    child.kill('SIGKILL')
  }
})

test('processes refuses flags that say nothing together, with one sentence', async () => {
  for (const [flags, said] of [
    [['--replace', '0'], '--replace must be at least 1'],
    [['--load', '5', '--replace', '3'], '--load goes without faults, --replace among them'],
  ] as const) {
    const { code, stdout, stderr } = await simHere('processes', ...flags)
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toContain(said)
    expect(stderr.trim().split('\n')).toHaveLength(1)
  }
})

interface Said {
  text(): string
  /** Resolves when the text is said; rejects when the process ends without it. */
  until(text: string): Promise<void>
}

function textOf(child: ChildProcess): Said {
  let all = ''
  const take = (chunk: Buffer): void => {
    all += chunk.toString()
  }
  child.stderr?.on('data', take)
  child.stdout?.on('data', take)
  return {
    text: () => all,
    until: (text) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          if (all.includes(text)) resolve()
        }
        child.stderr?.on('data', look)
        child.once('close', () => reject(new Error(`ended: ${all}`)))
        look()
      }),
  }
}

function childrenOf({ pid }: ChildProcess): readonly number[] {
  const { stdout } = spawnSync('pgrep', ['-P', String(pid)], { encoding: 'utf8' })
  return stdout.split('\n').filter(Boolean).map(Number)
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    // There is no such process any more.
    return false
  }
}

test('META-1: a plan is a function of its seed, and all that it draws can be done to processes', () => {
  const plan = drawProcessPlan(11, 300)
  expect(plan).toEqual(drawProcessPlan(11, 300))
  expect(plan.faults).not.toEqual(drawProcessPlan(12, 300).faults)
  const kinds = new Set(plan.faults.map(({ kind }) => kind))
  expect([...kinds].sort()).toEqual(
    ['clog', 'client-death', 'crash', 'cut', 'lose-reply', 'pause', 'reset', 'slow-node']
      .concat(['stop', 'storm'])
      .sort(),
  )
  expect(plan.faults.every(({ atMicros }) => atMicros < 300 * second)).toBe(true)
})

test('a way that is cut holds what is sent, in that direction alone, and gives it back', async () => {
  const accepted: Socket[] = []
  const server = createServer((socket) => {
    accepted.push(socket)
    socket.write('hello')
    socket.on('data', (bytes) => socket.write(bytes))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  const proxy = await WayProxy.open({ targetPort: address.port })
  const dialer = connect({ port: Number(new URL(proxy.url).port), host: '127.0.0.1' })
  try {
    let got = ''
    const told = (text: string): Promise<void> =>
      new Promise((resolve) => {
        const look = (): void => {
          if (got.endsWith(text)) resolve()
        }
        dialer.on('data', look)
        look()
      })
    dialer.on('data', (bytes: Buffer) => (got += bytes.toString()))
    await told('hello')
    proxy.forward.cut()
    dialer.write('a')
    // Bytes the other way pass: the proof that the one way was cut, not the connection.
    for (const socket of accepted) socket.write('!')
    await told('hello!')
    proxy.forward.mend()
    await told('hello!a')
    expect(got).toBe('hello!a')
  } finally {
    dialer.destroy()
    await proxy.close()
    server.close()
  }
})

test('LOAD-10: puts that come at a fixed rate are counted and judged on real nodes', async () => {
  const result = await runOpenLoad({ seed: 1, rate: 400, seconds: 1, program: programPath })
  expect(result.violations).toEqual([])
  expect(result.outcome).toBe('clean')
  expect(result.asked).toBeGreaterThan(300)
  expect(result.acknowledged).toBeGreaterThan(0)
  expect(result.acknowledged + result.refused).toBeGreaterThan(0.9 * result.asked)
  expect(result.afterwards.acknowledged).toBe(result.afterwards.asked)
})
