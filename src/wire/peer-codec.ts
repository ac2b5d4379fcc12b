/**
 * Peer frames ⇄ bytes. A frame is `[format, durableFlush, messages]`, a message a positional array
 * that opens with the number of its kind. What comes from outside is checked field by field:
 * garbage is a reason, never an exception. Byte fields of a decoded frame are views of its bytes.
 */
import type { GroupId } from '../base/ids.ts'
import { entryBytesMax, frameBytesMax, keyBytesMax } from '../base/limits.ts'
import { pack, unpack, type Packable } from '../base/pack.ts'
import type { ChosenEntry, GroupMessage, Message, PeerFrame } from '../replication/message.ts'
import { flag } from './client-fields.ts'
import {
  packGroupLease,
  packLeaseMessage,
  readGroupLease,
  readLeaseMessage,
} from './lease-codec.ts'
import * as field from './peer-fields.ts'
import { packVerdict, readVerdict } from './verdict.ts'

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
  invalidate: 16,
  invalidated: 17,
  revoke: 18,
  revoked: 19,
  release: 20,
  renew: 21,
  renewed: 22,
  'hand-back': 23,
  slow: 24,
} as const satisfies Record<Message['kind'], number>

/** Fields of a message of each kind, its kind and envelope among them; absent ones are sent as nil. */
const fieldCounts: Readonly<Record<Message['kind'], number>> = {
  ...{ prepare: 5, promised: 6, accept: 7, accepted: 6, refused: 6, faulty: 5, committed: 5 },
  ...{ fetch: 5, entries: 6, query: 5, highest: 6, forward: 10, 'forward-reply': 5 },
  ...{ 'digest-request': 3, digest: 5 },
  ...{ invalidate: 4, invalidated: 5, revoke: 5, revoked: 5, release: 4 },
  ...{ renew: 5, renewed: 6, 'hand-back': 2, slow: 2 },
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
  switch (message.kind) {
    case 'digest-request':
      return [kinds[message.kind], message.after, message.asked]
    case 'digest': {
      const { kind, after, asked, through, groups } = message
      return [kinds[kind], after, asked, through, groups]
    }
    case 'renew':
    case 'renewed':
    case 'hand-back':
    case 'slow':
      return [kinds[message.kind], ...packLeaseMessage(message)]
    default:
      return packGroupMessage(message)
  }
}

function packGroupMessage(message: GroupMessage): Packable[] {
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
    case 'accept': {
      const { value, previous } = message
      return [kind, group, epoch, position, ballot, value, previous && field.packBallot(previous)]
    }
    case 'accepted':
      return [kind, group, epoch, position, ballot, field.packHolders(message.holders)]
    case 'refused':
      return [kind, group, epoch, position, ballot, field.packBallot(message.promised)]
    default:
      return [kind, group, epoch, position, ballot]
  }
}

function readMessage(value: unknown): Message {
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
    case 'digest':
      return readDigest(fields)
    case 'renew':
    case 'renewed':
    case 'hand-back':
    case 'slow':
      return readLeaseMessage(kind, fields.slice(1))
    default:
      return readGroupMessage(kind, fields)
  }
}

function readGroupMessage(kind: GroupMessage['kind'], fields: readonly unknown[]): GroupMessage {
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

/** Written out field by field: these are the bulk of what a node reads. */
function readPaxosMessage(
  kind: PaxosKind,
  group: GroupId,
  epoch: number,
  fields: readonly unknown[],
): GroupMessage {
  const position = field.position(fields[3])
  const ballot = field.ballot(fields[4])
  switch (kind) {
    case 'prepare':
    case 'faulty':
    case 'committed':
      return { kind, group, epoch, position, ballot }
    case 'promised': {
      if (field.isAbsent(fields[5])) return { kind, group, epoch, position, ballot }
      const accepted = field.ballotValue(fields[5], entryBytesMax)
      return { kind, group, epoch, position, ballot, accepted }
    }
    case 'accept': {
      const value = field.bytes(fields[5], 'value', entryBytesMax)
      if (field.isAbsent(fields[6])) return { kind, group, epoch, position, ballot, value }
      const previous = field.ballot(fields[6])
      return { kind, group, epoch, position, ballot, value, previous }
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

function readForward(group: GroupId, epoch: number, fields: readonly unknown[]): GroupMessage {
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

function readDigest(fields: readonly unknown[]): Message & { kind: 'digest' } {
  const groups = field.list(fields[4], 'groups').map((one) => {
    const [name, position] = field.list(one, 'group', 2)
    return [field.group(name), field.position(position)] as const
  })
  return {
    kind: 'digest',
    after: field.count(fields[1], 'after'),
    asked: field.count(fields[2], 'asked'),
    through: field.count(fields[3], 'through'),
    groups,
  }
}
