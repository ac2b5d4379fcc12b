/** Takes an index over cells through its life, as a build does, without filling it. */
import { oneSet, spreadDefinitions } from '../../src/cells/index-copies.ts'
import type { NumberedIndex } from '../../src/cells/index-definition.ts'
import { markIndexBuilding, markIndexBuilt } from '../../src/cells/index-registry.ts'
import type { Clock } from '../../src/ports/clock.ts'
import type { Tables } from '../../src/tables/tables.ts'

export async function makeReady(tables: Tables, clock: Clock, index: NumberedIndex): Promise<void> {
  const deadlineMs = clock.monotonicMs() + 10_000
  await spreadDefinitions({ tables, clock, sets: oneSet, deadlineMs }, index.datastore)
  await markIndexBuilding(tables, index)
  await markIndexBuilt(tables, index)
}
