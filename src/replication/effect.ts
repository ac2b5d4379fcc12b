/**
 * The effects that the pure core asks of the driver, and its view of the world at each step.
 *
 * PAX-4 is a shape here: a `persist` is durable before the first of its `after` begins.
 */
import type { GroupId, NodeId, Position, Timestamp } from '../base/ids.ts'
import type { Limits } from '../base/limits.ts'
import type { Leases } from '../lease/leases.ts'
import type { Ballot } from '../paxos/ballot.ts'
import type { Trace } from '../ports/trace.ts'
import type { RowWritten } from './apply.ts'
import type { Verdict } from '../group/outcome.ts'
import type { Accepted, GroupMessage } from './message.ts'

/**
 * The records that an acceptor makes durable. `accept` promises its ballot, too; so does `copied`, an acceptance of
 * earlier, beside which a higher promise may stand.
 */
export type LogRecord =
  | {
      readonly kind: 'promise'
      readonly group: GroupId
      readonly position: Position
      readonly ballot: Ballot
    }
  | {
      readonly kind: 'accept'
      readonly group: GroupId
      readonly position: Position
      readonly ballot: Ballot
      readonly value: Uint8Array
    }
  | {
      readonly kind: 'copied'
      readonly group: GroupId
      readonly position: Position
      readonly ballot: Ballot
      readonly value: Uint8Array
    }
  | {
      /** Decided. Without a value: the one accepted here at exactly this ballot. */
      readonly kind: 'chosen'
      readonly group: GroupId
      readonly position: Position
      readonly ballot: Ballot
      readonly value?: Uint8Array
    }

/** A message that is whole when the step ends. An acceptance is not: it names the holders of its last moment. */
export type ReadyMessage = Exclude<GroupMessage, Accepted>

export type Effect =
  /** To another node; may be lost. */
  | { readonly kind: 'send'; readonly to: NodeId; readonly message: ReadyMessage }
  /** To this node itself, in a step of its own. */
  | { readonly kind: 'deliver'; readonly message: ReadyMessage }
  /**
   * An acceptance, to another node or to this one. `acceptedAsItLeaves` makes the message at the moment it
   * leaves, which is after its flush (LEASE-1).
   */
  | {
      readonly kind: 'send-accepted'
      readonly to: NodeId
      readonly group: GroupId
      readonly epoch: number
      readonly position: Position
      readonly ballot: Ballot
    }
  /** Durable, together with all that was persisted before; only then `after`, in order. */
  | {
      readonly kind: 'persist'
      readonly records: readonly LogRecord[]
      readonly after: readonly Effect[]
    }
  /** Durable some time: along with whatever is persisted next. Losing it costs work, not safety. */
  | { readonly kind: 'note'; readonly record: LogRecord }
  /** The committed entry at `position` takes effect here: visible to every later read. */
  | {
      readonly kind: 'apply'
      readonly group: GroupId
      readonly position: Position
      readonly timestamp: Timestamp
      /** Of the group, before this entry and from it on. */
      readonly horizonBefore: Timestamp
      readonly horizon: Timestamp
      readonly value: Uint8Array
      readonly writes: readonly RowWritten[]
      readonly encodeState: () => Uint8Array
    }
  /** Answers a submission of this node's edge. */
  | { readonly kind: 'verdict'; readonly request: number; readonly verdict: Verdict }
  /** A read of this node's edge may be served: everything up to `position` is applied. */
  | {
      readonly kind: 'serve'
      readonly read: number
      readonly position: Position
      readonly timestamp: Timestamp
    }
  /** This group wants a `wake` event at this monotonic time, in milliseconds. */
  | { readonly kind: 'wake'; readonly group: GroupId; readonly at: number }
  /** Asks a peer for a lease, in time for the message that follows. */
  | { readonly kind: 'renew'; readonly to: NodeId }
  /** Tells every other voter that this lease holder makes writers wait. */
  | { readonly kind: 'slow'; readonly holder: NodeId }
  /** Answers a peer with committed entries from the log, as many as the bounds allow. */
  | {
      readonly kind: 'send-entries'
      readonly to: NodeId
      readonly group: GroupId
      readonly epoch: number
      readonly from: Position
      readonly through: Position
      readonly committed: Position
      /** A client waits for them there. */
      readonly isAwaited: boolean
    }

export type GroupLeases = Pick<
  Leases,
  'enter' | 'leave' | 'confirmHeld' | 'confirmLive' | 'register' | 'release' | 'revoke' | 'noteSlow'
>

/** The facts that a step may know besides its event and its state. */
export interface Context {
  readonly node: NodeId
  readonly incarnation: number
  readonly limits: Limits
  readonly trace: Trace
  /** The wall clock at this event. */
  readonly wall: Timestamp
  /** The monotonic clock at this event, in milliseconds. */
  readonly now: number
  /**
   * The time that stamps entries: the wall clock, held to the others' where it is too far from them (CLOCK-1,
   * CLOCK-2).
   */
  readonly stamp: Timestamp
  /** Whether this node may take proposals on (its overlay and log have room). */
  readonly mayPropose: boolean
  /**
   * Whether a majority of the nodes, this one included, has let this store in since it started.
   * Before that it has no vote in what it proposes itself: no peer has vouched for its log.
   */
  readonly isAdmitted: boolean
  /**
   * Whether this node's data store holds what its log has given up (LOG-19). Before that the node does not know at which
   * positions it has voted: it gives no vote, answers no read round, and counts itself in none.
   */
  readonly isRestored: boolean
  /** This node's leases, as far as a group may ask of them. */
  readonly leases: GroupLeases
  isSuspected(node: NodeId): boolean
  /** How long a peer may still take to answer a fetch of the group; 0: no fetch is under way. */
  fetchPatienceMs(group: GroupId): number
  /** A number that this node has never drawn before, in no incarnation. */
  drawNumber(): number
  emit(effect: Effect): void
}

/**
 * A delay between `ms` and twice that, different from node to node and try to try, without a draw.
 * With a group, different from group to group, too: for what begins in many of them at once.
 */
export function jitter(
  context: Context,
  ms: number,
  position: Position,
  attempt: number,
  group?: GroupId,
): number {
  const start = Math.imul(context.incarnation ^ (position << 4), 0x9e3779b1) ^ attempt
  const ofNode = stir(start, context.node)
  const hash = group === undefined ? ofNode : stir(ofNode, group)
  return ms + ((hash >>> 0) % 1024) * (ms / 1024)
}

function stir(start: number, text: string): number {
  let hash = start
  for (let i = 0; i < text.length; i++) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x85ebca6b)
    hash ^= hash >>> 13
  }
  return hash
}
