/** The constants of a search: the nodes, the group, the bounds. */
import { present } from '../../src/base/assert.ts'
import { groupOfBytes, nodeId, type GroupId, type NodeId } from '../../src/base/ids.ts'
import { defaultLimits, type Limits } from '../../src/base/limits.ts'
import { encodeTuple } from '../../src/base/tuple.ts'
import {
  placementOver,
  staticPlacement,
  type Placement,
  type ReplicaSet,
} from '../../src/placement/placement.ts'
import { encodeMove, movedKey } from '../../src/group/moved-row.ts'
import { encodeTransaction } from '../../src/group/transaction.ts'
import type { SharesRow } from '../../src/placement/shares.ts'
import type { Submitted } from '../../src/replication/submit.ts'
import { closedRow } from './closed-row.ts'
import type { Scope, ScopeChange, ScopeSubmission } from './scope.ts'

export interface Setting {
  readonly scope: Scope
  readonly group: GroupId
  /** The voters of the first epoch. */
  readonly set: ReplicaSet
  /** Those of the second; absent: there is none. */
  readonly nextSet: ReplicaSet | undefined
  /** The row by which the second epoch closes the bucket of the group; absent: the bucket stays. */
  readonly closed: SharesRow | undefined
  readonly placement: Placement
  readonly limits: Limits
  /** The leader of position 1 first. */
  readonly names: readonly NodeId[]
  readonly submissions: readonly Submitted[]
}

/** The set that a group goes to. */
export const movedTo = 'west'

const nodeCount = 3
const newcomer = nodeId('n4')
/** A node of another set. */
const elsewhere = nodeId('w1')

export function buildSetting(scope: Scope): Setting {
  const length = scope.voters ?? nodeCount
  const nodes = Array.from({ length }, (_, at) => nodeId(`n${at + 1}`))
  const placement =
    scope.closes === true ? placementOver([nodes, [elsewhere]]) : staticPlacement(nodes)
  const group = groupLedByFirst(nodes, placement)
  const first = placement.replicasOf(group)
  const submissions = scope.submissions.map(toSubmitted)
  const next = scope.change && changeVoters(first, scope.change)
  const beside = scope.hasReaders === true && next === undefined ? [newcomer] : []
  const names = [...new Set([...first.voters, ...(next?.voters ?? beside)])]
  const withReaders = (set: ReplicaSet): ReplicaSet =>
    scope.hasReaders === true
      ? { ...set, readers: names.filter((name) => !set.voters.includes(name)) }
      : set
  const [set, nextSet] = [withReaders(first), next && withReaders(next)]
  const closed = scope.closes === true ? closedRow(group, movedTo) : undefined
  const common = { scope, group, set, nextSet, closed, placement, submissions }
  return { ...common, limits: { ...defaultLimits, eraseWithinMs: 0 }, names }
}

/** A newcomer is in the leaver's place: first, where that was the leader of position 1. One that is added is the last. */
function changeVoters({ epoch, voters }: ReplicaSet, change: ScopeChange): ReplicaSet {
  const next = nextVoters(voters, change)
  return { epoch: epoch + 1, voters: next, firstFull: present(next[0], 'explore: no voter') }
}

function nextVoters(voters: readonly NodeId[], change: ScopeChange): readonly NodeId[] {
  switch (change.kind) {
    case 'renew':
      return voters
    case 'add':
      return [...voters, newcomer]
    default:
      return voters.flatMap((voter, at) => {
        if (at !== change.at) return [voter]
        return change.kind === 'replace' ? [newcomer] : []
      })
  }
}

/** So that the first node is the leader of position 1, and the names read in order. */
function groupLedByFirst(nodes: readonly NodeId[], placement: Placement): GroupId {
  // With several sets it is one that is shared out.
  const head = placement.setCount === 1 ? ['explore'] : ['tables', 'Explore']
  for (let number = 1; ; number++) {
    const group = groupOfBytes(encodeTuple([...head, number]))
    if (placement.replicasOf(group).firstFull === nodes[0]) return group
  }
}

function toSubmitted(given: ScopeSubmission): Submitted {
  const { key, intent, reads, ranges = [], isMove = false } = given
  const row = isMove
    ? { key: movedKey, value: encodeMove(movedTo) }
    : { key: Buffer.from(key), value: Buffer.from(key) }
  const transaction = {
    session: 's',
    sequence: intent,
    attempt: intent,
    floor: 0,
    expiresAt: 2 ** 50,
    allocations: [1],
    mutations: [row],
  }
  return {
    transaction,
    bytes: encodeTransaction(transaction),
    readPosition: 0,
    reads: reads.map((one) => Buffer.from(one)),
    ranges: ranges.map(([gte, lt]) => ({ gte: Buffer.from(gte), lt: Buffer.from(lt) })),
  }
}
