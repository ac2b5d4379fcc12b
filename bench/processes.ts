/**
 * Node processes on loopback with a temporary data folder each, for benches: started, watched (CPU
 * and memory from the operating system's accounting), drained and stopped. Only its own children.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePorts } from '../sim/processes/free-ports.ts'

/** The built command line. */
export const cliPath: string = fileURLToPath(new URL('../src/cli/main.js', import.meta.url))
const ticksPerSecond = 100
const readyWaitMs = 20_000
const drainWaitMs = 120_000
const endWaitMs = 10_000

/** A node's name, address and configuration file, whether or not it runs. */
export interface NodePlace {
  readonly id: string
  readonly url: string
  /** Its configuration file, which names its data folder. */
  readonly config: string
}

export interface NodeProcess {
  readonly id: string
  readonly url: string
  readonly child: ChildProcess
}

export interface BenchCluster {
  readonly nodes: readonly NodeProcess[]
  readonly urls: readonly string[]
  stop(): Promise<void>
}

/**
 * Resolves when all of them are ready; when one is not in time, none is left running. `cli`: the command
 * line of this build, or of another one. `more`: lines of each node's configuration.
 */
export async function startCluster(
  nodeCount = 3,
  cli: string = cliPath,
  more: readonly string[] = [],
): Promise<BenchCluster> {
  const folder = await mkdtemp(join(tmpdir(), 'trilithon-bench-'))
  const nodes: NodeProcess[] = []
  const stop = async (): Promise<void> => {
    await Promise.all(nodes.map((node) => stopProcess(node.child)))
    await rm(folder, { recursive: true, force: true })
  }
  try {
    for (const place of await placeNodes(folder, nodeCount, more))
      nodes.push(startNode(place, { cli }))
    for (const node of nodes) await waitReady(node)
  } catch (error) {
    await stop()
    throw error
  }
  return { nodes, urls: nodes.map(({ url }) => url), stop }
}

/**
 * Writes the configuration of a cluster, whose data folders are in `folder` too; nothing runs yet. `more`: lines of each
 * node's configuration.
 */
export async function placeNodes(
  folder: string,
  nodeCount: number,
  more: readonly string[] = [],
): Promise<NodePlace[]> {
  const ports = await freePorts(nodeCount)
  const places = ports.map((port, i) => ({
    id: `n${i + 1}`,
    url: `http://127.0.0.1:${port}`,
    config: join(folder, `n${i + 1}.yaml`),
  }))
  for (const { id, url, config } of places) {
    const text = renderConfig(id, new URL(url).host, join(folder, id), places)
    await writeFile(config, `${text}${more.map((line) => `${line}\n`).join('')}`)
  }
  return places
}

export interface StartOptions {
  /** The command line of this build, or of another one. */
  readonly cli?: string
  /** The way of its stderr. */
  readonly log?: 'inherit' | 'pipe'
  readonly environment?: Readonly<Record<string, string>>
}

/** Starts the process, and waits for nothing. */
export function startNode(
  { id, url, config }: NodePlace,
  { cli = cliPath, log = 'inherit', environment = {} }: StartOptions = {},
): NodeProcess {
  const child = spawn(process.execPath, [...engineFlags(cli), cli, 'node', '--config', config], {
    stdio: ['ignore', 'ignore', log],
    env: { ...process.env, TRILITHON_LOG_LEVEL: 'warn', ...environment },
  })
  return { id, url, child }
}

/** The flags that the command asks of the engine in its first line, as when it is run by its name. */
function engineFlags(cli: string): readonly string[] {
  const [firstLine = ''] = readFileSync(cli, 'utf8').split('\n', 1)
  return firstLine.split(' ').filter((word) => word.startsWith('--'))
}

function renderConfig(
  id: string,
  listen: string,
  data: string,
  nodes: readonly { readonly id: string; readonly url: string }[],
): string {
  const lines = nodes.map((node) => `  - id: ${node.id}\n    url: ${node.url}`)
  return `cluster: bench\nnode: ${id}\nlisten: ${listen}\ndata: ${data}\nnodes:\n${lines.join('\n')}\n`
}

export interface WaitOptions {
  readonly waitMs?: number
  readonly pollMs?: number
  /** Ends the wait; it rejects then. */
  readonly signal?: AbortSignal
}

/** Rejects when the process has ended, or is not ready in time. */
export async function waitReady(node: NodeProcess, options: WaitOptions = {}): Promise<void> {
  const { waitMs = readyWaitMs, pollMs = 50, signal } = options
  const end = performance.now() + waitMs
  while (performance.now() < end) {
    signal?.throwIfAborted()
    if (hasEnded(node.child)) throw new Error(`${node.id} ended at start`)
    if (await isOk(`${node.url}/readyz`, signal)) return
    await pause(pollMs)
  }
  throw new Error(`${node.id} was not ready within ${waitMs} ms`)
}

export function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null
}

async function isOk(url: string, signal: AbortSignal | undefined): Promise<boolean> {
  try {
    return (await fetch(url, signal === undefined ? {} : { signal })).ok
  } catch {
    // Not listening yet, or the caller has given up.
    return false
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** Resolves when it has ended: in order, or killed when the caller wants that or it takes too long. */
export async function stopProcess(
  child: ChildProcess,
  signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM',
): Promise<void> {
  if (hasEnded(child)) return
  child.kill(signal)
  await endProcess(child)
}

/** Resolves when it has ended; kills a process that takes too long. */
export async function endProcess(child: ChildProcess): Promise<void> {
  if (hasEnded(child)) return
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const timer = setTimeout(() => child.kill('SIGKILL'), endWaitMs)
  await ended
  clearTimeout(timer)
}

/** User and system seconds that a process has used so far. */
export async function cpuSeconds(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8')
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond
}

/** The same of all nodes together. */
export async function clusterCpuSeconds({ nodes }: Pick<BenchCluster, 'nodes'>): Promise<number> {
  const used = await Promise.all(nodes.map(({ child }) => cpuSeconds(child.pid ?? 0)))
  return used.reduce((sum, one) => sum + one, 0)
}

/**
 * Bytes that the nodes have handed to the disks since they started, as the operating system counts them: whole pages,
 * those of files that were deleted since included.
 */
export async function clusterWrittenBytes({ nodes }: Pick<BenchCluster, 'nodes'>): Promise<number> {
  const written = await Promise.all(nodes.map(({ child }) => writtenBytes(child.pid ?? 0)))
  return written.reduce((sum, one) => sum + one, 0)
}

async function writtenBytes(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/io`, 'utf8')
  return Number(/^write_bytes: (\d+)/m.exec(text)?.[1] ?? Number.NaN)
}

/** Memory of a process, in bytes. */
export interface Memory {
  /** Resident now: pages of files that are mapped, such as tables of LevelDB, included. */
  readonly resident: number
  /** The most that ever was resident. */
  readonly peak: number
  /** Resident now and of no file: what the process itself needs. */
  readonly own: number
}

export async function readMemory(pid: number): Promise<Memory> {
  const text = await readFile(`/proc/${pid}/status`, 'utf8')
  const bytes = (field: string): number =>
    Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? Number.NaN) * 1024
  return { resident: bytes('VmRSS'), peak: bytes('VmHWM'), own: bytes('RssAnon') }
}

/** Bytes applied but not yet in the data store, at each node. */
export async function backlogBytes(cluster: Pick<BenchCluster, 'nodes'>): Promise<number[]> {
  return Promise.all(cluster.nodes.map(async ({ url }) => readBacklog(url)))
}

async function readBacklog(url: string): Promise<number> {
  const answer: unknown = await (await fetch(`${url}/status`)).json()
  const text = JSON.stringify(answer)
  return Number(/"overlayBytes":(\d+)/.exec(text)?.[1] ?? Number.NaN)
}

/** Waits until every node's data store has caught up with its log. */
export async function waitDrained(cluster: Pick<BenchCluster, 'nodes'>): Promise<void> {
  const end = performance.now() + drainWaitMs
  while (performance.now() < end) {
    if ((await backlogBytes(cluster)).every((bytes) => bytes === 0)) return
    await pause(20)
  }
  throw new Error(`a node did not drain within ${drainWaitMs} ms`)
}
