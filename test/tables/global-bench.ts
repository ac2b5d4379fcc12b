/** Nodes in memory with a relay each, and tables over them: global indexes in virtual time. */
import { createBench, settled } from '../cells/kit.ts'
import type { MemoryReplica } from '../cells/memory-replica.ts'
import { silentTrace } from '../../src/ports/trace.ts'
import type { Clock } from '../../src/ports/clock.ts'
import { worklistBounds } from '../../src/worklist/worklist-worker.ts'
import { openTables } from '../../src/tables/open.ts'
import type { Tables, TablesOptions } from '../../src/tables/tables.ts'
import { IndexRelay } from '../../src/tables/index-relay.ts'
import { LocalGroups } from '../../src/txn/local-groups.ts'
import type { DefinedSchema } from '../../schema/define.ts'
import type { Table } from '../../schema/table.ts'
import type { World } from '../../sim/world/world.ts'

export interface RelayNode {
  readonly replica: MemoryReplica
  readonly relay: IndexRelay
  readonly clock: Clock
  readonly groups: LocalGroups
}

export interface GlobalBench {
  readonly world: World
  node(name: string): RelayNode
  open<const Of extends readonly Table[]>(
    schema: DefinedSchema<Of>,
    node: RelayNode,
    options?: Partial<TablesOptions>,
  ): Tables<Of>
  run<Value>(work: Promise<Value>): Promise<Value>
  /** Until nothing is on any worklist: some time. */
  rest(): Promise<void>
}

export function globalBench(seed = 1): GlobalBench {
  const bench = createBench(seed)
  const { world, random } = bench
  return {
    world,
    node: (name) => {
      const { replica } = bench.node(name)
      const clock = bench.clockOf(`${name} relay`)
      const own = random.fork(`${name} relay`)
      const bounds = { ...worklistBounds, lookMs: 100 }
      const relay = new IndexRelay({ replica, clock, random: own, trace: silentTrace, bounds })
      return { replica, relay, clock, groups: new LocalGroups(replica) }
    },
    open: (schema, { groups, clock }, options = {}) =>
      openTables(schema, groups, { clock, random: random.fork('tables'), ...options }),
    run: (work) => settled(world, work),
    rest: () => settled(world, world.sleep(2_000_000)),
  }
}
