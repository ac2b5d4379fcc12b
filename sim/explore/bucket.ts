/**
 * A set gives the bucket of the group away, as the search knows it (MOVE-14): the entry that begins the second epoch closes the bucket.
 * Which node takes part, and which groups a node lists as begun, is by the rules of `src/placement/shares.ts`, `src/replica/homes.ts` and
 * `src/members/share-requests.ts` as they are. The row of the set's own group is a register here: each change of it is made at once, and
 * each node hears of it at a time of its own.
 */
import { assert } from '../../src/base/assert.ts'
import { StoreError } from '../../src/base/errors.ts'
import type { NodeId } from '../../src/base/ids.ts'
import { listBegun } from '../../src/members/share-requests.ts'
import { settle } from '../../src/members/shares-row.ts'
import { OwnShares, type SharesRow } from '../../src/placement/shares.ts'
import { Homes } from '../../src/replica/homes.ts'
import type { GroupLog, LogHome } from '../../src/replication/log.ts'
import type { ChangeState } from './change.ts'
import { closedEpoch, openEpoch } from './closed-row.ts'
import type { Setting } from './setting.ts'

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
