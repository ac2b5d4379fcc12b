import { assert } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import { openMeta } from '../log/log-recovery.ts'
import { LogStore } from '../log/log-store.ts'
import { SettledRows } from '../log/settled.ts'
import { checkCarried, checkVotes } from '../log/start-check.ts'
import { DataStore } from '../store/data-store.ts'
import { EraseBook } from '../store/erase-book.ts'
import type { DriverOptions, DriverPorts } from './driver-ports.ts'

export interface OpenStores {
  readonly log: LogStore
  readonly data: DataStore
  readonly settled: SettledRows
  readonly book: EraseBook
}

/** Opens the stores of a node. Rejects with `corrupt` or `invalid` when they must not be used. */
export async function openStores(ports: DriverPorts, options: DriverOptions): Promise<OpenStores> {
  const { clock, random, trace } = ports
  const { node, cluster, limits, seat } = options
  const { flushBytesMax, carryAfterFlushes, leaseMs } = limits
  const common = { node, cluster, clock, random, trace, flushBytesMax, carryAfterFlushes, leaseMs }
  const own = seat === undefined ? common : { ...common, seat }
  // The owner of the folder comes first: nothing in another node's folder is believed, nor put aside.
  const meta = await openMeta(ports.log, own, random, trace)
  await checkVotes(ports.data)
  const data = await DataStore.open(ports.data, { clock, trace, limits })
  const settled = new SettledRows(data)
  await checkCarried(ports.data, settled.carried())
  const log = await LogStore.open(ports.log, own, settled, meta)
  const { placement } = options
  const { voters = placement.nodesOf(placement.setOfNode(node)) } = log.memory.epochs
  const isRestored = settled.isRestored()
  assert(
    isRestored || log.firstFlush > 1 || log.identity.seat > 0,
    'LOG-19: the log is whole, and there is something to restore',
  )
  // A node that joins a set of one has another node to copy from.
  if (!isRestored && voters.every((one) => one === node)) throw lostAlone()
  assert(log.identity.incarnation >= 1, 'PAX-6: a node without an incarnation')
  assert(options.placement.nodes.includes(node), 'MOVE-4: a node that holds nothing')
  return { log, data, settled, book: await EraseBook.open(data) }
}

function lostAlone(): StoreError {
  return new StoreError(
    'corrupt',
    'The folder "data" is lost, and the log has given up a part of what was in it. No other node holds it: this one is ' +
      'alone in its replica set. Put the folder "data" back that was there last: a start that found it damaged has moved ' +
      'it to "data.damaged". Or restore the whole data folder from a backup.',
    { store: 'log' },
  )
}
