/**
 * Lease holders that the open position's proposer has to wait for. A value that
 * a majority has accepted is chosen; it is committed, and visible to readers, only when no holder can
 * serve a read without it.
 *
 * LEASE-1  Of each holder that a voter listed when it accepted: the holder has accepted this value,
 *          or has acknowledged that the position exists, or a majority of the voters has accepted
 *          without listing it, or has ended its registration since.
 */
import { assert } from '../base/assert.ts'
import type { NodeId } from '../base/ids.ts'
import type { LeaseHolder } from '../lease/message.ts'
import type { Accepting } from '../paxos/proposer.ts'

interface Listed {
  /** The highest that any voter listed. */
  incarnation: number
  /** Voters that have it registered, as far as is known. */
  readonly by: Set<NodeId>
}

/** Maps are made when there is something to note: few proposals meet a holder. */
export interface HolderTable {
  listed: Map<NodeId, Listed> | undefined
  /** The holders that have acknowledged the position, each with its incarnation. */
  acknowledged: Map<NodeId, number> | undefined
}

const nobody: readonly NodeId[] = []

export function noHolders(): HolderTable {
  return { listed: undefined, acknowledged: undefined }
}

/**
 * `voter` has accepted, and lists these. A holder that it does not list cannot be registered there without
 * the value.
 */
export function noteHolders(
  table: HolderTable,
  voter: NodeId,
  holders: readonly LeaseHolder[],
): void {
  if (table.listed === undefined && holders.length === 0) return
  const listed = (table.listed ??= new Map<NodeId, Listed>())
  for (const { by } of listed.values()) by.delete(voter)
  for (const { node, incarnation } of holders) {
    const known = listed.get(node) ?? { incarnation, by: new Set() }
    known.incarnation = Math.max(known.incarnation, incarnation)
    known.by.add(voter)
    listed.set(node, known)
    assert(known.incarnation >= incarnation, 'LEASE-1: an earlier life of a holder counts')
  }
}

export function noteAcknowledged(table: HolderTable, holder: NodeId, incarnation: number): void {
  const acknowledged = (table.acknowledged ??= new Map<NodeId, number>())
  acknowledged.set(holder, Math.max(acknowledged.get(holder) ?? 0, incarnation))
}

export function noteRevoked({ listed }: HolderTable, voter: NodeId, holder: NodeId): void {
  listed?.get(holder)?.by.delete(voter)
}

/** Holders that keep a chosen value from being committed. `self` proposes, and shows nothing older. */
export function awaitedHolders(
  { listed, acknowledged }: HolderTable,
  { acceptances }: Accepting,
  voters: readonly NodeId[],
  self: NodeId,
): readonly NodeId[] {
  if (listed === undefined) return nobody
  const awaited: NodeId[] = []
  for (const [holder, { incarnation, by }] of listed) {
    if (holder === self || by.size === 0 || acceptances.has(holder)) continue
    if ((acknowledged?.get(holder) ?? 0) >= incarnation) continue
    const without = voters.filter((voter) => acceptances.has(voter) && !by.has(voter)).length
    if (2 * without <= voters.length) awaited.push(holder)
  }
  return awaited
}

/** The voters that have it registered. */
export function findListers({ listed }: HolderTable, holder: NodeId): Iterable<NodeId> {
  return listed?.get(holder)?.by ?? nobody
}
