/** An acceptance as it leaves its node: the table of groups fills in who holds a lease there then. */
import type { NodeId } from '../../src/base/ids.ts'
import { silentTrace } from '../../src/ports/trace.ts'
import type { RecordSource } from '../../src/replica/group-record.ts'
import { Replica } from '../../src/replica/replica.ts'
import type { Accepted } from '../../src/replication/message.ts'
import { emptyState } from '../../src/replication/state.ts'
import type { PairedLeases } from './lease-pairs.ts'
import { nowMs } from './node-state.ts'
import type { Setting } from './setting.ts'

/** Nothing is asked of it: no group is looked at. */
const noSource: RecordSource = {
  load: () => ({ state: emptyState(), records: new Map(), decisions: new Map(), isPart: false }),
  lookup: () => ({ kind: 'absent' }),
  isSettled: () => false,
}

export function leaving(
  { limits, placement }: Setting,
  node: NodeId,
  leases: PairedLeases,
  message: Accepted,
): Accepted {
  const replica = new Replica({
    node,
    incarnation: 1,
    placement,
    limits,
    trace: silentTrace,
    source: noSource,
    leases,
    fetchPatienceMs: () => 0,
  })
  return replica.leaving(message, nowMs)
}
