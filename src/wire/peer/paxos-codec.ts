/**
 * The messages that nodes send for every commit (accept, accepted, committed) ⇄ bytes, written and
 * read by hand: they are the bulk of all frames, and MessagePack makes an array of each and a text of
 * each node's name. A frame spells each of its few ballots once.
 *
 *   ballot    its number in the frame · where that is the next one: epoch and round · incarnation
 *             · length of the node, node
 *   message   kind 1 · length of the group · epoch · position · ballot
 *             · accept: ballot of the position before, its number plus one, or zero for none
 *               · length of the value
 *             · group · value
 *
 * Numbers are as `writeVar` writes them: most take one byte.
 */
import { varBytesMax, writeVar } from '../../base/bytes.ts'
import { entryBytesMax } from '../../base/limits.ts'
import { equalBallots, packRound, type Ballot } from '../../paxos/ballot.ts'
import type { Accept, Accepted, Committed } from '../../replication/message.ts'
import type { ByteReader } from '../../base/byte-reader.ts'
import * as field from '../fields.ts'
import { toldBallot } from './peer-fields.ts'

/** Messages that are written so. Acceptances that list lease holders are not among them. */
export type BulkMessage = Accept | Accepted | Committed

export const bulkKinds = { accept: 3, accepted: 4, committed: 7 } as const

const headBytesMax = 1 + 4 * varBytesMax
const acceptBytesMax = 2 * varBytesMax
const ballotBytesMax = 4 * varBytesMax
/** How many of the last ballots the encoder searches for one that the frame names already. */
const searchedMax = 16
const noHolders: Accepted['holders'] = []

/** The ballots of a frame, in the order of their numbers. */
export class BallotList {
  readonly ballots: Ballot[] = []

  /** The ballot's number. One that was not met lately is listed again. */
  ensureNumber(ballot: Ballot): number {
    const { ballots } = this
    const end = Math.max(0, ballots.length - searchedMax)
    for (let at = ballots.length - 1; at >= end; at--) {
      const one = ballots[at]
      if (one === ballot || (one !== undefined && equalBallots(one, ballot))) return at
    }
    return ballots.push(ballot) - 1
  }
}

/** The number, plus `more`, and the ballot itself where it has not stood in the frame before. */
function writeBallot(
  bytes: Buffer,
  list: BallotList,
  ballot: Ballot,
  start: number,
  more = 0,
): number {
  const known = list.ballots.length
  const number = list.ensureNumber(ballot)
  let at = writeVar(bytes, number + more, start)
  if (number < known) return at
  const { node, incarnation } = ballot
  at = writeVar(bytes, packRound(ballot), at)
  at = writeVar(bytes, incarnation, at)
  at = writeVar(bytes, node.length, at)
  return at + bytes.write(node, at, 'latin1')
}

/** The bytes that the message takes up at most, with its ballots. */
export function bulkBytesMax(message: BulkMessage): number {
  const { group, ballot } = message
  const own = headBytesMax + group.length + ballotBytesMax + ballot.node.length
  if (message.kind !== 'accept') return own
  const { value, previous } = message
  const more = previous === undefined ? 0 : ballotBytesMax + previous.node.length
  return own + acceptBytesMax + value.length + more
}

/** Returns where the next message begins. */
export function writeBulk(
  bytes: Buffer,
  message: BulkMessage,
  list: BallotList,
  start: number,
): number {
  const { kind, group, epoch, position, ballot } = message
  bytes[start] = bulkKinds[kind]
  let at = writeVar(bytes, group.length, start + 1)
  at = writeVar(bytes, epoch, at)
  at = writeVar(bytes, position, at)
  at = writeBallot(bytes, list, ballot, at)
  if (kind !== 'accept') return at + bytes.write(group, at, 'latin1')
  const { previous, value } = message
  at = previous === undefined ? writeVar(bytes, 0, at) : writeBallot(bytes, list, previous, at, 1)
  at = writeVar(bytes, value.length, at)
  at += bytes.write(group, at, 'latin1')
  bytes.set(value, at)
  return at + value.length
}

/** The message of this kind that begins behind it. Byte fields are views. */
export function readBulk(
  reader: ByteReader,
  kind: BulkMessage['kind'],
  ballots: Ballot[],
): BulkMessage {
  const groupBytes = reader.count()
  const epoch = field.count(reader.count(), 'epoch', 1)
  const position = field.position(reader.count())
  const ballot = readBallot(reader, ballots, reader.count())
  const before = kind === 'accept' ? reader.count() : 0
  const previous = before === 0 ? undefined : readBallot(reader, ballots, before - 1)
  const valueBytes = kind === 'accept' ? reader.count() : 0
  const group = field.group(reader.latin1(groupBytes))
  if (kind === 'committed') return { kind, group, epoch, position, ballot }
  if (kind === 'accepted') return { kind, group, epoch, position, ballot, holders: noHolders }
  if (valueBytes > entryBytesMax) throw new field.MalformedError('value is too long')
  const value = reader.bytes(valueBytes)
  if (previous === undefined) return { kind, group, epoch, position, ballot, value }
  return { kind, group, epoch, position, ballot, value, previous }
}

/** The ballot of this number; the next one is read, and has this number from now on. */
function readBallot(reader: ByteReader, ballots: Ballot[], number: number): Ballot {
  const known = ballots[number]
  if (known !== undefined) return known
  if (number > ballots.length) throw new field.MalformedError('ballot is not listed')
  const packed = reader.count()
  const incarnation = field.count(reader.count(), 'incarnation', 1)
  const node = field.node(reader.latin1(reader.count()))
  const ballot = toldBallot(packed, node, incarnation)
  ballots.push(ballot)
  return ballot
}
