/** Checks of one node's step: of the records that become durable, and of the ballots and values that it proposes. */
import { equalBytes } from '../../src/base/bytes.ts'
import type { NodeId } from '../../src/base/ids.ts'
import { packRound } from '../../src/paxos/ballot.ts'
import type { Accepting } from '../../src/paxos/proposer.ts'
import type { LogRecord } from '../../src/replication/effect.ts'
import type { GroupEvent } from '../../src/replication/group.ts'
import type { Proposal } from '../../src/replication/log.ts'
import { findHighest, readBallot } from './answer-checks.ts'
import { fold, type LogDisk } from './log-disk.ts'
import type { BallotDraw } from './node-state.ts'
import { isAtLeast, type Breach, type Observation } from './observation.ts'

/** The disk with these records, in order. PAX-2, PAX-3: no promise goes back, and none is passed over. */
export function makeDurable(
  node: NodeId,
  before: LogDisk,
  records: readonly LogRecord[],
): {
  readonly disk: LogDisk
  readonly observations: readonly Observation[]
  readonly breaches: readonly Breach[]
} {
  const disk = new Map(before)
  const observations: Observation[] = []
  const breaches: Breach[] = []
  for (const record of records) {
    const { kind, position, ballot } = record
    const held = disk.get(position)
    const isAllowed = isAtLeast(ballot, held?.promised)
    if (kind === 'promise' && !isAllowed) {
      breaches.push({ rule: 'PAX-2', sentence: 'A promise on the disk went back.' })
    }
    if (kind === 'accept') {
      const { value } = record
      if (!isAllowed) {
        breaches.push({ rule: 'PAX-3', sentence: 'A ballot below the promise was accepted.' })
      }
      if (ballot.node === node) observations.push({ kind: 'proposed', position, ballot, value })
      observations.push({ kind: 'accepted', position, ballot, value })
    }
    disk.set(position, fold(held, record))
  }
  return { disk, observations, breaches }
}

/** PAX-5: a ballot that was left is never taken up again: late answers to it can mean nothing any more. */
export function drawBreaches(
  proposal: Proposal,
  last: BallotDraw | undefined,
): { readonly draw: BallotDraw | undefined; readonly breaches: readonly Breach[] } {
  const { position, phase } = proposal
  const ballot = readBallot(proposal)
  if (ballot === undefined) return { draw: last, breaches: [] }
  const round = packRound(ballot)
  const draw = { position, round, phase: phase.kind }
  const isSame = last?.position === position && last.round === round
  const isPrepared = phase.kind === 'accepting' && last?.phase === 'preparing'
  const isGoingOn = isSame && (isPrepared || last.phase === phase.kind)
  const isHigher =
    last === undefined ||
    position > last.position ||
    (position === last.position && round > last.round)
  if (isGoingOn || isHigher) return { draw, breaches: [] }
  return { draw, breaches: [{ rule: 'PAX-5', sentence: 'A node drew one ballot twice.' }] }
}

/** PAX-5: after phase 1 a node proposes the value accepted at the highest ballot among the answers. */
export function adoptionBreaches(
  before: Proposal | undefined,
  event: GroupEvent,
  { value }: Accepting,
): readonly Breach[] {
  if (before?.phase.kind !== 'preparing' || event.kind !== 'message') return []
  if (event.message.kind !== 'promised') return []
  const highest = findHighest([...before.phase.promises.values(), event.message.accepted])
  if (highest === undefined || equalBytes(highest.value, value)) return []
  const sentence =
    'The value proposed is not the one accepted at the highest ballot among the answers.'
  return [{ rule: 'PAX-5', sentence }]
}
