/** Parts of messages of peers as positional arrays, checked when read: ballots, terms, lease holders. */
import type { NodeId } from '../../base/ids.ts'
import type { Packable } from '../../base/pack.ts'
import type { LeaseHolder, Term } from '../../lease/message.ts'
import type { BallotValue } from '../../paxos/acceptor.ts'
import { packRound, roundToldMax, unpackBallot, type Ballot } from '../../paxos/ballot.ts'
import * as field from '../fields.ts'

export function packBallot(ballot: Ballot): readonly [number, string, number] {
  return [packRound(ballot), ballot.node, ballot.incarnation]
}

export function ballot(value: unknown): Ballot {
  const [round, name, incarnation] = field.list(value, 'ballot', 3)
  const packed = field.count(round, 'round')
  return toldBallot(packed, field.node(name), field.count(incarnation, 'incarnation', 1))
}

/** The ballot whose epoch and round are packed so. Throws a MalformedError for a round that none can have come to. */
export function toldBallot(packed: number, node: NodeId, incarnation: number): Ballot {
  const told = unpackBallot(packed, node, incarnation)
  if (told.round > roundToldMax) throw new field.MalformedError('round is too high')
  return told
}

export function ballotValue(value: unknown, bytesMax: number): BallotValue {
  const [of, content] = field.list(value, 'accepted', 2)
  return { ballot: ballot(of), value: field.bytes(content, 'value', bytesMax) }
}

export function packTerm(term: Term): readonly [number, number] {
  return [term.incarnation, term.number]
}

export function term(value: unknown): Term {
  const [incarnation, number] = field.list(value, 'term', 2)
  return {
    incarnation: field.count(incarnation, 'incarnation', 1),
    number: field.count(number, 'term', 1),
  }
}

const noHolders: readonly LeaseHolder[] = []

/** Mostly there are none, which is nil. */
export function packHolders(holders: readonly LeaseHolder[]): Packable {
  return holders.length === 0 ? undefined : holders.map((one) => [one.node, one.incarnation])
}

export function holders(value: unknown): readonly LeaseHolder[] {
  return field.isAbsent(value) ? noHolders : field.list(value, 'holders').map(holder)
}

function holder(value: unknown): LeaseHolder {
  const [name, incarnation] = field.list(value, 'holder', 2)
  return { node: field.node(name), incarnation: field.count(incarnation, 'incarnation', 1) }
}
