/**
 * The reckoning: the state at the end against the state that the trips alone imply. Functions of
 * the reads at the end, each of which answers with complaints in words.
 *
 * AUDIT-1  Every trip is one cell with the body that was put, at every replica; logs are dense and
 *          equal.
 * AUDIT-2  Every trip has one effect of the trigger that writes cells, and no other cell exists.
 * AUDIT-3  The index answers what a plain computation over the trips does.
 * AUDIT-4  The trigger that writes lines was called for every trip, at first in the order of its
 *          shard.
 */
import { isDeepStrictEqual } from 'node:util'
import { fareColumn, computeFare, tripColumn, type Trip, type TripBody } from './trips.ts'

/** A cell as a shard's log tells it. */
export interface SeenCell {
  readonly shard: number
  readonly addedId: number
  readonly rowKey: string
  readonly column: string
  readonly refKey: number
  readonly body: unknown
}

/** A trip as the index tells of it. */
export interface SeenEntry {
  readonly rowKey: string
  /** Microseconds since 1970. */
  readonly at: number
  readonly total: number
}

/** The logs of all shards, whole, in their order. */
export type Logs = ReadonlyMap<number, readonly SeenCell[]>

/** AUDIT-1, AUDIT-2 of one replica's logs. */
export function cellComplaints(trips: readonly Trip[], logs: Logs): readonly string[] {
  const complaints: string[] = []
  const wanted = new Map<string, unknown>()
  for (const { rowKey, body } of trips) {
    wanted.set(formatName(rowKey, tripColumn, 0), body)
    wanted.set(formatName(rowKey, fareColumn, 0), computeFare(body))
  }
  for (const [shard, cells] of logs) {
    cells.forEach(({ addedId, rowKey, column, refKey, body }, i) => {
      const name = formatName(rowKey, column, refKey)
      if (addedId !== i + 1) complaints.push(`shard ${shard}: ${name} is ${addedId}, not ${i + 1}`)
      if (!wanted.has(name)) complaints.push(`${name} was never put, or is there twice`)
      else if (!isDeepStrictEqual(wanted.get(name), body)) {
        complaints.push(`${name} is ${JSON.stringify(body)}, not what was put`)
      }
      wanted.delete(name)
    })
  }
  for (const name of wanted.keys()) complaints.push(`${name} is missing`)
  return complaints
}

/** AUDIT-1: replicas agree with one another. */
export function logComplaints(byNode: ReadonlyMap<string, Logs>): readonly string[] {
  const [first, ...others] = [...byNode]
  if (first === undefined) return []
  const [firstId, firstLogs] = first
  return others.flatMap(([id, logs]) => {
    const shards = new Set([...firstLogs.keys(), ...logs.keys()])
    return [...shards].flatMap((shard) =>
      isDeepStrictEqual(namesIn(firstLogs, shard), namesIn(logs, shard))
        ? []
        : [`shard ${shard} has another log at ${id} than at ${firstId}`],
    )
  })
}

/** AUDIT-3: all entries of each zone, in the order of the index. */
export function indexComplaints(
  trips: readonly Trip[],
  entries: ReadonlyMap<number, readonly SeenEntry[]>,
): readonly string[] {
  return listZones(trips).flatMap((zone) => {
    const wanted = trips.filter(({ body }) => body.zone === zone).map(toEntry)
    const found = entries.get(zone) ?? []
    const isSorted = found.every(({ at }, i) => i === 0 || at >= (found[i - 1]?.at ?? 0))
    const complaints = isSorted ? [] : [`zone ${zone}: entries are out of order`]
    const [are, should] = [toLines(found), toLines(wanted)]
    return isDeepStrictEqual(are, should)
      ? complaints
      : [...complaints, describeDifference(`zone ${zone}`, are, should)]
  })
}

/** AUDIT-3: entries of a zone that began in a span of time. */
export function spanComplaints(
  trips: readonly Trip[],
  { zone, from, to }: Span,
  found: readonly SeenEntry[],
): readonly string[] {
  const inSpan = ({ body }: Trip): boolean => {
    const at = readMicros(body)
    return body.zone === zone && at >= from && at < to
  }
  const [are, should] = [toLines(found), toLines(trips.filter(inSpan).map(toEntry))]
  if (isDeepStrictEqual(are, should)) return []
  return [describeDifference(`zone ${zone} from ${from} to ${to}`, are, should)]
}

export interface Span {
  readonly zone: number
  /** Microseconds since 1970; the end is not within. */
  readonly from: number
  readonly to: number
}

export interface LedgerReport {
  readonly complaints: readonly string[]
  /** Calls for a trip that had been handled before. */
  readonly again: number
}

/** AUDIT-4: lines `shard addedId rowKey` against the logs. */
export function ledgerReport(lines: readonly string[], logs: Logs): LedgerReport {
  const wanted = new Map<string, number>()
  for (const [shard, cells] of logs) {
    for (const { column, addedId, rowKey } of cells) {
      if (column === tripColumn) wanted.set(`${shard} ${addedId} ${rowKey}`, addedId)
    }
  }
  const complaints: string[] = []
  const called = new Set<string>()
  const highest = new Map<string, number>()
  for (const line of lines) {
    const addedId = wanted.get(line)
    if (addedId === undefined) complaints.push(`called for what is no trip: ${line}`)
    else if (!called.has(line)) {
      const [shard = ''] = line.split(' ')
      const before = highest.get(shard) ?? 0
      if (addedId < before) complaints.push(`${line} was handled after ${before}`)
      highest.set(shard, Math.max(before, addedId))
    }
    called.add(line)
  }
  for (const line of wanted.keys()) {
    if (!called.has(line)) complaints.push(`never handled: ${line}`)
  }
  return { complaints, again: lines.length - called.size }
}

export function listZones(trips: readonly Trip[]): readonly number[] {
  return [...new Set(trips.map(({ body }) => body.zone))].toSorted((a, b) => a - b)
}

export function readMicros({ at }: Pick<TripBody, 'at'>): number {
  return Date.parse(at) * 1000
}

function toEntry({ rowKey, body }: Trip): SeenEntry {
  return { rowKey, at: readMicros(body), total: body.total }
}

function toLines(entries: readonly SeenEntry[]): readonly string[] {
  return entries.map(({ rowKey, at, total }) => `${at} ${rowKey} ${total}`).toSorted()
}

function describeDifference(
  what: string,
  are: readonly string[],
  should: readonly string[],
): string {
  const [found, wanted] = [new Set(are), new Set(should)]
  const missing = should.filter((line) => !found.has(line))
  const extra = are.filter((line) => !wanted.has(line))
  const example = missing[0] ?? extra[0] ?? 'one is there twice'
  return `${what}: ${missing.length} entries are missing, ${extra.length} should not be there: ${example}`
}

function namesIn(logs: Logs, shard: number): readonly string[] {
  return (logs.get(shard) ?? []).map(({ rowKey, column, refKey }) =>
    formatName(rowKey, column, refKey),
  )
}

function formatName(rowKey: string, column: string, refKey: number): string {
  return `${rowKey} ${column} ${refKey}`
}
