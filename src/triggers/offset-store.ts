/**
 * How far a trigger has come, shard by shard: a row in the shard's own group, beside its cells.
 *
 * TRIG-4  An offset is moved only by the worker that has claimed it under the highest generation that
 * any has: a worker that was displaced, and does not know yet, moves nothing. So no transaction over the
 * groups of service and shard is needed.
 */
import { assert } from '../base/assert.ts'
import type { Cell, ShardName } from '../cells/cell.ts'
import { shardKey } from '../cells/cell-table.ts'
import {
  deleteMarked,
  getMarked,
  getOffset,
  putMarked,
  putOffset,
  scanMarked,
  type MarkedCell,
  type Offset,
  type TriggerName,
} from './offset-rows.ts'
import type { CallOptions, Tables } from '../tables/tables.ts'
import type { GroupReader, GroupTransaction } from '../tables/types.ts'
import { markedPageMax } from './limits.ts'

/** The claim by which a worker holds a shard. */
export interface Claim {
  readonly shard: number
  readonly generation: number
  readonly owner: string
}

/** The result of a change, and the row as it is now. */
export type Changed =
  | { readonly kind: 'done'; readonly offset: Offset }
  /** Another worker has claimed the shard under a higher generation. */
  | { readonly kind: 'displaced'; readonly offset: Offset }
  /** The row was changed by hand: where to go on has to be looked up again. */
  | { readonly kind: 'moved'; readonly offset: Offset }

export class OffsetStore {
  readonly #tables: Tables
  readonly #datastore: string
  readonly #name: TriggerName
  readonly #call: CallOptions

  constructor(
    tables: Tables,
    datastore: string,
    name: TriggerName,
    timeoutMs: number,
    signal?: AbortSignal,
  ) {
    this.#tables = tables
    this.#datastore = datastore
    this.#name = name
    this.#call = { timeoutMs, ...(signal && { signal }) }
  }

  /** As it was a moment ago, maybe: the worker acts only on the claim that follows. */
  async peek(shard: number): Promise<Offset | undefined> {
    return this.#read(shard, 'snapshot', (rows, of) => getOffset(rows, of, this.#name))
  }

  async current(shard: number): Promise<Offset | undefined> {
    return this.#read(shard, 'current', (rows, of) => getOffset(rows, of, this.#name))
  }

  /** Makes the offset the claim's own; one that is not there yet is to begin after `start`. */
  async claim(claim: Claim, start: number): Promise<Changed> {
    const { shard, generation, owner } = claim
    return this.#change(shard, async (tx, of) => {
      const row = await getOffset(tx, of, this.#name)
      const before = row ?? { generation: 0, owner: '', after: start, marked: 0, revision: 0 }
      if (isAbove(before, claim)) return { kind: 'displaced', offset: before }
      if (row !== undefined && isOf(row, claim)) return { kind: 'done', offset: row }
      const offset = { ...before, generation, owner }
      await putOffset(tx, of, this.#name, offset)
      return { kind: 'done', offset }
    })
  }

  /** Moves the offset to `after`. */
  async save(claim: Claim, held: Offset, after: number): Promise<Changed> {
    return this.#move(claim, held, async (_tx, _of, row) => ({
      ...row,
      // An earlier try of this, whose answer was lost, may have saved more: that stays saved.
      after: Math.max(row.after, after),
    }))
  }

  /** Puts a cell aside, and moves the offset behind it: both, or neither. */
  async mark(
    claim: Claim,
    held: Offset,
    cell: Cell,
    failed: { readonly attempts: number; readonly error: string },
  ): Promise<Changed> {
    return this.#move(claim, held, async (tx, of, row) => {
      const { addedId, rowKey, column, refKey } = cell
      if (row.after >= addedId) return row
      const marked = { addedId, rowKey, column, refKey, ...failed, isRetried: false }
      await putMarked(tx, of, this.#name, marked)
      return { ...row, after: addedId, marked: row.marked + 1 }
    })
  }

  /** A marked cell was handled after all. */
  async unmark(claim: Claim, held: Offset, addedId: number): Promise<Changed> {
    return this.#move(claim, held, async (tx, of, row) => {
      if ((await getMarked(tx, of, this.#name, addedId)) === undefined) return row
      await deleteMarked(tx, of, this.#name, addedId)
      return { ...row, marked: row.marked - 1 }
    })
  }

  /** A marked cell failed again. */
  async keepMarked(claim: Claim, held: Offset, cell: MarkedCell): Promise<Changed> {
    return this.#move(claim, held, async (tx, of, row) => {
      await putMarked(tx, of, this.#name, { ...cell, isRetried: false })
      return row
    })
  }

  marked(shard: number, from = 0, limit: number = markedPageMax): Promise<readonly MarkedCell[]> {
    return this.#read(shard, 'current', (rows, of) =>
      scanMarked(rows, of, this.#name, { from, limit }),
    )
  }

  /**
   * Changes the offset by hand, whichever worker has it. The revision rises, so its owner looks again. Gives
   * undefined when `change` does, and nothing was changed.
   */
  async byHand(
    shard: number,
    change: (
      tx: GroupTransaction,
      of: ShardName,
      row: Offset | undefined,
    ) => Promise<Offset | undefined>,
  ): Promise<Offset | undefined> {
    return this.#change(shard, async (tx, of) => {
      const row = await getOffset(tx, of, this.#name)
      const next = await change(tx, of, row)
      if (next === undefined) return undefined
      const offset = { ...next, revision: (row?.revision ?? 0) + 1 }
      await putOffset(tx, of, this.#name, offset)
      return offset
    })
  }

  async #move(
    claim: Claim,
    held: Offset,
    change: (tx: GroupTransaction, of: ShardName, row: Offset) => Promise<Offset>,
  ): Promise<Changed> {
    return this.#change(claim.shard, async (tx, of) => {
      const row = await getOffset(tx, of, this.#name)
      if (row === undefined) return { kind: 'moved', offset: { ...held, after: 0 } }
      if (!isOf(row, claim)) return { kind: 'displaced', offset: row }
      if (row.revision !== held.revision) return { kind: 'moved', offset: row }
      const offset = await change(tx, of, row)
      assert(offset.generation >= row.generation, 'TRIG-4: a generation went back')
      assert(offset.after >= row.after, 'TRIG-4: its owner moved an offset back')
      await putOffset(tx, of, this.#name, offset)
      return { kind: 'done', offset }
    })
  }

  async #read<Value>(
    shard: number,
    level: 'current' | 'snapshot',
    work: (rows: GroupReader, of: ShardName) => Promise<Value>,
  ): Promise<Value> {
    const of = { datastore: this.#datastore, shard }
    return (await this.#tables.read(shardKey(of), level, (rows) => work(rows, of), this.#call))
      .value
  }

  /** Reads what the answering node has: a row that only its owner changes has seldom changed elsewhere. */
  async #change<Value>(
    shard: number,
    work: (tx: GroupTransaction, of: ShardName) => Promise<Value>,
  ): Promise<Value> {
    const of = { datastore: this.#datastore, shard }
    const options = { ...this.#call, from: 'snapshot' } as const
    return (await this.#tables.transaction(shardKey(of), (tx) => work(tx, of), options)).value
  }
}

/** A generation has one owner, so an equal one of another worker is none of this claim's. */
function isAbove(row: Offset, { generation, owner }: Claim): boolean {
  return row.generation > generation || (row.generation === generation && row.owner !== owner)
}

function isOf(row: Offset, { generation, owner }: Claim): boolean {
  return row.generation === generation && row.owner === owner
}
