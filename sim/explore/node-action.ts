/** The events of one node, and the messages between nodes. */
import { present } from '../../src/base/assert.ts'
import type { NodeId, Position } from '../../src/base/ids.ts'
import type { LeaseMessage } from '../../src/lease/message.ts'
import type { SharesRow } from '../../src/placement/shares.ts'
import type { OpenAcceptance } from '../../src/replication/message.ts'
import type { GroupMessage } from '../../src/replication/message.ts'
import { timerNames, type TimerName } from './scope.ts'
import { unpackAction, type ActionCode } from './state-vector.ts'

export type NodeAction =
  | { readonly kind: 'deliver'; readonly from: NodeId; readonly message: SentMessage }
  /** The oldest forced write becomes durable, with the notes before it. */
  | { readonly kind: 'flush' }
  | { readonly kind: 'timer'; readonly timer: TimerName }
  /** Power loss and restart. This many pending writes survive, and this one state record. */
  | { readonly kind: 'crash'; readonly writes: number; readonly state: number }
  /** The same, and the node loses its data store, which held this state record. Its log has given up the applied positions. */
  | { readonly kind: 'lose'; readonly writes: number; readonly state: number }
  /** This state record is durable, and enough for a lost data store to be restored. */
  | { readonly kind: 'restore'; readonly state: number }
  | { readonly kind: 'submit'; readonly submission: number }
  | { readonly kind: 'read'; readonly read: number }
  /** It is time to renew the lease with this grantor. */
  | { readonly kind: 'renew'; readonly peer: NodeId }
  /** Sends a snapshot of this state record to the peer, and forgets the log up to there. */
  | { readonly kind: 'snapshot'; readonly peer: NodeId; readonly state: number }
  /** It hears that the voters change; it seals the first epoch. */
  | { readonly kind: 'hear' | 'seal' }
  /** It applies the row of the buckets; it tells which groups may have begun, and that changes the row. */
  | { readonly kind: 'learn' | 'tell'; readonly row: SharesRow }
  /** A tick passes for the lease that this peer has granted here, or that this node has granted to it. */
  | { readonly kind: 'lapse' | 'expire'; readonly peer: NodeId }

/** A snapshot, all of it: state and rows are one thing here. */
export interface SnapshotSent {
  readonly kind: 'snapshot'
  readonly position: Position
  readonly bytes: Uint8Array
}

/** A node that lost its data store asks how far a peer's log goes; positions stand for flushes here. */
export interface DigestAsked {
  readonly kind: 'digest-request'
  /** The incarnation of the node that asks. */
  readonly asked: number
}

export interface DigestSent {
  readonly kind: 'digest'
  readonly asked: number
  readonly through: Position
}

/** A voter's seal of the first epoch, as it tells it. */
export interface Sealed {
  readonly kind: 'sealed'
  /** Applied there. */
  readonly applied: Position
  /** Accepted there above that. */
  readonly open: readonly OpenAcceptance[]
}

/** A new voter that has restarted asks for the seal anew. */
export interface SealAsked {
  readonly kind: 'seal-request'
}

export type SentMessage =
  GroupMessage | LeaseMessage | SnapshotSent | DigestAsked | DigestSent | Sealed | SealAsked

export function isOfLeases(message: SentMessage): message is LeaseMessage {
  return ['renew', 'renewed', 'hand-back', 'slow'].includes(message.kind)
}

export interface Sent {
  readonly to: NodeId
  readonly message: SentMessage
}

/** The model, as far as the numbers of an action stand for something in it. */
export interface ActionSource {
  readonly setting: { readonly names: readonly NodeId[] }
  flight(number: number): { readonly from: number; readonly message: SentMessage }
  row(number: number): SharesRow
}

/** The action as its node takes it. */
export function nodeAction(model: ActionSource, code: ActionCode): NodeAction {
  const { kind, argument } = unpackAction(code)
  switch (kind) {
    case 'deliver':
    case 'repeat': {
      const { from, message } = model.flight(argument)
      const name = present(model.setting.names[from], 'explore: no such node')
      return { kind: 'deliver', from: name, message }
    }
    case 'flush':
    case 'hear':
    case 'seal':
      return { kind }
    case 'learn':
    case 'tell':
      return { kind, row: model.row(argument) }
    case 'timer':
      return { kind, timer: present(timerNames[argument], 'explore: no such timer') }
    case 'crash':
    case 'lose':
      return { kind, writes: argument % 32, state: Math.floor(argument / 32) }
    case 'restore':
      return { kind, state: argument }
    case 'submit':
      return { kind, submission: argument }
    case 'read':
      return { kind, read: argument }
    case 'snapshot': {
      const peer = present(model.setting.names[argument % 4], 'explore: no such node')
      return { kind, peer, state: Math.floor(argument / 4) }
    }
    default:
      return { kind, peer: present(model.setting.names[argument], 'explore: no such node') }
  }
}
