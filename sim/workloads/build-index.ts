/**
 * Builds an index over cells of a world that writes to a few shards only. A build of some shards fills
 * those and leaves the index unready; a world knows that its other shards have no cells, and says so.
 */
import { openCellTables } from '../../src/cells/cell-table.ts'
import { markIndexBuilt } from '../../src/cells/index-registry.ts'
import type { Client } from '../../src/client/client.ts'
import type { CellBuildOptions } from '../../src/client/options.ts'
import type { Clock } from '../../src/ports/clock.ts'
import type { Random } from '../../src/ports/random.ts'

export interface FewShards extends CellBuildOptions {
  /** All that have cells. */
  readonly shards: readonly number[]
}

export async function buildOverFew(
  client: Client,
  parts: { readonly clock: Clock; readonly random: Random },
  { datastore, name }: { readonly datastore: string; readonly name: string },
  options: FewShards,
): Promise<void> {
  const indexes = client.cells(datastore).indexes
  const known = (await indexes.list()).find(({ definition }) => definition.name === name)
  await indexes.build(name, options)
  if (known === undefined || known.state === 'ready') return
  await markIndexBuilt(openCellTables(client.groups, parts), known.definition)
  // Nothing is left to fill; all replica sets hear of it.
  await indexes.build(name, options)
}
