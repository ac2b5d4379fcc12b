/** Cells of the loader on their way into a datastore, through the client library. */
import type { StoreError, StoreErrorCode } from '../base/errors.ts'
import { toStoreError, type Outcome } from '../base/problem.ts'
import type { Written } from '../cells/cell.ts'
import type { Cells } from '../client/cells.ts'
import type { CellSink } from './cells-load-run.ts'
import type { Patience } from './load-patience.ts'
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

export function cellSink(
  cells: Pick<Cells, 'putMany'>,
  { column, refKey }: SinkTarget,
  patience: Patience,
): CellSink {
  return {
    put: async (batch) => {
      const answers: PutAnswer[] = []
      const waits = patience.begin()
      let left = batch.map(({ rowKey, body }, place) => ({
        place,
        cell: { rowKey, column, refKey, body },
      }))
      for (;;) {
        const outcomes = await cells.putMany(left.map(({ cell }) => cell))
        for (const [i, { place }] of left.entries()) answers[place] = toPutAnswer(outcomes[i])
        left = left.filter(({ place }) => answers[place]?.kind === 'failed')
        const errors = left.flatMap(({ place }) => failureIn(answers[place]))
        // One that must not be repeated ends the load, whatever becomes of the others.
        const error = errors.find(({ retry }) => retry !== 'safe') ?? errors[0]
        if (error === undefined || !(await waits.again(error))) return answers
      }
    },
  }
}

function failureIn(answer: PutAnswer | undefined): readonly StoreError[] {
  return answer?.kind === 'failed' ? [answer.error] : []
}

function toPutAnswer(outcome: Outcome<Written> | undefined): PutAnswer {
  if (outcome === undefined) {
    return { kind: 'rejected', reason: 'the answer says nothing of it' }
  }
  if (outcome.kind === 'ok') {
    const { buffered, created } = outcome.value
    if (buffered) return { kind: 'buffered' }
    return { kind: created ? 'created' : 'already-there' }
  }
  const { code, message } = outcome.problem
  if (endsLoad[code]) return { kind: 'failed', error: toStoreError(outcome.problem) }
  return { kind: 'rejected', reason: `${code}: ${message}` }
}
