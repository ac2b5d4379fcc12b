/** Which groups there are, of those that this node's replica set holds (LOG-8, `../peers/group-discovery.ts`). */
import { assert } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import type { GroupId } from '../base/ids.ts'
import type { DataStore } from '../store/data-store.ts'
import type { GroupDiscovery } from '../peers/group-discovery.ts'

export interface GroupListParts {
  readonly discovery: GroupDiscovery
  readonly data: DataStore
  /** Groups that may have nothing in the data store yet. */
  known(): readonly GroupId[]
  isOver(): boolean
}

export async function listGroups(
  { discovery, data, known, isOver }: GroupListParts,
  ...[prefix, after, limit, timeoutMs]: [string, GroupId | undefined, number, number]
): Promise<readonly GroupId[]> {
  assert(limit >= 1, 'LOG-8: a list of no groups is asked for')
  const isKnown = await discovery.refresh(timeoutMs)
  if (isOver()) throw new StoreError('closed', 'this node is stopping; ask another one')
  if (isKnown) return data.groups(prefix, after, limit, known())
  throw new StoreError(
    'unavailable',
    'too few nodes said in time which groups they have; try again when a majority can be reached',
  )
}
