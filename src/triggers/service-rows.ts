/**
 * Rows of the workers of a service in its group: the workers, their leader, their shards, and the state of
 * each trigger. They are of the schema of cells (`../cells/trigger-schema.ts`), in a group of their own.
 */
import type { Row } from '../../schema/infer.ts'
import type { JsonValue } from '../../schema/values.ts'
import { marksTable, serviceTable, triggerTable, workerTable } from '../cells/trigger-schema.ts'
import { rootKey, type RootKey } from '../tables/tables.ts'
import type { GroupReader, GroupTransaction } from '../tables/types.ts'
import type { TriggerName } from './offset-rows.ts'

/** The worker that leads a service and the workers that have its shards, since when. */
export interface ServiceRow {
  /** Counts leaders. */
  readonly term: number
  readonly leader: string
  /** Counts assignments. */
  readonly generation: number
  readonly assignment: JsonValue
}

export interface WorkerRow {
  readonly worker: string
  readonly beat: number
  readonly released: number
}

export const triggerStates = ['running', 'paused', 'stopped'] as const

/** `stopped`: by itself, since too many cells are marked. */
export type TriggerState = (typeof triggerStates)[number]

export interface TriggerRow {
  readonly trigger: string
  readonly datastore: string
  readonly column: string
  /** Cells before this moment are not its business; 0: all are. Microseconds since 1970. */
  readonly since: number
  readonly state: TriggerState
  /** Why it does not run, in words; empty when it does. */
  readonly reason: string
  readonly marked: number
  readonly forgiven: number
  /** More marked cells than this, beside those forgiven, and it stops. */
  readonly marksMax: number
  readonly revision: number
}

/** Names the group of a service. */
export function serviceKey(service: string): RootKey {
  return rootKey(serviceTable, { service })
}

export async function getService(
  rows: GroupReader,
  service: string,
): Promise<ServiceRow | undefined> {
  const row = await rows.get(serviceTable, { service })
  if (row === undefined) return undefined
  const { term, leader, generation, assignment } = row
  return { term, leader, generation, assignment }
}

export function putService(
  tx: GroupTransaction,
  service: string,
  { term, leader, generation, assignment }: ServiceRow,
): Promise<void> {
  return tx.put(serviceTable, { service, term, leader, generation, assignment })
}

export async function getWorker(
  rows: GroupReader,
  service: string,
  worker: string,
): Promise<WorkerRow | undefined> {
  const row = await rows.get(workerTable, { service, worker })
  return row && toWorkerRow(row)
}

export async function scanWorkers(
  rows: GroupReader,
  service: string,
  limit: number,
): Promise<readonly WorkerRow[]> {
  const page = await rows.scan(workerTable, { service }, { limit })
  return page.items.map(toWorkerRow)
}

export function putWorker(
  tx: GroupTransaction,
  service: string,
  { worker, beat, released }: WorkerRow,
): Promise<void> {
  return tx.put(workerTable, { service, worker, beat, released })
}

export function deleteWorker(tx: GroupTransaction, service: string, worker: string): Promise<void> {
  return tx.delete(workerTable, { service, worker })
}

export async function getTrigger(
  rows: GroupReader,
  { service, trigger }: TriggerName,
): Promise<TriggerRow | undefined> {
  const row = await rows.get(triggerTable, { service, trigger })
  return row && toTriggerRow(row)
}

export async function scanTriggers(
  rows: GroupReader,
  service: string,
  limit: number,
): Promise<readonly TriggerRow[]> {
  const page = await rows.scan(triggerTable, { service }, { limit })
  return page.items.map(toTriggerRow)
}

export function putTrigger(tx: GroupTransaction, service: string, row: TriggerRow): Promise<void> {
  const { marksMax, ...rest } = row
  return tx.put(triggerTable, { service, ...rest, marks_max: marksMax })
}

/** Marked cells of a shard, as was last reported. */
export async function getMarks(
  rows: GroupReader,
  { service, trigger }: TriggerName,
  shard: number,
): Promise<number> {
  const row = await rows.get(marksTable, { service, trigger, shard })
  return row?.marked ?? 0
}

export function putMarks(
  tx: GroupTransaction,
  { service, trigger }: TriggerName,
  shard: number,
  marked: number,
): Promise<void> {
  if (marked === 0) return tx.delete(marksTable, { service, trigger, shard })
  return tx.put(marksTable, { service, trigger, shard, marked })
}

/** Shards with marked cells. */
export async function scanMarks(
  rows: GroupReader,
  { service, trigger }: TriggerName,
  limit: number,
): Promise<readonly { readonly shard: number; readonly marked: number }[]> {
  const page = await rows.scan(marksTable, { service, trigger }, { limit })
  return page.items.map(({ shard, marked }) => ({ shard, marked }))
}

function toWorkerRow({ worker, beat, released }: Row<typeof workerTable>): WorkerRow {
  return { worker, beat, released }
}

function toTriggerRow(row: Row<typeof triggerTable>): TriggerRow {
  const { trigger, datastore, column, since, reason, marked, forgiven, revision } = row
  // A trigger in a state that this version does not know stands still.
  const state = triggerStates.find((known) => known === row.state) ?? 'stopped'
  const counts = { marked, forgiven, marksMax: row.marks_max, revision }
  return { trigger, datastore, column, since, state, reason, ...counts }
}
