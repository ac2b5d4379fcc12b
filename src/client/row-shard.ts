/** The shard of a row, for programs. */
import { shardOf as shardOfChecked } from '../cells/shard.ts'
import { readCell } from './rules.ts'

/** The shard that a row's cells are in. Throws `invalid` for what is no row key. */
export function shardOf(rowKey: string): number {
  readCell({ rowKey, column: '_' }, 'optional')
  return shardOfChecked(rowKey)
}
