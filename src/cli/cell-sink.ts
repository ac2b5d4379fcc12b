/** Cells of the loader on their way into a datastore, through the client library. */
import type { StoreErrorCode } from '../base/errors.ts'
import { toStoreError, type Outcome } from '../base/problem.ts'
import type { Written } from '../cells/cell.ts'
import type { Cells } from '../client/cells.ts'
import type { CellSink } from './cells-load-run.ts'
import type { PutAnswer } from './load-run.ts'

export interface SinkTarget {
  readonly column: string
  readonly refKey: number
}

/** Whether an error ends the load: one of the cluster and not of a row does; the rest rejects the row. */
export const endsLoad: Readonly<Record<StoreErrorCode, boolean>> = {
  contention: true,
  unavailable: true,
  'unknown-outcome': true,
  timeout: true,
  overloaded: true,
  closed: true,
  corrupt: true,
  forbidden: true,
  internal: true,
  expired: true,
  immutable: false,
  'not-found': false,
  'already-exists': false,
  invalid: false,
  'schema-mismatch': false,
  'too-large': false,
  'snapshot-too-old': false,
}

export function cellSink(cells: Cells, { column, refKey }: SinkTarget): CellSink {
  return {
    put: async (batch) => {
      const newCells = batch.map(({ rowKey, body }) => ({ rowKey, column, refKey, body }))
      return (await cells.putMany(newCells)).map(toPutAnswer)
    },
  }
}

function toPutAnswer(outcome: Outcome<Written>): PutAnswer {
  if (outcome.kind === 'ok') {
    const { buffered, created } = outcome.value
    if (buffered) return { kind: 'buffered' }
    return { kind: created ? 'created' : 'already-there' }
  }
  const { code, message } = outcome.problem
  if (endsLoad[code]) return { kind: 'failed', error: toStoreError(outcome.problem) }
  return { kind: 'rejected', reason: `${code}: ${message}` }
}
