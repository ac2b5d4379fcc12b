/**
 * Writing one cell: insert if absent (SCHEMALESS "Cell").
 *
 * The cell's key is read in this node's replica, without asking anybody, and again by the proposer,
 * which refuses the transaction when an entry in between wrote it. So a stale replica costs a
 * rerun, never a second cell (CELL-1). A cell remembers the intent that created it: a retry is told
 * `created: true` like the first try, whichever node it reaches and whatever was forgotten (CELL-4).
 */
import { assert, unreachable } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import type { GroupId, Position } from '../base/ids.ts'
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import type { Intent, LocalReplica, Outcome, ReadPoint, Row } from '../replica/local-replica.ts'
import type { PackedBody } from './body.ts'
import { putRerunDelayMs, putRerunsMax } from './bounds.ts'
import type { CellName, Written } from './cell.ts'
import {
  addedIdCounter,
  addedIdOfCell,
  cellKey,
  cellMutations,
  creatorOf,
  hasBody,
  wasCreatedBy,
} from './layout.ts'
import { outcomeOf } from '../base/problem.ts'
import { shardGroup } from './shard.ts'
import { pause, remainingMs } from '../txn/time.ts'

/** What cells are made of: a replica, time and chance. */
export interface CellPorts {
  readonly replica: LocalReplica
  readonly clock: Clock
  readonly random: Random
}

export interface PutTask {
  readonly datastore: string
  readonly shard: number
  readonly name: CellName
  readonly body: PackedBody
  readonly intent: Intent
  readonly deadlineMs: number
}

export interface PutResult {
  readonly written: Written
  readonly position: Position
}

/** The task with what every rerun of it has in common. */
interface Put extends PutTask {
  readonly group: GroupId
  readonly key: Uint8Array
  readonly creator: Uint8Array
}

/** Rejects with a StoreError; `unknown-outcome` when the cell may or may not come to be written. */
export async function putCell(ports: CellPorts, task: PutTask): Promise<PutResult> {
  const group = shardGroup(task.datastore, task.shard)
  const key = cellKey(task.name)
  const { datastore, shard, name, body, intent, deadlineMs } = task
  const creator = creatorOf(intent)
  const put: Put = { datastore, shard, name, body, intent, deadlineMs, group, key, creator }
  let atLeast: Position | undefined
  for (let rerun = 0; rerun <= putRerunsMax; rerun++) {
    if (rerun > 1) await pause(ports, rerunDelayMs(ports.random, rerun))
    const result = await tryPut(ports, put, atLeast)
    if (result.kind === 'written') return result.result
    atLeast = result.position
  }
  const message = `the replica at this node does not keep up with the shard; try again`
  throw new StoreError('overloaded', message, { group, attempts: putRerunsMax + 1 })
}

type Try =
  | { readonly kind: 'written'; readonly result: PutResult }
  /** Nothing happened; look again at this position or later. */
  | { readonly kind: 'again'; readonly position: Position }

async function tryPut(ports: CellPorts, put: Put, atLeast: Position | undefined): Promise<Try> {
  const { replica, clock, random } = ports
  const { group, key, intent } = put
  const point = await replica.read(group, 'any', remainingMs(clock, put.deadlineMs), atLeast)
  const row = replica.get(group, key)
  if (row !== undefined) return foundCell(ports, put, row, point)
  if (clock.monotonicMs() >= put.deadlineMs) {
    throw new StoreError('unavailable', 'the time for this request is over; nothing was written')
  }
  const attempt = random.int(1, Number.MAX_SAFE_INTEGER)
  const outcome = await replica.submit(
    {
      group,
      intent,
      attempt,
      readPosition: point.position,
      reads: [key],
      allocations: [addedIdCounter],
      mutations: cellMutations(put.name, put.body, put.creator),
    },
    remainingMs(clock, put.deadlineMs),
  )
  return afterSubmit(ports, put, attempt, outcome)
}

async function afterSubmit(
  ports: CellPorts,
  put: Put,
  attempt: number,
  outcome: Outcome,
): Promise<Try> {
  const { group } = put
  switch (outcome.kind) {
    case 'committed':
      if (outcome.attempt === attempt) return createdCell(ports, put, outcome)
      return otherTry(ports, put, outcome.position)
    case 'conflict':
      return { kind: 'again', position: outcome.position }
    case 'expired':
      throw new StoreError('expired', 'this request is too old and was never carried out', {
        group,
      })
    case 'overloaded':
      throw new StoreError('overloaded', 'too much waits at this node; try again later', { group })
    case 'unknown': {
      const message = 'no majority of the replicas answered in time; the cell may yet be written'
      throw new StoreError('unknown-outcome', message, { group })
    }
    default:
      return unreachable(outcome)
  }
}

/** A commit is told when it is applied here, so what it wrote can be looked at. */
function createdCell(
  ports: CellPorts,
  put: Put,
  outcome: Outcome & { readonly kind: 'committed' },
): Try {
  const { position, timestamp: createdAt, sequences } = outcome
  const [addedId] = sequences
  const row = ports.replica.get(put.group, put.key)
  assert(row !== undefined && hasBody(row, put.body), 'CELL-1: another cell than was put')
  assert(wasCreatedBy(row, put.creator), 'CELL-4: a cell of another intent is called created')
  assert(addedId === addedIdOfCell(row), 'CELL-3: another added id than was drawn')
  assert(createdAt === row.timestamp, 'CELL-3: another time than that of the entry')
  const written = { shard: put.shard, addedId, createdAt, created: true }
  return { kind: 'written', result: { written, position } }
}

/** Another try of this intent took effect: what it wrote is there to be read. */
async function otherTry(ports: CellPorts, put: Put, position: Position): Promise<Try> {
  const { replica, clock } = ports
  const { group } = put
  const read = await outcomeOf(() =>
    replica.read(group, 'any', remainingMs(clock, put.deadlineMs), position),
  )
  if (read.kind === 'problem') {
    const message = `the cell was dealt with, but not how could be read: ${read.problem.message}`
    throw new StoreError('unknown-outcome', message, { group })
  }
  const row = replica.get(group, put.key)
  if (row !== undefined) return foundCell(ports, put, row, read.value)
  const message = 'this session has used the same sequence for another cell; it must use a new one'
  throw new StoreError('invalid', message, { group })
}

async function foundCell(ports: CellPorts, put: Put, row: Row, point: ReadPoint): Promise<Try> {
  const { group, body, shard } = put
  if (!hasBody(row, body)) {
    const message = 'this cell exists with another body; a cell never changes, use a higher ref key'
    throw new StoreError('conflict', message, { group })
  }
  const addedId = addedIdOfCell(row)
  const created = wasCreatedBy(row, put.creator)
  const written = { shard, addedId, createdAt: row.timestamp, created }
  // The row may be newer than the read that found it; the session must not fall behind it.
  const isOlder = row.timestamp <= point.timestamp
  const { position } = isOlder ? point : await ports.replica.read(group, 'any', 1)
  return { kind: 'written', result: { written, position } }
}

function rerunDelayMs(random: Random, rerun: number): number {
  const longestMs = putRerunDelayMs * 2 ** rerun
  return random.int(Math.ceil(longestMs / 2), longestMs)
}
