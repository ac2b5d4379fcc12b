/**
 * Messages of peers ⇄ MessagePack of a positional array that opens with the number of its kind: all that
 * is not there for every commit (`paxos-codec.ts` has that).
 */
import type { GroupId } from '../../base/ids.ts'
import { entryBytesMax, keyBytesMax } from '../../base/limits.ts'
import type { Packable } from '../../base/pack.ts'
import type { ChosenEntry, GroupMessage, Message } from '../../replication/message.ts'
import {
  packGroupLease,
  packLeaseMessage,
  readGroupLease,
  readLeaseMessage,
} from './lease-codec.ts'
import { isCompare, isCompareKind, packCompare, readCompare } from './compare-codec.ts'
import { isEpochKind, isOfEpoch, packEpoch, readEpoch } from './epoch-codec.ts'
import { isLogEnd, isLogEndKind, packLogEnd, readLogEnd } from './log-end-codec.ts'
import { bulkKinds } from './paxos-codec.ts'
import { packSnapshot, readSnapshot } from './snapshot-codec.ts'
import * as field from '../fields.ts'
import * as part from './peer-fields.ts'
import { packVerdict, readVerdict } from '../verdict.ts'

/** Messages that are packed: acceptances that list lease holders, and all that are not for every commit. */
export type PackedMessage = Exclude<Message, { kind: 'accept' | 'committed' | 'digest' }>
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
  'snapshot-request': 27,
  'snapshot-part': 28,
  'snapshot-refused': 29,
  'durable-mark': 30,
  'directory-request': 31,
  directory: 32,
  'sums-request': 33,
  sums: 34,
  'marks-request': 35,
  marks: 36,
  standing: 37,
  'seal-request': 38,
  'seal-page': 39,
  'reach-request': 40,
  reach: 41,
  version: 42,
} as const satisfies Record<PackedMessage['kind'], number>

/** Fields of a message of each kind, its kind and envelope among them; absent ones are sent as nil. */
const fieldCounts: Readonly<Record<PackedMessage['kind'], number>> = {
  prepare: 5,
  promised: 6,
  accepted: 6,
  refused: 6,
  faulty: 5,
  fetch: 6,
  entries: 7,
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
  clock: 4,
  'snapshot-request': 6,
  'snapshot-part': 9,
  'snapshot-refused': 4,
  'durable-mark': 2,
  'directory-request': 4,
  directory: 6,
  'sums-request': 2,
  sums: 3,
  'marks-request': 3,
  marks: 3,
  standing: 4,
  version: 2,
  'seal-request': 3,
  'seal-page': 6,
  'reach-request': 2,
  reach: 4,
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

export function packMessage(message: PackedMessage): Packable {
  if (isCompare(message)) return [kinds[message.kind], ...packCompare(message)]
  if (isLogEnd(message)) return [kinds[message.kind], ...packLogEnd(message)]
  if (isOfEpoch(message)) return [kinds[message.kind], ...packEpoch(message)]
  switch (message.kind) {
    case 'digest-request':
      return [kinds[message.kind], message.after, message.asked]
    case 'clock':
      return [kinds[message.kind], message.wall, message.asked, message.answers]
    case 'renew':
    case 'renewed':
    case 'hand-back':
    case 'slow':
      return [kinds[message.kind], ...packLeaseMessage(message)]
    case 'snapshot-request':
    case 'snapshot-part':
    case 'snapshot-refused':
      return [kinds[message.kind], message.group, message.epoch, ...packSnapshot(message)]
    default:
      return packGroupMessage(message)
  }
}

function packGroupMessage(message: PackedGroupMessage): Packable[] {
  const { group, epoch } = message
  const kind = kinds[message.kind]
  switch (message.kind) {
    case 'fetch':
      return [kind, group, epoch, message.from, message.through, message.isAwaited]
    case 'entries': {
      const entries = message.entries.map(packEntry)
      return [kind, group, epoch, message.from, entries, message.committed, message.snapshot]
    }
    case 'query':
      return [kind, group, epoch, message.read, message.mayRegister]
    case 'highest': {
      const { read, position, term } = message
      return [kind, group, epoch, read, position, term && part.packTerm(term)]
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
  return [position, part.packBallot(ballot), value]
}

function packPaxosMessage(message: GroupMessage & { kind: PaxosKind }): Packable[] {
  const { group, epoch, position } = message
  const kind = kinds[message.kind]
  const ballot = part.packBallot(message.ballot)
  switch (message.kind) {
    case 'promised': {
      const { accepted } = message
      const value = accepted && [part.packBallot(accepted.ballot), accepted.value]
      return [kind, group, epoch, position, ballot, value]
    }
    case 'accepted':
      return [kind, group, epoch, position, ballot, part.packHolders(message.holders)]
    case 'refused':
      return [kind, group, epoch, position, ballot, part.packBallot(message.promised)]
    default:
      return [kind, group, epoch, position, ballot]
  }
}

export function readMessage(value: unknown): PackedMessage {
  const fields = field.list(value, 'message')
  const kind = kindByNumber.get(field.count(fields[0], 'kind'))
  if (kind === undefined) throw new field.MalformedError('message is of no known kind')
  if (fields.length !== fieldCounts[kind]) {
    throw new field.MalformedError(`message of kind ${kind} has another length`)
  }
  return readFields(kind, fields)
}

function readFields(kind: PackedMessage['kind'], fields: readonly unknown[]): PackedMessage {
  if (isCompareKind(kind)) return readCompare(kind, fields.slice(1))
  if (isLogEndKind(kind)) return readLogEnd(kind, fields.slice(1))
  if (isEpochKind(kind)) return readEpoch(kind, fields.slice(1))
  switch (kind) {
    case 'digest-request':
      return {
        kind,
        after: field.count(fields[1], 'after'),
        asked: field.count(fields[2], 'asked'),
      }
    case 'clock':
      return {
        kind,
        wall: field.count(fields[1], 'wall'),
        asked: field.count(fields[2], 'asked'),
        answers: field.count(fields[3], 'answers'),
      }
    case 'renew':
    case 'renewed':
    case 'hand-back':
    case 'slow':
      return readLeaseMessage(kind, fields.slice(1))
    case 'snapshot-request':
    case 'snapshot-part':
    case 'snapshot-refused':
      return readSnapshot(kind, fields)
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
      const through = field.count(fields[4], 'through')
      return { kind, group, epoch, from, through, isAwaited: field.flag(fields[5], 'is awaited') }
    }
    case 'entries': {
      const from = field.position(fields[3])
      const entries = field.list(fields[4], 'entries').map(readEntry)
      const committed = field.count(fields[5], 'committed')
      const common = { kind, group, epoch, from, entries, committed }
      if (field.isAbsent(fields[6])) return common
      return { ...common, snapshot: field.position(fields[6]) }
    }
    case 'query': {
      const read = field.count(fields[3], 'read')
      return { kind, group, epoch, read, mayRegister: field.flag(fields[4], 'may register') }
    }
    case 'highest': {
      const read = field.count(fields[3], 'read')
      const position = field.count(fields[4], 'position')
      if (field.isAbsent(fields[5])) return { kind, group, epoch, read, position }
      return { kind, group, epoch, read, position, term: part.term(fields[5]) }
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
  const ballot = part.ballot(fields[4])
  switch (kind) {
    case 'prepare':
    case 'faulty':
      return { kind, group, epoch, position, ballot }
    case 'promised': {
      if (field.isAbsent(fields[5])) return { kind, group, epoch, position, ballot }
      const accepted = part.ballotValue(fields[5], entryBytesMax)
      return { kind, group, epoch, position, ballot, accepted }
    }
    case 'accepted':
      return { kind, group, epoch, position, ballot, holders: part.holders(fields[5]) }
    case 'refused':
      return { kind, group, epoch, position, ballot, promised: part.ballot(fields[5]) }
  }
}

function readEntry(one: unknown): ChosenEntry {
  const [at, of, content] = field.list(one, 'entry', 3)
  const value = field.bytes(content, 'value', entryBytesMax)
  return { position: field.position(at), ballot: part.ballot(of), value }
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
