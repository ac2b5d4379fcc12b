/** A system under comparison: three servers on loopback, each write synced by a majority of them. */
import type { Load } from '../load-process.ts'
import type { LoadResult } from '../load.ts'

export type SystemName = 'trilithon' | 'oneGroup' | 'etcd' | 'etcdGo' | 'postgres' | 'ceiling'

export interface Measured extends LoadResult {
  /** Until everything acknowledged was where it stays; the clock of `perSecond` runs on until then. */
  readonly drainSeconds: number
  readonly perSecond: number
  /** CPU seconds per 1,000 operations: all servers, draining included, and the client. */
  readonly serverCpuPer1000: number
  readonly clientCpuPer1000: number
  /** Bytes acknowledged and not yet where they stay, of all servers, each second; where that is. */
  readonly backlogBytes: readonly number[]
}

/** One system under one load in one round. */
export interface Run extends Measured {
  readonly round: number
  readonly system: SystemName
  readonly clients: number
  readonly operation: Load['operation']
}

export interface RunningSystem {
  /** In words: version, client, what a write and a read is. */
  readonly description: string
  readonly operations: readonly Load['operation'][]
  run(load: Load): Promise<Measured>
  stop(): Promise<void>
}

export interface StartOptions {
  /** Ends it: its pending requests reject then. The caller that started it stops it all the same. */
  readonly signal: AbortSignal
  /** No load has more. */
  readonly clientsMax: number
}

/** A system that a comparison can start. */
export interface System {
  readonly name: SystemName
  /** Programs that are not on this machine, and how they come there; undefined when all are. */
  missing(): Promise<string | undefined>
  /** `folder` is empty, and the caller removes it. */
  start(folder: string, options: StartOptions): Promise<RunningSystem>
}
