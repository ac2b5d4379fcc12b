/** The contents of a batch of the applier, and a row as callers get it. */
import type { Put } from '../ports/storage.ts'
import type { TakenGroup } from './overlay.ts'

/** The contents of one batch of the applier. `taken`: out of the overlay. */
export interface Batch {
  readonly taken: readonly TakenGroup[]
  /** These, and those that snapshots take on. */
  readonly groups: readonly TakenGroup[]
  readonly puts: readonly Put[]
  /** Versions that it moves to history. */
  readonly superseded: number
  /** Its time was over, and there is more. */
  readonly isCut: boolean
}

export interface PlainRow {
  readonly key: Uint8Array
  readonly payload: Uint8Array
}
