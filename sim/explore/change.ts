/**
 * A change of the voters as the search knows it: one voter is replaced, added or removed. The rule of the gate is that of
 * `src/members/gate.ts` as it is. A position stands for the flush that names it.
 */
import type { NodeId, Position } from '../../src/base/ids.ts'
import { Gate } from '../../src/members/gate.ts'
import type { SharesRow } from '../../src/placement/shares.ts'
import type { LogRecord } from '../../src/replication/effect.ts'
import type { GroupLog } from '../../src/replication/log.ts'
import type { SentMessage } from './node-action.ts'
import type { Setting } from './setting.ts'

export interface ChangeState {
  /** Of the voters of the first epoch a node stays or leaves; the fourth node joins. */
  readonly part: 'stays' | 'leaves' | 'joins'
  /** It has heard of the change: it grants no lease any more, or reads no more. A restart may forget it. */
  readonly isEnding: boolean
  /** Its seal is durable. */
  readonly isSealed: boolean
  /** It has passed its gate, durably. */
  readonly isPastGate: boolean
  /** As far as each old voter's seal, told to this run of the node, goes. */
  readonly seals: ReadonlyMap<NodeId, Position>
  /** The row of the buckets, from the entry on that closes the one of the group. Absent: this run of the node has not applied it. */
  readonly row?: SharesRow
}

/** Before the change. */
export function newChange({ set, nextSet }: Setting, name: NodeId): ChangeState {
  const isJoining = !set.voters.includes(name)
  const isLeaving = nextSet?.voters.includes(name) === false
  const part = isJoining ? 'joins' : isLeaving ? 'leaves' : 'stays'
  return { part, isEnding: false, isSealed: false, isPastGate: false, seals: new Map() }
}

/** The epoch that a node is in as it starts, by what it durably knows of the change. */
export function takeUpEpoch(
  { nextSet, scope }: Setting,
  log: GroupLog,
  { part, isSealed, isPastGate }: ChangeState,
): void {
  if (isSealed) log.standing = 'sealed'
  if (scope.hasReaders === true && isReaderAtStart({ part, isSealed, isPastGate })) {
    log.standing = 'reading'
    if (nextSet !== undefined && part === 'leaves') log.set = nextSet
    return
  }
  if (nextSet === undefined || !(part === 'joins' || (part === 'stays' && isSealed))) return
  log.set = nextSet
  log.standing = isPastGate ? 'voting' : 'before-gate'
}

/** One that joins reads until it hears of the change; one that leaves does from its seal on. */
function isReaderAtStart({
  part,
  isSealed,
  isPastGate,
}: Pick<ChangeState, 'part' | 'isSealed' | 'isPastGate'>): boolean {
  return part === 'joins' ? !isPastGate : part === 'leaves' && isSealed
}

/** A node's state, as far as its gate depends on it. */
export interface Gated {
  readonly change: ChangeState
  readonly log: Pick<GroupLog, 'standing' | 'state'>
  readonly pending: readonly { readonly records: readonly Pick<LogRecord, 'kind'>[] }[]
}

/** A request of an epoch that the node has durably sealed, and that tells it of nothing chosen. */
export function isOfSealedEpoch(
  { set }: Setting,
  { change, log }: { readonly change: ChangeState; readonly log: Pick<GroupLog, 'set'> },
  message: SentMessage,
): boolean {
  const { kind } = message
  if (kind !== 'prepare' && kind !== 'accept' && kind !== 'query') return false
  if (kind === 'accept' && message.previous !== undefined) return false
  const { epoch } = message
  return epoch < log.set.epoch || (change.isSealed && epoch === set.epoch)
}

/** Whether a new voter may vote by the seals that it has, with what it has applied, and made durable as carried. */
export function isGateOpen(setting: Setting, { change, log, pending }: Gated): boolean {
  if (log.standing !== 'before-gate') return false
  const isCarrying = pending.some(({ records }) => records.some(({ kind }) => kind === 'copied'))
  if (isCarrying) return false
  const gate = new Gate(setting.set.voters)
  for (const [voter, through] of change.seals) gate.onSeal(voter, through)
  return gate.isPassedBy(() => log.state.position)
}
