/** A client over WebSockets, as applications on Node.js make it. */
import { systemClock } from '../adapters/system-clock.ts'
import { systemRandom } from '../adapters/system-random.ts'
import { WsClientDialer } from '../adapters/ws-clients.ts'
import { StoreError } from '../base/errors.ts'
import type { ClientFrame } from '../cells/operation.ts'
import { decodeClientFrame, encodeClientFrame } from '../wire/client-codec.ts'
import { Client, type ClientLimits } from './client.ts'

export interface ConnectOptions extends Partial<ClientLimits> {
  /** `http://host:port` of some nodes; any of them serves everything. */
  readonly nodes: readonly string[]
  /** The cluster's secret, where it has one. */
  readonly secret?: string
  /** Refuses nodes of any other cluster. */
  readonly cluster?: string
}

const queueBytesMax: number = 64 * 1024 * 1024

/**
 * A client of the cluster that `nodes` belong to. It links to all of them, now and after every
 * loss, and asks whichever answers. Throws `invalid` for a list that holds no URL of a node.
 */
export function connect(options: ConnectOptions): Promise<Client> {
  const { nodes, secret = '', cluster, ...limits } = options
  for (const node of nodes) checkUrl(node)
  if (nodes.length === 0) throw new StoreError('invalid', 'name at least one node to connect to')
  const transport = new WsClientDialer<ClientFrame>({
    ...{ urls: [...new Set(nodes)], secret, queueBytesMax },
    ...(cluster === undefined ? {} : { cluster }),
    ...{ clock: systemClock, random: systemRandom, log: () => undefined },
    codec: { encode: encodeClientFrame, decode: decodeClientFrame },
  })
  const client = new Client({ transport, clock: systemClock, random: systemRandom }, limits)
  return Promise.resolve(client)
}

function checkUrl(text: string): void {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return
  const message = `"${text}" is no URL of a node; they look like http://127.0.0.1:4700`
  throw new StoreError('invalid', message)
}
