/**
 * The messages that nodes send for every commit (accept, accepted, committed) ⇄ bytes, written and
 * read by hand: they are the bulk of all frames, and MessagePack makes an array of each and a text of
 * each node's name. A frame names its few ballots once.
 *
 *   ballot    round 8 · incarnation 8 · length 1, node
 *   message   kind 1 · length of the group 2 · epoch 8 · position 8 · ballot 4
 *             · accept: ballot of the position before 4, length of the value 4 · group · value
 *
 * Numbers are big-endian; those of 8 bytes are safe integers.
 */
import { readCount, writeCount } from '../base/bytes.ts'
import { entryBytesMax } from '../base/limits.ts'
import type { Ballot } from '../paxos/ballot.ts'
import { equalBallots } from '../paxos/ballot.ts'
import type { Accept, Accepted, Committed } from '../replication/message.ts'
import type { FrameCursor } from './frame-cursor.ts'
import * as field from './peer-fields.ts'

/** What is written so. Acceptances that list lease holders are not among them. */
export type BulkMessage = Accept | Accepted | Committed

export const bulkKinds = { accept: 3, accepted: 4, committed: 7 } as const

const headBytes = 23
const acceptBytes = 8
const ballotBytes = 17
/** In place of a ballot's number: there is none. */
const none = 0xffffffff
/** So many ballots, the last ones, are looked through for one that is named already. */
const searchedMax = 16
const noHolders: Accepted['holders'] = []

/** The ballots of a frame, in the order of their numbers. */
export class BallotList {
  readonly ballots: Ballot[] = []

  /** The ballot's number. One that was not met lately is listed again. */
  numberOf(ballot: Ballot): number {
    const { ballots } = this
    const end = Math.max(0, ballots.length - searchedMax)
    for (let at = ballots.length - 1; at >= end; at--) {
      const one = ballots[at]
      if (one === ballot || (one !== undefined && equalBallots(one, ballot))) return at
    }
    return ballots.push(ballot) - 1
  }
}

export function writeBallots(bytes: Buffer, ballots: readonly Ballot[], start: number): number {
  let at = start
  for (const { round, node, incarnation } of ballots) {
    writeCount(bytes, round, at)
    writeCount(bytes, incarnation, at + 8)
    bytes.writeUInt8(node.length, at + 16)
    at += ballotBytes
    at += bytes.write(node, at, 'latin1')
  }
  return at
}

/** What the message takes up at most, with its ballots. */
export function bulkBytesMax(message: BulkMessage): number {
  const { group, ballot } = message
  const own = headBytes + group.length + ballotBytes + ballot.node.length
  if (message.kind !== 'accept') return own
  const { value, previous } = message
  const more = previous === undefined ? 0 : ballotBytes + previous.node.length
  return own + acceptBytes + value.length + more
}

/** Returns where the next message begins. */
export function writeBulk(
  bytes: Buffer,
  message: BulkMessage,
  list: BallotList,
  start: number,
): number {
  const { kind, group, epoch, position, ballot } = message
  bytes.writeUInt8(bulkKinds[kind], start)
  bytes.writeUInt16BE(group.length, start + 1)
  writeCount(bytes, epoch, start + 3)
  writeCount(bytes, position, start + 11)
  bytes.writeUInt32BE(list.numberOf(ballot), start + 19)
  const at = start + headBytes
  if (kind !== 'accept') return at + bytes.write(group, at, 'latin1')
  const { previous, value } = message
  bytes.writeUInt32BE(previous === undefined ? none : list.numberOf(previous), at)
  bytes.writeUInt32BE(value.length, at + 4)
  const valueAt = at + acceptBytes + bytes.write(group, at + acceptBytes, 'latin1')
  bytes.set(value, valueAt)
  return valueAt + value.length
}

export function readBallots(cursor: FrameCursor, count: number): readonly Ballot[] {
  const { bytes } = cursor
  const ballots: Ballot[] = []
  for (let left = count; left > 0; left--) {
    const at = cursor.take(ballotBytes)
    const nodeAt = cursor.take(bytes.readUInt8(at + 16))
    ballots.push({
      round: field.count(readCount(bytes, at), 'round'),
      node: field.node(bytes.toString('latin1', nodeAt, cursor.at)),
      incarnation: field.count(readCount(bytes, at + 8), 'incarnation', 1),
    })
  }
  return ballots
}

/** The message of this kind that begins behind it. Byte fields are views. */
export function readBulk(
  cursor: FrameCursor,
  kind: BulkMessage['kind'],
  ballots: readonly Ballot[],
): BulkMessage {
  const { bytes } = cursor
  const at = cursor.take(headBytes - 1)
  const epoch = field.count(readCount(bytes, at + 2), 'epoch', 1)
  const position = field.position(readCount(bytes, at + 10))
  const ballot = ballotOf(ballots, bytes.readUInt32BE(at + 18))
  const acceptAt = kind === 'accept' ? cursor.take(acceptBytes) : 0
  const groupAt = cursor.take(bytes.readUInt16BE(at))
  const group = field.group(bytes.toString('latin1', groupAt, cursor.at))
  if (kind === 'committed') return { kind, group, epoch, position, ballot }
  if (kind === 'accepted') return { kind, group, epoch, position, ballot, holders: noHolders }
  const valueBytes = bytes.readUInt32BE(acceptAt + 4)
  if (valueBytes > entryBytesMax) throw new field.MalformedError('value is too long')
  const valueAt = cursor.take(valueBytes)
  const value = bytes.subarray(valueAt, cursor.at)
  const number = bytes.readUInt32BE(acceptAt)
  if (number === none) return { kind, group, epoch, position, ballot, value }
  return { kind, group, epoch, position, ballot, value, previous: ballotOf(ballots, number) }
}

function ballotOf(ballots: readonly Ballot[], number: number): Ballot {
  const ballot = ballots[number]
  if (ballot === undefined) throw new field.MalformedError('ballot is not listed')
  return ballot
}
