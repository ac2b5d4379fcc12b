/** All that a node keeps of one other node of its replica set. */
import type { NodeId } from '../base/ids.ts'
import type { LinkInfo } from '../ports/transport.ts'
import type { PeerFrame } from '../replication/message.ts'
import type { PeerMarks } from './peer-marks.ts'
import { PeerOutbox } from './peer-outbox.ts'

export interface Peer {
  readonly node: NodeId
  readonly outbox: PeerOutbox
  lastHeardMs: number
  lastSentMs: number
  isSuspected: boolean
  marks: PeerMarks
  /** As the present link, or the last one, began. */
  info: LinkInfo
  /** Its store has no vote as yet. */
  isNewcomer: boolean
  /** The build that it runs knows the messages about where a log ends. */
  knowsLogEnds: boolean
  /** It knows the messages by which nodes compare their groups. */
  compares: boolean
  /** The mark of LOG-18 as this node last told it over this link; undefined: it has not. */
  toldMark: number | undefined
  /** The peer's mark of LOG-18, and the store that told it. */
  heardMark: { readonly storeId: string; readonly through: number } | undefined
  /** A digest is to be asked for when enough of what the last ones named has come. */
  isThrottled: boolean
  /** It has let this node's store in since the start, and remembers it. */
  hasAdmitted: boolean
  /** The highest durable flush number heard of it. */
  durableFlush: number
  /** Of links that came and went. */
  link: number
  /** Its store stands in this node's log, durably: the link is used. */
  isJoined: boolean
  readonly held: PeerFrame[]
}

/** Before its first link. */
export function makePeer(node: NodeId, now: number, marks: PeerMarks, durableFlush: number): Peer {
  return {
    ...{ node, outbox: new PeerOutbox(), lastHeardMs: now, lastSentMs: now, isSuspected: false },
    ...{ marks, info: {}, isNewcomer: false, knowsLogEnds: false, compares: false },
    ...{ toldMark: undefined, heardMark: undefined, isThrottled: false, hasAdmitted: false },
    ...{ durableFlush, link: 0, isJoined: false, held: [] },
  }
}

/** The page of the peer's directory to ask for; undefined: digests do, or it knows of no directory. */
export function nextPage({ marks, knowsLogEnds }: Peer): PeerMarks['nextPage'] {
  return knowsLogEnds ? marks.nextPage : undefined
}
