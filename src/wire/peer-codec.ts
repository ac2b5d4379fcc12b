/**
 * Peer frames ⇄ bytes. What comes from outside is checked field by field: garbage is a reason, never
 * an exception. Byte fields of a decoded frame are views of its bytes.
 *
 *   frame     format 1 · durable flush · how many messages, these
 *   message   as `paxos-codec.ts` or `digest-codec.ts` has it, or: 0 · length · MessagePack of a positional array that
 *             opens with the number of its kind
 */
import { bufferOf, varBytesMax, writeVar } from '../base/bytes.ts'
import type { GroupId } from '../base/ids.ts'
import { entryBytesMax, frameBytesMax, keyBytesMax } from '../base/limits.ts'
import { pack, unpack, type Packable } from '../base/pack.ts'
import type { Ballot } from '../paxos/ballot.ts'
import type {
  ChosenEntry,
  Digest,
  GroupMessage,
  Message,
  PeerFrame,
} from '../replication/message.ts'
import { flag } from './client-fields.ts'
import { digestBytes, digestKinds, readDigest, writeDigest } from './digest-codec.ts'
import { FrameCursor } from './frame-cursor.ts'
import {
  packGroupLease,
  packLeaseMessage,
  readGroupLease,
  readLeaseMessage,
} from './lease-codec.ts'
import {
  BallotList,
  bulkBytesMax,
  bulkKinds,
  readBulk,
  writeBulk,
  type BulkMessage,
} from './paxos-codec.ts'
import * as field from './peer-fields.ts'
import { packVerdict, readVerdict } from './verdict.ts'

const frameFormat = 2
const headBytesMax = 1 + 2 * varBytesMax
const packedKind = 0
const packedHeadBytesMax = 1 + varBytesMax

/** What is packed: acceptances that list lease holders, and all that is not for every commit. */
type PackedMessage = Exclude<Message, { kind: 'accept' | 'committed' | 'digest' }>
type PackedGroupMessage = Exclude<GroupMessage, { kind: 'accept' | 'committed' }>

/** Numbers on the wire, with `bulkKinds` and `digestKinds`: never reused, never renumbered. */
const kinds = {
  prepare: 1,
  promised: 2,
  accepted: bulkKinds.accepted,
  refused: 5,
  faulty: 6,
  fetch: 8,
  entries: 9,
  query: 10,
  highest: 11,
  forward: 12,
  'forward-reply': 13,
  'digest-request': 14,
  invalidate: 16,
  invalidated: 17,
  revoke: 18,
  revoked: 19,
  release: 20,
  renew: 21,
  renewed: 22,
  'hand-back': 23,
  slow: 24,
  clock: 26,
} as const satisfies Record<PackedMessage['kind'], number>

/** Fields of a message of each kind, its kind and envelope among them; absent ones are sent as nil. */
const fieldCounts: Readonly<Record<PackedMessage['kind'], number>> = {
  prepare: 5,
  promised: 6,
  accepted: 6,
  refused: 6,
  faulty: 5,
  fetch: 5,
  entries: 6,
  query: 5,
  highest: 6,
  forward: 10,
  'forward-reply': 5,
  'digest-request': 3,
  invalidate: 4,
  invalidated: 5,
  revoke: 5,
  revoked: 5,
  release: 4,
  renew: 5,
  renewed: 6,
  'hand-back': 2,
  slow: 2,
  clock: 2,
}

/** Messages about one ballot at one position. */
type PaxosKind = 'prepare' | 'promised' | 'accepted' | 'refused' | 'faulty'

const kindByNumber: ReadonlyMap<number, PackedMessage['kind']> = new Map(
  Object.entries(kinds).flatMap(([kind, number]) =>
    isKind(kind) ? [[number, kind] as const] : [],
  ),
)

function isKind(kind: string): kind is PackedMessage['kind'] {
  return Object.hasOwn(kinds, kind)
}

export type DecodedPeerFrame =
  { readonly ok: true; readonly frame: PeerFrame } | { readonly ok: false; readonly reason: string }

export function encodePeerFrame({ durableFlush, messages }: PeerFrame): Uint8Array {
  const parts = messages.map(partOf)
  let bytesMax = headBytesMax
  for (const part of parts) bytesMax += partBytesMax(part)
  const bytes = Buffer.allocUnsafe(bytesMax)
  const list = new BallotList()
  bytes[0] = frameFormat
  let at = writeVar(bytes, durableFlush, 1)
  at = writeVar(bytes, parts.length, at)
  for (const part of parts) at = writePart(bytes, part, list, at)
  return bytes.subarray(0, at)
}

/** A message that is written by hand, or what another one was packed to. */
type Part = BulkMessage | Digest | Buffer

function partOf(message: Message): Part {
  switch (message.kind) {
    case 'accept':
    case 'committed':
    case 'digest':
      return message
    case 'accepted':
      return message.holders.length === 0 ? message : pack(packMessage(message))
    default:
      return pack(packMessage(message))
  }
}

function partBytesMax(part: Part): number {
  if (part instanceof Uint8Array) return packedHeadBytesMax + part.length
  return part.kind === 'digest' ? digestBytes(part) : bulkBytesMax(part)
}

function writePart(bytes: Buffer, part: Part, list: BallotList, start: number): number {
  if (!(part instanceof Uint8Array)) {
    if (part.kind === 'digest') return writeDigest(bytes, part, start)
    return writeBulk(bytes, part, list, start)
  }
  bytes[start] = packedKind
  const at = writeVar(bytes, part.length, start + 1)
  bytes.set(part, at)
  return at + part.length
}

export function decodePeerFrame(input: Uint8Array): DecodedPeerFrame {
  if (input.length > frameBytesMax) return { ok: false, reason: 'the frame is too long' }
  try {
    return { ok: true, frame: readFrame(bufferOf(input)) }
  } catch (error) {
    if (error instanceof field.MalformedError) return { ok: false, reason: error.message }
    throw error
  }
}

function readFrame(bytes: Buffer): PeerFrame {
  if (bytes.length === 0) throw new field.MalformedError('the frame is cut')
  if (bytes[0] !== frameFormat) throw new field.MalformedError('the frame is of no known format')
  const ballots: Ballot[] = []
  const cursor = new FrameCursor(bytes, 1)
  const durableFlush = cursor.count()
  const messages: Message[] = []
  for (let left = cursor.count(); left > 0; left--) messages.push(readPart(cursor, ballots))
  if (cursor.at !== bytes.length)
    throw new field.MalformedError('the frame goes on beyond its messages')
  return { durableFlush, messages }
}

function readPart(cursor: FrameCursor, ballots: Ballot[]): Message {
  const { bytes } = cursor
  switch (bytes[cursor.take(1)]) {
    case bulkKinds.accept:
      return readBulk(cursor, 'accept', ballots)
    case bulkKinds.accepted:
      return readBulk(cursor, 'accepted', ballots)
    case bulkKinds.committed:
      return readBulk(cursor, 'committed', ballots)
    case digestKinds.whole:
      return readDigest(cursor, true)
    case digestKinds.partial:
      return readDigest(cursor, false)
    case packedKind: {
      const from = cursor.take(cursor.count())
      return readMessage(unpack(bytes.subarray(from, cursor.at)))
    }
    default:
      throw new field.MalformedError('message is of no known kind')
  }
}

function packMessage(message: PackedMessage): Packable {
  switch (message.kind) {
    case 'digest-request':
      return [kinds[message.kind], message.after, message.asked]
    case 'clock':
      return [kinds[message.kind], message.wall]
    case 'renew':
    case 'renewed':
    case 'hand-back':
    case 'slow':
      return [kinds[message.kind], ...packLeaseMessage(message)]
    default:
      return packGroupMessage(message)
  }
}

function packGroupMessage(message: PackedGroupMessage): Packable[] {
  const { group, epoch } = message
  const kind = kinds[message.kind]
  switch (message.kind) {
    case 'fetch':
      return [kind, group, epoch, message.from, message.through]
    case 'entries': {
      const entries = message.entries.map(packEntry)
      return [kind, group, epoch, message.from, entries, message.committed]
    }
    case 'query':
      return [kind, group, epoch, message.read, message.mayRegister]
    case 'highest': {
      const { read, position, term } = message
      return [kind, group, epoch, read, position, term && field.packTerm(term)]
    }
    case 'invalidate':
    case 'invalidated':
    case 'revoke':
    case 'revoked':
    case 'release':
      return [kind, group, epoch, ...packGroupLease(message)]
    case 'forward': {
      const { readPosition, reads, transaction, request, incarnation, hops } = message
      const ranges = message.ranges.map(({ gte, lt }) => [gte, lt])
      const place = [request, incarnation, hops]
      return [kind, group, epoch, readPosition, reads, ranges, transaction, ...place]
    }
    case 'forward-reply':
      return [kind, group, epoch, message.request, packVerdict(message.verdict)]
    default:
      return packPaxosMessage(message)
  }
}

function packEntry({ position, ballot, value }: ChosenEntry): Packable {
  return [position, field.packBallot(ballot), value]
}

function packPaxosMessage(message: GroupMessage & { kind: PaxosKind }): Packable[] {
  const { group, epoch, position } = message
  const kind = kinds[message.kind]
  const ballot = field.packBallot(message.ballot)
  switch (message.kind) {
    case 'promised': {
      const { accepted } = message
      const value = accepted && [field.packBallot(accepted.ballot), accepted.value]
      return [kind, group, epoch, position, ballot, value]
    }
    case 'accepted':
      return [kind, group, epoch, position, ballot, field.packHolders(message.holders)]
    case 'refused':
      return [kind, group, epoch, position, ballot, field.packBallot(message.promised)]
    default:
      return [kind, group, epoch, position, ballot]
  }
}

function readMessage(value: unknown): PackedMessage {
  const fields = field.list(value, 'message')
  const kind = kindByNumber.get(field.count(fields[0], 'kind'))
  if (kind === undefined) throw new field.MalformedError('message is of no known kind')
  if (fields.length !== fieldCounts[kind]) {
    throw new field.MalformedError(`message of kind ${kind} has another length`)
  }
  switch (kind) {
    case 'digest-request':
      return {
        kind,
        after: field.count(fields[1], 'after'),
        asked: field.count(fields[2], 'asked'),
      }
    case 'clock':
      return { kind, wall: field.count(fields[1], 'wall') }
    case 'renew':
    case 'renewed':
    case 'hand-back':
    case 'slow':
      return readLeaseMessage(kind, fields.slice(1))
    default:
      return readGroupMessage(kind, fields)
  }
}

function readGroupMessage(
  kind: PackedGroupMessage['kind'],
  fields: readonly unknown[],
): PackedGroupMessage {
  const group = field.group(fields[1])
  const epoch = field.count(fields[2], 'epoch', 1)
  switch (kind) {
    case 'fetch': {
      const from = field.position(fields[3])
      return { kind, group, epoch, from, through: field.count(fields[4], 'through') }
    }
    case 'entries': {
      const from = field.position(fields[3])
      const entries = field.list(fields[4], 'entries').map(readEntry)
      return { kind, group, epoch, from, entries, committed: field.count(fields[5], 'committed') }
    }
    case 'query': {
      const read = field.count(fields[3], 'read')
      return { kind, group, epoch, read, mayRegister: flag(fields[4], 'may register') }
    }
    case 'highest': {
      const read = field.count(fields[3], 'read')
      const position = field.count(fields[4], 'position')
      if (field.isAbsent(fields[5])) return { kind, group, epoch, read, position }
      return { kind, group, epoch, read, position, term: field.term(fields[5]) }
    }
    case 'invalidate':
    case 'invalidated':
    case 'revoke':
    case 'revoked':
    case 'release':
      return readGroupLease(kind, group, epoch, fields.slice(3))
    case 'forward':
      return readForward(group, epoch, fields)
    case 'forward-reply': {
      const request = field.count(fields[3], 'request')
      return { kind, group, epoch, request, verdict: readVerdict(fields[4]) }
    }
    default:
      return readPaxosMessage(kind, group, epoch, fields)
  }
}

function readPaxosMessage(
  kind: PaxosKind,
  group: GroupId,
  epoch: number,
  fields: readonly unknown[],
): PackedGroupMessage {
  const position = field.position(fields[3])
  const ballot = field.ballot(fields[4])
  switch (kind) {
    case 'prepare':
    case 'faulty':
      return { kind, group, epoch, position, ballot }
    case 'promised': {
      if (field.isAbsent(fields[5])) return { kind, group, epoch, position, ballot }
      const accepted = field.ballotValue(fields[5], entryBytesMax)
      return { kind, group, epoch, position, ballot, accepted }
    }
    case 'accepted':
      return { kind, group, epoch, position, ballot, holders: field.holders(fields[5]) }
    case 'refused':
      return { kind, group, epoch, position, ballot, promised: field.ballot(fields[5]) }
  }
}

function readEntry(one: unknown): ChosenEntry {
  const [at, of, content] = field.list(one, 'entry', 3)
  const value = field.bytes(content, 'value', entryBytesMax)
  return { position: field.position(at), ballot: field.ballot(of), value }
}

function readForward(
  group: GroupId,
  epoch: number,
  fields: readonly unknown[],
): PackedGroupMessage {
  return {
    kind: 'forward',
    group,
    epoch,
    readPosition: field.count(fields[3], 'read position'),
    reads: field.list(fields[4], 'reads').map((key) => field.bytes(key, 'key', keyBytesMax)),
    ranges: field.list(fields[5], 'ranges').map(field.keyRange),
    transaction: field.bytes(fields[6], 'transaction', entryBytesMax),
    request: field.count(fields[7], 'request'),
    incarnation: field.count(fields[8], 'incarnation', 1),
    hops: field.count(fields[9], 'hops'),
  }
}
