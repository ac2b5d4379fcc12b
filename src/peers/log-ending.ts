/** The messages between nodes about their logs, and the end of this node's log (LOG-16). */
import { assert } from '../base/assert.ts'
import type { GroupId, NodeId } from '../base/ids.ts'
import type { Limits } from '../base/limits.ts'
import { LogEnd, type LogEndFigures, type PeerMark } from '../log/log-end.ts'
import type { SettledPositions } from '../log/settled.ts'
import type { LogStore } from '../log/log-store.ts'
import { DirectoryPages } from './directory-pages.ts'
import { Freshness, type FreshnessParts } from './freshness.ts'
import type { Digested } from './group-discovery.ts'
import { Restoring } from './restoring.ts'
import type { Peers } from './peers.ts'
import type { CatchUpReplies } from './replies.ts'
import type { Slices } from './slices.ts'
import type { SetNodes } from '../placement/set-nodes.ts'
import type { Clock } from '../ports/clock.ts'
import type { Put } from '../ports/storage.ts'
import type { Trace } from '../ports/trace.ts'
import type { DigestRequest, DirectoryRequest, Message } from '../replication/message.ts'

const kinds = [
  'digest-request',
  'digest',
  'durable-mark',
  'directory-request',
  'directory',
  'reach-request',
  'reach',
] as const

/** A message about what stands in the log of one of two nodes. */
export type OfLogs = Message & { readonly kind: (typeof kinds)[number] }

export function isOfLogs(message: Message): message is OfLogs {
  return kinds.some((kind) => kind === message.kind)
}

export interface LogEndingParts {
  readonly log: LogStore
  readonly data: {
    /** The first groups behind `after` whose names begin so, `known` among them. */
    groups(
      prefix: string,
      after: GroupId | undefined,
      limit: number,
      known: readonly GroupId[],
    ): Promise<readonly GroupId[]>
    /** Resolves when everything committed before the call is durable. Rejects where the store fails, which ends the node, or stops. */
    drain(): Promise<void>
    /** Puts that go along with the next batch, which comes soon; resolves when they are durable. Rejects as `drain` does. */
    writeAlong(puts: readonly Put[]): Promise<void>
  }
  /** Where the data store says whether it is restored. */
  readonly settled: Pick<SettledPositions, 'isRestored' | 'keepRestored'>
  readonly clock: Clock
  readonly trace: Trace
  readonly limits: Limits
  readonly peers: Peers
  readonly replies: CatchUpReplies
  readonly slices: Slices
  readonly nodes: SetNodes
  /** Whether the peer has named all that it has, and behind the first epoch that is durably applied here. */
  hasNamedAll(peer: NodeId): boolean
  readonly epochs: FreshnessParts['epochs']
  /** A digest of the peer was taken up, or its directory. */
  onDigested(peer: NodeId, digested: Digested): void
  /** The data store durably says that it is restored. */
  onRestored(): void
  onFailed(error: unknown): void
}

export class LogEnding {
  readonly #parts: LogEndingParts
  readonly #end: LogEnd
  readonly #pages: DirectoryPages
  /** Whether the data store holds what the log has given up. */
  readonly restoring: Restoring
  /** How fresh is what this node has applied. */
  readonly freshness: Freshness

  constructor(parts: LogEndingParts) {
    this.#parts = parts
    const { log, settled, data, clock, trace, limits, peers, slices, onFailed } = parts
    this.#end = new LogEnd({ log, clock, trace, limits, marks: () => peers.heardMarks() })
    this.restoring = new Restoring({
      ...{ trace, nodes: parts.nodes, isRestored: settled.isRestored() },
      ask: (peer) => peers.requestDigest(peer),
      advanceMarks: () => peers.advanceMarks(),
      drain: () => data.drain(),
      appliedThrough: (peer) => peers.appliedThrough(peer),
      hasNamedAll: (peer) => parts.hasNamedAll(peer),
      keep: () => {
        settled.keepRestored(true)
        // Where nothing is committed, no batch would come to take that along.
        return data.writeAlong([])
      },
      onRestored: () => parts.onRestored(),
      onFailed,
    })
    this.freshness = new Freshness({
      ...{ clock, trace, limits, log, peers, epochs: parts.epochs, onFailed },
      node: parts.nodes.node,
      incarnation: log.identity.incarnation,
      isRestored: () => this.restoring.isOver,
    })
    this.#pages = new DirectoryPages({
      ...{ limits, log, onFailed, later: slices.add.bind(slices) },
      groups: (...asked) => data.groups('', ...asked),
      send: (to, message) => peers.send(to, message),
    })
  }

  get figures(): LogEndFigures {
    return this.#end.figures
  }

  /** By peer. */
  peers(): ReadonlyMap<NodeId, PeerMark> {
    return this.#end.peers()
  }

  /** Gives up what may go. Called every `digestMs`. */
  look(): void {
    this.restoring.look()
    this.#end.look().catch((error: unknown) => this.#parts.onFailed(error))
  }

  /** Has the flushes through this one go as soon as they may. */
  erase(through: number): void {
    this.#end.erase(through)
  }

  /** A digest of the peer was taken up, or its directory. */
  onDigested(peer: NodeId, digested: Digested): void {
    this.restoring.onDigested(peer, digested.durable)
    this.freshness.onNamed(peer)
    this.#parts.onDigested(peer, digested)
  }

  onMessage(from: NodeId, message: OfLogs): void {
    const { peers } = this.#parts
    switch (message.kind) {
      case 'durable-mark':
        return peers.onDurableMark(from, message.through)
      case 'directory-request':
        return this.#name(from, message)
      case 'digest-request':
        return this.#answerDigest(from, message)
      case 'digest':
        return peers.onDigest(from, message)
      case 'directory':
        return peers.onDirectory(from, message)
      case 'reach-request':
      case 'reach':
        return this.freshness.onMessage(from, message)
    }
  }

  /** Of flushes that the log has given up no digest tells: the directory does. */
  #answerDigest(from: NodeId, request: DigestRequest): void {
    const { log, peers, replies } = this.#parts
    const { asked, after } = request
    assert(log.firstFlush <= log.durableFlush + 1, 'LOG-16: the log has given up its last flush')
    const isGone = after < log.firstFlush - 1
    if (!isGone || !peers.knowsLogEnds(from)) replies.askDigest(from, request)
    else this.#name(from, { kind: 'directory-request', asked, through: 0 })
  }

  /** A directory that lacks groups would count as knowledge of them (LOG-8, LOG-19). */
  #name(to: NodeId, request: DirectoryRequest): void {
    if (this.restoring.isOver) this.#pages.ask(to, request)
    else this.#parts.trace.mark('directory_asked_of_unrestored_node')
  }
}
