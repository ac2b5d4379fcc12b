/** Requests to entity groups and their answers ⇄ positional arrays. */
import {
  keyBytesMax,
  listedGroupsMax,
  rangeEndBytesMax,
  sessionCharsMax,
  transactionBytesMax,
  submissionMutationsMax,
} from '../../base/limits.ts'
import type { Packable } from '../../base/pack.ts'
import type { IntentOutcome, Outcome, Row, RowRange } from '../../group/replica-port.ts'
import { decodeTransaction, encodeTransaction } from '../../group/transaction.ts'
import type {
  CommitGroup,
  GroupAnswer,
  GroupOperation,
  ReadGroup,
  PassGroup,
} from '../../txn/group-operation.ts'
import type { ReadFrom, RowPage, View } from '../../group/group-port.ts'
import * as part from './client-fields.ts'
import {
  packExport,
  packMovedPage,
  packOpenBuckets,
  readMoving,
  readMovedPage,
} from './moving-codec.ts'
import * as field from '../fields.ts'
import { packVerdict, readVerdict } from '../verdict.ts'

/** A transaction's keys and values, and the bytes that tell them apart. */
const transactionWireBytesMax: number = transactionBytesMax + submissionMutationsMax * 64
const rowBytesMax: number = transactionBytesMax
/** Keys, and ranges, of one request. */
const keysMax = 10_000

type GroupKind = GroupOperation['kind']
/** A request that is passed on has the answer of its own kind. */
type AnswerKind = Exclude<GroupKind, 'pass-group'>

/** A `bounded` read is a `current` one with a bound in the place of the timestamp: nodes of earlier versions read currently. */
const froms = ['current', 'snapshot', 'at', 'inconsistent'] as const

/** Numbers on the wire: never reused, never renumbered. */
export const groupOperationKinds: Readonly<Record<GroupKind, number>> = {
  'read-group': 7,
  'commit-group': 8,
  'outcome-group': 9,
  'lock-group': 10,
  'unlock-group': 11,
  'list-groups': 16,
  'pass-group': 92,
  'export-group': 93,
  'move-group': 94,
  'admit-group': 95,
  'locate-group': 96,
  'open-buckets': 97,
}

export const groupAnswerKinds: Readonly<Record<AnswerKind, number>> = {
  'read-group': 8,
  'commit-group': 9,
  'outcome-group': 10,
  'lock-group': 11,
  'unlock-group': 12,
  'list-groups': 17,
  'export-group': 93,
  'move-group': 94,
  'admit-group': 95,
  'locate-group': 96,
  'open-buckets': 97,
}

const answerKinds: readonly AnswerKind[] = [
  'read-group',
  'commit-group',
  'outcome-group',
  'lock-group',
  'unlock-group',
  'list-groups',
  'export-group',
  'move-group',
  'admit-group',
  'locate-group',
  'open-buckets',
]
const kinds: readonly GroupKind[] = [...answerKinds, 'pass-group']
const operationByNumber = new Map<unknown, GroupKind>(
  kinds.map((kind) => [groupOperationKinds[kind], kind]),
)
const answerByNumber = new Map<unknown, AnswerKind>(
  answerKinds.map((kind) => [groupAnswerKinds[kind], kind]),
)

export function packGroupOperation(operation: GroupOperation): Packable[] {
  switch (operation.kind) {
    case 'read-group':
      return packReadGroup(operation)
    case 'commit-group':
      return packCommitGroup(operation)
    case 'outcome-group': {
      const { session, sequence, expiresAt } = operation.intent
      return [operation.group, session, sequence, expiresAt]
    }
    case 'lock-group':
      return [operation.group, operation.name, operation.holdMs, operation.waitMs]
    case 'unlock-group':
      return [operation.group, operation.name, operation.token]
    case 'list-groups':
      return [operation.group, operation.after, operation.limit, operation.isOfSet === true]
    case 'pass-group': {
      const { from, position, term, operation: asked } = operation
      const passed = [from, position, groupOperationKinds[asked.kind], packGroupOperation(asked)]
      return term === undefined ? passed : [...passed, term]
    }
    case 'export-group':
      return packExport(operation)
    case 'move-group':
      return [operation.group, operation.to, operation.isTrial === true]
    case 'admit-group':
      return [operation.group, operation.from]
    case 'locate-group':
      return [operation.group]
    case 'open-buckets':
      return packOpenBuckets(operation)
  }
}

/** Undefined for a number that is no group operation's. */
export function readGroupOperation(
  number: unknown,
  fields: readonly unknown[],
): GroupOperation | undefined {
  const kind = operationByNumber.get(number)
  switch (kind) {
    case undefined:
      return undefined
    case 'read-group':
      return readReadGroup(fields)
    case 'commit-group':
      return readCommitGroup(fields)
    case 'outcome-group':
      return readGetOutcome(fields)
    case 'lock-group': {
      const [group, name, holdMs, waitMs] = field.list(fields, kind, 4)
      const lock = { group: field.group(group), name: part.text(name, 'name of a lock') }
      return {
        kind,
        ...lock,
        holdMs: field.count(holdMs, 'hold', 1),
        waitMs: field.count(waitMs, 'wait'),
      }
    }
    case 'unlock-group': {
      const [group, name, token] = field.list(fields, kind, 3)
      const lock = { group: field.group(group), name: part.text(name, 'name of a lock') }
      return { kind, ...lock, token: field.count(token, 'token', 1) }
    }
    case 'list-groups': {
      const [group, after, limit, isOfSet] = field.list(fields, kind, 4)
      return {
        kind,
        group: field.group(group),
        limit: field.count(limit, 'limit', 1),
        ...(!field.isAbsent(after) && { after: field.group(after) }),
        ...(field.flag(isOfSet, 'of its set') && { isOfSet: true as const }),
      }
    }
    case 'pass-group':
      return readPassGroup(fields)
    default:
      return readMoving(kind, fields)
  }
}

function readPassGroup(fields: readonly unknown[]): GroupOperation {
  const isOfBucket = fields.length === 5
  const [from, position, number, asked, term] = field.list(fields, 'pass-group', isOfBucket ? 5 : 4)
  const operation = readGroupOperation(number, field.list(asked, 'request'))
  if (operation === undefined || !mayBePassed(operation)) {
    throw new field.MalformedError('a request is passed on that is of no known kind')
  }
  const passed = { kind: 'pass-group', from: field.setName(from), operation } as const
  if (!isOfBucket) return { ...passed, position: field.position(position) }
  return { ...passed, position: field.count(position, 'position'), term: field.count(term, 'term') }
}

const unpassed: ReadonlySet<GroupKind> = new Set([
  ...(['list-groups', 'pass-group', 'export-group', 'admit-group', 'open-buckets'] as const),
])

function mayBePassed(operation: GroupOperation): operation is PassGroup['operation'] {
  const { kind } = operation
  return !unpassed.has(kind)
}

function readGetOutcome(fields: readonly unknown[]): GroupOperation {
  const [group, session, sequence, expiresAt] = field.list(fields, 'outcome-group', 4)
  const intent = {
    session: field.text(session, 'session', sessionCharsMax),
    sequence: field.count(sequence, 'sequence'),
    ...(!field.isAbsent(expiresAt) && { expiresAt: field.count(expiresAt, 'expires at') }),
  }
  return { kind: 'outcome-group', group: field.group(group), intent }
}

export function packGroupAnswer(answer: Exclude<GroupAnswer, { kind: 'problem' }>): Packable[] {
  switch (answer.kind) {
    case 'read-group':
      return packGroupRows(answer)
    case 'commit-group':
      return packCommitted(answer)
    case 'outcome-group':
      return packIntentOutcome(answer.outcome)
    case 'lock-group':
      return [answer.token, answer.leader]
    case 'unlock-group':
      return [answer.wasHeld]
    case 'list-groups':
      return [answer.groups]
    case 'export-group':
      return packMovedPage(answer.page)
    case 'move-group':
    case 'admit-group':
    case 'open-buckets':
      return []
    case 'locate-group':
      return [answer.set]
  }
}

/** Undefined for a number that is no group answer's. */
export function readGroupAnswer(
  number: unknown,
  fields: readonly unknown[],
): GroupAnswer | undefined {
  const kind = answerByNumber.get(number)
  switch (kind) {
    case undefined:
      return undefined
    case 'read-group':
      return readGroupRows(fields)
    case 'commit-group':
      return readCommitted(fields)
    case 'outcome-group':
      return { kind, outcome: readIntentOutcome(fields) }
    case 'lock-group': {
      const [token, leader] = field.list(fields, kind, 2)
      return {
        kind,
        ...(!field.isAbsent(token) && { token: field.count(token, 'token', 1) }),
        ...(!field.isAbsent(leader) && { leader: field.node(leader) }),
      }
    }
    case 'unlock-group': {
      const [wasHeld] = field.list(fields, kind, 1)
      return { kind, wasHeld: field.flag(wasHeld, 'was held') }
    }
    case 'list-groups': {
      const [groups] = field.list(fields, kind, 1)
      const names = part.some(groups, 'groups', listedGroupsMax)
      return { kind, groups: names.map((group) => field.group(group)) }
    }
    case 'export-group':
      return { kind, page: readMovedPage(fields) }
    case 'move-group':
    case 'admit-group':
    case 'open-buckets':
      field.list(fields, kind, 0)
      return { kind }
    case 'locate-group': {
      const [set] = field.list(fields, kind, 1)
      return { kind, set: field.setName(set) }
    }
  }
}

/** A verdict, or how far the group had come when it held none. */
function packIntentOutcome(outcome: IntentOutcome): Packable[] {
  if (outcome.kind === 'none' || outcome.kind === 'forgotten') {
    return [undefined, outcome.kind === 'none', outcome.position, outcome.timestamp]
  }
  return [packVerdict(outcome), undefined, undefined, undefined]
}

function readIntentOutcome(fields: readonly unknown[]): IntentOutcome {
  const [verdict, isNone, position, timestamp] = field.list(fields, 'outcome-group', 4)
  if (field.isAbsent(verdict)) {
    return {
      kind: field.flag(isNone, 'none') ? 'none' : 'forgotten',
      position: field.count(position, 'position'),
      timestamp: field.count(timestamp, 'timestamp'),
    }
  }
  const known = readVerdict(verdict)
  if (known.kind === 'committed' || known.kind === 'expired') return known
  throw new field.MalformedError('a recorded outcome is of no known kind')
}

function packReadGroup({ group, from, atLeast, keys, range }: ReadGroup): Packable[] {
  return [group, ...packFrom(from), atLeast, keys, range && packRange(range)]
}

function packFrom(from: ReadFrom): Packable[] {
  if (from.kind === 'bounded') return [froms.indexOf('current'), from.maxStalenessMs]
  return [froms.indexOf(from.kind), from.kind === 'at' ? from.timestamp : undefined]
}

function packRange({ gte, gt, lt, reverse, limit }: RowRange): Packable {
  return [gte, gt, lt, reverse === true, limit]
}

function readReadGroup(fields: readonly unknown[]): ReadGroup {
  const [group, from, timestamp, atLeast, keys, range] = field.list(fields, 'read-group', 6)
  return {
    kind: 'read-group',
    group: field.group(group),
    from: readFrom(from, timestamp),
    atLeast: field.count(atLeast, 'at least'),
    keys: part.some(keys, 'keys', keysMax).map(readKey),
    ...(!field.isAbsent(range) && { range: readRowRange(range) }),
  }
}

function readFrom(number: unknown, timestamp: unknown): ReadFrom {
  const kind = typeof number === 'number' ? froms[number] : undefined
  if (kind === undefined) throw new field.MalformedError('read is of no known kind')
  if (kind === 'current' && !field.isAbsent(timestamp)) {
    return { kind: 'bounded', maxStalenessMs: field.count(timestamp, 'bound', 1) }
  }
  return kind === 'at' ? { kind, timestamp: field.count(timestamp, 'timestamp') } : { kind }
}

function readKey(value: unknown): Uint8Array {
  return field.bytes(value, 'key', keyBytesMax)
}

function readBound(value: unknown): Uint8Array {
  return field.bytes(value, 'bound', rangeEndBytesMax)
}

function readRowRange(value: unknown): RowRange {
  const [gte, gt, lt, reverse, limit] = field.list(value, 'range', 5)
  return {
    reverse: field.flag(reverse, 'reverse'),
    ...(!field.isAbsent(gte) && { gte: readBound(gte) }),
    ...(!field.isAbsent(gt) && { gt: readBound(gt) }),
    ...(!field.isAbsent(lt) && { lt: readBound(lt) }),
    ...(!field.isAbsent(limit) && { limit: field.count(limit, 'limit', 1) }),
  }
}

function packCommitGroup({ submission }: CommitGroup): Packable[] {
  const { group, intent, attempt, readPosition, reads, ranges } = submission
  const { allocations, mutations } = submission
  const transaction = encodeTransaction({ attempt, allocations, mutations, ...intent })
  return [group, readPosition, reads, ranges.map(({ gte, lt }) => [gte, lt]), transaction]
}

function readCommitGroup(fields: readonly unknown[]): CommitGroup {
  const [group, readPosition, reads, ranges, bytes] = field.list(fields, 'commit-group', 5)
  const transaction = decodeTransaction(field.bytes(bytes, 'transaction', transactionWireBytesMax))
  if (transaction === undefined) throw new field.MalformedError('transaction is none')
  const { session, sequence, floor, expiresAt, attempt, allocations, mutations } = transaction
  return {
    kind: 'commit-group',
    submission: {
      group: field.group(group),
      intent: { session, sequence, floor, expiresAt },
      attempt,
      allocations,
      mutations,
      readPosition: field.count(readPosition, 'read position'),
      reads: part.some(reads, 'reads', keysMax).map(readKey),
      ranges: part.some(ranges, 'ranges', keysMax).map(field.keyRange),
    },
  }
}

function packGroupRows(answer: GroupAnswer & { kind: 'read-group' }): Packable[] {
  const { view, rows, page } = answer
  const packed = page && [page.rows.map(packRow), page.isWhole]
  return [view.position, view.asOf, rows.map((row) => row && packRow(row)), packed]
}

function packRow({ key, value, timestamp }: Row): Packable {
  return [key, value, timestamp]
}

function readGroupRows(fields: readonly unknown[]): GroupAnswer {
  const [position, asOf, rows, page] = field.list(fields, 'read-group', 4)
  const view: View = {
    position: field.count(position, 'position'),
    asOf: part.optional(asOf, (one) => field.count(one, 'as of')),
  }
  const found = part.some(rows, 'rows', keysMax).map((row) => part.optional(row, readRow))
  if (field.isAbsent(page)) return { kind: 'read-group', view, rows: found }
  return { kind: 'read-group', view, rows: found, page: readPage(page) }
}

function readPage(value: unknown): RowPage {
  const [rows, isWhole] = field.list(value, 'page', 2)
  return {
    rows: part.some(rows, 'rows', keysMax).map(readRow),
    isWhole: field.flag(isWhole, 'whole'),
  }
}

function readRow(value: unknown): Row {
  const [key, content, timestamp] = field.list(value, 'row', 3)
  return {
    key: readKey(key),
    value: field.bytes(content, 'value', rowBytesMax),
    timestamp: field.count(timestamp, 'timestamp'),
  }
}

/** A verdict, or nil for an outcome that is not known. */
function packCommitted(answer: GroupAnswer & { kind: 'commit-group' }): Packable[] {
  const { outcome, leader } = answer
  return [outcome.kind === 'unknown' ? undefined : packVerdict(outcome), leader]
}

function readCommitted(fields: readonly unknown[]): GroupAnswer {
  const [verdict, leader] = field.list(fields, 'commit-group', 2)
  const outcome: Outcome = field.isAbsent(verdict) ? { kind: 'unknown' } : readVerdict(verdict)
  if (field.isAbsent(leader)) return { kind: 'commit-group', outcome }
  return { kind: 'commit-group', outcome, leader: field.node(leader) }
}
