/** Requests of a client ⇄ positional arrays: `[id, timeoutMs, intents, operation]`. */
import { assert } from '../../base/assert.ts'
import { batchItemsMax } from '../../base/limits.ts'
import type { Packable } from '../../base/pack.ts'
import type { CellName } from '../../cells/cell.ts'
import { creatorBytes } from '../../cells/cell-table.ts'
import type { CellOperation, GetItem, LogPlace, PutItem, ReadFrom } from '../../cells/operation.ts'
import { shardCountMax } from '../../cells/datastore-form.ts'
import type { Intents } from '../../txn/intents.ts'
import { isWorklistOperation } from '../../worklist/worklist-operation.ts'
import {
  worklistOperationKinds,
  packWorklistOperation,
  readWorklistOperation,
} from './worklist-codec.ts'
import * as part from './client-fields.ts'
import type { CancelRequest, MalformedRequest, Operation, Request } from './client-message.ts'
import { groupOperationKinds, packGroupOperation, readGroupOperation } from './group-codec.ts'
import {
  indexChangeKinds,
  packIndexChange,
  packQueryIndex,
  readIndexChange,
  readQueryIndex,
} from './index-codec.ts'
import * as field from '../fields.ts'

/** Numbers on the wire: never reused, never renumbered. */
const kinds = {
  put: 1,
  get: 2,
  row: 3,
  versions: 4,
  log: 5,
  status: 6,
  purge: 20,
  cancel: 30,
  ...groupOperationKinds,
  ...worklistOperationKinds,
  index: 21,
  ...indexChangeKinds,
} as const satisfies Record<Operation['kind'], number>

assert(
  new Set(Object.values(kinds)).size === Object.keys(kinds).length,
  'wire: each kind of operation has a number of its own',
)

/** One more than a batch may hold: that it is too long is said by those who know the bound. */
const itemsMax = batchItemsMax + 1

export function packRequest(request: Request): Packable {
  const { id, timeoutMs, intents, operation } = request
  const packed = intents && [
    ...[intents.session, intents.sequences, intents.floor, intents.expiresAt],
  ]
  return [id, timeoutMs, packed, [kinds[operation.kind], ...packOperation(operation)]]
}

/** A fault in one request is its caller's: the others of the frame, and the link, are as good as ever. */
export function readRequest(value: unknown): Request | MalformedRequest {
  const fields = field.list(value, 'request', 4)
  const id = field.count(fields[0], 'request id')
  try {
    return readFields(id, fields)
  } catch (error) {
    if (error instanceof field.MalformedError) return { id, reason: error.message }
    throw error
  }
}

function readFields(id: number, fields: readonly unknown[]): Request {
  const timeoutMs = field.count(fields[1], 'time-out')
  const operation = readOperation(fields[3])
  if (field.isAbsent(fields[2])) return { id, timeoutMs, operation }
  return { id, timeoutMs, operation, intents: readIntents(fields[2]) }
}

function readIntents(value: unknown): Intents {
  const [session, sequences, floor, expiresAt] = field.list(value, 'intents', 4)
  return {
    session: part.text(session, 'session'),
    sequences: part
      .some(sequences, 'sequences', itemsMax)
      .map((sequence) => field.count(sequence, 'sequence')),
    floor: field.count(floor, 'floor'),
    expiresAt: field.count(expiresAt, 'expires at'),
  }
}

function packOperation(operation: Operation): Packable[] {
  switch (operation.kind) {
    case 'put': {
      const { datastore, items, isDirect } = operation
      const packed = items.map(packPutItem)
      return isDirect === true ? [datastore, packed, true] : [datastore, packed]
    }
    case 'get': {
      const { datastore, read, items } = operation
      return [
        datastore,
        packRead(read),
        items.map(({ rowKey, column, refKey }) => [rowKey, column, refKey]),
      ]
    }
    case 'row': {
      const { datastore, read, rowKey, from, limit } = operation
      return [datastore, packRead(read), rowKey, from, limit]
    }
    case 'versions': {
      const { datastore, read, rowKey, column, from, limit, reverse } = operation
      return [datastore, packRead(read), rowKey, column, from, limit, reverse]
    }
    case 'log': {
      const { datastore, read, items, limit, waitMs } = operation
      return [datastore, packRead(read), items.map(packPlace), limit, waitMs]
    }
    case 'status':
      return []
    case 'cancel':
      return [operation.request]
    case 'purge': {
      const { datastore, shard, before, column, keepLatest, after, limit, cell } = operation
      const asked = [datastore, shard, before, column, keepLatest, after, limit]
      return cell === undefined ? asked : [...asked, [cell.rowKey, cell.column, cell.refKey]]
    }
    case 'index':
      return packQueryIndex(operation, packRead(operation.read))
    case 'spread-indexes':
    case 'drop-index':
      return packIndexChange(operation)
    default:
      if (isWorklistOperation(operation)) return packWorklistOperation(operation)
      return packGroupOperation(operation)
  }
}

function readOperation(value: unknown): Operation {
  const [kind, ...rest] = field.list(value, 'operation')
  switch (kind) {
    case kinds.put: {
      const isDirect = rest.length === 3 && rest[2] === true
      const [datastore, items] = field.list(rest, 'put', isDirect ? 3 : 2)
      const read = part.some(items, 'items', itemsMax).map(readPutItem)
      return {
        kind: 'put',
        datastore: part.text(datastore, 'datastore'),
        items: read,
        ...(isDirect && { isDirect }),
      }
    }
    case kinds.get: {
      const [datastore, read, items] = field.list(rest, 'get', 3)
      return {
        kind: 'get',
        datastore: part.text(datastore, 'datastore'),
        read: readRead(read),
        items: part.some(items, 'items', itemsMax).map(readGetItem),
      }
    }
    case kinds.row:
      return readRow(field.list(rest, 'row', 5))
    case kinds.versions:
      return readVersions(field.list(rest, 'versions', 7))
    case kinds.log:
      return readLog(field.list(rest, 'log', 5))
    case kinds.status:
      return { kind: 'status' }
    case kinds.purge:
      return readPurge(field.list(rest, 'purge', rest.length === 8 ? 8 : 7))
    case kinds.index:
      return readQueryIndex(rest, readTarget)
    default:
      return readOther(kind, rest)
  }
}

function readOther(kind: unknown, rest: readonly unknown[]): Operation {
  const operation =
    readCancel(kind, rest) ??
    readGroupOperation(kind, rest) ??
    readWorklistOperation(kind, rest) ??
    readIndexChange(kind, rest)
  if (operation !== undefined) return operation
  throw new field.MalformedError('operation is of no known kind')
}

function readCancel(kind: unknown, fields: readonly unknown[]): CancelRequest | undefined {
  if (kind !== kinds.cancel) return undefined
  const [request] = field.list(fields, 'cancel', 1)
  return { kind: 'cancel', request: field.count(request, 'request', 1) }
}

function readPurge(fields: readonly unknown[]): CellOperation {
  const [datastore, shard, before, column, keepLatest, after, limit, cell] = fields
  return {
    kind: 'purge',
    datastore: part.text(datastore, 'datastore'),
    shard: field.count(shard, 'shard'),
    before: field.count(before, 'before'),
    ...(!field.isAbsent(column) && { column: part.text(column, 'column') }),
    keepLatest: field.flag(keepLatest, 'keep latest'),
    after: field.count(after, 'after'),
    limit: field.count(limit, 'limit'),
    ...(!field.isAbsent(cell) && { cell: readCellName(field.list(cell, 'cell', 3)) }),
  }
}

function readCellName([rowKey, column, refKey]: readonly unknown[]): CellName {
  return {
    rowKey: part.text(rowKey, 'row key'),
    column: part.text(column, 'column'),
    refKey: field.count(refKey, 'ref key'),
  }
}

function readRow(fields: readonly unknown[]): CellOperation {
  const [datastore, read, rowKey, from, limit] = fields
  return {
    kind: 'row',
    ...readTarget(datastore, read),
    rowKey: part.text(rowKey, 'row key'),
    ...(!field.isAbsent(from) && { from: part.text(from, 'from') }),
    limit: field.count(limit, 'limit'),
  }
}

function readVersions(fields: readonly unknown[]): CellOperation {
  const [datastore, read, rowKey, column, from, limit, reverse] = fields
  return {
    kind: 'versions',
    ...readTarget(datastore, read),
    rowKey: part.text(rowKey, 'row key'),
    column: part.text(column, 'column'),
    ...(!field.isAbsent(from) && { from: field.count(from, 'from') }),
    limit: field.count(limit, 'limit'),
    reverse: field.flag(reverse, 'reverse'),
  }
}

function readLog(fields: readonly unknown[]): CellOperation {
  const [datastore, read, items, limit, waitMs] = fields
  return {
    kind: 'log',
    ...readTarget(datastore, read),
    items: part.some(items, 'places', shardCountMax + 1).map(readPlace),
    limit: field.count(limit, 'limit'),
    waitMs: field.count(waitMs, 'wait'),
  }
}

function readTarget(
  datastore: unknown,
  read: unknown,
): { readonly datastore: string; readonly read: ReadFrom } {
  return { datastore: part.text(datastore, 'datastore'), read: readRead(read) }
}

/**
 * In the place of a shard: the number behind it is a bound of staleness. To a node of an earlier version such a read is a
 * current one, with the position of a shard that there is not.
 */
const boundPlace = 65_536

function packRead({ level, atLeast, maxStalenessMs }: ReadFrom): Packable {
  if (maxStalenessMs === undefined) return [level === 'snapshot' ? 1 : 0, atLeast]
  // One place more is too many: a current read sees all, too.
  if (atLeast.length === shardCountMax) return [0, []]
  return [0, [...atLeast, [boundPlace, maxStalenessMs]]]
}

function readRead(value: unknown): ReadFrom {
  const [level, atLeast] = field.list(value, 'read', 2)
  if (level !== 0 && level !== 1) throw new field.MalformedError('read is of no known level')
  const positions = part.positions(atLeast)
  const [place, maxStalenessMs] = positions.at(-1) ?? []
  if (level === 0 && place === boundPlace && maxStalenessMs !== undefined) {
    return { level: 'snapshot', atLeast: positions.slice(0, -1), maxStalenessMs }
  }
  return { level: level === 1 ? 'snapshot' : 'current', atLeast: positions }
}

function packPutItem({ rowKey, column, refKey, body, creator }: PutItem): Packable {
  const item = [rowKey, column, refKey, body]
  return creator === undefined ? item : [...item, creator]
}

function readPutItem(value: unknown): PutItem {
  const fields = field.list(value, 'item')
  const isNamed = fields.length === 5
  const [rowKey, column, refKey, body, creator] = field.list(value, 'item', isNamed ? 5 : 4)
  return {
    rowKey: part.text(rowKey, 'row key'),
    column: part.text(column, 'column'),
    refKey: readRefKey(refKey),
    body: part.body(body),
    ...(isNamed && { creator: field.bytes(creator, 'creator', creatorBytes) }),
  }
}

function readGetItem(value: unknown): GetItem {
  const item = field.list(value, 'item')
  const rowKey = part.text(item[0], 'row key')
  const column = part.text(item[1], 'column')
  if (field.isAbsent(item[2])) return { rowKey, column }
  return { rowKey, column, refKey: readRefKey(item[2]) }
}

/** Unchecked, as names are: one item that names no cell is no reason to refuse all others. */
function readRefKey(value: unknown): number {
  return typeof value === 'number' ? value : field.count(value, 'ref key')
}

function packPlace(place: LogPlace): Packable {
  const isAfter = place.kind === 'after'
  const rest = isAfter ? [place.addedId, place.asOf] : [place.timestamp, undefined]
  return [place.shard, isAfter ? 0 : 1, ...rest]
}

function readPlace(value: unknown): LogPlace {
  const [shardField, kind, number, asOf] = field.list(value, 'place', 4)
  const shard = field.count(shardField, 'shard')
  if (kind === 0) {
    const addedId = field.count(number, 'added id')
    const at = field.isAbsent(asOf) ? {} : { asOf: field.count(asOf, 'as of') }
    return { kind: 'after', shard, addedId, ...at }
  }
  if (kind === 1) return { kind: 'since', shard, timestamp: field.count(number, 'timestamp') }
  throw new field.MalformedError('place is of no known kind')
}
