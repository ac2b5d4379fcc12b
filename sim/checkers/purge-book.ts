/**
 * The extents of purges, and the cells that they may, or must, have removed. A purge without a
 * final acknowledgement may have removed any part of its extent.
 */

/** A cell, as far as purges tell cells apart. */
export interface PurgedCell {
  readonly shard: number
  readonly column: string
  readonly refKey: number
  readonly createdAt: string
}

export interface PurgeAsked {
  readonly shard: number
  /** Cells added before this. */
  readonly before: number
  readonly column?: string
  readonly keepsLatest: boolean
}

/** A purge under way, or done. */
export interface Purge extends PurgeAsked {
  readonly startTick: number
  /** When it was acknowledged to the end. */
  ackTick: number | undefined
}

/** The known facts of a cell, and of the others of its column. */
export interface Purgeable {
  readonly cell: PurgedCell
  readonly sinceTick: number
}

export class PurgeBook {
  readonly #purges: Purge[] = []

  begin(asked: PurgeAsked, startTick: number): Purge {
    const purge = { ...asked, startTick, ackTick: undefined }
    this.#purges.push(purge)
    return purge
  }

  /** Whether anything of the shard, and of the column if one is named, may have been purged. */
  hasAny(shard: number, column?: string): boolean {
    return this.#purges.some((purge) => {
      const isOfColumn = column === undefined || purge.column === undefined
      return purge.shard === shard && (isOfColumn || purge.column === column)
    })
  }

  /** `sent`: all ref keys of the column that clients ever sent. */
  mayBeGone({ cell }: Purgeable, sent: Iterable<number>): boolean {
    const later = [...sent].some((refKey) => refKey > cell.refKey)
    return this.#purges.some((purge) => names(purge, cell) && (later || !purge.keepsLatest))
  }

  /**
   * Whether a current read from `startTick` on must not see the cell any more: a purge of it was
   * acknowledged before, and it was there when that began, with a later one that stayed.
   */
  mustBeGone(known: Purgeable, column: readonly Purgeable[], startTick: number): boolean {
    return this.#purges.some((purge) => {
      const isDone = purge.ackTick !== undefined && purge.ackTick < startTick
      if (!isDone || !names(purge, known.cell) || known.sinceTick >= purge.startTick) return false
      return !purge.keepsLatest || column.some((other) => this.#stayed(other, known, purge))
    })
  }

  /**
   * A later cell of the column, there before the purge began, that no purge of all may have taken.
   */
  #stayed(other: Purgeable, known: Purgeable, purge: Purge): boolean {
    const isLater = other.cell.refKey > known.cell.refKey && other.sinceTick < purge.startTick
    return isLater && !this.#purges.some((one) => !one.keepsLatest && names(one, other.cell))
  }
}

function names(purge: Purge, cell: PurgedCell): boolean {
  const isOfColumn = purge.column === undefined || purge.column === cell.column
  return purge.shard === cell.shard && isOfColumn && Number(cell.createdAt) < purge.before
}
