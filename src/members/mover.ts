/**
 * Takes a change of the voters from phase to phase, each by a transaction in the set's own group: any node may go on
 * with it, at any time, over restarts (`change.ts`). The first voter alive does; two at once conflict, and one of them wins.
 */
import { assert } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import type { GroupId, NodeId, StoreId, Timestamp } from '../base/ids.ts'
import type { Outcome, ReadPoint, Submission } from '../group/replica-port.ts'
import type { Clock } from '../ports/clock.ts'
import type { Trace } from '../ports/trace.ts'
import * as changes from './change.ts'
import { endCopy, isForReader } from './reader-change.ts'
import { encodeRow } from './row-codec.ts'
import { setRowKey } from './set-group.ts'

export interface MoverParts {
  readonly node: NodeId
  readonly group: GroupId
  /** Names this run of the node. */
  readonly run: string
  readonly clock: Clock
  readonly trace: Trace
  /** The row as it is applied here. Throws while the group is aside. */
  row(): changes.SetRow
  /** The same as it was read last. */
  lastRow(): changes.SetRow
  readCurrent(group: GroupId, timeoutMs: number): Promise<ReadPoint>
  submit(submission: Submission, timeoutMs: number): Promise<Outcome>
  /** The time that an entry would get now, in microseconds. */
  stamp(): Timestamp
  /** Whether this node is the one to go on with a change. */
  isFirst(): boolean
  /** The newcomer at this seat of the node: its store, and whether it holds what the others do. Undefined: none is there. */
  newcomer(
    node: NodeId,
    seat: number,
  ): { readonly store: StoreId; readonly isRestored: boolean } | undefined
  /** The nodes that vote in the epoch of the row. */
  votersOf(row: changes.SetRow): readonly NodeId[]
  /** Whether this node votes in the row's epoch. */
  isVoting(): boolean
  onFailed(error: unknown): void
}

const callMs = 5_000
const lifeMicros = 60_000_000
const triesMax = 8

type Next = (row: changes.SetRow, now: Timestamp) => changes.SetRow | undefined

export class Mover {
  readonly #parts: MoverParts
  #submitted = 0
  #isAtWork = false

  constructor(parts: MoverParts) {
    this.#parts = parts
  }

  /** Whether there is something to go on with. */
  get isBusy(): boolean {
    const { change } = this.#parts.lastRow()
    return change !== undefined && changes.isUnderWay(change)
  }

  /** Goes on, where this node is the one to. Called every now and then. */
  go(): void {
    if (this.#isAtWork || !this.isBusy || !this.#parts.isFirst()) return
    if (this.#next(this.#parts.lastRow(), this.#parts.stamp()) === undefined) return
    this.#work((row, now) => this.#next(row, now))
  }

  /** Has the row name an epoch that began without an entry. Called every now and then, until it does. */
  record(make: Next): void {
    if (!this.#isAtWork) this.#work(make)
  }

  #work(make: Next): void {
    this.#isAtWork = true
    this.#commit(make)
      .catch((error: unknown) => {
        if (!(error instanceof StoreError)) this.#parts.onFailed(error)
      })
      .finally(() => (this.#isAtWork = false))
  }

  /** Undefined: the change waits. */
  #next(row: changes.SetRow, now: Timestamp): changes.SetRow | undefined {
    const { change } = row
    const { newcomer, isVoting, votersOf } = this.#parts
    if (change?.phase === 'sealing') return isVoting() ? changes.endChange(row, now) : undefined
    if (change?.phase !== 'copying') return undefined
    const { node, seat = 0, store } = change
    const come = node === undefined ? undefined : newcomer(node, seat)
    if (come === undefined) return undefined
    if (store === undefined) return changes.bindStore(row, come.store)
    if (come.store !== store || !come.isRestored) return undefined
    if (isForReader(row)) return endCopy(row, now)
    return changes.beginEpoch(row, votersOf(row), now)
  }

  /** `make` may throw a refusal, or give undefined where nothing is to be done. Resolves with the row as it is then. */
  async request(make: Next): Promise<changes.SetRow> {
    return this.#commit(make)
  }

  async #commit(make: Next): Promise<changes.SetRow> {
    const { group, readCurrent, row: readRow, stamp, trace } = this.#parts
    for (let tries = 0; tries < triesMax; tries++) {
      const { position } = await readCurrent(group, callMs)
      const row = readRow()
      const next = make(row, stamp())
      if (next === undefined) return row
      const [from, to] = [changes.versionOf(row), changes.versionOf(next)]
      assert(to >= from, 'UPG-2: the version of a set goes back')
      const outcome = await this.#submit(next, position)
      if (outcome.kind === 'committed') {
        trace.mark(to > from ? 'version_raised' : `change_${next.change?.phase ?? 'none'}`)
        return next
      }
      // Another node was faster, or no majority answers now.
      if (outcome.kind !== 'conflict') break
    }
    throw new StoreError(
      'unavailable',
      'No majority of the replica set answered in time. The change may have been made all the same: look at it again.',
    )
  }

  #submit(next: changes.SetRow, readPosition: number): Promise<Outcome> {
    const { group, run, stamp, submit } = this.#parts
    this.#submitted += 1
    const sequence = this.#submitted
    assert(sequence > 0, 'LOG-3: a change without a number')
    const intent = { session: run, sequence, floor: sequence, expiresAt: stamp() + lifeMicros }
    return submit(
      {
        ...{ group, intent, attempt: 1, readPosition, reads: [setRowKey], ranges: [] },
        ...{ allocations: [], mutations: [{ key: setRowKey, value: encodeRow(next) }] },
      },
      callMs,
    )
  }
}
