/**
 * A node as a process has it: data folder, listener, ports, health, and an orderly end. Three of
 * them may live in one process.
 *
 * Starting: listen (health answers from now on), open the stores, compose, serve. Stopping: no new
 * work, wait for what is in flight, close. A node that failed stops answering and says why; it is
 * for its process to end, and for a supervisor to start it again.
 */
import type { Socket } from 'node:net'
import type { Logger } from 'pino'
import { openFilesMax } from '../adapters/open-files.ts'
import { systemClock } from '../adapters/system-clock.ts'
import { systemRandom } from '../adapters/system-random.ts'
import { present } from '../base/assert.ts'
import type { Versions } from '../base/cluster-version.ts'
import { StoreError } from '../base/errors.ts'
import { nodeCountMax } from '../base/limits.ts'
import { keepLaterSets, withLaterNodes } from './later-sets-file.ts'
import type { LaterSet, Placement } from '../placement/placement.ts'
import type { Timer } from '../ports/clock.ts'
import { StaleLog } from '../peers/refusal.ts'
import { authorization } from './authorization.ts'
import { Node } from './compose.ts'
import { requestBytesMaxDefault } from '../config/config.ts'
import { logStoreDefault, type NodeConfig } from '../config/node-config.ts'
import { placeOfNode } from '../config/node-place.ts'
import type { ConfigFiles } from '../config/load.ts'
import { resetData, type DataFolder } from './data-folder.ts'
import { DiskWatch } from './disk-use.ts'
import { damagedData, isOfData } from './damaged-data.ts'
import { drain } from './drain.ts'
import { FolderWatch } from './folder-watch.ts'
import { findWhere } from './group-where.ts'
import type { GroupsPort } from './groups-routes.ts'
import { listen, type BoundServer, type Fetch, type Serve } from './http-server.ts'
import { checkJoiningSeat } from './joining.ts'
import { prepareLaterSets } from './known-sets.ts'
import { listUrls, openLinks, type Links } from './links.ts'
import { LogHealing } from './log-healing.ts'
import { defaultListenerSettings } from '../config/listener-settings.ts'
import { createMetrics, type Figure, type NodeMetrics } from './metrics.ts'
import { openFolder } from './open-folder.ts'
import { planOpenFiles, type FilesPlan } from './open-files-plan.ts'
import { tellingOperator } from './operator-trace.ts'
import { sparingLog } from './sparing-log.ts'
import { watchProcess, type Stalls } from './stalls.ts'
import { isOperation, operationRoutes, type Self } from './operations.ts'
import { peerSecretWithoutFile } from './peer-secret.ts'
import { findRecovery, removeRecovery } from './recovery-note.ts'
import { notServing, overloaded, unauthorized } from './refusals.ts'
import { buildKeptSets, keepReplicaSets } from '../config/replica-sets.ts'
import { buildPlacement } from './build-placement.ts'
import { bugLog } from './bug-log.ts'
import { describeUpgrade } from './upgrade-self.ts'
import { logFigures, type LostLines } from './log-figures.ts'
import {
  readinessChecks,
  statusFigures,
  statusReport,
  type NodeState,
  type StatusParts,
  type StatusReport,
} from './status.ts'

export interface DaemonOptions {
  readonly config: NodeConfig
  readonly files: ConfigFiles
  readonly logger: Logger
  /** The lines that its log has lost; absent: they are not known. */
  readonly lost?: () => LostLines
  readonly version: string
  /** Makes the HTTP API of a node; the gateway stands above this folder. */
  readonly gateway: (node: Node, requestBytesMax: number) => Fetch
  /** The flag that chooses another port, for the message about a busy one. */
  readonly portFlag: string
  /** Files that it may have open: its part, where it shares its process. Absent: what the system allows. */
  readonly openFilesMax?: number
  /** The cluster versions of the build that it acts as, an earlier one. Absent: those of this build. */
  readonly supports?: Versions
  /** Ends a start that asks the other nodes for a seat. */
  readonly signal?: AbortSignal
}

/** Starts that follow one another: the first finds `data/` damaged, say, and the next one the log. */
const startsMax = 3

/** After the drain timeout, connections that still talk get this long to end by themselves. */
const closeGraceMs = 500
/** By then LevelDB has merged the tables that it merges on opening. */
const settledMs = 60_000

export class Daemon {
  /** The node must stop: its disk failed, or its peers will not have its store. Called once. */
  onFailure: (reason: Error) => void = () => undefined
  readonly #options: DaemonOptions
  readonly #metrics: NodeMetrics
  readonly #mayUse: (request: Request) => boolean
  readonly #healing: LogHealing
  #placement: Placement
  /** Why the start waits; absent: it does not. */
  #waitsFor: string | undefined
  readonly #startedAtMs = systemClock.monotonicMs()
  #state: NodeState = 'starting'
  #server: BoundServer | undefined
  #stalls: Stalls | undefined
  #folder: DataFolder | undefined
  #disk: DiskWatch | undefined
  #folderWatch: FolderWatch | undefined
  #settling: Timer | undefined
  #links: Links | undefined
  #node: Node | undefined
  #gateway: Fetch | undefined
  #requestsInFlight = 0
  #dataResets = 0
  #failure: Error | undefined
  #isDataDamaged = false
  #stopping: Promise<void> | undefined
  #closing: Promise<void> | undefined

  /**
   * Resolves when the node serves; rejects with a StoreError of one sentence when it cannot. Where its log must not be used,
   * and its folder says that it is this node's, it waits for a seat, as long as that takes.
   */
  static async start(options: DaemonOptions): Promise<Daemon> {
    const { config, files, logger, signal } = options
    const parts = { config, secret: files.secret, logger, clock: systemClock, signal }
    const healing = new LogHealing(parts)
    for (let starts = 1; ; starts++) {
      const daemon = new Daemon(options, healing)
      try {
        await daemon.#openOrClose()
        return daemon
      } catch (error) {
        // The node found its derived store damaged as it took it up, and has put it aside by now.
        const mayStart = daemon.#isDataDamaged || (await healing.takeUp(error))
        if (!mayStart || starts === startsMax) throw error
      }
    }
  }

  private constructor(options: DaemonOptions, healing: LogHealing) {
    this.#options = options
    this.#healing = healing
    this.#placement = buildPlacement(options.config.nodes)
    this.#mayUse = authorization(options.files.secret)
    const { node, cluster } = options.config
    this.#metrics = createMetrics({ node, cluster })
  }

  get url(): string {
    return present(this.#server, 'daemon: it listens').url
  }

  /** Whether a new start heals this failure. */
  healsByStart(reason: Error): boolean {
    return reason instanceof StaleLog && this.#healing.isHealable(reason)
  }

  get node(): Node {
    return present(this.#node, 'daemon: it is open')
  }

  get #running(): Node | undefined {
    return this.#state === 'running' ? this.#node : undefined
  }

  status(): StatusReport {
    return statusReport(this.#parts())
  }

  async #openOrClose(): Promise<void> {
    try {
      await this.#open()
    } catch (error) {
      // The log is opened by what the data says of it, before there is a node to fail.
      if (this.#folder !== undefined && isOfData(error)) this.#isDataDamaged = true
      await this.#close(0)
      throw error
    }
  }

  async #open(): Promise<void> {
    const { config, logger } = this.#options
    const plan = this.#planFiles()
    this.#server = await this.#listen(plan)
    logger.info({ url: this.#server.url, data: config.data }, 'listening; opening the stores')
    const clock = systemClock
    const told = tellingOperator(this.#metrics.trace, logger)
    this.#stalls = watchProcess(
      { logger, clock, onStall: (ms) => this.#metrics.countStall(ms) },
      told,
    )
    const { trace } = this.#stalls
    const { logStore: logKind = logStoreDefault } = config
    await this.#healing.prepare()
    const seat = this.#healing.seat ?? config.seat
    const laterSets = await this.#findLaterSets()
    await checkJoiningSeat(config, seat, laterSets)
    const folder = await openFolder({ config, logger, clock, trace }, plan)
    this.#folder = folder
    this.#disk = new DiskWatch(config.data, clock)
    const recovery = await findRecovery(config.data, logger)
    if (folder.wasDataReset && this.#healing.seat === undefined) this.#noteDataReset()
    const links = await this.#openLinks(this.#server, laterSets)
    this.#links = links
    this.#node = await Node.open(
      {
        clock,
        random: systemRandom,
        trace,
        log: folder.log,
        data: folder.data,
        ...{ peers: links.peers, clients: links.clients, elsewhere: links.elsewhere },
        openElsewhere: links.addSet,
      },
      {
        node: config.node,
        cluster: config.cluster,
        limits: config.limits,
        addresses: links.addresses,
        placement: this.#placement,
        bufferCopies: config.bufferCopies,
        ...(seat !== undefined && { seat }),
        ...{ ...recovery, supports: this.#options.supports },
        beforeStart: () => keepReplicaSets(config.data, buildKeptSets(config.nodes)),
        keepSets: (sets) => keepLaterSets(config.data, sets),
        onBug: bugLog(logger),
        onDamagedIndex: ({ code, message }) => logger.error({ code }, message),
      },
      (reason) => this.#fail(reason),
    )
    if (this.#failure !== undefined) throw this.#failure
    const { storeId, incarnation } = this.#node.status().replica
    await this.#healing.finish(storeId, () => this.#isLinked())
    this.#folderWatch = await FolderWatch.start({ folder: config.data, logKind }, clock, (reason) =>
      this.#fail(reason),
    )
    if (this.#failure !== undefined) throw this.#failure
    const requestBytesMax = config.requestBytesMax ?? requestBytesMaxDefault
    this.#gateway = this.#options.gateway(this.#node, requestBytesMax)
    this.#state = 'running'
    this.#settling = clock.setTimer(settledMs, () => void this.#settle(folder))
    logger.info({ storeId, incarnation }, 'serving')
  }

  #isLinked(): boolean {
    return this.#running?.status().replica.peers.some(({ isUp }) => isUp) === true
  }

  /** Only a note: where it cannot be written, the next start reads more than it has to. */
  async #settle(folder: DataFolder): Promise<void> {
    await folder.settle().catch(() => undefined)
    // The log has it by now, or the node takes it up once more.
    if (this.#state === 'running')
      await removeRecovery(this.#options.config.data).catch(() => undefined)
  }

  #planFiles(): FilesPlan {
    const { config, logger } = this.#options
    const plan = planOpenFiles({
      openFilesMax: this.#options.openFilesMax ?? openFilesMax(),
      stores: 2,
      // Nodes may be added while it runs.
      others: Math.max(config.nodes.length, nodeCountMax) - 1,
      wanted: config.listener ?? defaultListenerSettings,
    })
    const { connections, filesPerStore } = plan
    if (plan.isLess) {
      const text = 'fewer connections than configured: this process may open so few files'
      logger.info({ ...connections, filesPerStore }, text)
    }
    return plan
  }

  #listen({ connections }: FilesPlan): Promise<BoundServer> {
    const { config, files, logger, portFlag } = this.#options
    const operations = operationRoutes(this.#self(), this.#metrics, systemClock)
    const fetch: Serve = (request, socket) =>
      isOperation(request, this.#options.supports?.max)
        ? operations.fetch(request)
        : this.#serve(request, socket)
    const { allowedHosts, allowedOrigins, answerBytesMax } =
      config.listener ?? defaultListenerSettings
    const warn = sparingLog(systemClock, new Set(), (text, detail) => logger.warn(detail, text))
    return listen({
      ...{ listen: config.listen, tls: files.tls, fetch, portFlag, connections, answerBytesMax },
      hosts: [...allowedHosts, ...listUrls(config).map((url) => new URL(url).hostname)],
      origins: allowedOrigins,
      onError: ({ message: error }) => warn('the listener met an error', { error }),
    })
  }

  /** Those that the folder keeps. A node of such a set waits here until the cluster has its set. */
  async #findLaterSets(): Promise<readonly LaterSet[]> {
    const { config, logger, signal } = this.#options
    const onWait = (why: string): void => void (this.#waitsFor = why)
    const sets = await prepareLaterSets({ config, logger, signal, onWait })
    this.#waitsFor = undefined
    this.#placement = buildPlacement(config.nodes, sets)
    return sets
  }

  async #openLinks(
    { server, connections }: BoundServer,
    laterSets: readonly LaterSet[],
  ): Promise<Links> {
    const { config, files, logger } = this.#options
    const say = (text: string): void => logger.warn(text)
    const peerSecret = files.peerSecret ?? (await peerSecretWithoutFile(config, files, say))
    const links = openLinks({
      ...{ server, connections, config, secret: files.secret, peerSecret, logger, laterSets },
    })
    links.onAddresses = () => this.#node?.onAddresses()
    return links
  }

  #self(): Self {
    const { node, cluster } = this.#options.config
    const { version } = this.#options
    const members = { mayUse: this.#mayUse, find: () => this.#running?.members }
    return {
      name: () => `trilithon ${version}: node ${node} of cluster ${cluster}`,
      isAlive: () => this.#state !== 'failed',
      checks: () => readinessChecks(this.#parts()),
      status: () => this.status(),
      erase: () => this.#node?.status().replica.erase,
      upkeep: { mayUse: this.#mayUse, find: () => this.#running?.upkeep },
      members: { ...members, placeOf: (id) => placeOfNode(this.#options.config.nodes, id) },
      groups: { mayUse: this.#mayUse, find: () => this.#groupsPort },
      upgrade: { ...members, self: () => describeUpgrade(this.#parts()) },
      build: this.#options.supports?.max,
      figures: () => [...statusFigures(this.#parts()), ...this.#edgeFigures()],
    }
  }

  #edgeFigures(): readonly Figure[] {
    const [server, links, node] = [this.#server, this.#links, this.#node]
    const log = logFigures(this.#options.lost?.())
    const all = [...log, ...this.#healing.figures()]
    return [...all, ...[server, links, node].flatMap((one) => one?.figures() ?? [])]
  }

  #noteDataReset(): void {
    this.#dataResets += 1
    const text =
      'data/ was damaged: it is put aside as data.damaged, and rebuilt from the log and the peers'
    this.#options.logger.warn({ data: this.#options.config.data }, text)
  }

  get #groupsPort(): GroupsPort | undefined {
    const node = this.#running
    if (node === undefined) return undefined
    const parts = { seen: this.#parts(), placement: this.#placement }
    const knownLeader = node.replica.knownLeader.bind(node.replica)
    const locate = node.locate.bind(node)
    const sets = { ...node.sets, nodes: parts.seen.nodes }
    return { sets, where: (group) => findWhere({ ...parts, knownLeader, locate }, group) }
  }

  #parts(): StatusParts {
    const { config, version } = this.#options
    return {
      node: config.node,
      cluster: config.cluster,
      nodes: withLaterNodes(config.nodes, this.#placement.laterSets),
      version,
      url: this.#server?.url ?? '',
      state: this.#state,
      startedAtMs: this.#startedAtMs,
      nowMs: systemClock.monotonicMs(),
      dataResets: this.#dataResets,
      healing: this.#healing.status,
      waitsFor: this.#waitsFor,
      disk: this.#disk?.use,
      replica: this.#node?.status().replica,
      queues: this.#node?.status().queues,
      buffer: this.#node?.status().buffer,
      indexes: this.#node?.status().indexes,
      expiry: this.#node?.status().expiry,
      cellExpiry: this.#node?.status().cellExpiry,
      holds: this.#node?.status().holds,
      ...{ moves: this.#node?.status().moves, buckets: this.#node?.status().buckets },
      troubles: this.#links?.troubles,
      peerUrls: this.#links?.peerUrls,
    }
  }

  async #serve(request: Request, socket: Socket): Promise<Response> {
    const gateway = this.#state === 'running' ? this.#gateway : undefined
    if (gateway === undefined) return notServing(this.#state, 'node')
    if (!this.#mayUse(request)) return unauthorized()
    const problem = this.#server?.connections.prove(socket, 'client')
    if (problem !== undefined) return overloaded(problem)
    const startedMs = systemClock.monotonicMs()
    this.#requestsInFlight += 1
    try {
      const response = await gateway(request)
      const seconds = (systemClock.monotonicMs() - startedMs) / 1000
      this.#metrics.countRequest({ method: request.method, status: response.status, seconds })
      return response
    } finally {
      this.#requestsInFlight -= 1
    }
  }

  #fail(cause: Error): void {
    if (this.#failure !== undefined) return
    this.#isDataDamaged = isOfData(cause)
    const reason = this.#isDataDamaged ? damagedData(cause) : cause
    this.#failure = reason
    this.#state = 'failed'
    // The reader of this line needs the stack of a bug, to find its place.
    const stack = cause instanceof StoreError ? {} : { stack: cause.stack }
    this.#options.logger.fatal(
      { cause: cause.message, reason: reason.message, ...stack },
      this.healsByStart(cause) ? 'the node must stop, and starts anew' : 'the node must stop',
    )
    this.onFailure(reason)
  }

  /** Refuses new work, waits for what is in flight up to the drain timeout, closes everything. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stopOnce()
    return this.#stopping
  }

  async #stopOnce(): Promise<void> {
    if (this.#state === 'running') {
      this.#state = 'draining'
      const { drainTimeoutMs } = this.#options.config
      this.#options.logger.info({ drainTimeoutMs }, 'draining')
      const unfinished = await drain(
        () => this.node.drain(),
        () => this.#requestsInFlight > 0,
        drainTimeoutMs,
      )
      if (unfinished !== undefined) this.#options.logger.warn(`${unfinished}; closing anyway`)
    }
    await this.#close(closeGraceMs)
    this.#options.logger.info('stopped')
  }

  /** Ends at once, without draining: as near to a killed process as one process allows. */
  async kill(): Promise<void> {
    this.#state = 'failed'
    await this.#close(0)
  }

  #close(graceMs: number): Promise<void> {
    this.#closing ??= this.#closeOnce(graceMs)
    return this.#closing
  }

  async #closeOnce(graceMs: number): Promise<void> {
    const closed = this.#server?.close(graceMs)
    await this.#node?.stop()
    await this.#links?.close()
    await closed
    this.#settling?.cancel()
    this.#healing.stop()
    this.#folderWatch?.stop()
    await this.#folder?.close()
    this.#disk?.stop()
    this.#stalls?.stop()
    this.#metrics.close()
    if (this.#failure instanceof StaleLog) await this.#healing.takeUp(this.#failure)
    if (this.#isDataDamaged) {
      await resetData(this.#options.config.data)
      this.#options.logger.warn(
        'data/ is put aside as data.damaged; a start rebuilds it from the log and the peers',
      )
    }
  }
}
