/** Cells as callers give them, made ready to be put: those that cannot be are not sent at all. */
import { errorText } from '../base/error-text.ts'
import { StoreError } from '../base/errors.ts'
import { withRefused } from './batch.ts'
import { packBody } from './body.ts'
import { nameProblem, type NewCell, type Written } from './cell.ts'
import type { PutItem } from './operation.ts'
import { problem, type Outcome, type Problem } from '../base/problem.ts'

export interface PackedCells {
  /** In order, without those that were refused. */
  readonly items: readonly PutItem[]
  /** The outcomes of all cells, from those of `items`. */
  outcomes(ofItems: readonly Outcome<Written>[]): Outcome<Written>[]
}

/** `problemOf` looks at each of them; a list of a program may have holes. */
export function packCells(
  cells: readonly NewCell[],
  problemOf: (cell: NewCell) => Problem | undefined = nameProblem,
): PackedCells {
  const isAlone = cells.length === 1
  const packed = Array.from(cells, (cell) => packedOrNot(cell, problemOf, isAlone))
  return {
    items: packed.flatMap((one) => (one.kind === 'ok' ? [one.value] : [])),
    outcomes: (ofItems) => {
      const refused = packed.map((one) => (one.kind === 'ok' ? undefined : one))
      return withRefused(refused, ofItems)
    },
  }
}

/** What one of several cells throws as it is read is its own outcome; of one alone it is thrown, with its cause. */
function packedOrNot(
  cell: NewCell,
  problemOf: (cell: NewCell) => Problem | undefined,
  isAlone: boolean,
): Outcome<PutItem> {
  try {
    return packCell(cell, problemOf(cell))
  } catch (cause) {
    const text = `a cell cannot be read: ${errorText(cause)}`
    const error =
      cause instanceof StoreError ? cause : new StoreError('invalid', text, {}, { cause })
    if (isAlone) throw error
    return { kind: 'problem', problem: problem(error.code, error.message, error.detail) }
  }
}

function packCell(cell: NewCell, wrong: Problem | undefined): Outcome<PutItem> {
  if (wrong !== undefined) return { kind: 'problem', problem: wrong }
  const packed = packBody(cell.body)
  if (packed.kind === 'problem') return packed
  const { rowKey, column, refKey } = cell
  return { kind: 'ok', value: { rowKey, column, refKey, body: packed.body.bytes } }
}
