/**
 * The content of a stopped node's stores, line by line as plain objects: the identity of the log, flushes, records
 * of flushes, rows. A line that cannot be read says why, and the next one follows.
 */
import { formatIso } from '../base/datetime.ts'
import type { GroupId, Timestamp } from '../base/ids.ts'
import type { Transaction } from '../group/transaction.ts'
import { decodeTopic } from '../group/worklist-key.ts'
import { readPayload, type FlushHeader, type RecordHeader } from '../log/flush.ts'
import { metaName, tryDecodeMeta } from '../log/log-meta.ts'
import { decodeMemory, memoryName } from '../log/peer-memory.ts'
import { describeBallot } from '../paxos/ballot.ts'
import { decodeEntry, type Entry } from '../replication/entry.ts'
import type { GroupState } from '../replication/state.ts'
import { groupPrefix, positionKey } from '../store/row-format.ts'
import type { Range } from '../ports/storage.ts'
import { afterPrefix } from '../base/tuple.ts'
import { stateKey } from '../store/row-format.ts'
import { DataLooks } from './data-looks.ts'
import { decodeDataRow, type DataRow, type Unreadable } from './data-row.ts'
import { formatGroupHex } from './finding.ts'
import { readFlushes } from './flush-pass.ts'
import { readableBytes, type Readable } from './readable.ts'
import type { StoppedNode } from './stopped-node.ts'

export type Line = Readonly<Record<string, unknown>>

export interface DumpOptions {
  /** Of this group alone. */
  readonly group?: GroupId
  /** Flushes within these numbers alone. */
  readonly from: number
  readonly to: number
  readonly showsFlushes: boolean
  readonly showsRecords: boolean
  readonly showsRows: boolean
  readonly readable: Readable
}

/** In the order in which they are stored. */
export async function* dump(
  node: StoppedNode,
  options: DumpOptions,
): AsyncGenerator<Line, undefined> {
  const { showsFlushes, showsRecords, showsRows, group } = options
  if (showsFlushes && showsRows && group === undefined) yield* identityLines(node)
  if (showsFlushes || showsRecords) yield* flushLines(node, options)
  if (showsRows) yield* rowLines(node, options)
  return undefined
}

function* identityLines({ log, data }: StoppedNode): Generator<Line, undefined> {
  const [meta, memory] = [log.record(metaName), log.record(memoryName)]
  yield { kind: 'identity', ...((meta && tryDecodeMeta(meta)) ?? { problem: 'it cannot be read' }) }
  for (const peer of (memory && decodeMemory(memory)) ?? []) yield { kind: 'peer', ...peer }
  const mark = data && new DataLooks(data).mark()
  if (typeof mark === 'object') yield { kind: 'mark', ...mark }
  return undefined
}

async function* flushLines(
  { log }: StoppedNode,
  options: DumpOptions,
): AsyncGenerator<Line, undefined> {
  const { from, to, showsFlushes, showsRecords, group } = options
  for await (const { number, bytes, header } of readFlushes(log, from)) {
    if (number > to) return undefined
    if (header === undefined) {
      yield { kind: 'flush', flush: number, bytes: bytes.length, problem: 'its header is damaged' }
      continue
    }
    if (showsFlushes && group === undefined) {
      const { incarnation, previousCrc, crc, records } = header
      yield {
        ...{ kind: 'flush', flush: number, incarnation, crc, previousCrc },
        ...{ records: records.length, bytes: bytes.length },
      }
    }
    if (showsRecords) yield* recordLines(header, bytes, options)
  }
  return undefined
}

function* recordLines(
  { number: flush, records }: FlushHeader,
  bytes: Uint8Array,
  { group, readable }: DumpOptions,
): Generator<Line, undefined> {
  for (const [index, record] of records.entries()) {
    if (group !== undefined && record.group !== group) continue
    const { kind, position, ballot } = record
    yield {
      ...{
        kind: 'record',
        flush,
        record: index,
        says: kind,
        ...groupMembers(record.group, readable),
      },
      ...{ position, ballot: describeBallot(ballot) },
      ...valueMembers(record, bytes, readable),
    }
  }
  return undefined
}

function valueMembers({ group, piece }: RecordHeader, bytes: Uint8Array, readable: Readable): Line {
  if (piece === undefined) return {}
  const payload = readPayload(bytes, piece)
  if (payload === undefined) return { problem: 'its value does not match its checksum' }
  const entry = decodeEntry(payload)
  if (entry === undefined) return { value: readableBytes(payload) }
  return { entry: entryLine(group, entry, readable) }
}

function entryLine(group: GroupId, entry: Entry, readable: Readable): Line {
  const { timestamp, horizon, nextLeader, transactions } = entry
  return {
    time: formatIso(timestamp),
    horizon: timeText(horizon),
    nextLeader: `${nextLeader.node}.${nextLeader.incarnation}`,
    transactions: transactions.map((one) => transactionLine(group, one, timestamp, readable)),
  }
}

function transactionLine(
  group: GroupId,
  { session, sequence, attempt, mutations }: Transaction,
  timestamp: Timestamp,
  readable: Readable,
): Line {
  return {
    ...{ session, sequence, attempt },
    writes: mutations.map(({ key, value }) => ({
      key: readable.key(group, key),
      ...(value === undefined
        ? { deleted: true }
        : { value: readable.value(group, key, value, timestamp) }),
    })),
  }
}

async function* rowLines(
  { data }: StoppedNode,
  { group, readable }: DumpOptions,
): AsyncGenerator<Line, undefined> {
  for (const range of data === undefined ? [] : listRanges(group)) {
    for await (const rows of data?.scan(range) ?? []) {
      for (const row of rows) {
        const decoded = decodeDataRow(row)
        const isOther = group !== undefined && 'group' in decoded && decoded.group !== group
        if (!isOther) yield rowLine(decoded, row.value, readable)
      }
    }
  }
  return undefined
}

const allListed: Range = { gte: Buffer.from('l'), lt: Buffer.from('m') }

/** Where rows of the group lie. The worklist is by topic: all of it is read. */
function listRanges(group: GroupId | undefined): readonly Range[] {
  if (group === undefined) return [{}]
  const prefix = groupPrefix(group)
  const rows = afterPrefix(prefix)
  const state = stateKey(prefix)
  return [
    { gte: prefix, ...(rows !== undefined && { lt: rows }) },
    allListed,
    { gte: positionKey(group, 0), lt: positionKey(group, Number.MAX_SAFE_INTEGER) },
    { gte: state, lt: Buffer.concat([state, Uint8Array.of(0)]) },
  ]
}

function positionLine(row: DataRow & { readonly kind: 'position' }, named: Line): Line {
  const { kind, position } = row
  if ('searchFrom' in row.row) return { kind, ...named, position, ...row.row }
  const { promised, accepted, chosen, place, lastFlush } = row.row
  const ballots = Object.entries({ promised, accepted, chosen }).flatMap(([name, ballot]) =>
    ballot === undefined ? [] : [[name, describeBallot(ballot)]],
  )
  const said: Line = Object.fromEntries(ballots)
  return { kind, ...named, position, ...said, value: place, lastFlush }
}

function rowLine(row: DataRow | Unreadable, stored: Uint8Array, readable: Readable): Line {
  const group = 'group' in row ? row.group : undefined
  const named = group === undefined ? {} : groupMembers(group, readable)
  if ('problem' in row) {
    return { kind: row.kind, ...named, problem: row.problem, stored: readableBytes(stored) }
  }
  const { kind, stamp, value } = row
  switch (row.kind) {
    case 'row':
      return {
        ...{ kind, ...named, time: formatIso(stamp), key: readable.key(row.group, row.key) },
        value: readable.value(row.group, row.key, value, stamp),
      }
    case 'history':
      return {
        ...{ kind, ...named, time: formatIso(row.start), supersededAt: formatIso(stamp) },
        key: readable.key(row.group, row.key),
        value: readable.value(row.group, row.key, value, row.start),
      }
    case 'state':
      return {
        ...{ kind, ...named, ...stateMembers(row.state) },
        ...(row.flush !== undefined && { lastFlush: row.flush }),
      }
    case 'staged':
    case 'staging':
      return { kind, ...named }
    case 'position':
      return positionLine(row, named)
    case 'worklist':
      return {
        kind,
        topic: decodeTopic(row.topic) ?? readableBytes(Buffer.from(row.topic, 'latin1')),
        ...named,
        position: stamp,
      }
    case 'marker':
      return { kind, slot: row.slot, batch: stamp }
    case 'name':
      return { kind, name: row.name, value: readableBytes(value) }
  }
}

function stateMembers({
  position,
  timestamp,
  horizon,
  nextLeader,
  counters,
  sessions,
}: GroupState): Line {
  return {
    ...{ position, time: timeText(timestamp), horizon: timeText(horizon) },
    nextLeader: nextLeader && `${nextLeader.node}.${nextLeader.incarnation}`,
    counters: Object.fromEntries(counters),
    sessions: [...sessions].map(([session, { floor, expiresAt, outcomes }]) => ({
      ...{ session, floor, expires: timeText(expiresAt) },
      outcomes: [...outcomes].map(([sequence, outcome]) => ({ sequence, ...outcome })),
    })),
  }
}

/** A horizon may be before all time. */
function timeText(timestamp: Timestamp): string | number {
  return timestamp > 0 ? formatIso(timestamp) : timestamp
}

function groupMembers(group: GroupId, readable: Readable): Line {
  return { group: formatGroupHex(group), of: readable.group(group) }
}
