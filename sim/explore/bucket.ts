/**
 * A set gives the bucket of the group away, as the search knows it (MOVE-14): the entry that begins the second epoch closes the bucket.
 * Which node takes part, and which groups a node lists as begun, is by the rules of `src/placement/shares.ts`, `src/replica/homes.ts` and
 * `src/members/share-requests.ts` as they are. The row of the set's own group is a register here: each change of it is made at once, and
 * each node hears of it at a time of its own.
 */
import { assert } from '../../src/base/assert.ts'
import { StoreError } from '../../src/base/errors.ts'
import type { GroupId, NodeId } from '../../src/base/ids.ts'
import { listBegun } from '../../src/members/share-requests.ts'
import { beginLeaving, close, settle } from '../../src/members/shares-row.ts'
import { hashToBucket } from '../../src/placement/placement.ts'
import { OwnShares, type SharesRow } from '../../src/placement/shares.ts'
import { Homes } from '../../src/replica/homes.ts'
import type { GroupLog, LogHome } from '../../src/replication/log.ts'
import type { Book } from './book.ts'
import type { ChangeState } from './change.ts'
import type { NodeState } from './node-state.ts'
import type { Breach } from './observation.ts'
import type { Setting } from './setting.ts'

/** The epochs before the entry that closes the bucket, and from it on. */
const [openEpoch, closedEpoch] = [1, 2]

/** The row that the entry writes which begins the second epoch. */
export function closedRow(group: GroupId, set: string): SharesRow {
  const gift = { set, buckets: [hashToBucket(group)] }
  return close(
    beginLeaving([], gift, () => true),
    closedEpoch,
  )
}

/** A node's part, as far as its share in the bucket depends on it. */
export interface Sharer {
  readonly change: ChangeState
  readonly log: GroupLog
}

function ownEpoch({ log }: Sharer): number {
  return log.standing === 'sealed' || log.set.epoch > openEpoch ? closedEpoch : openEpoch
}

function sharesOf(sharer: Sharer): OwnShares {
  const shares = new OwnShares()
  const { row } = sharer.change
  shares.enter(ownEpoch(sharer))
  shares.take(row ?? [], row === undefined ? openEpoch : closedEpoch)
  return shares
}

/** Undefined: no bucket is closed in this scope. */
export function homeOf(setting: Setting, name: NodeId, sharer: Sharer): LogHome | undefined {
  if (setting.closed === undefined) return undefined
  return new Homes(setting.placement, name, sharesOf(sharer)).of(setting.group)
}

/** The group takes up its home as `src/replica/replica.ts` has it do. */
export function takeUpHome(log: GroupLog, home: LogHome | undefined): void {
  if (home === undefined || log.state.position > 0) return
  const isQuiet = log.proposal === undefined && log.lease === undefined
  assert(!home.isGuest || isQuiet, 'MOVE-14: a bucket closes at a node that acts in it')
  log.home = home
}

/** Whether the node may say now that nothing of the group is here: it goes to the other set. */
export function maySendOn(setting: Setting, sharer: Sharer): boolean {
  const { row } = sharer.change
  const isClosed = row !== undefined && ownEpoch(sharer) === closedEpoch
  return isClosed && !isListed(setting, row) && sharer.log.state.position === 0
}

/** The row after this node has told which groups may have begun; undefined where it may not tell that, or has. */
export function tellBegun(
  { group, set }: Setting,
  node: NodeId,
  sharer: Sharer,
  row: SharesRow,
): SharesRow | undefined {
  const [share] = row
  assert(share?.phase === 'closed', 'explore: the row is settled already')
  const { log } = sharer
  const holds = log.records.size > 0 || log.decisions.size > 0
  try {
    const began = listBegun(share, {
      epochs: {
        own: { epoch: ownEpoch(sharer), blocked: [] },
        isVoting: log.standing === 'voting',
        shares: sharesOf({ ...sharer, change: { ...sharer.change, row } }),
      },
      log: { heldGroups: () => (holds ? [group] : []) },
      applied: () => log.state.position,
    })
    const next = settle(row, { node, epoch: share.epoch, began }, set.voters)
    return next === row ? undefined : next
  } catch (error) {
    if (error instanceof StoreError) return undefined
    throw error
  }
}

export function isSettled(row: SharesRow | undefined): boolean {
  return row?.[0]?.phase === 'settled'
}

/**
 * Whether a node that has sealed the first epoch may apply more of the row, and that makes a difference to it: it has lost the entry
 * by a restart, or the group is listed. A node that has all positions of the scope has no use for the row.
 */
export function mayLearn(setting: Setting, { change, log }: Sharer, row: SharesRow): boolean {
  if (log.state.position >= setting.scope.positions) return false
  return change.row === undefined || (isListed(setting, row) && !isSettled(change.row))
}

/** Whether the row says that the group may have begun in this set. */
export function isListed({ group }: Setting, row: SharesRow | undefined): boolean {
  return isSettled(row) && row?.[0]?.began.includes(group) === true
}

const none: readonly Breach[] = []

/** Whether the node's disks hold the first entry as a chosen one. */
function holdsFirst({ disk, states }: NodeState): boolean {
  return (states[0]?.position ?? 0) > 0 || disk.get(1)?.chosen !== undefined
}

/**
 * Where the group is not listed the set chooses nothing for it; what it has chosen before is with a majority of the nodes, since no
 * node votes for it any more.
 */
export function closingBreaches(
  setting: Setting,
  nodes: readonly NodeState[],
  { row, chosen }: Book,
): readonly Breach[] {
  if (!isSettled(row) || isListed(setting, row) || !chosen.has(1)) return none
  const holders = nodes.filter(holdsFirst).length
  if (holders > nodes.length / 2) return none
  const sentence =
    holders === 0
      ? 'A group begins in a set that has said that it does not.'
      : 'A first entry is chosen that fewer nodes than a majority hold as chosen, and the others can not end it.'
  return [{ rule: 'MOVE-14', sentence }]
}
