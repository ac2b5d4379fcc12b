/** Cells as callers give them, made ready to be put: those that cannot be are not sent at all. */
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
  const packed = Array.from(cells, (cell) => packCell(cell, problemOf(cell)))
  return {
    items: packed.flatMap((one) => (one.kind === 'ok' ? [one.value] : [])),
    outcomes: (ofItems) => {
      const rest = ofItems.values()
      return packed.map((one) => (one.kind === 'ok' ? (rest.next().value ?? missing) : one))
    },
  }
}

const missing: Outcome<Written> = {
  kind: 'problem',
  problem: problem('corrupt', 'the node answered fewer items than it was asked for'),
}

function packCell(cell: NewCell, wrong: Problem | undefined): Outcome<PutItem> {
  if (wrong !== undefined) return { kind: 'problem', problem: wrong }
  const packed = packBody(cell.body)
  if (packed.kind === 'problem') return packed
  const { rowKey, column, refKey } = cell
  return { kind: 'ok', value: { rowKey, column, refKey, body: packed.body.bytes } }
}
