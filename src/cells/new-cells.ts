/** Cells as callers give them, made ready to be put: those that cannot be are not sent at all. */
import { withRefused } from './batch.ts'
import { toStoreError, outcomeNow, type Outcome } from '../base/problem.ts'
import { packBody } from './body.ts'
import { nameProblem, type NewCell, type Written } from './cell.ts'
import type { PutItem } from './operation.ts'

export interface PackedCells {
  /** In order, without those that were refused. */
  readonly items: readonly PutItem[]
  /** The outcomes of all cells, from those of `items`. */
  outcomes(ofItems: readonly Outcome<Written>[]): Outcome<Written>[]
}

/** A refused cell is its own outcome, whatever `read` throws of it. A list of a program may have holes. */
export function packCells(
  cells: readonly NewCell[],
  read: (cell: NewCell) => NewCell = named,
): PackedCells {
  const packed = Array.from(cells, (cell) => outcomeNow(() => packCell(read(cell))))
  return {
    items: packed.flatMap((one) => (one.kind === 'ok' ? [one.value] : [])),
    outcomes: (ofItems) => {
      const refused = packed.map((one) => (one.kind === 'ok' ? undefined : one))
      return withRefused(refused, ofItems)
    },
  }
}

/** Throws why it cannot be put. */
export function packCell({ rowKey, column, refKey, body }: NewCell): PutItem {
  const packed = packBody(body)
  if (packed.kind === 'problem') throw toStoreError(packed.problem)
  return { rowKey, column, refKey, body: packed.body.bytes }
}

function named(cell: NewCell): NewCell {
  const wrong = nameProblem(cell)
  if (wrong !== undefined) throw toStoreError(wrong)
  return cell
}
