/**
 * Three node processes on loopback with a temporary data folder each, for benches: started, watched
 * (CPU from the operating system's accounting), drained and stopped. Only its own children.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const cliPath = fileURLToPath(new URL('../src/cli/main.js', import.meta.url))
const ticksPerSecond = 100
const readyWaitMs = 20_000
const drainWaitMs = 120_000

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

export async function startCluster(): Promise<BenchCluster> {
  const folder = await mkdtemp(join(tmpdir(), 'trilithon-bench-'))
  const ports = await freePorts(3)
  const listed = ports.map((port, i) => ({ id: `n${i + 1}`, url: `http://127.0.0.1:${port}` }))
  const nodes: NodeProcess[] = []
  for (const { id, url } of listed) {
    const config = join(folder, `${id}.yaml`)
    await writeFile(config, configOf(id, new URL(url).host, join(folder, id), listed))
    const child = spawn(process.execPath, [cliPath, 'node', '--config', config], {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...process.env, TRILITHON_LOG_LEVEL: 'warn' },
    })
    nodes.push({ id, url, child })
  }
  const stop = async (): Promise<void> => {
    await Promise.all(nodes.map((node) => stopProcess(node.child)))
    await rm(folder, { recursive: true, force: true })
  }
  try {
    for (const node of nodes) await waitReady(node)
  } catch (error) {
    await stop()
    throw error
  }
  return { nodes, urls: listed.map(({ url }) => url), stop }
}

function configOf(
  id: string,
  listen: string,
  data: string,
  nodes: readonly { readonly id: string; readonly url: string }[],
): string {
  const lines = nodes.map((node) => `  - id: ${node.id}\n    url: ${node.url}`)
  return `cluster: bench\nnode: ${id}\nlisten: ${listen}\ndata: ${data}\nnodes:\n${lines.join('\n')}\n`
}

export async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer()
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      return server
    }),
  )
  const ports = servers.map((server) => {
    const address = server.address()
    return typeof address === 'object' && address !== null ? address.port : 0
  })
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
  return ports
}

async function waitReady(node: NodeProcess): Promise<void> {
  const end = performance.now() + readyWaitMs
  while (performance.now() < end) {
    if (node.child.exitCode !== null) throw new Error(`${node.id} ended at start`)
    if (await isOk(`${node.url}/readyz`)) return
    await pause(50)
  }
  throw new Error(`${node.id} was not ready within ${readyWaitMs} ms`)
}

async function isOk(url: string): Promise<boolean> {
  try {
    return (await fetch(url)).ok
  } catch {
    // Not listening yet.
    return false
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

async function stopProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), 10_000)
  await ended
  clearTimeout(timer)
}

/** User and system seconds that a process has used so far. */
export async function cpuSeconds(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8')
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond
}

/** Bytes applied but not yet in the data store, at each node. */
export async function backlogBytes(cluster: BenchCluster): Promise<number[]> {
  return Promise.all(cluster.nodes.map(async ({ url }) => readBacklog(url)))
}

async function readBacklog(url: string): Promise<number> {
  const answer: unknown = await (await fetch(`${url}/status`)).json()
  const text = JSON.stringify(answer)
  return Number(/"overlayBytes":(\d+)/.exec(text)?.[1] ?? Number.NaN)
}

/** Waits until every node's data store has caught up with its log. */
export async function waitDrained(cluster: BenchCluster): Promise<void> {
  const end = performance.now() + drainWaitMs
  while (performance.now() < end) {
    if ((await backlogBytes(cluster)).every((bytes) => bytes === 0)) return
    await pause(20)
  }
  throw new Error(`a node did not drain within ${drainWaitMs} ms`)
}
