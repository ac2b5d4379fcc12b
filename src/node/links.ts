/** The two transports of a node on its one listener: links to the other nodes, and from clients. */
import type { Server } from 'node:http'
import type { Logger } from 'pino'
import type { Connections } from '../adapters/connections.ts'
import {
  WsClientDialer,
  WsClientListener,
  type ClientDialerOptions,
} from '../adapters/ws-clients.ts'
import type { TransportCounters } from '../adapters/ws-link.ts'
import { WsPeerTransport } from '../adapters/ws-peers.ts'
import { systemClock } from '../adapters/system-clock.ts'
import { systemRandom } from '../adapters/system-random.ts'
import { FollowedLinks } from '../client/followed-links.ts'
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
import { withLaterNodes } from './later-sets-file.ts'
import { listFirst, listSets } from '../config/replica-sets.ts'
import type { NodeAddress } from '../config/values.ts'
import { nodeId } from '../base/ids.ts'
import type { LaterSet } from '../placement/placement.ts'
import type { Figure } from './metrics.ts'
import type { NodeAddresses } from './set-lists.ts'
import { sparingLog } from './sparing-log.ts'

export interface Links {
  readonly peers: Transport<PeerFrame>
  /** Why peers have no link, by their ids, where that is known. */
  readonly troubles: ReadonlyMap<string, string>
  /** Where the peers of now are, by their ids, where that is known. */
  readonly peerUrls: ReadonlyMap<string, string | undefined>
  readonly clients: Transport<ClientFrame>
  /** To the nodes of each other replica set, by its number. */
  readonly elsewhere: ReadonlyMap<number, FollowedLinks>
  /** Where clients reach the nodes of all sets. */
  readonly addresses: NodeAddresses
  /** Links to the nodes of a set that has come later. */
  addSet(number: number, set: LaterSet): FollowedLinks
  /** Called when `addresses` has changed. */
  onAddresses: () => void
  /** Figures of the traffic over both, for `/metrics`. */
  figures(): readonly Figure[]
  close(): Promise<void>
}

export interface LinksOptions {
  readonly server: Server
  readonly connections: Connections
  readonly config: NodeConfig
  /** The sets that came later, as far as this node knows them. */
  readonly laterSets: readonly LaterSet[]
  /** The clients'. Absent: none; the other side must have none either. */
  readonly secret: string | undefined
  /** The secret by which nodes prove themselves to one another. */
  readonly peerSecret: string
  readonly logger: Logger
}

const clientsMax = 10_000
const clientQueueBytesMax: number = 64 * 1024 * 1024

export function openLinks(options: LinksOptions): Links {
  const { server, connections, secret = '', peerSecret, logger, laterSets } = options
  const config = { ...options.config, nodes: withLaterNodes(options.config.nodes, laterSets) }
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
    nodeList: listInWords(listFirst(options.config.nodes)),
    ...(config.advertisedUrl !== undefined && { clientUrl: config.advertisedUrl }),
  })
  const clients = new WsClientListener<ClientFrame>({
    ...common,
    codec: { encode: encodeClientFrame, decode: openClientFrame },
    queueBytesMax: clientQueueBytesMax,
    clientsMax,
  })
  const elsewhere = openElsewhere(config, common)
  const first = listSets(config.nodes).map((name): readonly Named[] => {
    return listFirst(config.nodes).filter(({ set }) => set === name)
  })
  const links: Links = {
    peers,
    addresses: findAddresses(config, peers, elsewhere, first),
    addSet: (number, { nodes }) => {
      first[number] = nodes.map(({ node: id, url }) => ({ id, url }))
      const opened = openSet(first[number] ?? [], number, common)
      opened.onLists = () => links.onAddresses()
      elsewhere.set(number, opened)
      return opened
    },
    onAddresses: () => undefined,
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
      await Promise.all([...elsewhere.values()].map((one) => one.close()))
    },
  }
  peers.onClientUrl = () => links.onAddresses()
  for (const one of elsewhere.values()) one.onLists = () => links.onAddresses()
  return links
}

type LinkParts = Pick<
  ClientDialerOptions<ClientFrame>,
  'secret' | 'log' | 'clock' | 'random' | 'cluster'
>

/** A node by its name and address. */
type Named = Pick<NodeAddress, 'id' | 'url'>

/** Links to the nodes of other sets: this node asks those as a client does, and follows their nodes as one. */
function openElsewhere(
  { node, nodes: configured }: NodeConfig,
  common: LinkParts,
): Map<number, FollowedLinks> {
  const own = configured.find(({ id }) => id === node)
  const elsewhere = new Map<number, FollowedLinks>()
  for (const [number, name] of listSets(configured).entries()) {
    if (name === own?.set) continue
    const ofSet = configured.filter(({ set }) => set === name)
    elsewhere.set(number, openSet(ofSet, number, common))
  }
  return elsewhere
}

function openSet(ofSet: readonly Named[], number: number, common: LinkParts): FollowedLinks {
  const nodes = new Map(ofSet.map(({ id, url }) => [url, nodeId(id)]))
  const transport = new WsClientDialer<ClientFrame>({
    ...common,
    codec: { encode: encodeClientFrame, decode: decodeClientFrame },
    queueBytesMax: clientQueueBytesMax,
    ...{ nodes, urls: [...nodes.keys()] },
  })
  const { clock, random } = common
  return new FollowedLinks({ transport, clock, random, onlySet: number })
}

/** The addresses of all nodes: of the configuration, and of the advertised ones. */
export function listUrls({ nodes, advertisedUrl }: NodeConfig): readonly string[] {
  const urls = nodes.map(({ url }) => url)
  return advertisedUrl === undefined ? urls : [...urls, advertisedUrl]
}

function findAddresses(
  config: NodeConfig,
  peers: { readonly clientUrls: ReadonlyMap<string, string> },
  elsewhere: ReadonlyMap<number, FollowedLinks>,
  sets: readonly (readonly Named[])[],
): NodeAddresses {
  const { node: own, nodes, advertisedUrl } = config
  const urlOf = (id: string): string => nodes.find((one) => one.id === id)?.url ?? ''
  return {
    find: (node, url) => {
      const said = node === own ? advertisedUrl : peers.clientUrls.get(node)
      return said === undefined ? { url: url ?? urlOf(node) } : { url: said, isOwnWord: true }
    },
    others: () =>
      [...elsewhere].map(([set, links]) => {
        const first = (sets[set] ?? []).map(({ id, url }) => ({ node: nodeId(id), url }))
        return links.lists.find((list) => list.set === set) ?? { set, epoch: 1, nodes: first }
      }),
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
