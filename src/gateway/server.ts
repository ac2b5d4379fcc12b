/**
 * A gateway as a process has it: stateless, in front of the nodes of a cluster. It serves cells over
 * HTTP and client libraries over the same frames as a node does, and asks the nodes for all of it.
 */
import type { Socket } from 'node:net'
import type { Logger } from 'pino'
import { datastoresThrough } from '../client/datastores.ts'
import { openFilesMax } from '../adapters/open-files.ts'
import { systemClock } from '../adapters/system-clock.ts'
import { systemRandom } from '../adapters/system-random.ts'
import { WsClientDialer, WsClientListener } from '../adapters/ws-clients.ts'
import { present } from '../base/assert.ts'
import { clusterId, nodeId } from '../base/ids.ts'
import { Admission } from '../node/admission.ts'
import { admissionFigures } from '../node/admission-figures.ts'
import { authorization } from '../node/authorization.ts'
import { bugLog } from '../node/bug-log.ts'
import { Bugs } from '../node/bugs.ts'
import { logFigures, type LostLines } from '../node/log-figures.ts'
import { ClientServer, defaultClientServerLimits } from '../node/client-server.ts'
import type { ConfigFiles } from '../config/load.ts'
import { listen, type BoundServer, type Fetch, type Serve } from '../node/http-server.ts'
import { createMetrics, type NodeMetrics } from '../node/metrics.ts'
import { planOpenFiles } from '../node/open-files-plan.ts'
import { isOperation, operationRoutes, type Self } from '../node/operations.ts'
import { plain } from '../node/plain.ts'
import { notServing, overloaded, unauthorized } from '../node/refusals.ts'
import { sparingLog } from '../node/sparing-log.ts'
import { Slices } from '../ports/slices.ts'
import {
  decodeClientFrame,
  encodeClientFrame,
  openClientFrame,
} from '../wire/client/client-codec.ts'
import type { ClientFrame } from '../wire/client/client-message.ts'
import { buildClientLimits, type GatewayConfig } from './gateway-config.ts'
import {
  gatewayChecks,
  gatewayFigures,
  gatewayReport,
  type GatewayParts,
  type GatewayReport,
  type GatewayState,
} from './gateway-status.ts'
import { gatewayFetch } from './http.ts'
import { OneCluster } from './one-cluster.ts'
import { FollowedLinks, linksMaxDefault } from '../client/followed-links.ts'
import { Relay } from '../client/relay.ts'
import { BodyRoom } from './request-body.ts'

export interface GatewayServerOptions {
  readonly config: GatewayConfig
  readonly files: ConfigFiles
  readonly logger: Logger
  /** The lines that its log has lost; absent: that is not known. */
  readonly lost?: () => LostLines
  readonly version: string
  readonly portFlag: string
}

/** After the drain timeout, connections that still talk get this long to end by themselves. */
const closeGraceMs = 500
const drainPollMs = 10
/** Bytes waiting for one socket; above it frames are dropped. */
const queueBytesMax: number = 64 * 1024 * 1024

const codec = { encode: encodeClientFrame, decode: decodeClientFrame }

export class GatewayServer {
  readonly #options: GatewayServerOptions
  readonly #metrics: NodeMetrics
  readonly #bugs: Bugs
  readonly #mayUse: (request: Request) => boolean
  readonly #startedAtMs = systemClock.monotonicMs()
  readonly #links: OneCluster<ClientFrame>
  /** Absent: this gateway follows no nodes. */
  readonly #followed: FollowedLinks | undefined
  readonly #relay: Relay
  readonly #bodies: BodyRoom
  readonly #slices = new Slices(systemClock)
  readonly #admission = new Admission(systemClock)
  readonly #api: Fetch
  #state: GatewayState = 'starting'
  #server: BoundServer | undefined
  #clients: WsClientListener<ClientFrame> | undefined
  #clientServer: ClientServer | undefined
  #requestsInFlight = 0

  /** Resolves when it listens; rejects with a StoreError of one sentence when it cannot. */
  static async start(options: GatewayServerOptions): Promise<GatewayServer> {
    const gateway = new GatewayServer(options)
    try {
      await gateway.#open()
      return gateway
    } catch (error) {
      await gateway.#close(0)
      throw error
    }
  }

  private constructor(options: GatewayServerOptions) {
    const { config, files, version, logger } = options
    this.#options = options
    this.#bugs = new Bugs({ clock: systemClock, random: systemRandom, tell: bugLog(logger) })
    this.#mayUse = authorization(files.secret)
    this.#metrics = createMetrics({ gateway: config.name })
    this.#bodies = new BodyRoom(config.requestBytesMax)
    this.#links = new OneCluster(this.#dialer(), config.cluster)
    const machine = { clock: systemClock, random: systemRandom }
    this.#followed = config.follow
      ? new FollowedLinks({ transport: this.#links, ...machine })
      : undefined
    const transport = this.#followed ?? this.#links
    this.#relay = new Relay({ transport, ...machine }, buildClientLimits(config))
    this.#api = gatewayFetch({
      cells: this.#relay,
      datastores: datastoresThrough({
        cells: this.#relay,
        groups: this.#relay.groups,
        ...machine,
        timeoutMs: config.timeoutMs,
      }),
      version,
      admission: this.#admission,
      bodies: this.#bodies,
      slices: this.#slices,
      timeoutMs: config.timeoutMs,
      requestsMax: config.requestsMax,
      noteBug: this.#bugs.note,
    })
  }

  get url(): string {
    return present(this.#server, 'gateway: it listens').url
  }

  status(): GatewayReport {
    return gatewayReport(this.#parts())
  }

  /** Refuses new work, waits for what is in flight up to the drain timeout, closes everything. */
  async stop(): Promise<void> {
    const { config, logger } = this.#options
    if (this.#state === 'running') {
      this.#state = 'draining'
      logger.info({ drainTimeoutMs: config.drainTimeoutMs }, 'draining')
      const isDrained = await this.#drain(config.drainTimeoutMs)
      if (!isDrained) logger.warn('the drain timeout passed; closing anyway')
    }
    await this.#close(closeGraceMs)
    logger.info('stopped')
  }

  #dialer(): WsClientDialer<ClientFrame> {
    const { cluster, nodes } = this.#options.config
    return new WsClientDialer<ClientFrame>({
      ...this.#linkParts(),
      urls: nodes,
      ...(cluster !== undefined && { cluster }),
    })
  }

  #linkParts(): Omit<ConstructorParameters<typeof WsClientDialer<ClientFrame>>[0], 'urls'> {
    const { files, logger } = this.#options
    const log = sparingLog(systemClock, new Set(), (text, detail) => logger.info(detail, text))
    const { secret = '' } = files
    return { secret, codec, queueBytesMax, log, clock: systemClock, random: systemRandom }
  }

  async #open(): Promise<void> {
    const { config, logger } = this.#options
    this.#server = await this.#listen()
    const { cluster } = this.#links
    // Until the cluster is known its clients are not taken: they might be of another one.
    if (cluster === undefined) this.#links.onKnown = (known) => this.#takeClients(known)
    else this.#takeClients(cluster)
    this.#state = 'running'
    logger.info({ url: this.#server.url, nodes: config.nodes }, 'serving')
  }

  #listen(): Promise<BoundServer> {
    const { config, files, logger, portFlag } = this.#options
    const operations = operationRoutes(this.#self(), this.#metrics, systemClock)
    const fetch: Serve = (request, socket) =>
      isOperation(request) ? operations.fetch(request) : this.#serve(request, socket)
    const { allowedHosts, allowedOrigins, answerBytesMax } = config.listener
    const warn = sparingLog(systemClock, new Set(), (text, detail) => logger.warn(detail, text))
    const plan = planOpenFiles({
      ...{
        openFilesMax: openFilesMax(),
        stores: 0,
        others: Math.max(config.nodes.length, config.follow ? linksMaxDefault : 0),
      },
      wanted: config.listener,
    })
    if (plan.isLess) {
      const text = 'fewer connections than configured: this process may open so few files'
      logger.info({ ...plan.connections }, text)
    }
    return listen({
      ...{ listen: config.listen, tls: files.tls, fetch, portFlag, answerBytesMax },
      ...{ hosts: allowedHosts, origins: allowedOrigins, connections: plan.connections },
      onError: ({ message: error }) => warn('the listener met an error', { error }),
    })
  }

  /** Client libraries speak to a gateway as to a node. */
  #takeClients(cluster: string): void {
    const { config } = this.#options
    const { name, clientsMax, requestsMax, requestBytesMax } = config
    const { server, connections } = present(this.#server, 'gateway: it listens')
    this.#clients = new WsClientListener<ClientFrame>({
      ...this.#linkParts(),
      codec: { encode: encodeClientFrame, decode: openClientFrame },
      server,
      connections,
      clientsMax,
      node: nodeId(name),
      cluster: clusterId(cluster),
    })
    this.#clientServer = new ClientServer(
      {
        transport: this.#clients,
        cells: this.#relay,
        groups: this.#relay.groups,
        worklists: this.#relay.worklists,
        clock: systemClock,
        slices: this.#slices,
        admission: this.#admission,
        status: () => plain(this.status()),
        noteBug: this.#bugs.note,
      },
      {
        ...defaultClientServerLimits,
        clientRequestsMax: requestsMax,
        requestsMax,
        bytesMax: requestBytesMax,
      },
    )
    this.#clientServer.start()
  }

  #self(): Self {
    const { config, version } = this.#options
    return {
      name: () => `trilithon ${version}: gateway ${config.name} of ${this.#clusterText()}`,
      isAlive: () => this.#state !== 'failed',
      checks: () => gatewayChecks(this.#parts()),
      status: () => this.status(),
      figures: () => [
        ...gatewayFigures(this.#parts()),
        ...admissionFigures(this.#admission),
        ...this.#bugs.figures(),
        ...logFigures(this.#options.lost?.()),
        ...(this.#server?.figures() ?? []),
      ],
    }
  }

  #clusterText(): string {
    const { cluster } = this.#links
    return cluster === undefined ? 'a cluster that has not answered yet' : `cluster ${cluster}`
  }

  #parts(): GatewayParts {
    const { config, version } = this.#options
    return {
      name: config.name,
      cluster: this.#links.cluster,
      version,
      nodes: config.nodes,
      url: this.#server?.url ?? '',
      state: this.#state,
      uptimeMs: systemClock.monotonicMs() - this.#startedAtMs,
      links: this.#relay.nodes(),
      troubles: this.#links.troubles,
      followed: this.#followed,
      requests: this.#relay.calls,
      requestBytes: this.#bodies.bytes,
      clients: this.#clients?.clients ?? 0,
      held: this.#relay.held,
    }
  }

  async #serve(request: Request, socket: Socket): Promise<Response> {
    if (this.#state !== 'running') return notServing(this.#state, 'gateway')
    if (!this.#mayUse(request)) return unauthorized()
    const problem = this.#server?.connections.prove(socket, 'client')
    if (problem !== undefined) return overloaded(problem)
    const startedMs = systemClock.monotonicMs()
    this.#requestsInFlight += 1
    try {
      const response = await this.#api(request)
      const seconds = (systemClock.monotonicMs() - startedMs) / 1000
      this.#metrics.countRequest({ method: request.method, status: response.status, seconds })
      return response
    } finally {
      this.#requestsInFlight -= 1
    }
  }

  async #drain(timeoutMs: number): Promise<boolean> {
    const deadlineMs = systemClock.monotonicMs() + timeoutMs
    const drained = this.#clientServer?.drain().then(() => true) ?? Promise.resolve(true)
    this.#relay.stop()
    while (this.#requestsInFlight > 0) {
      if (systemClock.monotonicMs() >= deadlineMs) return false
      await delay(drainPollMs)
    }
    const late = delay(deadlineMs - systemClock.monotonicMs()).then(() => false)
    return Promise.race([drained, late])
  }

  async #close(graceMs: number): Promise<void> {
    const closed = this.#server?.close(graceMs)
    await this.#clients?.close()
    await this.#relay.close()
    await closed
    this.#metrics.close()
  }
}

function delay(ms: number): Promise<void> {
  return new Promise((resolve) => systemClock.setTimer(ms, resolve))
}
