/**
 * Changes of the read-only members in the row of the voters. Such a member has a replica of each group, and no vote. So one that
 * comes or goes begins no epoch; one that gets a vote, or was a voter, does, as any node that is added or removed.
 *
 * RDR-3  A store is a read-only member or a voter of an epoch, and never both. No majority counts it before the epoch that
 *        makes it a voter, nor from the epoch on that ends its vote.
 */
import { assert } from '../base/assert.ts'
import type { NodeId, StoreId, Timestamp } from '../base/ids.ts'
import { nextEpoch, nextNumber, type SeatedStore, type SetRow } from './change.ts'

/** Whether the row names this store as a read-only member. */
export function isReader({ readers }: SetRow, node: NodeId, storeId: string): boolean {
  return readers.get(node)?.store === storeId
}

/** Whether the change under way copies to a store that is to be a read-only member, and begins no epoch. */
export function isForReader({ change, readers }: SetRow): boolean {
  if (change?.kind === 'add-reader') return true
  return change?.kind === 'replace' && change.node !== undefined && readers.has(change.node)
}

/** The store at the seat has what the others hold: it is a read-only member from now on. */
export function endCopy(row: SetRow, now: Timestamp): SetRow {
  const { change } = row
  assert(change?.phase === 'copying', 'MOVE-6: a copy ends twice')
  const { node, store, seat = 0 } = change
  assert(node !== undefined && store !== undefined, 'MOVE-6: a copy ends that no store has taken')
  assert(row.voters?.includes(node) !== true, 'RDR-3: a voter becomes a read-only member unsealed')
  const readers = new Map(row.readers).set(node, { store, seat })
  return { ...row, readers, change: { ...change, phase: 'done', sinceMicros: now } }
}

/** The read-only member is to vote, with the store that it has. Throws `invalid` while another change is under way. */
export function beginPromote(row: SetRow, node: NodeId, now: Timestamp): SetRow {
  const number = nextNumber(row)
  const reader = row.readers.get(node)
  assert(reader !== undefined, 'RDR-3: a node gets a vote that is no read-only member')
  const { store, seat } = reader
  const common = { number, kind: 'promote', phase: 'copying' } as const
  return { ...row, change: { ...common, node, seat, store, sinceMicros: now } }
}

interface DemotedNode {
  readonly node: NodeId
  /** Those of the present epoch. */
  readonly voters: readonly NodeId[]
  /** The store that votes under the node's name. */
  readonly store: StoreId
}

/**
 * The voter is to become a read-only member: the next epoch begins at once. Throws `invalid` while another change is under
 * way.
 */
export function beginDemote(
  row: SetRow,
  { node, voters, store }: DemotedNode,
  now: Timestamp,
): SetRow {
  assert(voters.includes(node) && voters.length > 1, 'MOVE-6: a node is demoted that has no vote')
  const number = nextNumber(row)
  const seated: SeatedStore = { store, seat: row.stores.get(node)?.seat ?? 0 }
  const stores = new Map(row.stores)
  stores.delete(node)
  const left = voters.filter((one) => one !== node)
  return {
    ...nextEpoch(row, voters, left),
    ...{ stores, readers: new Map(row.readers).set(node, seated) },
    change: { number, kind: 'demote', phase: 'sealing', node, sinceMicros: now },
  }
}

/**
 * A read-only member is to leave, which is done at once. `lastSeat`: its store has not come further. Throws `invalid` while
 * another change is under way.
 */
export function removeReader(
  row: SetRow,
  { node, lastSeat }: { readonly node: NodeId; readonly lastSeat: number },
  now: Timestamp,
): SetRow {
  const number = nextNumber(row)
  const [readers, urls] = [new Map(row.readers), new Map(row.urls)]
  assert(readers.delete(node), 'RDR-3: a node leaves that is no read-only member')
  urls.delete(node)
  return {
    ...{ ...row, readers, urls, lastSeat: Math.max(row.lastSeat, lastSeat) },
    change: { number, kind: 'remove', phase: 'done', node, sinceMicros: now },
  }
}
