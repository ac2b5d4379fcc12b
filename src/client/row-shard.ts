/** The shard of a row, for programs. */
import { toStoreError } from '../base/problem.ts'
import { datastoreProblem } from '../cells/cell.ts'
import { shardCountOf as countOfChecked } from '../cells/datastore-form.ts'
import { shardOf as shardOfChecked } from '../cells/shard.ts'
import { readCell } from './rules.ts'

/** Each name without a number of shards has the same ones. */
const anyDatastore = '_'

/**
 * The shard that a row's cells are in, from 0 to 4095, in a datastore whose name says no number of shards. Throws `invalid` for
 * what is no row key.
 */
export function shardOf(rowKey: string): number {
  readCell({ rowKey, column: '_' }, 'optional')
  return shardOfChecked(anyDatastore, rowKey)
}

/**
 * The same in a datastore by its whole name, such as `trips.64`: a number below that of its shards. Throws `invalid` for what
 * names no datastore, or is no row key.
 */
export function findShard(datastore: string, rowKey: string): number {
  checkName(datastore)
  readCell({ rowKey, column: '_' }, 'optional')
  return shardOfChecked(datastore, rowKey)
}

/** How many shards a datastore has, by its whole name: a power of two up to 4096. Throws `invalid` for what names none. */
export function shardCountOf(datastore: string): number {
  checkName(datastore)
  return countOfChecked(datastore)
}

function checkName(datastore: string): void {
  const wrong = datastoreProblem(datastore)
  if (wrong !== undefined) throw toStoreError(wrong)
}
