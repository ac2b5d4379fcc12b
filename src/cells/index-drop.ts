/**
 * Dropping an index over cells, a step at a time; any caller may take a step. A drop declares it, all
 * sets hear of it, and writers stop keeping it after the grace. Then steps clear its entries, shard by
 * shard, and the registry forgets it. The definition notes how far that came.
 *
 * IDX-9  A cleared shard of a dropped index stays clear: no earlier writer writes behind the clearing.
 */
import { assert, present } from '../base/assert.ts'
import type { GroupId } from '../base/ids.ts'
import { toStoreError, captureOutcome, type Outcome } from '../base/problem.ts'
import { schemaGraceMs } from '../indexes/limits.ts'
import { clearedRowsMax, clearedShardsAtOnceMax, dropStepMs } from './limits.ts'
import {
  findShardGroup,
  shardKey,
  shardOfGroup,
  shardsPrefix,
  writeShardRow,
} from './cell-table.ts'
import { putIndexed, scanIndexed } from './indexed-table.ts'
import type { ShardName } from './cell.ts'
import { left, spreadDefinitions, type SpreadParts } from './index-copies.ts'
import { storedName, type NumberedIndex } from './index-definition.ts'
import { markIndexDropping, noteCleared, readIndexes, type KnownIndex } from './index-registry.ts'

export const dropPhases = ['waiting', 'clearing', 'dropped'] as const
export type DropPhase = (typeof dropPhases)[number]

export interface DropProgress {
  readonly phase: DropPhase
  /** Seconds while it waits; shards while it clears. */
  readonly done: number
  readonly total: number
  /** Of the index: a later one of its name has another. */
  readonly number: number
}

export interface DropParts extends SpreadParts {
  /** Of all sets. */
  list(
    prefix: GroupId,
    after: GroupId | undefined,
    limit: number,
    timeoutMs: number,
  ): Promise<readonly GroupId[]>
}

export interface DropTask {
  readonly datastore: string
  readonly name: string
  readonly number?: number
  readonly graceMs?: number
  /** Of a datastore. */
  readonly shardCount: number
}

/** One step; rejects with `not-found` when there is no such index any more. */
export async function dropIndex(parts: DropParts, task: DropTask): Promise<DropProgress> {
  const { tables, clock } = parts
  const { datastore, graceMs = schemaGraceMs, shardCount } = task
  const { number } = await markIndexDropping(tables, task, { timeoutMs: left(parts) })
  await spreadDefinitions(parts, datastore)
  const known = await readIndexes(tables, datastore, { timeoutMs: left(parts) })
  const index = known.find(({ definition }) => definition.number === number)
  // Another caller was quicker.
  if (index === undefined) return { phase: 'dropped', done: shardCount, total: shardCount, number }
  const doneMs = Math.max(0, clock.wallMicros() - index.declaredAt) / 1000
  if (doneMs >= graceMs) return clear(parts, task, index)
  const [done, total] = [Math.floor(doneMs / 1000), Math.ceil(graceMs / 1000)]
  return { phase: 'waiting', done, total, number }
}

async function clear(
  parts: DropParts,
  { datastore, shardCount: total }: DropTask,
  { definition, state, isSpread, clearedTo }: KnownIndex,
): Promise<DropProgress> {
  const mayClear = state === 'dropping' && isSpread
  assert(mayClear, 'IDX-9: entries are cleared off when all sets know of it')
  const { number } = definition
  const now = parts.clock.monotonicMs()
  // Half of the time is for the note: a step without a note is in vain.
  const halfMs = (parts.deadlineMs - now) / 2
  const deadlineMs = now + 1.5 * halfMs
  const untilMs = now + Math.min(dropStepMs, halfMs)
  const { done } = await clearFrom({ ...parts, deadlineMs }, definition, clearedTo, untilMs)
  const options = { timeoutMs: left(parts) }
  if (done !== undefined) {
    await noteCleared(parts.tables, definition, done, options)
    return { phase: 'clearing', done, total, number }
  }
  await noteCleared(parts.tables, definition, 'all', options)
  // A set that does not hear of it now keeps a row of the dropped index until the next change.
  await spreadDefinitions(parts, datastore).catch(() => undefined)
  return { phase: 'dropped', done: total, total, number }
}

/** `done`: the first shard that may have entries left; absent when none has. */
async function clearFrom(
  parts: DropParts,
  definition: NumberedIndex,
  from: number,
  untilMs: number,
): Promise<{ readonly done?: number }> {
  const { datastore } = definition
  const prefix = shardsPrefix(datastore)
  const limit = clearedShardsAtOnceMax
  for (let next = from; ;) {
    const after = next === 0 ? undefined : findShardGroup({ datastore, shard: next - 1 })
    const names = await parts.list(prefix, after, limit, left(parts))
    const shards = names.flatMap((group) => shardOfGroup(group) ?? [])
    const clearOne = (of: ShardName): Promise<Outcome<boolean>> =>
      captureOutcome(() => clearShard(parts, definition, of, untilMs))
    // A few at a time: who drops an index must not take the room of those who write.
    const cleared = await Promise.all(shards.map(clearOne))
    const [first] = shards
    // Those beside it may have taken its room, each time, and without it nothing can be noted.
    if (first !== undefined && cleared[0]?.kind === 'problem') cleared[0] = await clearOne(first)
    for (const [nth, of] of shards.entries()) {
      const one = present(cleared[nth], 'IDX-9: each shard is cleared, or not')
      // The step notes its work first; the next step meets the same trouble, or none.
      if (one.kind === 'problem' && next === from) throw toStoreError(one.problem)
      if (one.kind === 'problem' || !one.value) return { done: of.shard }
      next = of.shard + 1
    }
    if (names.length < limit) return {}
    if (parts.clock.monotonicMs() >= untilMs) return { done: next }
  }
}

/** Whether nothing is left; in pieces, for as long as there is time. */
async function clearShard(
  parts: DropParts,
  definition: NumberedIndex,
  of: ShardName,
  untilMs: number,
): Promise<boolean> {
  const index = storedName(definition)
  for (;;) {
    const { value } = await parts.tables.transaction(
      shardKey(of),
      async (tx) => {
        const { items, cursor } = await scanIndexed(tx, of, index, { limit: clearedRowsMax })
        for (const { rowKey } of items) await putIndexed(tx, of, { index, rowKey }, undefined)
        await writeShardRow(tx, of)
        return { isClear: cursor === undefined }
      },
      // The write is validated all the same: no other node need answer first.
      { timeoutMs: left(parts), from: 'snapshot' },
    )
    if (value.isClear) return true
    if (parts.clock.monotonicMs() >= untilMs) return false
  }
}
