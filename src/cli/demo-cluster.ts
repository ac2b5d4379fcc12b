/** Three nodes in one process for the demonstration; any of them can be killed and brought back. */
import { randomBytes } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { pino, type Logger } from 'pino'
import { fileFailure } from '../adapters/file-failure.ts'
import { makeFolder } from '../adapters/make-folder.ts'
import { openFilesMax } from '../adapters/open-files.ts'
import { clusterId, nodeId, type NodeId } from '../base/ids.ts'
import { defaultLimits } from '../base/limits.ts'
import { mainSet } from '../config/values.ts'
import type { NodeConfig } from '../config/node-config.ts'
import { Daemon } from '../node/daemon.ts'
import { buildApi } from './api.ts'
import { CliError, exitFailure } from './exit.ts'
import { StoreError } from '../base/errors.ts'
import { version } from './version.ts'

export const demoHost = '127.0.0.1'
const nodeNames = ['a', 'b', 'c'] as const
const drainTimeoutMs = 5000
const readyTimeoutMs = 20_000
const readyPollMs = 20

export interface DemoNode {
  readonly id: NodeId
  readonly url: string
}

export class DemoCluster {
  readonly nodes: readonly DemoNode[]
  readonly logFile: string
  readonly #data: string
  readonly #logger: Logger
  /** Only the nodes of the demonstration know it, so no other process becomes one. */
  readonly #peerSecret = randomBytes(32).toString('hex')
  readonly #daemons = new Map<NodeId, Daemon>()

  /** Starts all three; rejects with a CliError of one sentence when one cannot. */
  static async start(data: string, port: number): Promise<DemoCluster> {
    await makeData(data)
    const cluster = new DemoCluster(data, port)
    try {
      for (const { id } of cluster.nodes) await cluster.startNode(id)
      await cluster.ready()
      return cluster
    } catch (error) {
      await cluster.stop()
      throw error
    }
  }

  private constructor(data: string, port: number) {
    this.#data = data
    this.nodes = nodeNames.map((name, i) => ({
      id: nodeId(name),
      url: `http://${demoHost}:${port + i}`,
    }))
    this.logFile = join(data, 'demo.log')
    const destination = pino.destination({ dest: this.logFile, sync: true })
    this.#logger = pino({ base: {}, timestamp: pino.stdTimeFunctions.isoTime }, destination)
  }

  async startNode(id: NodeId): Promise<void> {
    // They share the process, and its files.
    const files = openFilesMax()
    try {
      const daemon = await Daemon.start({
        config: this.#buildConfig(id),
        files: { secret: undefined, peerSecret: this.#peerSecret, tls: undefined },
        logger: this.#logger.child({ node: id }),
        version,
        gateway: buildApi,
        portFlag: '--port (npm start -- --port 4710)',
        ...(files !== undefined && { openFilesMax: Math.floor(files / nodeNames.length) }),
      })
      this.#daemons.set(id, daemon)
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      throw new CliError(`node ${id}: ${error.message}`, exitFailure)
    }
  }

  /** Resolves when every running node takes requests. */
  async ready(): Promise<void> {
    const deadline = performance.now() + readyTimeoutMs
    const isReady = (): boolean =>
      [...this.#daemons.values()].every((daemon) => daemon.status().ready)
    while (!isReady()) {
      if (performance.now() > deadline) {
        const text = `the nodes did not find one another in ${readyTimeoutMs / 1000} s; see ${this.logFile}`
        throw new CliError(text, exitFailure)
      }
      await new Promise((resolve) => setTimeout(resolve, readyPollMs))
    }
  }

  /** Without warning: nothing is drained or said to the others. */
  async kill(id: NodeId): Promise<void> {
    await this.#daemons.get(id)?.kill()
    this.#daemons.delete(id)
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#daemons.values()].map((daemon) => daemon.stop()))
    this.#daemons.clear()
  }

  #buildConfig(id: NodeId): NodeConfig {
    const url = this.nodes.find((node) => node.id === id)?.url ?? ''
    return {
      cluster: clusterId('demo'),
      node: id,
      listen: { host: demoHost, port: Number(new URL(url).port) },
      data: join(this.#data, id),
      nodes: this.nodes.map((node) => ({ ...node, set: mainSet })),
      secretFile: undefined,
      tls: undefined,
      insecure: false,
      logLevel: 'info',
      drainTimeoutMs,
      bufferCopies: 0,
      limits: defaultLimits,
    }
  }
}

/** Entries of a node's own folder; the demonstration's has a folder for each node. */
const ofNode: readonly string[] = ['owner.json', 'replica-sets', 'log']

async function makeData(data: string): Promise<void> {
  let names: readonly string[] = []
  try {
    await makeFolder(data)
    names = await readdir(data)
  } catch (error) {
    const text = `the folder ${data} cannot be used: ${fileFailure(error)}; name another one with --data`
    throw new CliError(text, exitFailure)
  }
  const own = names.find((name) => ofNode.includes(name))
  if (own === undefined) return
  const text = `the folder ${data} is the data folder of a node, by the ${own} in it; name another one with --data`
  throw new CliError(text, exitFailure)
}
