/**
 * A recorder around the real client: an application's calls and their answers become a history.
 *
 * A shard's log is a list: a put of a cell appends the cell to it, and the added id is its index. A
 * column is a register whose versions are ref keys. So one operation speaks of both, and an answer
 * about a cell must fit the log that holds it. Purges are not recorded.
 */
import { StoreError } from '../../src/base/errors.ts'
import type { Cell, NewCell, Written } from '../../src/cells/cell.ts'
import type { GetItem } from '../../src/cells/operation.ts'
import type { Client } from '../../src/client/client.ts'
import type { Page } from '../../src/base/page.ts'
import type { LogPage, ReadOptions, WriteOptions } from '../../src/client/options.ts'
import { recordBatches } from './batch-record.ts'
import { pickLevel, makeNames } from './cell-micros.ts'
import type { Asked, OpenOperation } from './history-log.ts'
import type { Begin, CellCalls, Sink } from './record-sink.ts'
import { shardOf } from '../workloads/datastore.ts'

export type { CellCalls, Sink } from './record-sink.ts'

export interface RecordedClient {
  cells(datastore: string): CellCalls
}

export function recordClient(client: Client, sink: Sink): RecordedClient {
  return { cells: (datastore) => recordCells(client.cells(datastore), datastore, sink) }
}

export function recordCells(cells: CellCalls, datastore: string, sink: Sink): CellCalls {
  const names = makeNames(datastore, sink.columns)
  const { isPurged = () => false, isSession = true, mayBeItsOwn = () => false } = sink
  const begin: Begin = (micro, shard, level, isOfSession = isSession) => {
    const client = isOfSession ? sink.client : `${sink.client}/${sink.log.length}`
    const asked: Asked = { client, micro, level, group: names.list(shard) }
    return sink.log.begin(asked)
  }
  return {
    ...recordBatches(cells, { sink, names, begin }),
    purgeShard: (shard, options) => cells.purgeShard(shard, options),

    async put(cell: NewCell, options?: WriteOptions): Promise<Written> {
      if (isPurged(shardOf(cell.rowKey))) return cells.put(cell, options)
      const asked = names.writes(cell)
      const open = begin(asked, shardOf(cell.rowKey), 'current')
      const written = await recorded(open, () => cells.put(cell, options))
      if (written.buffered || (!written.created && mayBeItsOwn(written))) {
        open.unknown()
        return written
      }
      const told = { ...cell, addedId: written.addedId }
      // A cell that is there already was found in the replica asked, which may be behind in the
      // rest: true, since a cell stays, but no current read of its shard.
      if (written.created) open.ok(names.writes(cell, written.addedId))
      else open.ok(names.found(told), { level: 'snapshot' })
      return written
    },

    async get(name: GetItem, options?: ReadOptions): Promise<Cell | undefined> {
      const { rowKey, column, refKey } = name
      if (isPurged(shardOf(rowKey))) return cells.get(name, options)
      const open = begin([], shardOf(rowKey), pickLevel(options))
      const cell = await recorded(open, () => cells.get(name, options))
      open.ok(
        refKey === undefined
          ? names.latest({ rowKey, column }, cell)
          : names.got({ rowKey, column, refKey }, cell),
      )
      return cell
    },

    async latestAll(rowKey, options = {}): Promise<Page<Cell>> {
      if (isPurged(shardOf(rowKey))) return cells.latestAll(rowKey, options)
      const open = begin([], shardOf(rowKey), pickLevel(options))
      const page = await recorded(open, () => cells.latestAll(rowKey, options))
      open.ok(names.row(rowKey, options.cursor, page))
      return page
    },

    async versions(rowKey, column, options = {}): Promise<Page<Cell, number>> {
      if (isPurged(shardOf(rowKey))) return cells.versions(rowKey, column, options)
      const open = begin([], shardOf(rowKey), pickLevel(options))
      const page = await recorded(open, () => cells.versions(rowKey, column, options))
      open.ok(names.versions({ rowKey, column }, options, page))
      return page
    },

    async shardLog(shard, options = {}): Promise<LogPage> {
      if (isPurged(shard)) return cells.shardLog(shard, options)
      const open = begin([], shard, pickLevel(options))
      const page = await recorded(open, () => cells.shardLog(shard, options))
      open.ok(names.page(page, options))
      return page
    },
  }
}

/** Records how a call ended: a rejection says whether something may have happened. */
async function recorded<T>(open: OpenOperation, call: () => Promise<T>): Promise<T> {
  try {
    return await call()
  } catch (error) {
    const isSure = error instanceof StoreError && error.retry !== 'check-first'
    if (isSure && error.code !== 'corrupt') open.fail()
    else open.unknown()
    throw error
  }
}
