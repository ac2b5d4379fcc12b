/** Checks of messages as they leave a node (PAX-4, PAX-6, MOVE-3), and of the value that phase 1 gives. */
import type { NodeId, Position } from '../../src/base/ids.ts'
import type { BallotValue } from '../../src/paxos/acceptor.ts'
import type { Ballot } from '../../src/paxos/ballot.ts'
import type { Proposal } from '../../src/replication/log.ts'
import type { GroupMessage } from '../../src/replication/message.ts'
import { lookUp, type LogDisk } from './log-disk.ts'
import { compare, isAtLeast, type Breach } from './observation.ts'
import type { Setting } from './setting.ts'

const none: readonly Breach[] = []

/** Whether the records which an answer claims are on the disk when the answer leaves. */
export function answerBreaches(disk: LogDisk, message: GroupMessage): readonly Breach[] {
  if (message.kind === 'accept') return firstBreaches(disk, message.position, message.ballot)
  if (!('position' in message)) return none
  const looked = lookUp(disk.get(message.position))
  const acceptor = looked.kind === 'present' ? looked.acceptor : {}
  if (message.kind === 'promised') {
    const isDurable = isAtLeast(acceptor.promised, message.ballot)
    return isDurable ? none : broken('PAX-4', 'A promise left before it was durable.')
  }
  if (message.kind === 'accepted') {
    // A restart sees the chosen value where the node knows it, and not a later acceptance of the same value.
    const { accepted } = disk.get(message.position) ?? {}
    const isDurable =
      isAtLeast(accepted, message.ballot) || isAtLeast(acceptor.accepted?.ballot, message.ballot)
    return isDurable ? none : broken('PAX-4', 'An acceptance left before it was durable.')
  }
  if (message.kind === 'refused') {
    const isDurable = isAtLeast(acceptor.promised, message.promised)
    return isDurable ? none : broken('PAX-4', 'A refusal told of a promise before it was durable.')
  }
  return none
}

/** RDR-1, RDR-2: a node without a vote in the epoch of its message gives nothing in it, and proposes nothing. */
export function readerBreaches(
  { set, nextSet }: Pick<Setting, 'set' | 'nextSet'>,
  node: NodeId,
  message: GroupMessage,
): readonly Breach[] {
  const { voters } = message.epoch === set.epoch ? set : (nextSet ?? set)
  if (voters.includes(node)) return none
  if (given.has(message.kind)) return broken('MOVE-3', 'A node answers that has no vote.')
  if (!proposed.has(message.kind)) return none
  return broken('MOVE-3', 'A node proposes that has no vote.')
}

const given: ReadonlySet<GroupMessage['kind']> = new Set([
  ...(['promised', 'accepted', 'refused', 'highest', 'revoked'] as const),
])
const proposed: ReadonlySet<GroupMessage['kind']> = new Set(['prepare', 'accept'] as const)

function firstBreaches(disk: LogDisk, position: Position, ballot: Ballot): readonly Breach[] {
  if (position > 1 || ballot.round > 0) return none
  const looked = lookUp(disk.get(position))
  const accepted = looked.kind === 'present' ? looked.acceptor.accepted : undefined
  if (isAtLeast(accepted?.ballot, ballot)) return none
  return broken(
    'PAX-6',
    "At position 1 ballot zero left before its leader's own acceptance was durable.",
  )
}

function broken(rule: string, sentence: string): readonly Breach[] {
  return [{ rule, sentence }]
}

/** The value accepted at the highest ballot among the answers of phase 1. */
export function findHighest(
  answers: readonly (BallotValue | undefined)[],
): BallotValue | undefined {
  let highest: BallotValue | undefined
  for (const one of answers) {
    if (one === undefined) continue
    if (highest === undefined || compare(one.ballot, highest.ballot) > 0) highest = one
  }
  return highest
}

export function readBallot(proposal: Proposal | undefined): Ballot | undefined {
  if (proposal === undefined || proposal.phase.kind === 'backing-off') return undefined
  return proposal.phase.ballot
}
