/** The shard of a row, for programs. */
import { toStoreError } from '../base/problem.ts'
import { datastoreProblem } from '../cells/cell.ts'
import { shardCountOf as countOfChecked } from '../cells/datastore-form.ts'
import { shardOf as shardOfChecked } from '../cells/shard.ts'
import { readCell } from './rules.ts'

/** Each name without a number of shards has the same ones. */
const anyDatastore = '_'

/**
 * The shard of a row, from 0 to 4095, in a datastore with the usual 4,096 shards. Throws `invalid` where `rowKey` is not a UUID.
 */
export function shardOf(rowKey: string): number {
  readCell({ rowKey, column: '_' }, 'optional')
  return shardOfChecked(anyDatastore, rowKey)
}

/**
 * The shard of a row in a datastore, which is given by its whole name, such as `trips.64`. The shards of a datastore count from 0.
 * Throws `invalid` where the name is not one of a datastore, or `rowKey` is not a UUID.
 */
export function findShard(datastore: string, rowKey: string): number {
  checkName(datastore)
  readCell({ rowKey, column: '_' }, 'optional')
  return shardOfChecked(datastore, rowKey)
}

/** How many shards a datastore has, by its whole name: a power of two up to 4096. Throws `invalid` where the name is not one. */
export function shardCountOf(datastore: string): number {
  checkName(datastore)
  return countOfChecked(datastore)
}

function checkName(datastore: string): void {
  const wrong = datastoreProblem(datastore)
  if (wrong !== undefined) throw toStoreError(wrong)
}
