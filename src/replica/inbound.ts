/** The messages of peers, each to where it belongs: a group's step, or what this node does with its peers beside the groups. */
import { assert } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import type { GroupId, NodeId } from '../base/ids.ts'
import { isOfComparison } from '../peers/compare-asks.ts'
import type { Backpressure } from '../peers/backpressure.ts'
import type { LeaseKeeper } from '../peers/lease-keeper.ts'
import { isOfLogs, type LogEnding } from '../peers/log-ending.ts'
import type { PeerWork } from '../peers/peer-work.ts'
import type { Peers } from '../peers/peers.ts'
import type { Comparing } from './comparing.ts'
import type { Trace } from '../ports/trace.ts'
import type { GroupEvent } from '../replication/group.ts'
import { isOfOneEpoch } from '../replication/standing.ts'
import type {
  EpochMessage,
  GroupMessage,
  Message,
  SnapshotMessage,
} from '../replication/message.ts'

export interface InboundParts {
  readonly work: PeerWork
  readonly ending: LogEnding
  readonly comparing: Pick<Comparing, 'onMessage' | 'findRefusal'>
  /** The change of this replica set's voters. */
  readonly epochs: { onMessage(from: NodeId, message: EpochMessage): void }
  readonly peers: Peers
  readonly keeper: LeaseKeeper
  readonly backpressure: Backpressure
  readonly trace: Trace
  /** Whether the node, this one or a peer, is a read-only member in the present epoch. */
  isReader(node: NodeId): boolean
  readonly node: NodeId
  step(group: GroupId, event: GroupEvent): void
  /** A message met a bug, and nothing came of it. */
  onBug(error: unknown): void
}

const leaseKinds: ReadonlySet<Message['kind']> = new Set([
  ...(['renew', 'renewed', 'hand-back', 'slow', 'release'] as const),
])

function isOfLeases({ kind }: Message): boolean {
  return leaseKinds.has(kind)
}

export class Inbound {
  readonly #parts: InboundParts

  constructor(parts: InboundParts) {
    this.#parts = parts
  }

  take(from: NodeId, message: Message): void {
    const { ending, epochs, peers, keeper } = this.#parts
    if (isOfLogs(message)) return this.#apart(() => ending.onMessage(from, message))
    if (isOfComparison(message)) {
      return this.#apart(() => this.#parts.comparing.onMessage(from, message))
    }
    if (!this.#mayBeOf(from, message)) return
    switch (message.kind) {
      case 'clock':
        return this.#apart(() => peers.onClock(from, message))
      case 'standing':
      case 'seal-request':
      case 'seal-page':
      case 'version':
        return this.#apart(() => epochs.onMessage(from, message))
      case 'renew':
      case 'renewed':
      case 'hand-back':
      case 'slow':
        return keeper.onMessage(from, message)
      default:
        this.#takeOfGroup(from, message)
    }
  }

  /** A store without a vote has none to give, nor leases to hold or to end, whatever it says. A reader asks how far a log goes. */
  #mayBeOf(from: NodeId, message: Message): boolean {
    const { peers, trace, isReader, node } = this.#parts
    const isOfLease = isOfLeases(message)
    if (!isOfLease && !isOfOneEpoch(message)) return true
    // RDR-1: a reader holds no lease, and gives none.
    if (isOfLease && isReader(node)) return false
    // A voter that is to lose its vote is one until this node has ended the epoch.
    if (!peers.isNewcomer(from)) return true
    if (!isReader(from)) return false
    if (message.kind === 'query') return true
    trace.mark('message_of_reader_dropped')
    return false
  }

  #takeOfGroup(from: NodeId, message: GroupMessage | SnapshotMessage): void {
    const { work, trace, step } = this.#parts
    switch (message.kind) {
      case 'entries':
        return this.#apart(() => work.onEntries(from, message))
      case 'snapshot-request':
      case 'snapshot-part':
      case 'snapshot-refused':
        assert(message.transfer >= 0, 'SNAP-3: a snapshot without a number')
        return this.#apart(() => work.onSnapshot(from, message))
      case 'forward':
        // The node that passed it on tries elsewhere, or says that it does not know.
        if (this.#parts.comparing.findRefusal(message.group) !== undefined) {
          return trace.mark('forward_of_refused_group')
        }
        return this.#step(from, message)
      case 'fetch':
        return step(message.group, { kind: 'message', from, message })
      default:
        return this.#step(from, message)
    }
  }

  #step(from: NodeId, message: GroupMessage): void {
    const { work, backpressure, trace, step } = this.#parts
    work.noteForeground()
    if (!backpressure.admits(message)) return trace.mark('no_room_to_take_more')
    step(message.group, { kind: 'message', from, message })
  }

  /** Of messages that are no steps: a bug ends what met it alone. A store that cannot be read ends the node. */
  #apart(work: () => void): void {
    try {
      work()
    } catch (error) {
      if (error instanceof StoreError) throw error
      this.#parts.onBug(error)
    }
  }
}
