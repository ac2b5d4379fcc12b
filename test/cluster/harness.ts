/**
 * Clusters of real processes for tests: built program, free ports, temporary folders, bounded waits
 * by polling. Everything that was started is ended by its own process id, whatever a test does.
 *
 *   const cluster = await startCluster()
 *   try { … cluster.node('a').url … } finally { await cluster.close() }
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePorts } from '../../sim/processes/free-ports.ts'

/** The command line: the built one, which `npm test` builds first, or the one that is named. */
export const programPath: string =
  process.env['TRILITHON_TEST_PROGRAM'] ??
  fileURLToPath(new URL('../../dist/src/cli/main.js', import.meta.url))

/** Nodes keep the peers' secret of their user there; those of a cluster in the cluster's own folder. */
const stateHome = join(tmpdir(), 'trilithon-test-state')

/**
 * For how long a test waits for what takes a moment: it ends a test that hangs, and no other. Where all cores are
 * taken a process needs ten times as long as alone. Clients of tests have it as their `timeoutMs`.
 */
export const patienceMs = 60_000
const pollMs = 25
/** The same of a process that starts: for two seconds or three, and each look costs it as much as many requests. */
const readyPollMs = 100

/** How a process ended. */
export interface Exit {
  readonly code: number | undefined
  readonly signal: string | undefined
}

export interface ProgramResult extends Exit {
  readonly stdout: string
  readonly stderr: string
}

export interface RunOptions {
  readonly folder?: string
  readonly environment?: Readonly<Record<string, string>>
  readonly input?: string
  readonly timeoutMs?: number
  /** Files that it may have open. */
  readonly openFiles?: number
}

/** Runs the command to its end; killed when it takes longer than `timeoutMs`. */
export async function runProgram(
  arguments_: readonly string[],
  options: RunOptions = {},
): Promise<ProgramResult> {
  const program = startProgram(arguments_, options)
  program.child.stdin?.end(options.input ?? '')
  const exit = await program.exited(options.timeoutMs ?? patienceMs)
  return { ...exit, stdout: program.stdout(), stderr: program.stderr() }
}

export interface Program {
  readonly child: ChildProcess
  stdout(): string
  stderr(): string
  /** Resolves when it ended; kills it and rejects, with what it said, when that takes too long. */
  exited(timeoutMs?: number): Promise<Exit>
}

/** Starts the command and gathers what it says. */
export function startProgram(arguments_: readonly string[], options: RunOptions = {}): Program {
  if (!existsSync(programPath)) throw new Error(`${programPath} is missing: npm run build`)
  const limit = options.openFiles === undefined ? '' : `ulimit -n ${options.openFiles};`
  const command = ['-c', `${limit} exec "$@"`, 'bash', process.execPath, programPath, ...arguments_]
  const [program, ...rest] = limit === '' ? command.slice(3) : ['bash', ...command]
  const child = spawn(program ?? '', rest, {
    cwd: options.folder ?? tmpdir(),
    env: {
      ...{ PATH: process.env['PATH'], NODE_OPTIONS: process.env['NODE_OPTIONS'] },
      ...{ NO_COLOR: '1', XDG_STATE_HOME: stateHome },
      ...options.environment,
    },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  // A program that ends early closes its input; that is its business.
  child.stdin.on('error', () => undefined)
  const stdout = gather(child.stdout)
  const stderr = gather(child.stderr)
  const ended = new Promise<Exit>((resolve) => {
    child.once('close', (code, signal) =>
      resolve({ code: code ?? undefined, signal: signal ?? undefined }),
    )
  })
  return {
    child,
    stdout,
    stderr,
    exited: async (timeoutMs = patienceMs) => {
      const exit = await within(ended, timeoutMs)
      if (exit !== undefined) return exit
      child.kill('SIGKILL')
      await ended
      const said = `${stdout()}\n${stderr()}`.slice(-4000)
      throw new Error(`${arguments_.join(' ')}: no end after ${timeoutMs} ms; it said:\n${said}`)
    },
  }
}

function gather(stream: NodeJS.ReadableStream): () => string {
  let text = ''
  stream.setEncoding('utf8')
  stream.on('data', (piece: string) => (text += piece))
  return () => text
}

/** The value, or undefined after `timeoutMs`. */
async function within<T>(promise: Promise<T>, timeoutMs: number): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), timeoutMs)
  })
  const first = await Promise.race([promise, late])
  clearTimeout(timer)
  return first
}

/** Asks `probe` again and again until it gives a value; rejects, saying `what`, when it is late. */
export async function eventually<T>(
  what: string,
  probe: () => Promise<T | undefined>,
  timeoutMs: number = patienceMs,
  everyMs: number = pollMs,
): Promise<T> {
  const deadline = performance.now() + timeoutMs
  for (;;) {
    const found = await probe()
    if (found !== undefined) return found
    if (performance.now() > deadline) throw new Error(`not within ${timeoutMs} ms: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, everyMs))
  }
}

/** A folder that `use` may fill; removed afterwards. */
export async function withFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'trilithon-test-'))
  try {
    return await use(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

export interface ClusterOptions {
  /** Absent: a, b, c. */
  readonly ids?: readonly string[]
  /** The replica set of a node; absent: all are in one. */
  readonly setOf?: (id: string) => string
  /** Region and zone of a node, as its configuration has them. */
  readonly siteOf?: (id: string) => object
  readonly cluster?: string
  /** More lines for the node's file. */
  readonly extraYaml?: string | ((id: string) => string)
  /** Nodes of `ids` that the set does not begin with. They are not started, and no configuration but their own names one. */
  readonly joining?: readonly string[]
  /** Written to the configuration, not started. */
  readonly notStarted?: readonly string[]
}

export interface TestCluster {
  readonly folder: string
  readonly nodes: readonly TestNode[]
  readonly urls: readonly string[]
  node(id: string): TestNode
  /** Kills what still runs and removes the folder. */
  close(): Promise<void>
}

/** One node of a cluster: its place is fixed, its process comes and goes. */
export interface TestNode {
  readonly id: string
  readonly url: string
  readonly dataFolder: string
  readonly configPath: string
  readonly pid: number | undefined
  /** The lines that its process, or its last one, wrote to stderr. */
  log(): string
  /** Starts a process, without waiting for anything. */
  spawn(options?: RunOptions): Program
  /** Starts a process and waits until it is ready; rejects with its log when it ends instead. */
  start(): Promise<void>
  ready(): Promise<void>
  /** Sends a signal and waits for the end. */
  stop(signal?: 'SIGTERM' | 'SIGINT' | 'SIGHUP' | 'SIGKILL'): Promise<Exit>
  signal(signal: NodeJS.Signals): void
  exited(): Promise<Exit>
}

/** Starts a cluster and waits until every started node is ready. */
export async function startCluster(options: ClusterOptions = {}): Promise<TestCluster> {
  const cluster = await createCluster(options)
  try {
    const { notStarted = [], joining = [] } = options
    const resting = [...notStarted, ...joining]
    const started = cluster.nodes.filter(({ id }) => !resting.includes(id))
    for (const node of started) node.spawn()
    await Promise.all(started.map((node) => node.ready()))
    return cluster
  } catch (error) {
    await cluster.close()
    throw error
  }
}

/** Writes the configuration of a cluster; nothing runs yet. */
export async function createCluster(options: ClusterOptions = {}): Promise<TestCluster> {
  const ids = options.ids ?? ['a', 'b', 'c']
  const folder = await mkdtemp(join(tmpdir(), 'trilithon-cluster-'))
  const ports = await freePorts(ids.length)
  const places = ids.map((id, i) => ({
    ...{ id, url: `http://127.0.0.1:${ports[i] ?? 0}` },
    ...(options.setOf !== undefined && { set: options.setOf(id) }),
    ...options.siteOf?.(id),
  }))
  const { extraYaml = '', joining = [] } = options
  const listed = places.map((place) => ({
    ...place,
    ...(joining.includes(place.id) && { joins: true }),
  }))
  const nodes: TestNode[] = []
  for (const place of places) {
    const configPath = join(folder, `${place.id}.yaml`)
    const dataFolder = join(folder, `data-${place.id}`)
    await mkdir(dataFolder, { recursive: true })
    const yaml = [
      `cluster: ${options.cluster ?? 'test'}`,
      `node: ${place.id}`,
      `listen: ${place.url.replace('http://', '')}`,
      `data: ${dataFolder}`,
      `nodes: ${JSON.stringify(listed.filter(({ id, joins }) => joins !== true || id === place.id))}`,
      typeof extraYaml === 'string' ? extraYaml : extraYaml(place.id),
    ]
    await writeFile(configPath, yaml.join('\n'))
    nodes.push(createNode({ ...place, configPath, dataFolder }))
  }
  return {
    folder,
    nodes,
    urls: places.map(({ url }) => url),
    node: (id) => {
      const found = nodes.find((node) => node.id === id)
      if (found === undefined) throw new Error(`the cluster has no node ${id}`)
      return found
    },
    close: async () => {
      await Promise.all(nodes.map((node) => node.stop('SIGKILL')))
      await rm(folder, { recursive: true, force: true })
    },
  }
}

type Place = Pick<TestNode, 'id' | 'url' | 'configPath' | 'dataFolder'>

function createNode(place: Place): TestNode {
  let program: Program | undefined
  let hasEnded = true
  const never: Exit = { code: undefined, signal: undefined }

  function spawnNode(options: RunOptions = {}): Program {
    if (!hasEnded) throw new Error(`node ${place.id} runs already`)
    const environment = { XDG_STATE_HOME: dirname(place.configPath), ...options.environment }
    const started = startProgram(['node', '--config', place.configPath], {
      ...options,
      environment,
    })
    program = started
    hasEnded = false
    started.child.once('exit', () => {
      if (program === started) hasEnded = true
    })
    return started
  }
  async function ready(): Promise<void> {
    await untilReady(`node ${place.id} is ready`, place.url, () => {
      if (hasEnded) throw new Error(`node ${place.id} ended:\n${program?.stderr() ?? ''}`)
    })
  }
  return {
    ...place,
    get pid() {
      return hasEnded ? undefined : program?.child.pid
    },
    log: () => program?.stderr() ?? '',
    spawn: spawnNode,
    ready,
    start: async () => {
      spawnNode()
      await ready()
    },
    signal: (signal) => {
      program?.child.kill(signal)
    },
    exited: () => program?.exited() ?? Promise.resolve(never),
    stop: async (signal = 'SIGTERM') => {
      if (program === undefined || hasEnded) return never
      program.child.kill(signal)
      // A stopped (SIGSTOP) process acts on nothing but this.
      program.child.kill('SIGCONT')
      return program.exited()
    },
  }
}

/** A gateway as a process: its place is fixed. */
export interface TestGateway {
  readonly url: string
  log(): string
  start(): Promise<void>
  stop(signal?: 'SIGTERM' | 'SIGHUP' | 'SIGKILL'): Promise<Exit>
}

/** Starts a gateway in front of these nodes and waits until it is ready. */
export async function startGateway(
  nodes: readonly string[],
  flags: readonly string[] = [],
): Promise<TestGateway> {
  const [port = 0] = await freePorts(1)
  const listen = `127.0.0.1:${port}`
  const url = `http://${listen}`
  const never: Exit = { code: undefined, signal: undefined }
  let program: Program | undefined
  const gateway: TestGateway = {
    url,
    log: () => program?.stderr() ?? '',
    start: async () => {
      const started = startProgram([
        ...['gateway', '--nodes', nodes.join(','), '--listen', listen],
        ...flags,
      ])
      program = started
      let hasEnded = false
      started.child.once('exit', () => (hasEnded = true))
      await untilReady(`the gateway at ${url} is ready`, url, () => {
        if (hasEnded) throw new Error(`the gateway ended:\n${started.stderr()}`)
      })
    },
    stop: async (signal = 'SIGTERM') => {
      const running = program
      program = undefined
      running?.child.kill(signal)
      return running?.exited() ?? never
    },
  }
  await gateway.start()
  return gateway
}

/** `checkRuns` throws when the process has ended. */
async function untilReady(what: string, url: string, checkRuns: () => void): Promise<void> {
  const probe = async (): Promise<true | undefined> => {
    checkRuns()
    return (await isReady(url)) ? true : undefined
  }
  await eventually(what, probe, patienceMs, readyPollMs)
}

async function isReady(url: string): Promise<boolean> {
  try {
    const response = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(2000) })
    return response.ok
  } catch {
    // No process listens yet.
    return false
  }
}
