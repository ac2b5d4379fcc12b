/**
 * Writing one cell: a transaction that inserts it if it is absent. A cell is immutable: a second put
 * with an equal body changes nothing, one with another body is refused.
 *
 * It reads this node's replica, without asking another node, and the proposer refuses it when an entry in
 * between wrote the cell. So a stale replica costs a rerun, never a second cell (CELL-1). It runs under the
 * caller's intent, and a cell remembers the intent that created it. So a retry gets `created: true` like the
 * first try, whichever node it reaches and whatever was forgotten (CELL-4).
 *
 * The cell gets the TTL that its column has now, for good (TTL-3). One that has expired is not written again.
 *
 * What a purge has removed is not written again: its column remembers how far it was purged (CELL-7).
 */
import { assert, unreachable } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import type { GroupId, Position, Timestamp } from '../base/ids.ts'
import type { Clock } from '../ports/clock.ts'
import type { Intent } from '../group/replica-port.ts'
import type { GroupTables, TransactionResult } from '../tables/tables.ts'
import type { GroupTransaction, Inserted } from '../tables/types.ts'
import { remainingOrTimeout } from '../time/moments.ts'
import type { PackedBody } from './body.ts'
import { indexRowsWith, putIndexRows } from './index-maintenance.ts'
import type { ColumnRules } from './index-service.ts'
import { getLiving, living } from './living.ts'
import { putRerunsMax } from './limits.ts'
import type { Added, CellName } from './cell.ts'
import {
  hashCreator,
  getCells,
  hasBody,
  insertCell,
  purgedAddedId,
  purgedRefKey,
  wasCreatedBy,
  type CellRow,
} from './cell-table.ts'

export interface PutPorts {
  /** Those of the shard. */
  readonly tables: GroupTables
  readonly clock: Clock
  /** The indexes that the cell's column has a say in, and its TTL, as they are known now. */
  rules(): ColumnRules | Promise<ColumnRules>
}

export interface PutTask {
  readonly datastore: string
  readonly shard: number
  readonly name: CellName
  readonly body: PackedBody
  readonly intent: Intent
  /** Remembered in the cell; absent: `intent`. */
  readonly creator?: Uint8Array | undefined
  readonly deadlineMs: number
}

export interface PutResult {
  readonly written: Added
  readonly group: GroupId
  readonly position: Position
}

/** The result of one run of the transaction. */
type Run =
  | { readonly kind: 'inserted'; readonly row: Inserted }
  | { readonly kind: 'found'; readonly row: CellRow }
  /** It was there, or a later one of its column was, and a purge has removed it. */
  | { readonly kind: 'purged' }
  /** It is there, and no read shows it any more. */
  | { readonly kind: 'expired' }

/** Rejects with a StoreError; `unknown-outcome` when the cell may or may not come to be written. */
export async function putCell(
  { tables, clock, rules }: PutPorts,
  task: PutTask,
): Promise<PutResult> {
  const { intent } = task
  const timeoutMs = remainingOrTimeout(clock, task.deadlineMs)
  const options = { from: 'snapshot', intent, timeoutMs, rerunsMax: putRerunsMax } as const
  const creator = task.creator ?? hashCreator(intent)
  const result = await tables
    .transaction((tx) => run(tx, task, creator, rules), options)
    .catch((error: unknown) => {
      throw inWords(error, tables.group)
    })
  return toPutResult(task, creator, result)
}

async function run(
  tx: GroupTransaction,
  task: PutTask,
  creator: Uint8Array,
  rules: PutPorts['rules'],
): Promise<Run> {
  const { name, body } = task
  // Most shards were never purged: one short key says so, and its column need not be asked.
  const isPurged = (await purgedAddedId(tx, task)) > 0
  const purged = isPurged ? await purgedRefKey(tx, task, name) : undefined
  if (purged !== undefined && name.refKey <= purged) {
    const [row] = await getLiving(tx, task, [name])
    return row === undefined ? { kind: 'purged' } : { kind: 'found', row }
  }
  const known = rules()
  const { indexes, ttl } = known instanceof Promise ? await known : known
  const coming = { body, creator, ttl }
  try {
    if (indexes.length === 0) {
      return { kind: 'inserted', row: await insertCell(tx, task, name, coming) }
    }
    const kept = await indexRowsWith(tx, task, { ...name, body: body.bytes, ttl }, indexes)
    const row = await insertCell(tx, task, name, coming)
    await putIndexRows(tx, task, name.rowKey, kept)
    return { kind: 'inserted', row }
  } catch (error) {
    if (!(error instanceof StoreError) || error.code !== 'already-exists') throw error
  }
  const [row] = await getCells(tx, task, [name])
  assert(row !== undefined, 'CELL-1: a cell that exists already is there')
  const [there] = await living(tx, [row])
  return there === undefined ? { kind: 'expired' } : { kind: 'found', row }
}

function toPutResult(
  task: PutTask,
  creator: Uint8Array,
  { value, group, position, timestamp, numbers }: TransactionResult<Run>,
): PutResult {
  const { shard, body } = task
  switch (value.kind) {
    case 'inserted': {
      assert(numbers.length === 1, 'CELL-4: a put that took effect wrote its cell, once')
      const createdAt = committedAt(timestamp)
      const written = { shard, addedId: value.row.number, createdAt, created: true }
      return { written, group, position }
    }
    case 'found': {
      if (!hasBody(value.row, body)) throw otherBody(group)
      const { addedId, createdAt } = value.row.cell
      assert(
        createdAt <= committedAt(timestamp),
        'CELL-5: a cell is of a later entry than the view',
      )
      const created = wasCreatedBy(value.row, creator)
      return { written: { shard, addedId, createdAt, created }, group, position }
    }
    case 'purged': {
      const message =
        'this cell, or a later one of its column, was purged or has expired, and is not written again; use a higher ref key'
      throw new StoreError('immutable', message, { group })
    }
    case 'expired': {
      const message = 'this cell has expired and is not written again; use a higher ref key'
      throw new StoreError('immutable', message, { group })
    }
    default:
      return unreachable(value)
  }
}

function committedAt(timestamp: Timestamp | undefined): Timestamp {
  assert(timestamp !== undefined, 'CELL-3: what read or wrote a cell has a timestamp')
  return timestamp
}

function otherBody(group: GroupId): StoreError {
  const message = 'this cell exists with another body; a cell never changes, use a higher ref key'
  return new StoreError('immutable', message, { group })
}

/** The error of a transaction in the terms of cells: one that lost its races is late, and no more. */
export function inWords(error: unknown, group: GroupId): unknown {
  const isBehind =
    error instanceof StoreError &&
    (error.code === 'contention' || error.code === 'snapshot-too-old')
  if (!isBehind) return error
  const message = 'the replica at this node does not keep up with the shard; try again'
  return new StoreError('overloaded', message, { group, attempts: putRerunsMax + 1 })
}
