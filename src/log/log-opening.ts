/** Opening a log: the parts that a `LogStore` works with, as the disk has them. */
import type { ClusterId, NodeId } from '../base/ids.ts'
import type { Clock } from '../ports/clock.ts'
import type { Journal } from '../ports/journal.ts'
import type { Random } from '../ports/random.ts'
import type { Trace } from '../ports/trace.ts'
import { FlushLedger } from './flush-ledger.ts'
import { LogIndex } from './log-index.ts'
import { tellDamages, type LogDamage } from './log-mending.ts'
import type { LogMeta } from './log-meta.ts'
import { openMeta, readMemory, recoverFlushes, settledEnd } from './log-recovery.ts'
import { LogSettling } from './log-settling.ts'
import type { PeerMemory } from './peer-memory.ts'
import type { FlushMark, SettledPositions } from './settled.ts'

export interface LogStoreOptions {
  readonly node: NodeId
  readonly cluster: ClusterId
  readonly random: Random
  readonly clock: Clock
  readonly trace: Trace
  readonly flushBytesMax: number
  readonly carryAfterFlushes: number
  /** How long the leases last that this node gives from now on. */
  readonly leaseMs: number
  /** Of an empty folder: see `Owner`. */
  readonly seat?: number
}

/** The parts that opening a log brings together. */
export interface OpenedLog {
  readonly meta: LogMeta
  readonly index: LogIndex
  readonly rows: SettledPositions
  readonly ledger: FlushLedger
  readonly settling: LogSettling
  readonly end: FlushMark
  readonly memory: PeerMemory
  readonly damages: readonly LogDamage[]
}

/** As `LogStore.open` has it. */
export async function openLog(
  journal: Journal,
  options: LogStoreOptions,
  rows: SettledPositions,
  claimed: LogMeta | undefined,
): Promise<OpenedLog> {
  const { random, trace, carryAfterFlushes } = options
  const meta = claimed ?? (await openMeta(journal, options, random, trace))
  const mark = rows.mark()
  const from = settledEnd(journal, meta, mark)
  // LOG-19: before any mark is kept. A start that finds a mark finds this, too.
  const isLacking = meta.firstFlush > 1 || meta.seat > 0
  if (mark === undefined && isLacking) rows.keepRestored(false)
  const index = new LogIndex(rows)
  const ledger = new FlushLedger(meta.firstFlush, from.number)
  const settling = new LogSettling({ index, ledger, rows, carryAfterFlushes })
  await settling.loadCarried(options.clock)
  const end = await recoverFlushes(journal, meta, from, index, ledger, trace)
  // A mark that an unrestored data store has kept says nothing of the flushes that are gone.
  index.onFolded(rows.isRestored())
  const memory = readMemory(journal, meta, end.number)
  const damages = tellDamages(journal, trace)
  const read = { index, rows, ledger, settling }
  return { meta, ...read, end, memory, damages }
}
