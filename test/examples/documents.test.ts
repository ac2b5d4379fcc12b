/**
 * The programs and commands that README and the pages show do what these say: every program compiles and ends
 * by itself, and every command runs, from a folder like a clone, against the three nodes whose configuration
 * is shipped. A build of an index commits an entry in each of 4,096 shards: the blocks of the page that shows one have
 * those three nodes at night, and else a cluster of one, which takes a quarter of the work for the same commands.
 */
import { spawn, spawnSync, type SpawnSyncReturns } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePorts } from '../../sim/processes/free-ports.ts'
import {
  eventually,
  programPath,
  startCluster,
  startGateway,
  startProgram,
  type Program,
  type TestCluster,
  type TestGateway,
} from '../cluster/harness.ts'
import { isNightly } from '../nightly-tests.ts'
import { blocksOf, pagesOf, unitsOf, type Unit } from './blocks.ts'

const root = resolve(import.meta.dirname, '../..')
const tsc = join(root, 'node_modules/typescript/bin/tsc')
const timeoutMs = 60_000

const pages = pagesOf(root)
const blocks = pages.flatMap((page) => blocksOf(root, page))
const units = pages.flatMap((page) => unitsOf(blocksOf(root, page)))

/** The output of some of them; the others only have to end well. */
const printed: Readonly<Record<string, RegExp>> = {
  'README.md, block 2': /"created":true[^]*"kilometres":4.2[^]*"node":"a"/,
  'README.md, block 3': /^1 \{ city: 'Berlin', kilometres: 4.3 \}\n$/,
  'README.md, block 4': /^a.jpg \[ 'sea', 'sky' \]\n$/,
  'README.md, block 6': /cluster example can lose 1 more node/,
  'src/docs/cells.md, block 4': /c4f1a0de|0b5a2b2e/,
  'src/docs/gateway.md, block 3': /refKey: 1[^]*kilometres: 4.3/,
  'src/docs/holds.md, block 1': /^invalid\n$/,
  'src/docs/tables.md, block 1 and block 2': /^1 2\n$/,
}

let folder = ''
/** The compiler's run. The tests run the JavaScript that it makes: `tsx` takes four times as long to load the library. */
let compiled: SpawnSyncReturns<string> | undefined
let nodes: readonly Program[] = []
let gateways: readonly TestGateway[] = []
/** The page whose blocks have a cluster of one, `alone`, except at night. */
const indexPage = 'src/docs/cells.md'
let alone: TestCluster | undefined
/** Addresses of the pages, and where it is listened instead. */
const places = new Map<string, string>()

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trilithon-documents-'))
  const ports = await freePorts(3)
  for (const [nth, port] of ports.entries()) places.set(`127.0.0.1:470${nth}`, `127.0.0.1:${port}`)
  cpSync(join(root, 'schema/examples'), join(folder, 'schema/examples'), { recursive: true })
  nodes = ['a', 'b', 'c'].map((node) => {
    const file = join(folder, 'schema/examples', `${node}.yaml`)
    writeFileSync(file, here(readFileSync(file, 'utf8')))
    const environment = { XDG_STATE_HOME: folder }
    return startProgram(['node', '--config', file], { folder, environment })
  })
  const urls = ports.map((port) => `http://127.0.0.1:${port}`)
  await Promise.all(urls.map((url) => eventually(`${url} is ready`, () => isReady(url))))
  if (!isNightly) alone = await startCluster({ ids: ['a'] })
  gateways = await Promise.all([startGateway(urls), startGateway(urls)])
  for (const [nth, { url }] of gateways.entries()) {
    places.set(`127.0.0.1:480${nth}`, url.replace('http://', ''))
  }
  writePrograms()
  const options = { cwd: folder, encoding: 'utf8' } as const
  compiled = spawnSync(process.execPath, [tsc, '-p', folder], options)
}, timeoutMs)

afterAll(async () => {
  for (const { child } of nodes) child.kill('SIGKILL')
  await Promise.all(gateways.map((gateway) => gateway.stop('SIGKILL')))
  await Promise.all(nodes.map((node) => node.exited()))
  await alone?.close()
  await rm(folder, { recursive: true, force: true })
})

async function isReady(url: string): Promise<true | undefined> {
  const answer = await fetch(`${url}/readyz`).catch(() => undefined)
  return answer?.ok === true ? true : undefined
}

function here(text: string): string {
  return text.replaceAll(/127\.0\.0\.1:4[78]0\d/g, (place) => places.get(place) ?? place)
}

/** The text of a block, at the nodes that it has. */
function placed({ name, text }: Unit): string {
  const [url] = urlsOf(name)
  const isOne = alone !== undefined && isOfIndexes(name)
  return here(isOne ? text.replaceAll(/http:\/\/127\.0\.0\.1:470\d/g, url ?? '') : text)
}

function isOfIndexes(name: string): boolean {
  return name.startsWith(`${indexPage},`)
}

function urlsOf(name: string): readonly string[] {
  if (alone !== undefined && isOfIndexes(name)) return alone.urls
  return [0, 1, 2].map((nth) => `http://${places.get(`127.0.0.1:470${nth}`)}`)
}

/** A program's package, which depends on this one, and the command on a PATH. */
function writePrograms(): void {
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(root, join(folder, 'node_modules/trilithon'))
  symlinkSync(join(root, 'node_modules/@types'), join(folder, 'node_modules/@types'))
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  for (const unit of units) {
    if (unit.language !== 'sh') writeFileSync(join(folder, unit.file), placed(unit))
  }
  const compilerOptions = {
    ...{ strict: true, target: 'es2022', module: 'nodenext', types: ['node'] },
    ...{ skipLibCheck: false, allowJs: true, rewriteRelativeImportExtensions: true },
    ...{ rootDir: '.', outDir: 'built' },
  }
  const files = units.filter(({ language }) => language === 'ts').map(({ file }) => file)
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }))
  mkdirSync(join(folder, 'bin'))
  const command = join(folder, 'bin/trilithon')
  writeFileSync(command, `#!/bin/sh\nexec '${process.execPath}' '${programPath}' "$@"\n`)
  chmodSync(command, 0o755)
}

/** The program as JavaScript. */
function builtFile({ file }: Unit): string {
  return file.endsWith('.ts')
    ? join(folder, 'built', file.replace(/ts$/, 'js'))
    : join(folder, file)
}

interface Ran {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

async function run(unit: Unit): Promise<Ran> {
  const [command, ...rest] =
    unit.language === 'sh'
      ? ['bash', '--norc', '-e', '-c', placed(unit)]
      : [process.execPath, builtFile(unit)]
  const child = spawn(command ?? '', rest, {
    cwd: folder,
    env: {
      PATH: `${join(folder, 'bin')}:${process.env['PATH']}`,
      NODE_OPTIONS: process.env['NODE_OPTIONS'],
      ...{ NO_COLOR: '1', TRILITHON_URL: urlsOf(unit.name).join(','), XDG_STATE_HOME: folder },
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    // With all that it starts: whatever of it is left after the time goes.
    detached: true,
  })
  const endAll = (): void => {
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
  }
  const timer = setTimeout(endAll, timeoutMs)
  let [stdout, stderr] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (piece: string) => (stdout += piece))
  child.stderr.setEncoding('utf8').on('data', (piece: string) => (stderr += piece))
  const code = await new Promise<number | null>((ended) => child.once('close', ended))
  clearTimeout(timer)
  return { code, stdout, stderr }
}

test('a block that is not run says why; most are run', () => {
  const left = blocks.filter(({ reason }) => reason !== undefined)
  for (const { name, reason = '' } of left) expect(reason.length, name).toBeGreaterThan(20)
  expect(blocks.length).toBeGreaterThan(20)
  expect(left.length).toBeLessThan(blocks.length / 2)
  const names = units.map(({ name }) => name)
  expect(Object.keys(printed).filter((name) => !names.includes(name))).toEqual([])
})

test('no list of commands removes cells of the one who copies it', () => {
  const removing = blocks.filter(({ language, text }) => language === 'sh' && /purge/.test(text))
  expect(removing.map(({ name }) => name)).toEqual([])
})

test('the programs compile', () => {
  expect({ status: compiled?.status, said: compiled?.stdout }).toEqual({ status: 0, said: '' })
})

test.each(units.map((unit) => [unit.name, unit] as const))(
  '%s runs as it is written, and ends by itself',
  { timeout: 2 * timeoutMs },
  async (name, unit) => {
    const { code, stdout, stderr } = await run(unit)
    expect({ code }, `${stdout}\n${stderr}`).toEqual({ code: 0 })
    if (unit.language !== 'sh') expect(stderr).toBe('')
    expect(stdout).toMatch(printed[name] ?? /^/)
  },
)
