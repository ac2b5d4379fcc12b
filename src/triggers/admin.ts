/**
 * The operations that operators have on triggers: look, pause, resume, skip, replay, and see to marked cells.
 * Each is a change of rows, which the workers find at their next heartbeat; none of them need run.
 */
import {
  checkArgument,
  checkOptions,
  text,
  upperLimit,
  wholeFrom,
  wrongArgument,
  type Rule,
  type Rules,
} from '../base/arguments.ts'
import { splitIntoChunks, mapConcurrently } from '../base/concurrency.ts'
import { StoreError } from '../base/errors.ts'
import { storeTime, type GivenTime } from '../base/given-time.ts'
import { wordsFor } from '../base/words.ts'
import { unwrapOutcome } from '../base/problem.ts'
import type { Cell } from '../cells/cell.ts'
import { deleteMarked, putMarked, scanMarked, type MarkedCell, type Offset } from './offset-rows.ts'
import type { LogPlace } from '../cells/operation.ts'
import type { TriggerRow } from './service-rows.ts'
import { shardCountMax } from '../cells/datastore-form.ts'
import { isShard, isShardOf, shardWords } from '../cells/shard.ts'
import type { Cells } from '../client/cells.ts'
import type { Groups } from '../client/groups.ts'
import { listShards as listWritten } from '../client/listed-shards.ts'
import type { Tables } from '../tables/tables.ts'
import { decodeHoldings, listShards } from './assignment.ts'
import { markedPageMax } from './limits.ts'
import { OffsetStore } from './offset-store.ts'
import { ServiceStore } from './service-store.ts'

/** Shards looked at at once. */
const shardsAtOnce = 64
/** Shards asked for in one call, and such calls at once: each is answered in its own time. */
const placesAtOnce = 256
const callsAtOnce = 4

export interface AdminPorts {
  cells(datastore: string): Cells
  readonly groups: Pick<Groups, 'list'>
  /** Of services. */
  readonly tables: Tables
  /** Of the shards of a datastore, with the offsets there. */
  tablesOf(datastore: string): Tables
  readonly timeoutMs: number
  /** Gives up the calls made through it. */
  readonly signal?: AbortSignal
}

export interface WorkerStatus {
  readonly worker: string
  readonly isLeader: boolean
  readonly shards: number
  /** Rises with each heartbeat: one that stands still is of a worker that is gone. */
  readonly beat: number
}

export interface ServiceStatus {
  readonly service: string
  readonly term: number
  readonly generation: number
  readonly workers: readonly WorkerStatus[]
  /** Shards that are given from one worker to another. */
  readonly moving: number
  readonly triggers: readonly TriggerRow[]
}

/** How far a trigger has come in a shard that has cells. */
export interface ShardStatus extends Pick<Offset, 'after' | 'marked' | 'owner' | 'generation'> {
  readonly shard: number
  /** The added id of the shard's last cell. */
  readonly last: number
}

export interface MarkedOf extends MarkedCell {
  readonly shard: number
}

/** Where to begin again: after an added id of one shard, or at a time. */
export type ReplayFrom =
  | { readonly shard?: number; readonly since: GivenTime }
  | { readonly shard: number; readonly after: number }

export class TriggerAdmin {
  readonly #ports: AdminPorts
  readonly #store: ServiceStore

  constructor(ports: AdminPorts, service: string) {
    this.#ports = ports
    this.#store = new ServiceStore(ports.tables, service, ports.timeoutMs, ports.signal)
  }

  async status(): Promise<ServiceStatus> {
    const { service, workers, triggers } = await this.#store.view()
    const name = this.#store.service
    if (service === undefined && triggers.length === 0) {
      const message = `there is no service ${name}: none of its workers has ever run on this cluster`
      throw new StoreError('not-found', message)
    }
    const holdings = decodeHoldings(service?.assignment ?? { workers: [], runs: [] })
    return {
      service: name,
      term: service?.term ?? 0,
      generation: service?.generation ?? 0,
      workers: workers.map(({ worker, beat }) => ({
        worker,
        beat,
        isLeader: service?.leader === worker,
        shards: listShards(holdings, worker).size,
      })),
      moving: [...holdings.values()].filter(({ next }) => next !== undefined).length,
      triggers,
    }
  }

  /** Shards that have cells, with how far the trigger has come in each. */
  async shards(trigger: string): Promise<readonly ShardStatus[]> {
    checkTrigger('shards', trigger)
    const row = await this.#row(trigger)
    const offsets = this.#offsets(row)
    const lasts = await this.#lastIds(row.datastore)
    const found = await mapConcurrently(lasts, shardsAtOnce, async ({ shard, last }) => {
      const offset = await offsets.current(shard)
      const { after = 0, marked = 0, owner = '', generation = 0 } = offset ?? {}
      return { shard, last, after, marked, owner, generation }
    })
    return found
  }

  /** No handler is called until it is resumed. */
  async pause(trigger: string): Promise<TriggerRow> {
    checkTrigger('pause', trigger)
    return this.#store.change(trigger, (row) =>
      row.state === 'stopped' ? row : { ...row, state: 'paused', reason: 'paused by hand' },
    )
  }

  /** Runs again, also after it has stopped; the cells that are marked by now count no more. */
  async resume(trigger: string): Promise<TriggerRow> {
    checkTrigger('resume', trigger)
    return this.#store.change(trigger, (row) => ({
      ...row,
      state: 'running',
      reason: '',
      forgiven: row.marked,
    }))
  }

  /**
   * Goes back, so that cells are handled again; gives the shards in which it did. Where a trigger has
   * not come so far it stays: cells are skipped by `skip` alone.
   */
  async replay(trigger: string, from: ReplayFrom): Promise<readonly number[]> {
    checkTrigger('replay', trigger)
    checkReplay(from)
    const row = await this.#row(trigger)
    if ('shard' in from && from.shard !== undefined) checkShard(row.datastore, from.shard)
    const offsets = this.#offsets(row)
    const goals = await this.#goals(row.datastore, from)
    const moved = await mapConcurrently(goals, shardsAtOnce, async ({ shard, after }) => {
      const offset = await this.#goBack(row, offsets, shard, after)
      if (offset !== undefined) await this.#store.report(trigger, shard, offset.marked)
      return offset === undefined ? [] : [shard]
    })
    await this.#announce(trigger)
    return moved.flat()
  }

  /** Marked cells behind the place come again, so they are marked no more. */
  #goBack(
    { trigger }: TriggerRow,
    offsets: OffsetStore,
    shard: number,
    after: number,
  ): Promise<Offset | undefined> {
    const name = { service: this.#store.service, trigger }
    return offsets.byHand(shard, async (tx, of, row) => {
      if (row === undefined || row.after <= after) return undefined
      const limit = markedPageMax
      const marked = await scanMarked(tx, of, name, { from: after + 1, limit })
      if (marked.length === limit) {
        const message = `shard ${shard} has ${limit} marked cells or more after ${after}; retry those first, or begin later`
        throw new StoreError('too-large', message, { limit: 'markedPageMax', limitValue: limit })
      }
      for (const { addedId } of marked) await deleteMarked(tx, of, name, addedId)
      return { ...row, after, marked: row.marked - marked.length }
    })
  }

  /**
   * Marks the cell that comes next in a shard, without handling it, and goes on behind it: for one that
   * holds up the shard. Gives the cell; undefined when there is none.
   */
  async skip(trigger: string, shard: number): Promise<Cell | undefined> {
    checkTrigger('skip', trigger)
    const row = await this.#row(trigger)
    checkShard(row.datastore, shard)
    const offsets = this.#offsets(row)
    const name = { service: this.#store.service, trigger }
    const after = (await offsets.current(shard))?.after ?? (await this.#start(row, shard))
    const cell = await this.#findNext(row, shard, after)
    if (cell === undefined) return undefined
    const offset = await offsets.byHand(shard, async (tx, of, before) => {
      if (before !== undefined && before.after !== after) return undefined
      const { addedId, rowKey, column, refKey } = cell
      const marked = { addedId, rowKey, column, refKey, attempts: 0, error: 'skipped by hand' }
      await putMarked(tx, of, name, { ...marked, isRetried: false })
      const own = before ?? { generation: 0, owner: '', after: 0, marked: 0, revision: 0 }
      return { ...own, after: addedId, marked: own.marked + 1 }
    })
    if (offset === undefined) {
      const message = `nothing was skipped: the trigger went past that cell of shard ${shard} meanwhile; look before you skip another one`
      throw new StoreError('expired', message)
    }
    await this.#store.report(trigger, shard, offset.marked)
    await this.#announce(trigger)
    return cell
  }

  /** Where the trigger begins in a shard that it has not come to. */
  async #start({ datastore, since }: TriggerRow, shard: number): Promise<number> {
    if (since === 0) return 0
    const [place] = await this.#places(datastore, [shard], since)
    return place?.next ?? 0
  }

  async #findNext(row: TriggerRow, shard: number, from: number): Promise<Cell | undefined> {
    const { signal } = this.#ports
    const cells = this.#ports.cells(row.datastore)
    for (let after = from; ;) {
      const page = await cells.shardLog(shard, { after, ...(signal && { signal }) })
      const found = page.items.find(({ column }) => column === row.column)
      if (found !== undefined || page.items.length === 0) return found
      after = page.cursor
    }
  }

  /** Marked cells, shard by shard; at most `limit`. */
  async marked(trigger: string, limit: number = markedPageMax): Promise<readonly MarkedOf[]> {
    checkTrigger('marked', trigger)
    checkArgument('triggers.marked', 'limit', limit, upperLimit)
    const offsets = this.#offsets(await this.#row(trigger))
    const found: MarkedOf[] = []
    for (const { shard } of await this.#store.marks(trigger)) {
      for (let from = 0; found.length < limit;) {
        const wanted = Math.min(limit - found.length, markedPageMax)
        const cells = await offsets.marked(shard, from, wanted)
        found.push(...cells.map((cell) => ({ shard, ...cell })))
        if (cells.length < wanted) break
        from = (cells.at(-1)?.addedId ?? from) + 1
      }
    }
    return found
  }

  /** Has marked cells handled again: all of them, those of a shard, or one, which must be there. Gives how many. */
  async retry(
    trigger: string,
    which: { readonly shard?: number; readonly addedId?: number } = {},
  ): Promise<number> {
    checkTrigger('retry', trigger)
    checkOptions('triggers.retry', which, retryRules)
    const row = await this.#row(trigger)
    const offsets = this.#offsets(row)
    const name = { service: this.#store.service, trigger }
    let count = 0
    for (const { shard } of await this.#store.marks(trigger)) {
      if (which.shard !== undefined && which.shard !== shard) continue
      let found = 0
      await offsets.byHand(shard, async (tx, of, before) => {
        const marked = await scanMarked(tx, of, name, { limit: markedPageMax })
        const chosen = marked.filter((one) => (which.addedId ?? one.addedId) === one.addedId)
        found = chosen.length
        for (const cell of chosen) await putMarked(tx, of, name, { ...cell, isRetried: true })
        return found === 0 ? undefined : before
      })
      count += found
    }
    if (count === 0 && which.addedId !== undefined) {
      const where = which.shard === undefined ? '' : ` in shard ${which.shard}`
      const message = `trigger ${trigger} has no marked cell of added id ${which.addedId}${where}`
      throw new StoreError('not-found', message)
    }
    if (count > 0) await this.#announce(trigger)
    return count
  }

  async #row(trigger: string): Promise<TriggerRow> {
    const { triggers } = await this.#store.view()
    const row = triggers.find((one) => one.trigger === trigger)
    // The words for one that is not there are those of a change of it.
    return row ?? this.#store.change(trigger, (known) => known)
  }

  /** Tells the workers that there is something to be looked up anew. */
  async #announce(trigger: string): Promise<void> {
    await this.#store.change(trigger, (row) => ({ ...row, revision: row.revision + 1 }))
  }

  #offsets({ datastore, trigger }: TriggerRow): OffsetStore {
    const { timeoutMs, signal } = this.#ports
    const tables = this.#ports.tablesOf(datastore)
    const { service } = this.#store
    return new OffsetStore(tables, datastore, { service, trigger }, timeoutMs, signal)
  }

  async #goals(
    datastore: string,
    from: ReplayFrom,
  ): Promise<readonly { readonly shard: number; readonly after: number }[]> {
    if ('after' in from && from.after !== undefined)
      return [{ shard: from.shard, after: from.after }]
    const { shard } = from
    const isOfAll = shard === undefined
    const shards = isOfAll ? (await this.#lastIds(datastore)).map((one) => one.shard) : [shard]
    if (shards.length === 0) return []
    const since = 'since' in from ? from.since : undefined
    const time = storeTime(since, 'triggers.replay: since')
    const lasts = await this.#places(datastore, shards, time)
    return lasts.map(({ shard, next }) => ({ shard, after: next }))
  }

  /**
   * The last added ids of shards that have cells. A shard without a commit has none, and no trigger has come to one there:
   * the place of a trigger in a shard is a row of it.
   */
  async #lastIds(
    datastore: string,
  ): Promise<readonly { readonly shard: number; readonly last: number }[]> {
    const { groups, timeoutMs, signal } = this.#ports
    const shards = await listWritten(groups, datastore, timeoutMs, { ...(signal && { signal }) })
    const places = await this.#places(datastore, shards, Number.MAX_SAFE_INTEGER)
    return places.flatMap(({ shard, next }) => (next > 0 ? [{ shard, last: next }] : []))
  }

  /** The added id before the first cell of a time, in each shard. */
  async #places(
    datastore: string,
    shards: readonly number[],
    timestamp: number,
  ): Promise<readonly { readonly shard: number; readonly next: number }[]> {
    const { timeoutMs, signal } = this.#ports
    const cells = this.#ports.cells(datastore)
    const places = shards.map((shard): LogPlace => ({ kind: 'since', shard, timestamp }))
    const outcomes = await mapConcurrently(
      splitIntoChunks(places, placesAtOnce),
      callsAtOnce,
      (some) => cells.shardLogs(some, { limit: 1, timeoutMs, ...(signal && { signal }) }),
    )
    return outcomes
      .flat()
      .map(unwrapOutcome)
      .map(({ shard, items: [first], cursor: next }) => ({
        shard,
        next: first === undefined ? next : first.addedId - 1,
      }))
  }
}

const shardRule: Rule = {
  accepts: isShard,
  words: `a shard, numbered from 0 to ${shardCountMax - 1}`,
}
const retryRules: Rules<{ shard: number; addedId: number }> = {
  shard: shardRule,
  addedId: wholeFrom(1),
}
const replayRules: Rules<{ shard: number; since: GivenTime; after: number }> = {
  shard: shardRule,
  since: { accepts: () => true, words: 'a Date, or microseconds since 1970' },
  after: wholeFrom(0),
}

function checkTrigger(verb: string, trigger: unknown): void {
  checkArgument(`triggers.${verb}`, 'the name of a trigger', trigger, text)
}

/** Throws `invalid` for a place that is none, or is two. */
function checkReplay(from: ReplayFrom): void {
  const call = 'triggers.replay'
  const given: unknown = from
  const words = '{ since }, { shard, since } or { shard, after }'
  if (given === undefined) throw wrongArgument(call, 'the place', given, words)
  checkOptions(call, from, replayRules)
  const { shard, since, after }: { shard?: number; since?: unknown; after?: unknown } = from
  if (since !== undefined) storeTime(since, `${call}: since`)
  const isOne = (since === undefined) !== (after === undefined)
  if (isOne && (after === undefined || shard !== undefined)) return
  throw new StoreError('invalid', `${call}: a place is ${words}`)
}

function checkShard(datastore: string, shard: number): void {
  if (isShardOf(datastore, shard)) return
  const message = `there is no shard ${wordsFor(shard)}; ${shardWords(datastore)}`
  throw new StoreError('invalid', message)
}
