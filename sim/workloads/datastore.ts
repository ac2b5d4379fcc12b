/** The datastore of the clients' cells, and the shards of its rows. */
import { shardOf as shardOfRow } from '../../src/cells/shard.ts'

export const datastore = 'simulation'

export function shardOf(rowKey: string): number {
  return shardOfRow(datastore, rowKey)
}
