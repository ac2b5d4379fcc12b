/** An index over cells of drivers, on a node in memory whose relay keeps it. */
import {
  checkDefinition,
  type IndexDefinition,
  type NumberedIndex,
} from '../../src/cells/index-definition.ts'
import type { CellStore } from '../../src/cells/cell-store.ts'
import { openCellTables } from '../../src/cells/cell-table.ts'
import type { CellBuildParts } from '../../src/cells/index-build.ts'
import { CellIndex } from '../../src/client/cell-indexes.ts'
import type { Clock } from '../../src/ports/clock.ts'
import { silentTrace } from '../../src/ports/trace.ts'
import { shardOf } from '../../src/client/row-shard.ts'
import { IndexRelay } from '../../src/tables/index-relay.ts'
import type { Tables } from '../../src/tables/tables.ts'
import { LocalGroups } from '../../src/txn/local-groups.ts'
import { Sessions } from '../../src/txn/session.ts'
import { createBench, datastore, put, rowKey, settled, type Bench } from './kit.ts'
import type { MemoryReplica } from './memory-replica.ts'

const given = {
  table: 'driver_index',
  datastore,
  column_defs: [
    {
      column_key: 'BASE',
      fields: [
        { field: 'driver', type: 'UUID' },
        { field: 'at', type: 'datetime' },
        { field: 'fare.total', type: 'double' },
      ],
    },
    { column_key: 'STATUS', fields: [{ field: 'done', type: 'boolean' }] },
  ],
}

export function definition(): IndexDefinition {
  const checked = checkDefinition(given)
  if (!checked.ok) throw new Error(checked.problems[0]?.message)
  return checked.definition
}

/** As the first change of its datastore declares it. */
export function declared(): NumberedIndex {
  return { ...definition(), number: 1 }
}

export interface DriverBench {
  readonly world: Bench['world']
  readonly relay: IndexRelay
  readonly newRelay: () => IndexRelay
  readonly store: CellStore
  readonly replica: MemoryReplica
  readonly tables: Tables
  readonly clock: Clock
  readonly run: <Value>(work: Promise<Value>) => Promise<Value>
  readonly parts: CellBuildParts & { readonly port: LocalGroups }
  readonly index: CellIndex
  /** Lets the relay take up what was written. */
  readonly rest: () => Promise<void>
  readonly write: (row: number, column: string, refKey: number, body: object) => Promise<unknown>
}

export function bench(): DriverBench {
  const { world, node, clockOf, random } = createBench()
  const { store, replica } = node('n1')
  const clock = clockOf('relay')
  const newRelay = (): IndexRelay =>
    new IndexRelay({ replica, clock, random: random.fork('r'), trace: silentTrace })
  const relay = newRelay()
  relay.start()
  const port = new LocalGroups(replica)
  const tables = openCellTables(port, { clock, random: random.fork('t') })
  const run = <Value>(work: Promise<Value>): Promise<Value> => settled(world, work)
  const parts = {
    ...{ tables, port, clock, definition: declared(), onProgress: () => undefined },
    ...{ random, intents: new Sessions(clock, random.fork('intents')) },
    checkKept: () => undefined,
    shards: [1, 2, 3].map((row) => shardOf(rowKey(row))),
  }
  const index = new CellIndex({ service: store, timeoutMs: 5_000 }, datastore, 'driver_index')
  return {
    ...{ world, relay, newRelay, store, replica, tables, clock, run, parts, index },
    rest: () => run(world.sleep(15_000_000)),
    write: (row: number, column: string, refKey: number, body: object) =>
      run(put(store, { rowKey: rowKey(row), column, refKey }, { ...body })),
  }
}

export const ann: string = rowKey(1001)
export const bob: string = rowKey(1002)
