/**
 * Reads that a client makes beside the plain ones: pages one after another, and several at once.
 */
import type { CellName } from '../../src/cells/cell.ts'
import type { Asked } from './cell-reads.ts'
import type { CellChecker } from '../checkers/cell-checker.ts'
import { findHotShard as shardOf } from './hot-rows.ts'
import type { SeededRandom } from '../world/random.ts'
import type { WorkloadOptions } from '../swarm.ts'

const columns = ['BASE', 'STATUS'] as const
const pageLimits = [1, 2, 3, 20] as const
const half = 500_000

export interface ReadDrawParts {
  readonly random: SeededRandom
  readonly options: WorkloadOptions
  readonly rows: readonly string[]
  readonly checker: CellChecker
}

export function drawRead({ random, rows, options, checker }: ReadDrawParts): Asked {
  const isCurrent = !random.chance(options.anyReads)
  const row = random.pick(rows)
  const column = random.pick(columns)
  const limit = random.pick(pageLimits)
  switch (random.int(0, 6)) {
    case 0:
      return { kind: 'row', isCurrent, row, limit: 1 }
    case 1: {
      const reverse = random.chance(half)
      const from = reverse ? Number.MAX_SAFE_INTEGER : 0
      return { kind: 'versions', isCurrent, row, column, from, limit, reverse, isWhole: true }
    }
    case 2: {
      const after = nearEnd(random, checker.highestAddedId(shardOf(row)))
      return { kind: 'log', isCurrent, shard: shardOf(row), after, limit, isWhole: true }
    }
    case 3:
      return { kind: 'gets', isCurrent, rows: some(random, rows), column }
    case 4:
    case 5: {
      const shard = shardOf(row)
      const time = drawTime(random, checker, shard)
      return { kind: 'since', isCurrent, shard, time, limit }
    }
    default: {
      const shards = [...new Set(some(random, rows).map(shardOf))]
      const after = shards.map((shard) => nearEnd(random, checker.highestAddedId(shard)))
      return { kind: 'logs', isCurrent, shards, after, limit }
    }
  }
}

/** A look from any replica at a cell that has just been written, in whichever way shows it. */
export function drawReadBack(
  { random, rows, checker }: ReadDrawParts,
  { rowKey: row, column, refKey }: CellName,
): Asked {
  const isCurrent = false
  // The written row comes last: the session must remember the position of each item, not of the
  // first alone.
  const asked = [...some(random, rows).filter((one) => one !== row), row]
  switch (random.int(0, 6)) {
    case 0:
      return { kind: 'get', isCurrent, row, column, refKey }
    case 1:
      return { kind: 'latest', isCurrent, row, column }
    case 2:
      return { kind: 'row', isCurrent, row }
    case 3:
      return { kind: 'gets', isCurrent, rows: asked, column }
    case 4: {
      const shards = [...new Set(asked.map(shardOf).toReversed())].toReversed()
      const after = shards.map((shard) => nearEnd(random, checker.highestAddedId(shard)))
      return { kind: 'logs', isCurrent, shards, after, limit: 20 }
    }
    default: {
      const range = { from: random.int(0, refKey), limit: 20, reverse: false }
      return { kind: 'versions', isCurrent, row, column, ...range }
    }
  }
}

/** A moment beside that of a cell, or its own; of all times when no cell is known. */
function drawTime(random: SeededRandom, checker: CellChecker, shard: number): number {
  const highest = checker.highestAddedId(shard)
  const after = checker.timeAfter(shard, random.int(Math.max(0, highest - 12), highest)) ?? 0
  return Math.max(0, after + random.pick([-2, -1, -1, 0, 0, 1]))
}

function some(random: SeededRandom, rows: readonly string[]): readonly string[] {
  return random.shuffle(rows).slice(0, random.int(1, 4))
}

function nearEnd(random: SeededRandom, highest: number): number {
  return random.int(Math.max(0, highest - 8), highest)
}
