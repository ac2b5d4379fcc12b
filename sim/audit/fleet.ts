/**
 * All processes of an audit: three nodes, two gateways in front of them, and two trigger services
 * of three workers each. Each may be killed at any moment, and is started again.
 */
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { nodeName } from '../cluster/endpoints.ts'
import { Daemon } from '../processes/daemon.ts'
import { freePorts } from '../processes/free-ports.ts'
import { ledgerVariable } from './ledger-service.ts'

const nodeCount = 3
const gatewayCount = 2
const workerCount = 3
const readyWaitMs = 60_000
const lookMs = 200

export type VictimKind = 'node' | 'gateway' | 'service' | 'worker'

export interface Victim {
  readonly kind: VictimKind
  readonly id: string
}

export interface FleetOptions {
  /** The built command line. */
  readonly program: string
  /** Filled with configurations, data and the ledger. */
  readonly folder: string
}

export class Fleet {
  readonly nodes: readonly Daemon[]
  readonly gateways: readonly Daemon[]
  readonly ledger: string
  readonly #folder: string
  readonly #services: readonly Daemon[]
  /** Process ids of trigger workers, by service and number. */
  readonly #workers = new Map<string, number>()
  /** Those that stay down until this time. */
  readonly #downUntilMs = new Map<string, number>()
  #keeping: NodeJS.Timeout | undefined

  private constructor({ program, folder }: FleetOptions, ports: readonly number[]) {
    const places = ports.map((port) => `127.0.0.1:${port}`)
    const urls = places.map((place) => `http://${place}`)
    this.#folder = folder
    this.ledger = join(folder, 'ledger.txt')
    this.nodes = urls.slice(0, nodeCount).map((url, i) => {
      const id = nodeName(i)
      return new Daemon({
        id,
        url,
        program,
        command: ['node', '--config', join(folder, `${id}.yaml`)],
      })
    })
    const nodeUrls = urls.slice(0, nodeCount).join(',')
    this.gateways = urls.slice(nodeCount).map((url, i) => {
      const listen = places[nodeCount + i] ?? ''
      const command = ['gateway', '--nodes', nodeUrls, '--listen', listen]
      return new Daemon({ id: `g${i + 1}`, url, program, command })
    })
    this.#services = ['fares', 'ledger'].map((id) => {
      // As it was built with the program.
      const module = join(dirname(program), '..', '..', 'sim', 'audit', `${id}-service.js`)
      const workers = ['--workers', String(workerCount), '--url', nodeUrls]
      return new Daemon({
        id,
        program,
        command: ['trigger', 'run', module, ...workers],
        environment: { [ledgerVariable]: this.ledger },
        onLine: (line) => this.#onLine(id, line),
      })
    })
  }

  static async create(options: FleetOptions): Promise<Fleet> {
    const { folder } = options
    const ports = await freePorts(nodeCount + gatewayCount)
    const nodes = ports
      .slice(0, nodeCount)
      .map((port, i) => ({ id: nodeName(i), url: `http://127.0.0.1:${port}` }))
    for (const { id, url } of nodes) {
      const data = dataFolderIn(folder, id)
      await mkdir(data)
      const listen = url.replace('http://', '')
      const head = `cluster: audit\nnode: ${id}\nlisten: ${listen}\ndata: ${data}\n`
      await writeFile(join(folder, `${id}.yaml`), `${head}nodes: ${JSON.stringify(nodes)}\n`)
    }
    const fleet = new Fleet(options, ports)
    await writeFile(fleet.ledger, '')
    return fleet
  }

  /** Starts all but the services, and waits until they are ready. */
  async start(): Promise<void> {
    for (const daemon of [...this.nodes, ...this.gateways]) daemon.start()
    await this.#allReady()
  }

  /** From now on processes that are down start again, once it is time. */
  keep(): void {
    this.#startDue()
    this.#keeping = setInterval(() => this.#startDue(), lookMs)
  }

  /** Everything that runs now. */
  get victims(): readonly Victim[] {
    const up = (kind: VictimKind, daemons: readonly Daemon[]): Victim[] =>
      daemons.filter(({ isUp }) => isUp).map(({ id }) => ({ kind, id }))
    return [
      ...up('node', this.nodes),
      ...up('gateway', this.gateways),
      ...up('service', this.#services),
      ...[...this.#workers.keys()].map((id): Victim => ({ kind: 'worker', id })),
    ]
  }

  /**
   * Kills it as SIGKILL does; it stays down for this long. A service restarts its workers itself.
   */
  async kill({ kind, id }: Victim, downMs: number): Promise<void> {
    if (kind === 'worker') return this.#killWorker(id)
    this.#downUntilMs.set(id, performance.now() + downMs)
    if (kind === 'service') this.#forgetWorkers(id)
    await this.#all.find((daemon) => daemon.id === id)?.kill()
  }

  /**
   * Everything is to run, and nodes and gateways are ready: rejects when one is not. `between`: what the nodes that run do before
   * the others are waited for.
   */
  async heal(between: () => Promise<void>): Promise<void> {
    this.#downUntilMs.clear()
    this.#startDue()
    await between()
    this.#startDue()
    await this.#allReady()
  }

  /** Of the node. */
  dataFolder(id: string): string {
    return dataFolderIn(this.#folder, id)
  }

  /** The reasons why a node or gateway ended without a kill. */
  get failures(): readonly string[] {
    return [...this.nodes, ...this.gateways].flatMap(({ failure }) => failure ?? [])
  }

  async close(): Promise<void> {
    clearInterval(this.#keeping)
    await Promise.all(this.#all.map((daemon) => daemon.close()))
    // The services are gone, and no longer restart their workers.
    for (const id of this.#workers.keys()) this.#killWorker(id)
  }

  get #all(): readonly Daemon[] {
    return [...this.nodes, ...this.gateways, ...this.#services]
  }

  async #allReady(): Promise<void> {
    for (const daemon of [...this.nodes, ...this.gateways]) {
      if (await daemon.ready(readyWaitMs)) continue
      throw new Error(daemon.failure ?? `${daemon.id} was not ready within ${readyWaitMs} ms`)
    }
  }

  #startDue(): void {
    const nowMs = performance.now()
    for (const daemon of this.#all) {
      if (nowMs >= (this.#downUntilMs.get(daemon.id) ?? 0)) daemon.start()
    }
  }

  /** A service says which process each worker is, also when it starts one again. */
  #onLine(service: string, line: string): void {
    const [, begun = '', pid] = /^worker (\d+): process (\d+)$/.exec(line) ?? []
    if (pid !== undefined) this.#workers.set(`${service}/${begun}`, Number(pid))
    const [, ended] = /^worker (\d+) ended/.exec(line) ?? []
    if (ended !== undefined) this.#workers.delete(`${service}/${ended}`)
  }

  #killWorker(id: string): void {
    const pid = this.#workers.get(id)
    this.#workers.delete(id)
    try {
      if (pid !== undefined) process.kill(pid, 'SIGKILL')
    } catch {
      // It has ended by itself a moment ago; its service has not said so yet.
    }
  }

  #forgetWorkers(service: string): void {
    for (const id of this.#workers.keys()) {
      if (id.startsWith(`${service}/`)) this.#workers.delete(id)
    }
  }
}

function dataFolderIn(folder: string, id: string): string {
  return join(folder, `data-${id}`)
}
