/**
 * Transactions on the group of a service: heartbeats, elections, assignments, the state of its
 * triggers. What a leader writes is bound to its term, so one that was replaced changes nothing.
 *
 * TRIG-6  With more marked cells than its threshold a trigger is stopped, and says so.
 */
import { assert } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import {
  deleteWorker,
  getMarks,
  getService,
  getTrigger,
  getWorker,
  putMarks,
  putService,
  putTrigger,
  putWorker,
  scanMarks,
  scanTriggers,
  scanWorkers,
  serviceKey,
  type ServiceRow,
  type TriggerRow,
  type WorkerRow,
} from './service-rows.ts'
import { shardCountMax } from '../cells/datastore-form.ts'
import type { CallOptions, GroupTables, Tables } from '../tables/tables.ts'
import type { GroupReader, GroupTransaction } from '../tables/types.ts'
import { encodeHoldings, type Holdings } from './assignment.ts'
import { triggersMax, workersMax } from './limits.ts'
import type { Trigger } from './definition.ts'

/** The group at one moment. */
export interface ServiceView {
  /** Absent before the first leader. */
  readonly service: ServiceRow | undefined
  readonly workers: readonly WorkerRow[]
  readonly triggers: readonly TriggerRow[]
}

const noService: ServiceRow = {
  term: 0,
  leader: '',
  generation: 0,
  assignment: { workers: [], runs: [] },
}

export class ServiceStore {
  readonly service: string
  readonly #tables: GroupTables
  readonly #call: CallOptions

  constructor(tables: Tables, service: string, timeoutMs: number, signal?: AbortSignal) {
    this.service = service
    this.#tables = tables.of(serviceKey(service))
    this.#call = { timeoutMs, ...(signal && { signal }) }
  }

  async view(level: 'current' | 'snapshot' = 'current'): Promise<ServiceView> {
    const { service } = this
    return this.#read(level, async (rows) => ({
      service: await getService(rows, service),
      workers: await scanWorkers(rows, service, workersMax),
      triggers: await scanTriggers(rows, service, triggersMax),
    }))
  }

  /** Shards with marked cells. */
  marks(trigger: string): Promise<readonly { readonly shard: number; readonly marked: number }[]> {
    const { service } = this
    return this.#read('current', (rows) => scanMarks(rows, { service, trigger }, shardCountMax))
  }

  /** Reads nothing, so it is in conflict with no other writer. */
  async beat(row: WorkerRow): Promise<void> {
    await this.#change((tx) => putWorker(tx, this.service, row))
  }

  async leave(worker: string): Promise<void> {
    await this.#change((tx) => deleteWorker(tx, this.service, worker))
  }

  /**
   * Makes `worker` the leader in the place of the one that was seen to be silent; false when there is
   * another one meanwhile, or that one has made itself heard.
   */
  elect(worker: string, seen: ServiceView): Promise<boolean> {
    const { service } = this
    const { term: seenTerm, leader } = seen.service ?? noService
    const seenBeat = seen.workers.find((one) => one.worker === leader)?.beat
    return this.#change(async (tx) => {
      const row = (await getService(tx, service)) ?? noService
      const old = leader === '' ? undefined : await getWorker(tx, service, leader)
      if (row.term !== seenTerm || (old !== undefined && old.beat !== seenBeat)) return false
      await putService(tx, service, { ...row, term: seenTerm + 1, leader: worker })
      return true
    })
  }

  /**
   * Writes the assignment that follows `from`, and takes those away who are gone; false when `from` is
   * not the newest, or its leader not the leader any more.
   */
  assign(
    from: ServiceRow,
    holdings: Holdings | undefined,
    gone: readonly string[],
  ): Promise<boolean> {
    const { service } = this
    return this.#change(async (tx) => {
      const row = (await getService(tx, service)) ?? noService
      if (row.term !== from.term || row.generation !== from.generation) return false
      for (const worker of gone) await deleteWorker(tx, service, worker)
      if (holdings === undefined) return true
      const assignment = encodeHoldings(holdings)
      await putService(tx, service, { ...row, generation: row.generation + 1, assignment })
      return true
    })
  }

  /** Writes down triggers that are new. Rejects with `already-exists` when one is for other cells. */
  async register(datastore: string, triggers: readonly Trigger[]): Promise<void> {
    const { service } = this
    await this.#change(async (tx) => {
      for (const { name: trigger, column, since, marksMax } of triggers) {
        const row = await getTrigger(tx, { service, trigger })
        if (row === undefined) {
          const counts = { marked: 0, forgiven: 0, marksMax, revision: 0 }
          const state = { state: 'running', reason: '' } as const
          await putTrigger(tx, service, { trigger, datastore, column, since, ...state, ...counts })
          continue
        }
        if (row.datastore !== datastore || row.column !== column) {
          throw new StoreError('already-exists', isOther(service, row, { datastore, column }))
        }
        if (row.marksMax !== marksMax) await putTrigger(tx, service, { ...row, marksMax })
      }
    })
  }

  /**
   * Says how many cells of a shard are marked. However often a worker says it, it counts once; over the
   * threshold the trigger is stopped.
   */
  report(trigger: string, shard: number, marked: number): Promise<TriggerRow> {
    const { service } = this
    return this.#change(async (tx) => {
      const row = await knownTrigger(tx, service, trigger)
      const before = await getMarks(tx, { service, trigger }, shard)
      if (before === marked) return row
      await putMarks(tx, { service, trigger }, shard, marked)
      const next = stoppedIfOver({ ...row, marked: row.marked + marked - before })
      assert(
        next.state !== 'running' || next.marked - next.forgiven <= next.marksMax,
        'TRIG-6: a trigger runs on with more marked cells than its threshold',
      )
      await putTrigger(tx, service, next)
      return next
    })
  }

  /** Changes a trigger's row by hand. */
  change(trigger: string, change: (row: TriggerRow) => TriggerRow): Promise<TriggerRow> {
    const { service } = this
    return this.#change(async (tx) => {
      const row = await knownTrigger(tx, service, trigger)
      const next = change(row)
      await putTrigger(tx, service, next)
      return next
    })
  }

  async #read<Value>(
    level: 'current' | 'snapshot',
    work: (rows: GroupReader) => Promise<Value>,
  ): Promise<Value> {
    return (await this.#tables.read(level, work, this.#call)).value
  }

  async #change<Value>(work: (tx: GroupTransaction) => Promise<Value>): Promise<Value> {
    return (await this.#tables.transaction(work, this.#call)).value
  }
}

async function knownTrigger(
  rows: GroupReader,
  service: string,
  trigger: string,
): Promise<TriggerRow> {
  const row = await getTrigger(rows, { service, trigger })
  if (row !== undefined) return row
  const known = (await scanTriggers(rows, service, triggersMax)).map((one) => one.trigger)
  const message =
    known.length === 0
      ? `there is no service ${service}: none of its workers has ever run on this cluster`
      : `service ${service} has no trigger ${trigger}; it has ${known.join(', ')}`
  throw new StoreError('not-found', message)
}

function stoppedIfOver(row: TriggerRow): TriggerRow {
  const { marked, forgiven, marksMax, state } = row
  // A caller that forgives more marks than there are left forgives that many.
  const left = { ...row, forgiven: Math.min(forgiven, marked) }
  if (state !== 'running' || marked - left.forgiven <= marksMax) return left
  const reason = `${marked - left.forgiven} cells are marked, more than ${marksMax}: see to what makes them fail, then resume`
  return { ...left, state: 'stopped', reason }
}

function isOther(
  service: string,
  row: TriggerRow,
  given: { readonly datastore: string; readonly column: string },
): string {
  const before = `column ${row.column} of datastore ${row.datastore}`
  const now = `column ${given.column} of datastore ${given.datastore}`
  return `trigger ${row.trigger} of service ${service} has been for ${before}, not for ${now}; give the new one another name`
}
