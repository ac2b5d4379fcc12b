/**
 * A batch in parts, each for the node that is best asked for it, and the answers of the parts as one.
 * Pure. A shard's items stay together, so that what is read of it is of one moment.
 */
import { assert } from '../base/assert.ts'
import { problem, type Outcome } from '../base/problem.ts'
import { isRowKey } from '../cells/cell.ts'
import type { Answer, GetCells, GetItem, PutCells, PutItem } from '../cells/operation.ts'
import { fitting } from '../cells/shard-read.ts'
import { shardOf } from '../cells/shard.ts'
import type { Replied } from '../wire/client/client-message.ts'

export type Batch = PutCells | GetCells

/** Some items of a batch, by their places in it. */
export interface Part {
  readonly places: readonly number[]
}

/** `placeOf` says where an item is best asked for: one part for each of its answers. */
export function partsOf(
  batch: Batch,
  placeOf: (item: PutItem | GetItem) => unknown,
): readonly Part[] {
  const placeOfShard = new Map<number, unknown>()
  const parts = new Map<unknown, number[]>()
  for (const [place, item] of batch.items.entries()) {
    // What is no row key is refused by whoever gets it.
    const shard = isRowKey(item.rowKey) ? shardOf(item.rowKey) : -1
    if (!placeOfShard.has(shard)) placeOfShard.set(shard, placeOf(item))
    const where = placeOfShard.get(shard)
    const places = parts.get(where)
    if (places === undefined) parts.set(where, [place])
    else places.push(place)
  }
  return [...parts.values()].map((places) => ({ places }))
}

/** The batch of a part. */
export function batchOf<Of extends Batch>(batch: Of, { places }: Part): Of {
  return { ...batch, items: pick(batch.items, places) }
}

export function pick<Value>(values: readonly Value[], places: readonly number[]): Value[] {
  return places.flatMap((place) => {
    const value = values[place]
    return value === undefined ? [] : [value]
  })
}

/** What came of the parts, in the order of the batch; a problem when all of them met it. */
export function merged(
  kind: Batch['kind'],
  parts: readonly Part[],
  replies: readonly Replied[],
): Replied {
  assert(parts.length === replies.length, 'fan-out: each part has its reply')
  const refused = replies.every(({ answer }) => answer.kind === 'problem')
  const [first] = replies
  if (refused && first !== undefined) return first
  const positions = replies.flatMap((reply) => reply.positions)
  const leaders = replies.flatMap((reply) => reply.leaders ?? [])
  const answer: Answer =
    kind === 'put'
      ? {
          kind,
          items: inOrder(parts, replies, (reply) => (reply.kind === 'put' ? reply.items : [])),
        }
      : {
          kind,
          items: fitting(
            inOrder(parts, replies, (reply) => (reply.kind === 'get' ? reply.items : [])),
          ),
        }
  return { answer, positions, ...(leaders.length > 0 && { leaders }) }
}

function inOrder<Value>(
  parts: readonly Part[],
  replies: readonly Replied[],
  itemsOf: (answer: Replied['answer']) => readonly Outcome<Value>[],
): Outcome<Value>[] {
  const items: Outcome<Value>[] = []
  for (const [nth, { places }] of parts.entries()) {
    const answer = replies[nth]?.answer
    const found = answer === undefined ? [] : itemsOf(answer)
    const instead: Outcome<Value> = answer?.kind === 'problem' ? answer : lacking
    for (const [i, place] of places.entries()) items[place] = found[i] ?? instead
  }
  return items
}

const lacking: Outcome<never> = {
  kind: 'problem',
  problem: problem('corrupt', 'the node answered fewer items than it was asked for'),
}
