/** A client on the machine's clock, randomness and network: applications call `connect` first. */
import { asyncScope } from '../adapters/async-scope.ts'
import { systemClock } from '../adapters/system-clock.ts'
import { systemRandom } from '../adapters/system-random.ts'
import { WsClientDialer } from '../adapters/ws-clients.ts'
import { checkOptions, flag, listOf, text, wrongArgument, type Rules } from '../base/arguments.ts'
import { isClusterId } from '../base/ids.ts'
import { timeoutRule } from '../txn/intents.ts'
import { checkSignal, signalRule } from '../txn/signalled.ts'
import { StoreError } from '../base/errors.ts'
import { secretProblem } from '../base/secret-text.ts'
import { wordsFor } from '../base/words.ts'
import type { ClientFrame } from '../wire/client/client-message.ts'
import { decodeClientFrame, encodeClientFrame } from '../wire/client/client-codec.ts'
import { Client } from './client.ts'
import type { ClientLimits } from './client-limits.ts'
import { FollowedLinks } from './followed-links.ts'

/** Bytes waiting for one node's socket; above it requests go to another node. */
const queueBytesMax: number = 64 * 1024 * 1024

export interface ConnectOptions {
  /** `http://host:port` or `https://host:port` of one node or several: any of them will do. */
  readonly endpoints: readonly string[]
  /** The cluster's secret, when it has one: 16 to 1,024 characters of printable ASCII. */
  readonly secret?: string
  /** The cluster's id: a node of another cluster is refused. Default: whichever answers. */
  readonly cluster?: string
  /**
   * False: the client has links to these addresses alone. Else they are where it begins: the nodes tell it of the others, also of
   * those that are added later, and it leaves nodes that are removed. A gateway tells of no nodes.
   */
  readonly follow?: boolean
  /** For calls that name no time-out of their own; default 10 seconds. */
  readonly timeoutMs?: number
  /** Closes the client when it is aborted, as its `close` does; no client is made when it is aborted before. */
  readonly signal?: AbortSignal
}

const connectRules: Rules<ConnectOptions> = {
  endpoints: listOf(text),
  secret: text,
  cluster: {
    accepts: (value) => typeof value === 'string' && isClusterId(value),
    words: '1 to 64 of a-z, 0-9 and -',
  },
  follow: flag,
  timeoutMs: timeoutRule,
  signal: signalRule,
}

/**
 * A client of these nodes. Connections are made in the background: the first call waits for one,
 * until its time-out. Rejects with `invalid` when the addresses are not such, an option is not known, or the secret cannot
 * be one, and with `closed` when the signal is aborted.
 */
export async function connect(options: ConnectOptions): Promise<Client> {
  const given: unknown = options
  if (given === undefined) {
    throw wrongArgument(
      'connect',
      'the options',
      given,
      "an object such as { endpoints: ['http://…'] }",
    )
  }
  checkOptions('connect', options, connectRules)
  // It may come from a variable that is not set, and nodes would be asked without one.
  if (options.secret === '') {
    throw new StoreError('invalid', 'the secret is empty; leave it out where the cluster has none')
  }
  checkSignal(options.signal)
  return dial(options)
}

/** The same with bounds of its own, for commands of this program. */
export function dial(options: ConnectOptions, limits: Partial<ClientLimits> = {}): Client {
  const { secret = '', cluster, follow = true, timeoutMs, signal } = options
  const nodes: readonly string[] | undefined = options.endpoints
  const urls = [...new Set((nodes ?? []).map(nodeUrl))]
  if (urls.length === 0) throw new StoreError('invalid', 'a client needs the address of a node')
  const problem = secret === '' ? undefined : secretProblem(secret)
  if (problem !== undefined) throw new StoreError('invalid', `the secret ${problem}`)
  const dialer = new WsClientDialer<ClientFrame>({
    urls,
    secret,
    queueBytesMax,
    tellsAddresses: true,
    clock: systemClock,
    random: systemRandom,
    ...(cluster !== undefined && { cluster }),
    codec: { encode: encodeClientFrame, decode: decodeClientFrame },
    log: () => undefined,
  })
  const machine = { clock: systemClock, random: systemRandom }
  const transport = follow ? new FollowedLinks({ transport: dialer, ...machine }) : dialer
  const ports = { transport, ...machine, scope: asyncScope() }
  return new Client(ports, { ...limits, ...(timeoutMs !== undefined && { timeoutMs }) }, signal)
}

function nodeUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isHttp = url?.protocol === 'http:' || url?.protocol === 'https:'
  // The client would ignore a path behind the port.
  if (url && isHttp && url.href === `${url.origin}/`) return url.origin
  const message = `${wordsFor(text)} is no address of a node; give http://HOST:PORT`
  throw new StoreError('invalid', message)
}
