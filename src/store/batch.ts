/** The contents of a batch of the applier, what is durable of a group, and a row as callers get it. */
import type { Position } from '../base/ids.ts'
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
  /** Its time was over, and more is due. */
  readonly isCut: boolean
}

export interface PlainRow {
  readonly key: Uint8Array
  readonly payload: Uint8Array
}

/** How far the store durably holds a group; zeros where it has nothing, or does not know. */
export interface Durable {
  readonly position: Position
  /** The last flush of the log that named the group then. */
  readonly lastFlush: number
  /** The position of the last snapshot that was taken in. */
  readonly snapshot: Position
}
