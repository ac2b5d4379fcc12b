/** The shard of a row, for programs. */
import { errorOf } from '../base/problem.ts'
import { shardOf as shardOfChecked } from '../cells/shard.ts'
import { cellProblem } from './rules.ts'

/** The shard that a row's cells are in. Throws `invalid` for what is no row key. */
export function shardOf(rowKey: string): number {
  const wrong = cellProblem({ rowKey, column: '_' }, 'optional')
  if (wrong !== undefined) throw errorOf(wrong)
  return shardOfChecked(rowKey)
}
