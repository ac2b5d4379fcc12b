/**
 * Writes the rows of a set's own group: who votes (`change.ts`), which buckets have gone or come (`shares-row.ts`), and
 * which sets came later (`later-sets-row.ts`). Each write is one transaction that has read all rows, so of two at once one finds what the
 * other has made.
 */
import { assert } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import type { GroupId, Position, Timestamp } from '../base/ids.ts'
import type { Outcome, ReadPoint, Submission } from '../group/replica-port.ts'
import { laterSetsKey } from './later-sets-row.ts'
import { setRowKey } from './set-group.ts'
import { sharesKey } from './shares-row.ts'

export interface SetWriterParts {
  readonly group: GroupId
  /** Names this run of the node. */
  readonly run: string
  readCurrent(group: GroupId, timeoutMs: number): Promise<ReadPoint>
  submit(submission: Submission, timeoutMs: number): Promise<Outcome>
  /** The time that an entry would get now, in microseconds. */
  stamp(): Timestamp
}

const callMs = 5_000
const lifeMicros = 60_000_000
const triesMax = 8

type Mutations = Submission['mutations']

export class SetWriter {
  readonly #parts: SetWriterParts
  #submitted = 0

  constructor(parts: SetWriterParts) {
    this.#parts = parts
  }

  /**
   * `make` reads the rows as they are applied here, and gives the changes of them; it may throw a refusal, or give undefined where
   * nothing is to be done. Resolves with whether something was written.
   */
  async commit(make: (now: Timestamp) => Mutations | undefined): Promise<boolean> {
    const { group, readCurrent, stamp } = this.#parts
    for (let tries = 0; tries < triesMax; tries++) {
      const { position } = await readCurrent(group, callMs)
      const mutations = make(stamp())
      if (mutations === undefined) return false
      const outcome = await this.#submit(mutations, position)
      if (outcome.kind === 'committed') return true
      // Another node was faster, or no majority answers now.
      if (outcome.kind !== 'conflict') break
    }
    throw new StoreError(
      'unavailable',
      'No majority of the replica set answered in time. The change may have been made all the same: look at it again.',
    )
  }

  #submit(mutations: Mutations, readPosition: Position): Promise<Outcome> {
    const { group, run, stamp, submit } = this.#parts
    this.#submitted += 1
    const sequence = this.#submitted
    assert(sequence > 0, 'LOG-3: a change without a number')
    const intent = { session: run, sequence, floor: sequence, expiresAt: stamp() + lifeMicros }
    const reads = [setRowKey, sharesKey, laterSetsKey]
    return submit(
      { group, intent, attempt: 1, readPosition, reads, ranges: [], allocations: [], mutations },
      callMs,
    )
  }
}
