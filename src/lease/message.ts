/**
 * Messages between nodes about leases. A node renews one lease with each peer that it reads with,
 * not one for each group; which groups are registered under it goes with the groups' own messages.
 */
import type { GroupId, NodeId } from '../base/ids.ts'

/** One lease from its grant to its end, as the grantor names it. After an expiry comes another term. */
export interface Term {
  /** Of the grantor. */
  readonly incarnation: number
  /** Rising in that incarnation. */
  readonly number: number
}

/** When a request left, and in which life of its sender; comes back with the answer as it is. */
export interface Asked {
  /** Of the sender. */
  readonly incarnation: number
  /** The sender's monotonic clock, microseconds. */
  readonly sentAt: number
  /** The sender's wall clock, microseconds. */
  readonly sentWall: number
}

/** A node that may serve reads of a group without asking, as far as one grantor knows. */
export interface LeaseHolder {
  readonly node: NodeId
  /** Of that node, when the grantor heard of it. */
  readonly incarnation: number
}

/** A holder asks for a term, or for more of the one it has. */
export interface Renew {
  readonly kind: 'renew'
  readonly asked: Asked
  /** The grantor's highest incarnation that the sender knows: it counts on no older one. 0: none. */
  readonly grantor: number
  /** The highest revocation of `term` that the sender has carried out; 0: none. */
  readonly serial: number
  /** The term that `serial` is of; absent: the sender holds none. */
  readonly term?: Term
}

/**
 * The grantor's answer. The lease counts from when the request left. The last one is said once more,
 * unasked, when there is something new to revoke.
 */
export interface Renewed {
  readonly kind: 'renewed'
  readonly asked: Asked
  /** How long it lasts, milliseconds: the grantor's word counts, whatever the holder's limits say. */
  readonly leaseMs: number
  readonly term: Term
  /** The highest revocation of the term so far, and the groups of those not acknowledged. */
  readonly serial: number
  readonly revoked: readonly GroupId[]
}

/** A holder counts on nothing any more under this term: it stops, or their link was lost. */
export interface HandBack {
  readonly kind: 'hand-back'
  readonly term: Term
}

/** A proposer found `holder` slow too often: its lease is not renewed for a while. */
export interface Slow {
  readonly kind: 'slow'
  readonly holder: NodeId
}

export type LeaseMessage = Renew | Renewed | HandBack | Slow

export function isSameTerm(a: Term, b: Term): boolean {
  return a.number === b.number && a.incarnation === b.incarnation
}
