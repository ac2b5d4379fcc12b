/**
 * The row that says which stores are a replica set's voters, and what change of them is under way. It stands in the set's
 * own group (`set-group.ts`), so one log decides which epoch follows which.
 *
 * MOVE-6  Epochs follow one another by entries of the set's own group. The entry that begins an epoch is chosen in the one
 *         before, and names the voters' stores. A change is given up only before that entry, and the next one begins only
 *         after the epoch is open.
 *
 * A change goes *copying* (a newcomer takes up what the others hold) → *sealing* (its epoch has begun) → *done* (an entry
 * was chosen in that epoch, so a majority of its voters is past the gate). Or it is *given-up*, out of *copying*.
 */
import { assert } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import { isNodeId, isStoreId, type NodeId, type StoreId, type Timestamp } from '../base/ids.ts'
import { pack, unpack } from '../base/pack.ts'

export type ChangePhase = 'copying' | 'sealing' | 'done' | 'given-up'

/** A change of the voters. */
export interface Change {
  /** From 1, in their order. */
  readonly number: number
  /** `replace`: a node's store by an empty one. `renew`: the same stores in a new epoch. */
  readonly kind: 'replace' | 'renew'
  readonly phase: ChangePhase
  /** The node whose store is replaced; absent for `renew`. */
  readonly node?: NodeId
  /** The first incarnation of the store that takes part from now on: above each that the old one has had. */
  readonly seat?: number
  /** That store, once it has come. */
  readonly store?: StoreId
  /** As the phase began, microseconds since 1970. */
  readonly sinceMicros: Timestamp
}

/** A store that votes in the place of a node's first one. */
export interface SeatedStore {
  readonly store: StoreId
  readonly seat: number
}

/** The voters of a replica set, as its own group has them. */
export interface SetRow {
  /** The last epoch that has begun; 1 before the first change. */
  readonly epoch: number
  /** Of the nodes whose first store was replaced. */
  readonly stores: ReadonlyMap<NodeId, SeatedStore>
  /** The highest seat that a change has handed out; 0: none has. */
  readonly lastSeat: number
  /** The last change; absent: there was none. */
  readonly change?: Change
}

/** Before the first change. */
export const firstRow: SetRow = { epoch: 1, stores: new Map(), lastSeat: 0 }

const rowFormat = 1
const phases: readonly string[] = [
  ...(['copying', 'sealing', 'done', 'given-up'] as const),
] satisfies ChangePhase[]

export function isUnderWay({ phase }: Change): boolean {
  return phase === 'copying' || phase === 'sealing'
}

/** A node's store is to be replaced by an empty one. Throws `invalid` while another change is under way. */
export function beginReplace(row: SetRow, node: NodeId, seat: number, now: Timestamp): SetRow {
  assert(seat > row.lastSeat, 'MOVE-6: a seat is handed out twice')
  const number = nextNumber(row)
  const change = {
    number,
    kind: 'replace',
    phase: 'copying',
    node,
    seat,
    sinceMicros: now,
  } as const
  return { ...row, lastSeat: seat, change }
}

/** The same stores in a new epoch. Throws `invalid` while another change is under way. */
export function beginRenew(row: SetRow, now: Timestamp): SetRow {
  const number = nextNumber(row)
  const change: Change = { number, kind: 'renew', phase: 'sealing', sinceMicros: now }
  return { ...row, epoch: row.epoch + 1, change }
}

function nextNumber({ change }: SetRow): number {
  if (change === undefined || !isUnderWay(change)) return (change?.number ?? 0) + 1
  throw new StoreError(
    'invalid',
    `Change ${change.number} of this replica set is under way (${change.phase}). Wait until it is done` +
      (change.phase === 'copying' ? ', or give it up: trilithon nodes cancel.' : '.'),
  )
}

/** The store that came to the seat. */
export function bindStore(row: SetRow, store: StoreId): SetRow {
  const { change } = row
  assert(change?.phase === 'copying', 'MOVE-6: a store comes to a seat that nothing is copied to')
  assert(change.store === undefined, 'MOVE-6: a second store comes to a seat')
  return { ...row, change: { ...change, store } }
}

/** The newcomer has what the others hold: the next epoch begins, in which its store votes. */
export function beginEpoch(row: SetRow, now: Timestamp): SetRow {
  const { change } = row
  assert(change?.phase === 'copying', 'MOVE-6: an epoch begins twice')
  const { node, store, seat = 0 } = change
  assert(node !== undefined && store !== undefined, 'MOVE-6: an epoch begins without its voter')
  return {
    ...row,
    epoch: row.epoch + 1,
    stores: new Map(row.stores).set(node, { store, seat }),
    change: { ...change, phase: 'sealing', sinceMicros: now },
  }
}

/** Called in a transaction of the new epoch: its commit shows that a majority of the voters is past the gate. */
export function endChange(row: SetRow, now: Timestamp): SetRow {
  const { change } = row
  assert(change?.phase === 'sealing', 'MOVE-6: a change ends before its epoch')
  return { ...row, change: { ...change, phase: 'done', sinceMicros: now } }
}

/** Throws `invalid` where the change can only go on. */
export function giveUp(row: SetRow, now: Timestamp): SetRow {
  const { change } = row
  if (change?.phase === 'copying') {
    return { ...row, change: { ...change, phase: 'given-up', sinceMicros: now } }
  }
  const why =
    change?.phase === 'sealing'
      ? `Change ${change.number} has begun epoch ${row.epoch}: it cannot be given up any more, and goes on by itself.`
      : 'No change of this replica set is under way.'
  throw new StoreError('invalid', why)
}

/** Whether the store of a node votes in the row's epoch. `seat` 0: it is the node's first. */
export function isVoter({ stores }: SetRow, node: NodeId, storeId: string, seat: number): boolean {
  const named = stores.get(node)
  return named === undefined ? seat === 0 : named.store === storeId
}

/** Whether the row says that the store never votes again, or never will. */
export function isOver(
  { stores, change }: SetRow,
  node: NodeId,
  storeId: string,
  seat: number,
): boolean {
  const named = stores.get(node)
  if (named !== undefined && named.store !== storeId && named.seat > seat) return true
  if (seat === 0 || named?.store === storeId || change?.node !== node) return false
  const { seat: last = 0, phase } = change
  return last > seat || (last === seat && phase === 'given-up')
}

export function encodeRow({ epoch, stores, lastSeat, change }: SetRow): Uint8Array {
  const packedChange = change && [
    ...[change.number, change.kind, change.phase, change.node, change.seat],
    ...[change.store, change.sinceMicros],
  ]
  const packedStores = [...stores].map(([node, { store, seat }]) => [node, store, seat])
  return pack([rowFormat, epoch, packedStores, lastSeat, packedChange])
}

/** Undefined for bytes that are not such a row. */
export function decodeRow(bytes: Uint8Array): SetRow | undefined {
  const fields = unpack(bytes)
  if (!Array.isArray(fields) || fields[0] !== rowFormat) return undefined
  const [, epoch, list, lastSeat, packed]: unknown[] = fields
  const stores = readStores(list)
  if (!isCount(epoch) || epoch < 1 || !isCount(lastSeat) || stores === undefined) return undefined
  if (packed === undefined || packed === null) return { epoch, stores, lastSeat }
  const change = readChange(packed)
  return change && { epoch, stores, lastSeat, change }
}

function readStores(list: unknown): SetRow['stores'] | undefined {
  if (!Array.isArray(list)) return undefined
  const stores = new Map<NodeId, SeatedStore>()
  for (const one of list) {
    const [node, store, seat]: unknown[] = Array.isArray(one) ? one : []
    if (typeof node !== 'string' || !isNodeId(node)) return undefined
    if (typeof store !== 'string' || !isStoreId(store) || !isCount(seat)) return undefined
    stores.set(node, { store, seat })
  }
  return stores
}

function readChange(packed: unknown): Change | undefined {
  if (!Array.isArray(packed)) return undefined
  const [number, kind, phase, node, seat, store, sinceMicros]: unknown[] = packed
  if (!isCount(number) || !isPhase(phase) || !isCount(sinceMicros)) return undefined
  if (kind === 'renew') return { number, kind, phase, sinceMicros }
  if (kind !== 'replace' || typeof node !== 'string' || !isNodeId(node)) return undefined
  if (!isCount(seat)) return undefined
  const common = { number, kind, phase, node, seat, sinceMicros } as const
  if (store === undefined || store === null) return common
  return typeof store === 'string' && isStoreId(store) ? { ...common, store } : undefined
}

function isPhase(value: unknown): value is ChangePhase {
  return typeof value === 'string' && phases.includes(value)
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}
