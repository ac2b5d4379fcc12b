/** Figures of the groups that a node has moved, taken up, cleared and passed requests on for (`moved-groups.ts`), and of buckets that leave. */
import type { BucketProgress } from './bucket-mover.ts'
import type { Figure } from './metrics.ts'

/** Since the node started. */
export interface MovedCounts {
  /** Groups that left this node's replica set by a request that this node carried out. */
  readonly left: number
  /** Groups that this node has taken up from another set. */
  readonly taken: number
  /** Groups that have left the set, and whose rows this node has deleted. */
  readonly cleared: number
  /** Requests about groups that have left the set, which this node has passed on. */
  readonly passed: number
}

const help: ReadonlyMap<string, string> = new Map([
  [
    'left',
    'Groups that left the replica set of this node by a request that this node carried out.',
  ],
  ['taken', 'Groups that this node has taken up from another replica set.'],
  ['cleared', 'Groups that have left the replica set, and whose rows this node has deleted.'],
  ['passed', 'Requests that this node has passed on, since their group has left its replica set.'],
])

/** With one replica set there are none. */
export function movedFigures(
  counts: MovedCounts | undefined,
  buckets: BucketProgress | undefined,
): readonly Figure[] {
  if (counts === undefined) return []
  const { left, taken, cleared, passed } = counts
  const moves = Object.entries({ left, taken, cleared, passed }).map(([field, value]) => {
    return { name: `trilithon_groups_${field}_total`, help: help.get(field) ?? '', value }
  })
  return [...moves, ...bucketFigures(buckets)]
}

function bucketFigures(buckets: BucketProgress | undefined): readonly Figure[] {
  return [
    {
      name: 'trilithon_buckets_leaving',
      help: 'Buckets that leave the replica set of this node for another one.',
      value: buckets?.buckets ?? 0,
    },
    {
      name: 'trilithon_buckets_groups_left',
      help: 'Groups of these buckets that the last sweep of this node could not move.',
      value: buckets?.left ?? 0,
    },
  ]
}
