/**
 * Peer frames ⇄ bytes. A frame is `[format, durableFlush, messages]`, a message a positional array
 * that opens with the number of its kind. What comes from outside is checked field by field:
 * garbage is a reason, never an exception. Byte fields of a decoded frame are views of its bytes.
 */
import { entryBytesMax, frameBytesMax, keyBytesMax } from '../base/limits.ts'
import { pack, unpack, type Packable } from '../base/pack.ts'
import type { GroupMessage, Message, PeerFrame, Verdict } from '../replication/message.ts'
import * as field from './peer-fields.ts'

const frameFormat = 1

/** Numbers on the wire: never reused, never renumbered. */
const kinds = {
  prepare: 1,
  promised: 2,
  accept: 3,
  accepted: 4,
  refused: 5,
  faulty: 6,
  committed: 7,
  fetch: 8,
  entries: 9,
  query: 10,
  highest: 11,
  forward: 12,
  'forward-reply': 13,
  'digest-request': 14,
  digest: 15,
} as const satisfies Record<Message['kind'], number>

/** Fields of a message of each kind, its kind and envelope among them; absent ones are sent as nil. */
const fieldCounts: Readonly<Record<Message['kind'], number>> = {
  ...{ prepare: 5, promised: 6, accept: 7, accepted: 5, refused: 6, faulty: 5, committed: 5 },
  ...{ fetch: 5, entries: 6, query: 4, highest: 5, forward: 8, 'forward-reply': 5 },
  ...{ 'digest-request': 2, digest: 4 },
}

/** Messages about one ballot at one position. */
type PaxosKind = 'prepare' | 'promised' | 'accept' | 'accepted' | 'refused' | 'faulty' | 'committed'

const kindByNumber: ReadonlyMap<number, Message['kind']> = new Map(
  Object.entries(kinds).flatMap(([kind, number]) =>
    isKind(kind) ? [[number, kind] as const] : [],
  ),
)

function isKind(kind: string): kind is Message['kind'] {
  return Object.hasOwn(kinds, kind)
}

export type DecodedPeerFrame =
  { readonly ok: true; readonly frame: PeerFrame } | { readonly ok: false; readonly reason: string }

export function encodePeerFrame(frame: PeerFrame): Uint8Array {
  return pack([frameFormat, frame.durableFlush, frame.messages.map(packMessage)])
}

export function decodePeerFrame(bytes: Uint8Array): DecodedPeerFrame {
  if (bytes.length > frameBytesMax) return { ok: false, reason: 'the frame is too long' }
  try {
    const [format, durableFlush, messages] = field.list(unpack(bytes), 'frame', 3)
    if (format !== frameFormat) return { ok: false, reason: 'the frame is of no known format' }
    const frame = {
      durableFlush: field.count(durableFlush, 'durable flush'),
      messages: field.list(messages, 'messages').map(readMessage),
    }
    return { ok: true, frame }
  } catch (error) {
    if (error instanceof field.MalformedError) return { ok: false, reason: error.message }
    throw error
  }
}

function packMessage(message: Message): Packable {
  const kind = kinds[message.kind]
  if (message.kind === 'digest-request') return [kind, message.after]
  if (message.kind === 'digest') return [kind, message.after, message.through, message.groups]
  return [kind, message.group, message.epoch, ...packBody(message)]
}

function packBody(message: GroupMessage): Packable[] {
  switch (message.kind) {
    case 'fetch':
      return [message.from, message.through]
    case 'entries': {
      const entries = message.entries.map((one) => [
        one.position,
        field.packBallot(one.ballot),
        one.value,
      ])
      return [message.from, entries, message.committed]
    }
    case 'query':
      return [message.read]
    case 'highest':
      return [message.read, message.position]
    case 'forward': {
      const { readPosition, reads, transaction, request, hops } = message
      return [readPosition, reads, transaction, request, hops]
    }
    case 'forward-reply':
      return [message.request, packVerdict(message.verdict)]
    default:
      return packPaxosBody(message)
  }
}

function packPaxosBody(message: GroupMessage & { kind: PaxosKind }): Packable[] {
  const at = [message.position, field.packBallot(message.ballot)]
  switch (message.kind) {
    case 'promised': {
      const { accepted } = message
      return [...at, accepted && [field.packBallot(accepted.ballot), accepted.value]]
    }
    case 'accept': {
      const { value, previous } = message
      return [...at, value, previous && field.packBallot(previous)]
    }
    case 'refused':
      return [...at, field.packBallot(message.promised)]
    default:
      return at
  }
}

function packVerdict(verdict: Verdict): Packable {
  switch (verdict.kind) {
    case 'committed':
      return [0, verdict.position, verdict.timestamp, verdict.attempt, verdict.sequences]
    case 'conflict':
      return [1, verdict.position]
    case 'expired':
      return [2]
    case 'overloaded':
      return [3]
  }
}

function readMessage(value: unknown): Message {
  const fields = field.list(value, 'message')
  const kind = kindByNumber.get(field.count(fields[0], 'kind'))
  if (kind === undefined) throw new field.MalformedError('message is of no known kind')
  if (fields.length !== fieldCounts[kind]) {
    throw new field.MalformedError(`message of kind ${kind} has another length`)
  }
  if (kind === 'digest-request') return { kind, after: field.count(fields[1], 'after') }
  if (kind === 'digest') return readDigest(fields)
  const envelope = { group: field.group(fields[1]), epoch: field.count(fields[2], 'epoch', 1) }
  return { ...readBody(kind, fields.slice(3)), ...envelope }
}

type Body<M extends Message = GroupMessage> = M extends Message ? Omit<M, 'group' | 'epoch'> : never

function readBody(kind: GroupMessage['kind'], body: readonly unknown[]): Body {
  switch (kind) {
    case 'fetch': {
      const through = field.count(body[1], 'through')
      return { kind, from: field.position(body[0]), through }
    }
    case 'entries':
      return { kind, ...readEntries(body) }
    case 'query':
      return { kind, read: field.count(body[0], 'read') }
    case 'highest': {
      const read = field.count(body[0], 'read')
      return { kind, read, position: field.count(body[1], 'position') }
    }
    case 'forward':
      return { kind, ...readForward(body) }
    case 'forward-reply': {
      const request = field.count(body[0], 'request')
      return { kind, request, verdict: readVerdict(body[1]) }
    }
    default:
      return readPaxosBody(kind, body)
  }
}

function readPaxosBody(kind: PaxosKind, body: readonly unknown[]): Body {
  const at = { position: field.position(body[0]), ballot: field.ballot(body[1]) }
  switch (kind) {
    case 'prepare':
    case 'accepted':
    case 'faulty':
    case 'committed':
      return { kind, ...at }
    case 'promised': {
      if (field.isAbsent(body[2])) return { kind, ...at }
      return { kind, ...at, accepted: field.ballotValue(body[2], entryBytesMax) }
    }
    case 'accept': {
      const value = field.bytes(body[2], 'value', entryBytesMax)
      if (field.isAbsent(body[3])) return { kind, ...at, value }
      return { kind, ...at, value, previous: field.ballot(body[3]) }
    }
    case 'refused':
      return { kind, ...at, promised: field.ballot(body[2]) }
  }
}

function readEntries(
  body: readonly unknown[],
): Pick<Message & { kind: 'entries' }, 'from' | 'entries' | 'committed'> {
  const entries = field.list(body[1], 'entries').map((one) => {
    const [at, of, content] = field.list(one, 'entry', 3)
    const value = field.bytes(content, 'value', entryBytesMax)
    return { position: field.position(at), ballot: field.ballot(of), value }
  })
  return {
    from: field.position(body[0]),
    entries,
    committed: field.count(body[2], 'committed'),
  }
}

function readForward(
  body: readonly unknown[],
): Pick<
  Message & { kind: 'forward' },
  'readPosition' | 'reads' | 'transaction' | 'request' | 'hops'
> {
  return {
    readPosition: field.count(body[0], 'read position'),
    reads: field.list(body[1], 'reads').map((key) => field.bytes(key, 'key', keyBytesMax)),
    transaction: field.bytes(body[2], 'transaction', entryBytesMax),
    request: field.count(body[3], 'request'),
    hops: field.count(body[4], 'hops'),
  }
}

function readVerdict(value: unknown): Verdict {
  const [kind, ...fields] = field.list(value, 'verdict')
  switch (kind) {
    case 0: {
      const [position, timestamp, attempt, sequences] = field.list(fields, 'verdict', 4)
      return {
        kind: 'committed',
        position: field.position(position),
        timestamp: field.count(timestamp, 'timestamp', 1),
        attempt: field.count(attempt, 'attempt'),
        sequences: field.list(sequences, 'sequences').map((one) => field.count(one, 'sequence')),
      }
    }
    case 1: {
      const [position] = field.list(fields, 'verdict', 1)
      return { kind: 'conflict', position: field.count(position, 'position') }
    }
    case 2:
    case 3:
      field.list(fields, 'verdict', 0)
      return { kind: kind === 2 ? 'expired' : 'overloaded' }
    default:
      throw new field.MalformedError('verdict is of no known kind')
  }
}

function readDigest(fields: readonly unknown[]): Message & { kind: 'digest' } {
  const groups = field.list(fields[3], 'groups').map((one) => {
    const [name, position] = field.list(one, 'group', 2)
    return [field.group(name), field.position(position)] as const
  })
  const through = field.count(fields[2], 'through')
  return { kind: 'digest', after: field.count(fields[1], 'after'), through, groups }
}
