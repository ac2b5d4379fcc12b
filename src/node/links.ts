/** The two transports of a node on its one listener: links to the other nodes, and from clients. */
import type { Server } from 'node:http'
import type { Logger } from 'pino'
import type { Connections } from '../adapters/connections.ts'
import { WsClientDialer, WsClientListener } from '../adapters/ws-clients.ts'
import type { TransportCounters } from '../adapters/ws-link.ts'
import { WsPeerTransport } from '../adapters/ws-peers.ts'
import { systemClock } from '../adapters/system-clock.ts'
import { systemRandom } from '../adapters/system-random.ts'
import type { ClientFrame } from '../wire/client/client-message.ts'
import type { Transport } from '../ports/transport.ts'
import type { PeerFrame } from '../replication/message.ts'
import {
  decodeClientFrame,
  encodeClientFrame,
  openClientFrame,
} from '../wire/client/client-codec.ts'
import { decodePeerFrame, encodePeerFrame } from '../wire/peer/peer-codec.ts'
import { figureName } from './figure-names.ts'
import type { NodeConfig } from '../config/node-config.ts'
import { listFirst, listSets } from '../config/replica-sets.ts'
import type { Figure } from './metrics.ts'
import { sparingLog } from './sparing-log.ts'

export interface Links {
  readonly peers: Transport<PeerFrame>
  /** Why peers have no link, by their ids, where that is known. */
  readonly troubles: ReadonlyMap<string, string>
  /** Where the peers of now are, by their ids, where that is known. */
  readonly peerUrls: ReadonlyMap<string, string | undefined>
  readonly clients: Transport<ClientFrame>
  /** To the nodes of each other replica set, by its number. */
  readonly elsewhere: ReadonlyMap<number, Transport<ClientFrame>>
  /** Figures of the traffic over both, for `/metrics`. */
  figures(): readonly Figure[]
  close(): Promise<void>
}

export interface LinksOptions {
  readonly server: Server
  readonly connections: Connections
  readonly config: NodeConfig
  /** The clients'. Absent: none; the other side must have none either. */
  readonly secret: string | undefined
  /** The secret by which nodes prove themselves to one another. */
  readonly peerSecret: string
  readonly logger: Logger
}

const clientsMax = 10_000
const clientQueueBytesMax: number = 64 * 1024 * 1024

export function openLinks(options: LinksOptions): Links {
  const { server, connections, config, secret = '', peerSecret, logger } = options
  const { node, cluster, limits } = config
  const own = config.nodes.find(({ id }) => id === node)
  const listed = new Set<string>(config.nodes.map(({ id }) => id))
  const known = { has: (id: string) => listed.has(id) || peers.peerUrls.has(id) }
  const log = sparingLog(systemClock, known, (message, detail) => logger.info(detail, message))
  const ports = { log, clock: systemClock, random: systemRandom }
  const common = { node, cluster, server, connections, secret, ...ports }
  const peers = new WsPeerTransport<PeerFrame>({
    ...common,
    secret: peerSecret,
    codec: { encode: encodePeerFrame, decode: decodePeerFrame },
    queueBytesMax: limits.peerQueueBytesMax,
    peers: config.nodes
      .filter(({ set }) => set === own?.set)
      .map(({ id, url }) => ({ node: id, url })),
    nodeList: listInWords(listFirst(config.nodes)),
  })
  const clients = new WsClientListener<ClientFrame>({
    ...common,
    codec: { encode: encodeClientFrame, decode: openClientFrame },
    queueBytesMax: clientQueueBytesMax,
    clientsMax,
  })
  const elsewhere = new Map<number, WsClientDialer<ClientFrame>>()
  for (const [number, name] of listSets(config.nodes).entries()) {
    if (name === own?.set) continue
    const nodes = new Map(
      config.nodes.filter(({ set }) => set === name).map(({ id, url }) => [url, id]),
    )
    const codec = { encode: encodeClientFrame, decode: decodeClientFrame }
    const queueBytesMax = clientQueueBytesMax
    elsewhere.set(
      number,
      new WsClientDialer<ClientFrame>({
        ...common,
        codec,
        queueBytesMax,
        nodes,
        urls: [...nodes.keys()],
      }),
    )
  }
  return {
    peers,
    troubles: peers.troubles,
    get peerUrls() {
      return peers.peerUrls
    },
    clients,
    elsewhere,
    figures: () => [
      ...linkFigures('peer', peers.counters),
      ...linkFigures('client', clients.counters),
      { name: 'trilithon_clients', help: 'Links from clients.', value: clients.clients },
    ],
    close: async () => {
      await peers.close()
      await clients.close()
      await Promise.all([...elsewhere.values()].map((links) => links.close()))
    },
  }
}

/** Where they listen may differ: behind a proxy, say. */
function listInWords(nodes: NodeConfig['nodes']): string {
  const isOneSet = nodes.every(({ set }) => set === nodes[0]?.set)
  return nodes.map(({ id, set }) => (isOneSet ? id : `${id}@${set}`)).join(' ')
}

function linkFigures(role: string, counters: TransportCounters): readonly Figure[] {
  return Object.entries(counters).map(([field, value]) => ({
    name: figureName('trilithon_link', field, true),
    help: `Of all links together, since this process began: ${field}.`,
    value,
    labels: { role },
  }))
}
