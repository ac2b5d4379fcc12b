/**
 * Epochs: which nodes are a group's voters, and until when. A change of the voters ends one epoch and opens the next:
 * each old voter *seals* the old one, each new voter passes the *gate* of the next one.
 *
 * MOVE-1  A vote, an answer to a read round, a registration and its end are of one epoch: nodes ask for, give and count
 *         them in that epoch alone. A chosen value is taken from any. When the epoch changes here, the
 *         proposal, the read round and the registrations under way end.
 * MOVE-2  A voter that has sealed an epoch gives nothing in it any more, and counts itself in nothing of it.
 * MOVE-3  A voter takes part in an epoch from its gate on: when it has all that a majority of the voters before had
 *         accepted as they sealed, applied or *carried*.
 * RDR-1   A read-only member gives nothing in an epoch (`reader.ts`). It seals nothing, and has no gate to pass.
 * MOVE-5  A carried acceptance is of an earlier epoch. An acceptor keeps it under any promise, unless it has a higher
 *         one; it tells every proposer that prepares of it, and it counts for no majority.
 */
import { assert } from '../base/assert.ts'
import type { Position } from '../base/ids.ts'
import { carry, freshAcceptor } from '../paxos/acceptor.ts'
import type { ReplicaSet } from '../placement/placement.ts'
import { jitter, type Context, type LogRecord } from './effect.ts'
import { noDeadline, type GroupLog, type PositionRecord } from './log.ts'
import type { OpenAcceptance } from './message.ts'
import { stopReading } from './read-lease.ts'

/** This node's seal of the epoch is on its way to the disk; it grants no lease in it, and none that it granted lasts. */
export function onSeal(log: GroupLog, context: Context): void {
  assert(
    log.standing !== 'before-gate',
    'MOVE-3: a node seals an epoch whose gate it has not passed',
  )
  log.standing = 'sealed'
  endEpoch(log, context)
}

/** This node has no part in the next epoch, and nothing to seal in this one: it was before its gate, or a reader. */
export function onLeave(log: GroupLog, context: Context): void {
  assert(log.standing !== 'voting', 'MOVE-2: a voter leaves an epoch that it has not sealed')
  log.standing = 'sealed'
  endEpoch(log, context)
}

/** Another epoch than the present one, with these voters. This node, if it is one of them, is before its gate. */
export function onEpoch(log: GroupLog, context: Context, set: ReplicaSet): void {
  assert(set.epoch > log.set.epoch, 'MOVE-1: the epoch goes back')
  assert(
    log.standing !== 'voting',
    'MOVE-2: the next epoch begins at a node that votes in this one',
  )
  endEpoch(log, context)
  log.set = set
  log.standing = 'before-gate'
  log.highestRound = 0
}

/** This node has no vote in the epoch of these voters: it follows them. The epoch is the present one, or a later one. */
export function onFollow(log: GroupLog, context: Context, set: ReplicaSet): void {
  assert(set.epoch >= log.set.epoch, 'MOVE-1: the epoch of a reader goes back')
  assert(log.standing !== 'voting', 'MOVE-2: a voter that has sealed nothing becomes a reader')
  // One before its gate gives nothing, too: it may have lost its record, and taken itself for a voter.
  const isLater = set.epoch > log.set.epoch
  assert(!set.voters.includes(context.node), 'RDR-1: a voter of the epoch becomes a reader in it')
  endEpoch(log, context)
  log.set = set
  log.standing = 'reading'
  if (isLater) log.highestRound = 0
}

/**
 * This node lost its record of the epoch, and a peer has told which nodes vote in it. Rounds under way have asked others, and begin
 * anew.
 */
export function onVoters(log: GroupLog, context: Context, set: ReplicaSet): void {
  assert(set.epoch === log.set.epoch, 'MOVE-1: the epoch changes with its voters')
  assert(
    log.standing === 'before-gate',
    'MOVE-1: the voters of an epoch change at one that knows them',
  )
  context.trace.mark('voters_of_epoch_told')
  endEpoch(log, context)
  log.set = set
}

/** Proposal, read round and registrations end with their epoch. Transactions and reads wait for the next one. */
function endEpoch(log: GroupLog, context: Context): void {
  log.proposal = undefined
  stopReading(log, context)
}

/** Keeps these acceptances of earlier epochs, durably: the gate opens after that. */
export function onCarry(
  log: GroupLog,
  context: Context,
  acceptances: readonly OpenAcceptance[],
): void {
  // It was kept while the group was aside.
  if (log.standing !== 'before-gate') return context.trace.mark('acceptances_carried_late')
  const { group } = log
  const records: LogRecord[] = []
  for (const { position, ballot, value } of acceptances) {
    assert(ballot.epoch < log.set.epoch, 'MOVE-5: an acceptance is carried that is of this epoch')
    if (position <= log.state.position) continue
    const record = log.records.get(position)
    // A damaged record stays so: this replica does not know what it has promised since.
    if (record?.kind === 'faulty') continue
    const before = record?.acceptor ?? freshAcceptor
    const acceptor = carry(before, { ballot, value })
    if (acceptor === before) continue
    log.records.set(position, { kind: 'present', acceptor })
    records.push({ kind: 'copied', group, position, ballot, value })
  }
  if (records.length === 0) return
  context.trace.mark('acceptances_carried')
  context.emit({ kind: 'persist', records, after: [] })
  if (log.sweepDeadline !== noDeadline) return
  log.sweepDeadline = context.now + jitter(context, context.limits.sweepMs, log.state.position, 0)
}

/** All that this node has to have is durable here. */
export function onGate(log: GroupLog): void {
  assert(log.standing === 'before-gate', 'MOVE-3: a gate is passed twice')
  log.standing = 'voting'
}

/** A group's records above its applied position. */
export interface OpenRecords {
  readonly open: readonly OpenAcceptance[]
  /** Positions whose record is damaged: a seal tells not all that the node has accepted there. */
  readonly damaged: readonly Position[]
}

/** The acceptances at open positions, as a seal tells them. */
export function openRecords(records: ReadonlyMap<Position, PositionRecord>): OpenRecords {
  const open: OpenAcceptance[] = []
  const damaged: Position[] = []
  for (const [position, record] of records) {
    if (record.kind === 'faulty') damaged.push(position)
    else if (record.acceptor.accepted !== undefined)
      open.push({ position, ...record.acceptor.accepted })
  }
  return { open, damaged }
}
