/**
 * Three daemons on loopback, each of which reaches its peers through proxies, and clients that
 * reach the nodes through others: every way between two endpoints can be cut by itself.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { nodeName } from '../cluster/endpoints.ts'
import type { Way as WayName } from '../faults/fault.ts'
import { Daemon } from './daemon.ts'
import { freePorts } from './free-ports.ts'
import { WayProxy } from './way-proxy.ts'

const nodeCount = 3
const readyWaitMs = 30_000

export interface ProcessClusterOptions {
  /** The built command line. */
  readonly program: string
  readonly clients: readonly string[]
}

interface Link {
  readonly dialer: string
  readonly listener: string
  readonly proxy: WayProxy
}

export class ProcessCluster {
  readonly daemons: readonly Daemon[]
  readonly #folder: string
  readonly #links: readonly Link[]
  readonly #losing: Set<string>

  private constructor(parts: {
    readonly folder: string
    readonly daemons: readonly Daemon[]
    readonly links: readonly Link[]
    readonly losing: Set<string>
  }) {
    this.daemons = parts.daemons
    this.#folder = parts.folder
    this.#links = parts.links
    this.#losing = parts.losing
  }

  /** Makes folders, configurations and proxies; nothing runs yet. */
  static async create({ program, clients }: ProcessClusterOptions): Promise<ProcessCluster> {
    const folder = await mkdtemp(join(tmpdir(), 'trilithon-processes-'))
    const ports = await freePorts(nodeCount)
    const nodes = ports.map((port, i) => ({ id: nodeName(i), port }))
    const losing = new Set<string>()
    const links: Link[] = []
    for (const { id: listener, port: targetPort } of nodes) {
      // Of two nodes the one with the smaller id dials.
      const dialers = nodes.filter(({ id }) => id < listener).map(({ id }) => id)
      for (const dialer of dialers) {
        links.push({ dialer, listener, proxy: await WayProxy.open({ targetPort }) })
      }
      for (const dialer of clients) {
        // `delete` says whether an answer was to be lost; it is lost once.
        const mayAnswer = (): boolean => !losing.delete(listener)
        links.push({ dialer, listener, proxy: await WayProxy.open({ targetPort, mayAnswer }) })
      }
    }
    const daemons: Daemon[] = []
    for (const { id, port } of nodes) {
      const peers = nodes.map((peer) => {
        const link = links.find((one) => one.dialer === id && one.listener === peer.id)
        return { id: peer.id, url: link?.proxy.url ?? `http://127.0.0.1:${peer.port}` }
      })
      const configPath = join(folder, `${id}.yaml`)
      const data = dataFolderIn(folder, id)
      await mkdir(data)
      const head = `cluster: processes\nnode: ${id}\nlisten: 127.0.0.1:${port}\ndata: ${data}\n`
      await writeFile(configPath, `${head}nodes: ${JSON.stringify(peers)}\n`)
      const command = ['node', '--config', configPath]
      daemons.push(new Daemon({ id, url: `http://127.0.0.1:${port}`, program, command }))
    }
    return new ProcessCluster({ folder, daemons, links, losing })
  }

  get nodes(): readonly string[] {
    return this.daemons.map(({ id }) => id)
  }

  daemon(id: string): Daemon | undefined {
    return this.daemons.find((daemon) => daemon.id === id)
  }

  /** Starts all, and waits until they are ready. */
  async start(): Promise<void> {
    for (const daemon of this.daemons) daemon.start()
    for (const daemon of this.daemons) {
      if (await daemon.ready(readyWaitMs)) continue
      throw new Error(daemon.failure ?? `${daemon.id} was not ready within ${readyWaitMs} ms`)
    }
  }

  /** Where a client finds these nodes: at its own proxies. */
  urlsFor(client: string, nodes: readonly string[] = this.nodes): readonly string[] {
    const own = this.#links.filter(({ dialer }) => dialer === client)
    return own.filter(({ listener }) => nodes.includes(listener)).map(({ proxy }) => proxy.url)
  }

  cut(ways: readonly WayName[], { resets }: { readonly resets: boolean }): void {
    for (const [from, to] of ways) {
      const found = this.#find(from, to)
      found?.way.cut()
      if (resets) found?.proxy.reset()
    }
  }

  mend(ways: readonly WayName[]): void {
    for (const [from, to] of ways) this.#find(from, to)?.way.mend()
  }

  reset(a: string, b: string): void {
    this.#find(a, b)?.proxy.reset()
  }

  /** The next answer of the node to a client is lost with its connection. */
  loseNextReply(node: string): void {
    this.#losing.add(node)
  }

  /** Everything to and from the node takes this much longer; 0: no longer. */
  slow(node: string, delayMs: number): void {
    for (const { dialer, listener, proxy } of this.#links) {
      if (dialer !== node && listener !== node) continue
      proxy.forward.delayMs = delayMs
      proxy.backward.delayMs = delayMs
    }
  }

  /** Of the node. */
  dataFolder(id: string): string {
    return dataFolderIn(this.#folder, id)
  }

  /**
   * All ways are open again, and every node runs: rejects when one does not. `between`: what the nodes that run do before the
   * others are waited for.
   */
  async heal(between: () => Promise<void> = () => Promise.resolve()): Promise<void> {
    this.#losing.clear()
    for (const { proxy } of this.#links) {
      proxy.forward.heal()
      proxy.backward.heal()
    }
    for (const daemon of this.daemons) {
      daemon.resume()
      daemon.start()
    }
    await between()
    await this.start()
  }

  async close(): Promise<void> {
    await Promise.all(this.daemons.map((daemon) => daemon.close()))
    await Promise.all(this.#links.map(({ proxy }) => proxy.close()))
    await rm(this.#folder, { recursive: true, force: true })
  }

  #find(from: string, to: string): { way: WayProxy['forward']; proxy: WayProxy } | undefined {
    for (const { dialer, listener, proxy } of this.#links) {
      if (dialer === from && listener === to) return { way: proxy.forward, proxy }
      if (dialer === to && listener === from) return { way: proxy.backward, proxy }
    }
    return undefined
  }
}

function dataFolderIn(folder: string, id: string): string {
  return join(folder, `data-${id}`)
}
