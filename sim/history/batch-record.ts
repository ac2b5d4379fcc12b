/**
 * Batches of reads as a history: each item is an operation of its own, since every shard is read at
 * a moment of its own.
 */
import type { Outcome } from '../../src/base/problem.ts'
import type { GivenPlace, ReadOptions } from '../../src/client/options.ts'
import { pickLevel, type Names } from './cell-micros.ts'
import type { OpenOperation } from './history-log.ts'
import type { MicroOperation } from './operation.ts'
import type { Begin, CellCalls, Sink } from './record-sink.ts'
import { shardOf } from '../workloads/datastore.ts'

interface Recorder {
  readonly sink: Sink
  readonly names: Names
  readonly begin: Begin
}

/** Undefined for an item that nothing is recorded of. */
type Open = readonly (OpenOperation | undefined)[]

export function recordBatches(
  cells: CellCalls,
  { sink, names, begin }: Recorder,
): Pick<CellCalls, 'getMany' | 'shardLogs'> {
  const { isPurged = () => false, isSession = true, hasBatchSession = isSession } = sink
  const beginAll = (shards: readonly number[], options: ReadOptions): Open =>
    shards.map((shard) =>
      isPurged(shard) ? undefined : begin([], shard, pickLevel(options), hasBatchSession),
    )
  return {
    async getMany(items, options = {}) {
      const shards = items.map(({ rowKey }) => shardOf(rowKey))
      const open = beginAll(shards, options)
      const outcomes = await recordedAll(open, () => cells.getMany(items, options))
      endEach(open, outcomes, (cell, i) => {
        const item = items[i]
        if (item?.refKey !== undefined) return names.got({ ...item, refKey: item.refKey }, cell)
        return item === undefined ? [] : names.latest(item, cell)
      })
      return outcomes
    },

    async shardLogs(places, options = {}) {
      const shards = places.map(({ shard }) => shard)
      const open = beginAll(shards, options)
      const outcomes = await recordedAll(open, () => cells.shardLogs(places, options))
      // All pages share an answer's room: one that is short may have been cut, unless it says more.
      endEach(open, outcomes, (page, i) => names.page(page, { limit: 0, ...readStart(places[i]) }))
      return outcomes
    },
  }
}

function readStart(place: GivenPlace | undefined): { readonly after?: number } {
  return place?.kind === 'after' ? { after: place.addedId } : {}
}

/** Items succeed and fail one by one: a read that failed saw nothing. */
function endEach<Value>(
  open: Open,
  outcomes: readonly Outcome<Value>[],
  toMicros: (value: Value, item: number) => readonly MicroOperation[],
): void {
  for (const [i, one] of open.entries()) {
    const outcome = outcomes[i]
    if (outcome?.kind === 'ok') one?.ok(toMicros(outcome.value, i))
    else one?.fail()
  }
}

async function recordedAll<T>(open: Open, call: () => Promise<T>): Promise<T> {
  try {
    return await call()
  } catch (error) {
    for (const one of open) one?.fail()
    throw error
  }
}
