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
import { firstVersion } from '../base/cluster-version.ts'
import { StoreError } from '../base/errors.ts'
import type { NodeId, StoreId, Timestamp } from '../base/ids.ts'

export type ChangePhase = 'copying' | 'sealing' | 'done' | 'given-up'

/**
 * `replace`: a node's store by an empty one. `add`: a node with an empty store. `remove`: a node leaves. `renew`: the same
 * stores in a new epoch. `add-reader`: a node with an empty store becomes a read-only member. `promote`: a read-only member
 * gets a vote, with its store. `demote`: a voter becomes one, with its store. `recover`: an operator began it where a majority
 * was lost (`../log/quorum-loss.ts`); the row says so later.
 */
export type ChangeKind =
  'replace' | 'add' | 'remove' | 'renew' | 'add-reader' | 'promote' | 'demote' | 'recover'

/** A change of the voters. */
export interface Change {
  /** From 1, in their order. */
  readonly number: number
  readonly kind: ChangeKind
  readonly phase: ChangePhase
  /** The node that is replaced, added or removed; absent for `renew` and `recover`. */
  readonly node?: NodeId
  /** The first incarnation of the store that takes part from now on: above each that the old one has had. */
  readonly seat?: number
  /** That store, once it has come. */
  readonly store?: StoreId
  /** As the phase began, microseconds since 1970. */
  readonly sinceMicros: Timestamp
}

/** A store that takes part in the place of a node's first one. */
export interface SeatedStore {
  readonly store: StoreId
  readonly seat: number
}

/** The voters of a replica set, as its own group has them. */
export interface SetRow {
  /** The last epoch that has begun; 1 before the first change. */
  readonly epoch: number
  /** The nodes that vote in it; absent: those that the set began with. */
  readonly voters?: readonly NodeId[]
  /** The nodes that voted in the epoch before; absent: those that the set began with. */
  readonly before?: readonly NodeId[]
  /** Where nodes are reached that the set did not begin with: scheme, host and port. */
  readonly urls: ReadonlyMap<NodeId, string>
  /** Of the nodes whose first store was replaced. */
  readonly stores: ReadonlyMap<NodeId, SeatedStore>
  /** The read-only members: none of them votes, and none is in `voters` or `stores`. Seat 0: the store was its node's first. */
  readonly readers: ReadonlyMap<NodeId, SeatedStore>
  /** The highest seat that a change has handed out; 0: none has. */
  readonly lastSeat: number
  /** The last change; absent: there was none. */
  readonly change?: Change
  /** The cluster version that is in force in the set; absent: the first one. */
  readonly version?: number
}

/** Before the first change. */
export const firstRow: SetRow = {
  ...{ epoch: 1, urls: new Map(), stores: new Map(), readers: new Map(), lastSeat: 0 },
}

/** The same of a set that began with that cluster version. */
export function rowOfVersion(version: number = firstVersion): SetRow {
  return version === firstVersion ? firstRow : { ...firstRow, version }
}

export function versionOf({ version = firstVersion }: SetRow): number {
  return version
}

/** The next cluster version is in force from the entry on that has this row. */
export function raiseVersion(row: SetRow, to: number): SetRow {
  assert(to === versionOf(row) + 1, 'UPG-2: a version is passed over, or goes back')
  return { ...row, version: to }
}

function keptVersion({ version }: SetRow): Pick<SetRow, 'version'> {
  return version === undefined ? {} : { version }
}

export function isUnderWay({ phase }: Change): boolean {
  return phase === 'copying' || phase === 'sealing'
}

/** Whether a change stands where the other one does: nothing has moved it on. */
export function isSameStep(one: Change | undefined, other: Change | undefined): boolean {
  return one?.number === other?.number && one?.phase === other?.phase && one?.store === other?.store
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

/**
 * A node with an empty store is to vote, too; or, of the kind `add-reader`, to become a read-only member. Throws `invalid` while
 * another change is under way.
 */
export function beginAdd(
  row: SetRow,
  { kind = 'add', node, url, seat }: AddedNode,
  now: Timestamp,
): SetRow {
  assert(seat > row.lastSeat, 'MOVE-6: a seat is handed out twice')
  const number = nextNumber(row)
  const urls = new Map(row.urls).set(node, url)
  const common = { number, kind, phase: 'copying' } as const
  return { ...row, urls, lastSeat: seat, change: { ...common, node, seat, sinceMicros: now } }
}

interface AddedNode {
  readonly kind?: 'add' | 'add-reader'
  readonly node: NodeId
  readonly url: string
  readonly seat: number
}

/**
 * A node is to vote no more: the next epoch begins at once. `voters`: those of the present epoch. `lastSeat`: no store of the
 * node has come further. Throws `invalid` while another change is under way.
 */
export function beginRemove(
  row: SetRow,
  { node, voters, lastSeat }: RemovedNode,
  now: Timestamp,
): SetRow {
  assert(voters.includes(node) && voters.length > 1, 'MOVE-6: a node is removed that has no vote')
  const number = nextNumber(row)
  const stores = new Map(row.stores)
  stores.delete(node)
  const urls = new Map(row.urls)
  urls.delete(node)
  return {
    ...nextEpoch(
      row,
      voters,
      voters.filter((one) => one !== node),
    ),
    ...{ stores, urls, lastSeat: Math.max(row.lastSeat, lastSeat) },
    change: { number, kind: 'remove', phase: 'sealing', node, sinceMicros: now },
  }
}

interface RemovedNode {
  readonly node: NodeId
  readonly voters: readonly NodeId[]
  readonly lastSeat: number
}

/** The same stores in a new epoch. Throws `invalid` while another change is under way. */
export function beginRenew(row: SetRow, now: Timestamp): SetRow {
  const number = nextNumber(row)
  const change: Change = { number, kind: 'renew', phase: 'sealing', sinceMicros: now }
  return { ...nextEpoch(row), change }
}

/**
 * The row of an epoch that began without an entry. It ends the change that was under way. `recovered`: the epoch, and the nodes
 * that vote in it. `lastSeat`: no store of a node that is lost has come further.
 */
export function recordRecovery(
  row: SetRow,
  { epoch, voters, lastSeat }: RecoveredEpoch,
  now: Timestamp,
): SetRow {
  assert(epoch > row.epoch, 'MOVE-6: an epoch is recovered that has begun')
  const isLeft = ([node]: readonly [NodeId, unknown]): boolean => voters.includes(node)
  return {
    ...{ epoch, voters, before: voters },
    urls: new Map([...row.urls].filter(isLeft)),
    stores: new Map([...row.stores].filter(isLeft)),
    // A read-only member may have applied entries that are gone with the lost nodes.
    readers: new Map(),
    lastSeat: Math.max(row.lastSeat, lastSeat),
    ...keptVersion(row),
    change: {
      number: (row.change?.number ?? 0) + 1,
      ...{ kind: 'recover', phase: 'done', sinceMicros: now },
    },
  }
}

interface RecoveredEpoch {
  readonly epoch: number
  readonly voters: readonly NodeId[]
  readonly lastSeat: number
}

/** `before` and `voters` are absent where they are those that the set began with. */
export function nextEpoch(
  row: SetRow,
  before: readonly NodeId[] | undefined = row.voters,
  voters: readonly NodeId[] | undefined = before,
): SetRow {
  const { stores, readers, urls, lastSeat } = row
  return {
    ...{ epoch: row.epoch + 1, stores, readers, urls, lastSeat, ...keptVersion(row) },
    ...(row.change !== undefined && { change: row.change }),
    ...(voters !== undefined && { voters }),
    ...(before !== undefined && { before }),
  }
}

/** Throws `invalid` while a change is under way. */
export function nextNumber({ change }: SetRow): number {
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

/** The newcomer has what the others hold: the next epoch begins, in which its store votes. `voters`: of the present one. */
export function beginEpoch(row: SetRow, voters: readonly NodeId[], now: Timestamp): SetRow {
  const { change } = row
  assert(change?.phase === 'copying', 'MOVE-6: an epoch begins twice')
  const { kind, node, store, seat = 0 } = change
  assert(node !== undefined && store !== undefined, 'MOVE-6: an epoch begins without its voter')
  const isVoter = voters.includes(node)
  assert(isVoter === (kind === 'replace'), 'MOVE-6: a node is added twice')
  const readers = new Map(row.readers)
  readers.delete(node)
  return {
    ...(isVoter ? nextEpoch(row) : nextEpoch(row, voters, [...voters, node])),
    ...{ stores: new Map(row.stores).set(node, { store, seat }), readers },
    change: { ...change, phase: 'sealing', sinceMicros: now },
  }
}

/** Called in a transaction of the new epoch: its commit shows that a majority of the voters is past the gate. */
export function endChange(row: SetRow, now: Timestamp): SetRow {
  const { change } = row
  assert(change?.phase === 'sealing', 'MOVE-6: a change ends before its epoch')
  return { ...row, change: { ...change, phase: 'done', sinceMicros: now } }
}

/**
 * Throws `invalid` where the change can only go on, and where it is not of that number. `number`: absent, whichever is under way.
 */
export function giveUp(row: SetRow, now: Timestamp, number?: number): SetRow {
  const { change } = row
  if (number !== undefined && change?.number !== number) throw otherChange(change, number)
  if (change?.phase === 'copying') {
    const urls = new Map(row.urls)
    const isAdded = change.kind === 'add' || change.kind === 'add-reader'
    if (isAdded && change.node !== undefined) urls.delete(change.node)
    return { ...row, urls, change: { ...change, phase: 'given-up', sinceMicros: now } }
  }
  const why =
    change?.phase === 'sealing'
      ? `Change ${change.number} has begun epoch ${row.epoch}: it cannot be given up any more, and goes on by itself.`
      : 'No change of this replica set is under way.'
  throw new StoreError('invalid', why)
}

function otherChange(change: Change | undefined, number: number): StoreError {
  const last = change === undefined ? 'it has had none' : `its last one is ${change.number}`
  return new StoreError('invalid', `This replica set has no change ${number} under way: ${last}.`)
}

/** Whether the store of a node votes in the row's epoch. `seat` 0: it is the node's first. */
export function isVoter(
  { voters, stores, readers }: SetRow,
  node: NodeId,
  storeId: string,
  seat: number,
): boolean {
  if (voters?.includes(node) === false || readers.has(node)) return false
  const named = stores.get(node)
  return named === undefined ? seat === 0 : named.store === storeId
}

/** Whether the node is to lose its vote, by an epoch that has begun and is not open yet. */
export function isLeaving({ change }: SetRow, node: NodeId): boolean {
  if (change?.node !== node || !isUnderWay(change)) return false
  return change.kind === 'remove' || change.kind === 'demote'
}

/** Whether the row says that the store never votes again, or never will. */
export function isOver(row: SetRow, node: NodeId, storeId: string, seat: number): boolean {
  const { stores, readers, change } = row
  if (readers.get(node)?.store === storeId) return false
  const named = readers.get(node) ?? stores.get(node)
  if (named !== undefined && named.store !== storeId && named.seat > seat) return true
  if (isRemoved(row, node, seat)) return true
  if (seat === 0 || named?.store === storeId || change?.node !== node) return false
  return isSeatOver(change, seat)
}

/** Whether a later seat was handed out for the node, or this one was given up. */
function isSeatOver({ seat: last = 0, phase }: Change, seat: number): boolean {
  return last > seat || (last === seat && phase === 'given-up')
}

/** Until the others are past their gates they may need its seal. A row from before its seat says nothing of a store. */
function isRemoved(row: SetRow, node: NodeId, seat: number): boolean {
  const { voters, stores, readers, lastSeat, change } = row
  // A set that has its first voters still may have read-only members, whose stores have a seat.
  const mayTakePart =
    readers.has(node) || (voters?.includes(node) ?? (seat === 0 || stores.has(node)))
  if (mayTakePart || seat > lastSeat || isLeaving(row, node)) return false
  const isComing = change?.node === node && isUnderWay(change) && change.seat === seat
  return !isComing
}
