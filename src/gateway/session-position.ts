/**
 * The commit position in a header: `Trilithon-Position: DATASTORE/SHARD/POSITION` in answers that
 * are of one shard. Sent back with a later read of that shard, it makes even a replica that is
 * behind answer with at least that state.
 */
import type { ShardPosition } from '../cells/cell.ts'
import { refuse } from './problems.ts'

export const positionHeader = 'trilithon-position'

const pattern = /^([a-z][a-z0-9_.-]{0,63})\/(\d{1,4})\/(\d{1,15})$/

/** The positions of this datastore that the request has seen; none when it comes from another one. */
export function parsePositions(request: Request, datastore: string): ShardPosition[] {
  const text = request.headers.get(positionHeader)
  if (text === null) return []
  const found = pattern.exec(text)
  if (found === null) return refuse('the header Trilithon-Position is not one that was given out')
  const [, of, shard, position] = found
  return of === datastore ? [[Number(shard), Number(position)]] : []
}

export function positionHeaders(
  datastore: string,
  positions: readonly ShardPosition[],
): Record<string, string> {
  const [first] = positions
  if (first === undefined || positions.length > 1) return {}
  return { [positionHeader]: `${datastore}/${first[0]}/${first[1]}` }
}
