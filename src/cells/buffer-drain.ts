/**
 * Moves buffered cells into their shards, once their replica set answers again; served by the nodes
 * that hold the buffer (`worklist/worklist-worker.ts`). A cell is put as any other is, so it can be tried any
 * number of times, by several nodes at once.
 *
 * BUF-1  A row leaves the buffer only when its cell is in its shard, or beside the reason it never will be.
 * BUF-2  A cell that is there already stays as it is: the buffered one is rejected, durably.
 *
 * A cell that meets a bug where it is put stays in the buffer, and holds up none behind it.
 */
import { assert } from '../base/assert.ts'
import { toStoreError, problem, type Outcome, type Problem } from '../base/problem.ts'
import type { GroupId } from '../base/ids.ts'
import { StoreError, type StoreErrorCode } from '../base/errors.ts'
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import type { Served } from '../worklist/worklist-worker.ts'
import type { GroupPort, View } from '../group/group-port.ts'
import { keyAfter } from '../txn/key-range.ts'
import type { RawTransaction } from '../txn/raw-transaction.ts'
import { runTransaction } from '../txn/run.ts'
import type { IntentSource } from '../txn/session.ts'
import {
  bufferRange,
  bufferTopic,
  decodeBuffered,
  encodeRejected,
  rejectedTopic,
  shardOfBuffer,
  underTopic,
  type BufferedCell,
  type BufferRow,
} from './buffer-rows.ts'
import { unpackedBytes } from './body-bytes.ts'
import { batchBytesMax, drainCellsMax } from './limits.ts'
import type { Written } from './cell.ts'
import type { CellService } from './operation.ts'

export interface BufferDrainParts {
  /** Of all sets, without buffers: a cell must not be moved from one buffer to the next. */
  readonly cells: CellService
  /** The groups of this node. */
  readonly groups: GroupPort
  readonly clock: Clock
  readonly random: Random
  readonly intents: IntentSource
  /** `moved` cells came to their shards, and `rejected` cells were given up. */
  onDrained(moved: number, rejected: number): void
}

/** For one look at a buffer, for putting what is found, and for taking it out. */
const stepTimeoutMs = 5_000

type Row = BufferRow<BufferedCell>

export class BufferDrain {
  readonly #parts: BufferDrainParts

  constructor(parts: BufferDrainParts) {
    this.#parts = parts
  }

  /** Moves some cells of a buffer, and all of it where some cannot be moved. Rejects when none can be moved now. */
  async serve(group: GroupId): Promise<Served> {
    let from: Uint8Array | undefined
    let bug: Problem | undefined
    let isAnyDone = false
    for (;;) {
      const { view, rows } = await this.#look(group, from)
      const last = rows.at(-1)
      if (last === undefined) {
        if (bug === undefined) return { kind: 'empty', position: view.position }
        if (isAnyDone) return { kind: 'partly', error: toStoreError(bug) }
        throw toStoreError(bug)
      }
      const { done, bug: found } = await this.#move(group, rows)
      if (found === undefined && bug === undefined) return { kind: 'again' }
      bug ??= found
      isAnyDone ||= done > 0
      from = keyAfter(last.key)
    }
  }

  /** Of these rows: how many have left the buffer, and which bug kept others. */
  async #move(
    group: GroupId,
    rows: readonly Row[],
  ): Promise<{ readonly done: number; readonly bug: Problem | undefined }> {
    const outcomes = await this.#putHome(group, rows)
    const moved: Row[] = []
    const rejected: (readonly [Row, Problem])[] = []
    let silence: Problem | undefined
    let bug: Problem | undefined
    for (const [index, row] of rows.entries()) {
      const outcome = outcomes[index] ?? noOutcome
      if (outcome.kind === 'ok') {
        assert(outcome.value.buffered !== true, 'BUF-1: a cell was moved into a buffer')
        moved.push(row)
      } else if (isFinal.has(outcome.problem.code)) rejected.push([row, outcome.problem])
      else if (outcome.problem.code === 'internal') bug = outcome.problem
      else silence = outcome.problem
    }
    if (moved.length > 0) await this.#takeOut(group, moved)
    for (const [row, reason] of rejected) await this.#reject(group, row, reason)
    if (silence !== undefined) throw toStoreError(silence)
    return { done: moved.length + rejected.length, bug }
  }

  async #look(
    group: GroupId,
    from: Uint8Array | undefined,
  ): Promise<{ readonly view: View; readonly rows: readonly Row[] }> {
    const { groups } = this.#parts
    const view = await groups.view(group, { kind: 'snapshot' }, stepTimeoutMs)
    const own = bufferRange(bufferTopic)
    const range = { ...own, gte: from ?? own.gte, limit: drainCellsMax }
    const page = await groups.scan(group, view, range, stepTimeoutMs)
    const rows = page.rows.map(({ key, value }) => ({ key, cell: decodeBuffered(key, value) }))
    return { view, rows: takeOneBatch(rows) }
  }

  async #putHome(group: GroupId, rows: readonly Row[]): Promise<readonly Outcome<Written>[]> {
    const of = shardOfBuffer(group)
    if (of === undefined)
      throw new StoreError('corrupt', 'a buffered cell is in no buffer', { group })
    const items = rows.map(({ cell: { rowKey, column, refKey, body, creator } }) => {
      return { rowKey, column, refKey, body, creator }
    })
    // Else a node on the way might take them into this very buffer, and say that they are safe.
    const operation = { kind: 'put', datastore: of.datastore, items, isDirect: true } as const
    const { answer } = await this.#parts.cells.execute(operation, { timeoutMs: stepTimeoutMs })
    // A problem of the whole batch is no reason to give up any one cell.
    if (answer.kind === 'problem') throw toStoreError(answer.problem)
    return answer.kind === 'put' ? answer.items : []
  }

  async #takeOut(group: GroupId, moved: readonly Row[]): Promise<void> {
    await this.#change(group, (tx) => {
      for (const { key } of moved) tx.delete(key)
    })
    this.#parts.onDrained(moved.length, 0)
  }

  async #reject(group: GroupId, { key, cell }: Row, reason: Problem): Promise<void> {
    assert(isFinal.has(reason.code), 'BUF-2: a cell was given up that may come yet')
    await this.#change(group, (tx) => {
      tx.delete(key)
      tx.put(underTopic(key, bufferTopic, rejectedTopic), encodeRejected({ ...cell, reason }))
    })
    this.#parts.onDrained(0, 1)
  }

  async #change(group: GroupId, change: (tx: RawTransaction) => void): Promise<void> {
    const { groups, clock, random, intents } = this.#parts
    const options = { clock, random, intents, timeoutMs: stepTimeoutMs }
    await runTransaction(groups, group, options, async (tx) => change(tx))
  }
}

/** Those that one put may hold, by what they unpack to; one alone always fits. */
function takeOneBatch(rows: readonly Row[]): readonly Row[] {
  let bytes = 0
  for (const [index, { cell }] of rows.entries()) {
    bytes += unpackedBytes(cell.body)
    if (bytes > batchBytesMax && index > 0) return rows.slice(0, index)
  }
  return rows
}

/** Reasons of the cell itself: every node would give them at any time. Any other outcome may still change. */
const isFinal: ReadonlySet<StoreErrorCode> = new Set<StoreErrorCode>([
  ...(['immutable', 'invalid', 'too-large'] as const),
])

const noOutcome: Outcome<Written> = {
  kind: 'problem',
  problem: problem('unavailable', 'the shard did not answer for this cell'),
}
