/**
 * Following the logs of shards without end: one long-poll for all of them, at whatever replica answers. It
 * waits outages out, and delivers the cells of each shard in order, none twice.
 *
 * Reads are of any replica, since a place in a log only goes on. After a wait that brought nothing
 * one read is current: a replica that is cut off is then noticed, and another one asked.
 */
import { StoreError } from '../base/errors.ts'
import { checkOptions, readGiven } from '../base/arguments.ts'
import { storeTime } from '../base/given-time.ts'
import type { Cell } from '../cells/cell.ts'
import type { LogPlace } from '../cells/operation.ts'
import type { Outcome } from '../base/problem.ts'
import { toStoreError } from '../base/problem.ts'
import { allShardsOf } from '../cells/shard.ts'
import { pause } from '../time/moments.ts'
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import type { LogOptions, LogPage, TailOptions } from './options.ts'
import { tailRules } from './rules.ts'

const waitMsDefault = 20_000
const pageLimitDefault = 100
/** Before a poll that follows a failed one. */
const failurePauseMs = 500

export type { TailOptions } from './options.ts'

export interface LoggedCell extends Cell {
  readonly shard: number
}

/** The part of `Cells` that a tail needs. */
export interface LogSource {
  readonly datastore: string
  shardLogs(places: readonly LogPlace[], options: LogOptions): Promise<readonly Outcome<LogPage>[]>
}

export async function* tail(
  source: LogSource,
  ports: { readonly clock: Clock; readonly random: Random },
  options: TailOptions,
): AsyncGenerator<LoggedCell, never, undefined> {
  checkOptions('cells.tail', options, tailRules)
  const places = firstPlaces(source, options)
  const { waitMs = waitMsDefault } = options
  let read: 'current' | 'snapshot' = 'current'
  for (;;) {
    const pages = await poll(source, ports, [...places.values()], {
      limit: pageLimitDefault,
      waitMs,
      read,
      ...(options.signal && { signal: options.signal }),
    })
    read = pages.some(hasCells) ? 'snapshot' : 'current'
    for (const { shard, items, cursor: next, asOf } of pages) {
      for (const cell of items) yield { ...cell, shard }
      const place = { kind: 'after', shard, addedId: next } as const
      places.set(shard, asOf === undefined ? place : { ...place, asOf })
    }
  }
}

function hasCells({ items }: LogPage): boolean {
  return items.length > 0
}

function firstPlaces({ datastore }: LogSource, options: TailOptions): Map<number, LogPlace> {
  const { after, since, shards = allShardsOf(datastore) } = options
  // A copy by its iterator: a class of the caller's may have a `get` of its own.
  const given = after && readGiven('cells.tail: after', () => new Map([...after]))
  const from = { ...(given && { after: given }), ...(since !== undefined && { since }) }
  const places = new Map(shards.map((shard) => [shard, firstPlace(shard, from)]))
  for (const shard of given?.keys() ?? []) {
    if (places.has(shard)) continue
    const message = `cells.tail: after names shard ${shard}, and shards does not; name it there, or leave its place out`
    throw new StoreError('invalid', message)
  }
  return places
}

function firstPlace(shard: number, options: TailOptions): LogPlace {
  const addedId = options.after?.get(shard)
  if (addedId !== undefined) return { kind: 'after', shard, addedId }
  const { since } = options
  if (since === undefined) return { kind: 'after', shard, addedId: 0 }
  return { kind: 'since', shard, timestamp: storeTime(since, 'cells.tail: since') }
}

/** The pages of shards that could be read; none holds a cell after a wait in vain. */
async function poll(
  source: LogSource,
  ports: { readonly clock: Clock; readonly random: Random },
  places: readonly LogPlace[],
  options: LogOptions,
): Promise<LogPage[]> {
  const pages: LogPage[] = []
  let failure: StoreError | undefined
  try {
    for (const outcome of await source.shardLogs(places, options)) {
      if (outcome.kind === 'problem') failure ??= toStoreError(outcome.problem)
      else pages.push(outcome.value)
    }
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    failure = error
  }
  if (failure === undefined || pages.some(hasCells)) return pages
  if (failure.retry === 'never') throw failure
  await pause(ports, ports.random.int(failurePauseMs / 2, failurePauseMs))
  return pages
}
