/** The two sides of a recorder of cells: the calls of an application, and the history they go into. */
import type { Written } from '../../src/cells/cell.ts'
import type { Cells } from '../../src/client/cells.ts'
import type { KnownColumns } from './cell-micros.ts'
import type { HistoryLog, OpenOperation } from './history-log.ts'
import type { Level, MicroOperation } from './operation.ts'

/** The calls that an application makes. */
export type CellCalls = Pick<
  Cells,
  'put' | 'get' | 'latestAll' | 'versions' | 'shardLog' | 'getMany' | 'shardLogs' | 'purgeShard'
>

export interface Sink {
  /** The name of the session: one for each client, which remembers what it has seen. */
  readonly client: string
  readonly log: HistoryLog
  /** False where nothing is promised from one call to the next: each is a session of its own. */
  readonly isSession?: boolean | undefined
  /** False where answers to batches carry no positions. */
  readonly hasBatchSession?: boolean | undefined
  /** Whether a put that found its cell may have found what an earlier try of its own wrote. */
  readonly mayBeItsOwn?: ((written: Written) => boolean) | undefined
  /** Shards that lose cells to purges are no lists: nothing is recorded of them. */
  readonly isPurged?: (shard: number) => boolean
  /** The columns that any of the clients has put or seen; absent: those of this one alone. */
  readonly columns?: KnownColumns
}

/** An operation of the session, or of one that is nothing else. */
export type Begin = (
  micro: readonly MicroOperation[],
  shard: number,
  level: Level,
  isOfSession?: boolean,
) => OpenOperation
