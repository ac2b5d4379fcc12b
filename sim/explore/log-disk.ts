/**
 * A log disk as the explorer sees it: the folded records of each position, and the core's answers
 * from them. The meaning is that of the log's index and its record source, without their bytes.
 */
import type { Position } from '../../src/base/ids.ts'
import { compareBallots, equalBallots, type Ballot } from '../../src/paxos/ballot.ts'
import type { Acceptor } from '../../src/paxos/acceptor.ts'
import type { LogRecord } from '../../src/replication/effect.ts'
import type { Decision, PositionRecord } from '../../src/replication/log.ts'

/** One position's records, folded. `value`: the decided one where known, else the accepted one. */
export interface Held {
  readonly promised?: Ballot
  readonly accepted?: Ballot
  readonly chosen?: Ballot
  readonly value?: Uint8Array
}

export type LogDisk = ReadonlyMap<Position, Held>

/** `held` with one more record. */
export function fold(held: Held | undefined, record: LogRecord): Held {
  const { ballot } = record
  switch (record.kind) {
    case 'promise':
      return { ...held, promised: ballot }
    case 'accept': {
      const value = held?.chosen === undefined ? record.value : held.value
      return { ...held, promised: ballot, accepted: ballot, ...(value && { value }) }
    }
    case 'copied': {
      const promised = higher(held?.promised, ballot)
      const value = held?.chosen === undefined ? record.value : held.value
      return { ...held, promised, accepted: ballot, ...(value && { value }) }
    }
    case 'chosen':
      return { ...held, chosen: ballot, ...(record.value && { value: record.value }) }
  }
}

/** The disk with some more records. */
export function written(disk: LogDisk, records: readonly LogRecord[]): LogDisk {
  if (records.length === 0) return disk
  const next = new Map(disk)
  for (const record of records) next.set(record.position, fold(next.get(record.position), record))
  return next
}

/** The record of a position, as a start reads it. */
export type LookedUp =
  | { readonly kind: 'absent' }
  | { readonly kind: 'present'; readonly acceptor: Acceptor; readonly chosen: boolean }

/** The record of a position on the disk. */
export function lookUp(held: Held | undefined): LookedUp {
  if (held === undefined) return { kind: 'absent' }
  const { promised, accepted, chosen, value } = held
  const ballot = chosen ?? accepted
  if (ballot === undefined || value === undefined) {
    const acceptor = promised === undefined ? {} : { promised }
    return { kind: 'present', acceptor, chosen: false }
  }
  return {
    kind: 'present',
    acceptor: { promised: higher(promised, ballot), accepted: { ballot, value } },
    chosen: chosen !== undefined && equalBallots(ballot, chosen),
  }
}

function higher(a: Ballot | undefined, b: Ballot): Ballot {
  return a !== undefined && compareBallots(a, b) > 0 ? a : b
}

/** The records that a restarting replica finds above the state of its data store. */
export function recordsAbove(
  disk: LogDisk,
  applied: Position,
): {
  readonly records: ReadonlyMap<Position, PositionRecord>
  readonly decisions: ReadonlyMap<Position, Decision>
} {
  const records = new Map<Position, PositionRecord>()
  const decisions = new Map<Position, Decision>()
  for (const [position, held] of [...disk].sort(([a], [b]) => a - b)) {
    const looked = lookUp(held)
    if (position <= applied || looked.kind !== 'present') continue
    records.set(position, looked)
    const decision = looked.chosen && looked.acceptor.accepted
    if (decision) decisions.set(position, decision)
    else if (held.chosen !== undefined) decisions.set(position, { ballot: held.chosen })
  }
  return { records, decisions }
}
