/** The bare ceiling D (see `ceiling-server.ts`), measured in the same run as everything else. */
import { fork, type ChildProcess } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { LoadProcess, type Load } from '../load-process.ts'
import { cpuSeconds, hasEnded, pause } from '../processes.ts'
import { stopServer } from './servers.ts'
import type { Measured, RunningSystem, StartOptions, System } from './system.ts'

const serverPath = fileURLToPath(new URL('./ceiling-server.js', import.meta.url))
const clientPath = fileURLToPath(new URL('./ceiling-client.js', import.meta.url))
const valueBytes = 100
const drainWaitMs = 120_000

export const ceiling: System = {
  name: 'ceiling',
  missing: () => Promise.resolve(undefined),
  start: startCeiling,
}

async function startCeiling(folder: string, { signal }: StartOptions): Promise<RunningSystem> {
  const servers: Server[] = []
  const stop = async (): Promise<void> => {
    await Promise.all(servers.map((server) => server.stop()))
  }
  try {
    for (const name of ['1', '2']) servers.push(await Server.start(join(folder, name), []))
    const ports = servers.map(({ port }) => port)
    const first = await Server.start(join(folder, '0'), ports)
    servers.push(first)
    const args = [`${first.port}`, `${valueBytes}`]
    const client = await LoadProcess.start(clientPath, args, signal)
    return {
      description: `no agreement, conflicts or recovery: one value a flush in LevelDB, rows later; Node ${process.version}, ws, MessagePack`,
      operations: ['commits'],
      run: (load) => runLoad(servers, client, load),
      stop: async () => {
        await client.stop()
        await stop()
      },
    }
  } catch (error) {
    await stop()
    throw error
  }
}

class Server {
  readonly #child: ChildProcess
  readonly port: number

  private constructor(child: ChildProcess, port: number) {
    this.#child = child
    this.port = port
  }

  static async start(folder: string, peers: readonly number[]): Promise<Server> {
    const child = fork(serverPath, [folder, ...peers.map(String)], {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    return new Server(child, readNumber(await nextFrom(child), 'port'))
  }

  async backlogBytes(): Promise<number> {
    const said = nextFrom(this.#child)
    // The missing answer shows that the server has ended.
    this.#child.send({}, () => undefined)
    return readNumber(await said, 'backlogBytes')
  }

  cpuSeconds(): Promise<number> {
    return cpuSeconds(this.#child.pid ?? 0)
  }

  stop(): Promise<void> {
    return stopServer(this.#child, 'SIGTERM')
  }
}

/** The next message of the child. Rejects when the child ends before it. */
function nextFrom(child: ChildProcess): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const onExit = (): void => reject(new Error('ceiling: a server has ended'))
    if (hasEnded(child)) return onExit()
    child.once('exit', onExit)
    child.once('message', (said) => {
      child.off('exit', onExit)
      resolve(said)
    })
  })
}

function readNumber(said: unknown, name: string): number {
  if (typeof said !== 'object' || said === null) throw new Error('ceiling: a server said nothing')
  return Number(Reflect.get(said, name))
}

async function runLoad(
  servers: readonly Server[],
  client: LoadProcess,
  load: Load,
): Promise<Measured> {
  const backlog: number[] = []
  let before = 0
  const result = await client.run(load, {
    onWarm: async () => {
      before = await sumServers(servers, (server) => server.cpuSeconds())
    },
    onSecond: () => sample(servers, backlog),
  })
  const drainStart = performance.now()
  await drain(servers)
  const drainSeconds = (performance.now() - drainStart) / 1000
  const used = (await sumServers(servers, (server) => server.cpuSeconds())) - before
  const { clientCpu, ...figures } = result
  return {
    ...figures,
    drainSeconds,
    perSecond: result.operations / (result.elapsedMs / 1000 + drainSeconds),
    serverCpuPer1000: (used / result.operations) * 1000,
    clientCpuPer1000: (clientCpu / result.operations) * 1000,
    backlogBytes: backlog,
  }
}

async function sumServers(
  servers: readonly Server[],
  of: (server: Server) => Promise<number>,
): Promise<number> {
  const all = await Promise.all(servers.map(of))
  return all.reduce((sum, one) => sum + one, 0)
}

async function sample(servers: readonly Server[], backlog: number[]): Promise<void> {
  backlog.push(await sumServers(servers, (server) => server.backlogBytes()))
}

async function drain(servers: readonly Server[]): Promise<void> {
  const end = performance.now() + drainWaitMs
  while (performance.now() < end) {
    if ((await sumServers(servers, (server) => server.backlogBytes())) === 0) return
    await pause(20)
  }
  throw new Error(`the ceiling did not drain within ${drainWaitMs} ms`)
}
