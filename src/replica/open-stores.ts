import { assert } from '../base/assert.ts'
import { openMeta } from '../log/log-recovery.ts'
import { LogStore } from '../log/log-store.ts'
import { SettledRows } from '../log/settled.ts'
import { checkCarried, checkVotes } from '../log/start-check.ts'
import { DataStore } from '../store/data-store.ts'
import type { DriverOptions, DriverPorts } from './driver-ports.ts'

/** Opens the stores of a node. Rejects with `corrupt` or `invalid` when they must not be used. */
export async function openStores(
  ports: DriverPorts,
  options: DriverOptions,
): Promise<{ readonly log: LogStore; readonly data: DataStore }> {
  const { clock, random, trace } = ports
  const { node, cluster, limits } = options
  const { flushBytesMax, carryAfterFlushes, leaseMs } = limits
  const own = { node, cluster, clock, random, trace, flushBytesMax, carryAfterFlushes, leaseMs }
  // The owner of the folder comes first: nothing in another node's folder is believed, nor put aside.
  const meta = await openMeta(ports.log, own, random, trace)
  await checkVotes(ports.data)
  const data = await DataStore.open(ports.data, { clock, trace, limits })
  const settled = new SettledRows(data)
  await checkCarried(ports.data, settled.carried())
  const log = await LogStore.open(ports.log, own, settled, meta)
  assert(log.identity.incarnation >= 1, 'PAX-6: a node without an incarnation')
  assert(options.placement.nodes.includes(node), 'MOVE-4: a node that holds nothing')
  return { log, data }
}
