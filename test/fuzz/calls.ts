/** Calls of the client library as programs in JavaScript make them: with anything for any argument. */
import type { ClientCells } from '../../src/client/cells.ts'
import type { SeededRandom } from '../../sim/random.ts'
import { drawValue } from './values.ts'

export interface DrawnCall {
  readonly method: string
  readonly given: readonly unknown[]
}

const rowKey = '22222222-2222-4222-8222-222222222221'
const whole: Readonly<Record<string, readonly unknown[]>> = {
  put: [{ rowKey, column: 'B', refKey: 1, body: { k: 'a' } }, { timeoutMs: 1_000 }],
  get: [
    { rowKey, column: 'B', refKey: 1 },
    { read: 'current', timeoutMs: 1_000 },
  ],
  latest: [rowKey, 'B', { read: 'any', timeoutMs: 1_000 }],
  latestAll: [rowKey, { from: 'A', limit: 10, timeoutMs: 1_000 }],
  versions: [rowKey, 'B', { from: 1, limit: 10, reverse: true, timeoutMs: 1_000 }],
  batchPut: [[{ rowKey, column: 'B', refKey: 2, body: 1 }], { timeoutMs: 1_000 }],
  batchGet: [[{ rowKey, column: 'B' }], { read: 'current', timeoutMs: 1_000 }],
  shardLog: [1, { after: 0, limit: 10, timeoutMs: 1_000 }],
  batchShardLog: [[{ kind: 'after', shard: 1, addedId: 0 }], { limit: 10, timeoutMs: 1_000 }],
  purgeShard: [1, { before: 1, column: 'B', limit: 10, timeoutMs: 1_000 }],
}

function changed(random: SeededRandom, value: unknown): unknown {
  if (random.chance(300_000)) return drawValue(random, 2)
  if (Array.isArray(value)) {
    const list: readonly unknown[] = value
    return list.map((one) => (random.chance(500_000) ? changed(random, one) : one))
  }
  if (typeof value !== 'object' || value === null) return drawValue(random, 2)
  const entries = Object.entries(value).map(([name, one]) => {
    return [name, random.chance(300_000) ? changed(random, one) : one] as const
  })
  return Object.fromEntries(entries)
}

export function drawCall(random: SeededRandom): DrawnCall {
  const method = random.pick(Object.keys(whole))
  const known = whole[method] ?? []
  const given = known.map((one) => (random.chance(600_000) ? changed(random, one) : one))
  return { method, given: given.slice(0, random.int(0, known.length + 2)) }
}

/** What becomes of it; throws what is thrown before there is a promise, too. */
export async function make(cells: ClientCells, { method, given }: DrawnCall): Promise<unknown> {
  const called: unknown = Reflect.get(cells, method)
  if (typeof called !== 'function') throw new Error(`${method} is no method`)
  return Reflect.apply(called, cells, given)
}
