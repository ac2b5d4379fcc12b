/**
 * Peer frames ⇄ bytes. The decoder checks bytes from outside field by field: garbage is a reason, never an
 * exception. Byte fields of a decoded frame are views of its bytes.
 *
 *   frame     format 2 · durable flush · how many messages, these
 *   message   as `paxos-codec.ts` or `digest-codec.ts` has it, or: 0 · length · as `packed-message.ts` has it
 */
import { asBuffer, varBytesMax, writeVar } from '../../base/bytes.ts'
import { frameBytesMax } from '../../base/limits.ts'
import { pack, unpack } from '../../base/pack.ts'
import type { Ballot } from '../../paxos/ballot.ts'
import type { Digest, Message, PeerFrame } from '../../replication/message.ts'
import { digestBytes, digestKinds, readDigest, writeDigest } from './digest-codec.ts'
import { packMessage, readMessage } from './packed-message.ts'
import {
  BallotList,
  bulkBytesMax,
  bulkKinds,
  readBulk,
  writeBulk,
  type BulkMessage,
} from './paxos-codec.ts'
import { ByteReader, MalformedError } from '../../base/byte-reader.ts'

const frameFormat = 2
const headBytesMax = 1 + 2 * varBytesMax
const packedKind = 0
const packedHeadBytesMax = 1 + varBytesMax

export type DecodedPeerFrame =
  { readonly ok: true; readonly frame: PeerFrame } | { readonly ok: false; readonly reason: string }

export function encodePeerFrame({ durableFlush, messages }: PeerFrame): Uint8Array {
  const parts = messages.map(pickPart)
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

function pickPart(message: Message): Part {
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
    return { ok: true, frame: readFrame(asBuffer(input)) }
  } catch (error) {
    if (error instanceof MalformedError) return { ok: false, reason: error.message }
    throw error
  }
}

function readFrame(bytes: Buffer): PeerFrame {
  if (bytes.length === 0) throw new MalformedError('the bytes are cut')
  if (bytes[0] !== frameFormat) throw new MalformedError('the frame is of no known format')
  const ballots: Ballot[] = []
  const reader = new ByteReader(bytes, 1)
  const durableFlush = reader.count()
  const messages: Message[] = []
  for (let left = reader.count(); left > 0; left--) messages.push(readPart(reader, ballots))
  if (!reader.isAtEnd) throw new MalformedError('the frame goes on beyond its messages')
  return { durableFlush, messages }
}

function readPart(reader: ByteReader, ballots: Ballot[]): Message {
  switch (reader.uint8()) {
    case bulkKinds.accept:
      return readBulk(reader, 'accept', ballots)
    case bulkKinds.accepted:
      return readBulk(reader, 'accepted', ballots)
    case bulkKinds.committed:
      return readBulk(reader, 'committed', ballots)
    case digestKinds.whole:
      return readDigest(reader, true)
    case digestKinds.partial:
      return readDigest(reader, false)
    case packedKind:
      return readMessage(unpack(reader.bytes(reader.count())))
    default:
      throw new MalformedError('message is of no known kind')
  }
}
