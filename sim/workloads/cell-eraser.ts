/**
 * A client that purges cells one by one, and sets and lifts holds of their rows, while others write and read them
 * and the cells of a column expire.
 */
import type { Client } from '../../src/client/client.ts'
import type { CellChecker } from '../checkers/cell-checker.ts'
import type { Coverage } from '../coverage.ts'
import type { SeededRandom } from '../world/random.ts'
import type { World } from '../world/world.ts'
import { briefColumn, type Frontier } from './cell-client.ts'
import { datastore, shardOf } from './datastore.ts'
import { toldBy } from './told.ts'

export interface CellEraserParts {
  readonly world: World
  readonly random: SeededRandom
  readonly client: Client
  readonly checker: CellChecker
  readonly coverage: Coverage
  readonly frontier: Frontier
  readonly rows: readonly string[]
  readonly operations: number
  readonly thinkMeanMicros: number
  readonly timeoutMs: number
  isEnding(): boolean
  mayBeCorrupt(): boolean
}

const columns = [briefColumn, briefColumn, 'BASE', 'STATUS'] as const
/** Parts per million. */
const half = 500_000
const liftTriesMax = 100
const restMicros = 100_000

export async function eraseCells(parts: CellEraserParts): Promise<void> {
  const { world, random, operations, thinkMeanMicros } = parts
  if (parts.rows.length === 0) return
  for (let left = operations; left > 0 && !parts.isEnding(); left--) {
    await world.sleep(1 + random.exponential(thinkMeanMicros))
    const rowKey = random.pick(parts.rows)
    if (random.chance(half)) await holdRow(parts, rowKey)
    else await purge(parts, rowKey)
  }
  await liftAll(parts)
}

/** The workers would look again and again at cells that are held and have expired. */
async function liftAll(parts: CellEraserParts): Promise<void> {
  const { client, world, timeoutMs } = parts
  for (const rowKey of parts.rows) {
    const lift = (): Promise<boolean> => client.holds.clear({ datastore, rowKey }, { timeoutMs })
    for (let left = liftTriesMax; left > 0; left--) {
      if ((await told(parts, lift, 'last lift')) !== undefined) break
      await world.sleep(restMicros)
    }
  }
}

async function holdRow(parts: CellEraserParts, rowKey: string): Promise<void> {
  const { client, random, timeoutMs } = parts
  const target = { datastore, rowKey }
  const isSet = random.chance(half)
  const call = isSet
    ? () => client.holds.set(target, 'case 1', { timeoutMs })
    : () => client.holds.clear(target, { timeoutMs })
  await told<unknown>(parts, call, isSet ? 'hold' : 'lift')
}

async function purge(parts: CellEraserParts, rowKey: string): Promise<void> {
  const { client, random, frontier, checker, coverage, timeoutMs } = parts
  const column = random.pick(columns)
  const highest = frontier.highest(rowKey, column)
  if (highest < 0) return
  const refKey = random.int(Math.max(0, highest - 2), highest)
  const name = { shard: shardOf(rowKey), row: rowKey, column, refKey }
  checker.onEraseAsked(name)
  const call = (): Promise<boolean> =>
    client.cells(datastore).purgeCell({ rowKey, column, refKey }, { timeoutMs })
  if ((await told(parts, call, 'purge')) !== true) return
  coverage.count('erase: a cell is purged')
  checker.onErased(name)
}

/** A hold is a reason to refuse a purge. */
function told<Value>(
  { coverage, mayBeCorrupt }: CellEraserParts,
  call: () => Promise<Value>,
  what: string,
): Promise<Value | undefined> {
  coverage.count(`erase: ${what}`)
  return toldBy(call, {
    ...{ codes: ['closed', 'expired', 'invalid'], mayBeCorrupt },
    onFailed: (code) => {
      coverage.count(`erase: ${what} ${code}`)
    },
  })
}
