/**
 * The declarations of a world's index over cells, one after another, and the entries of a row in
 * each.
 */
import type { Json } from '../../src/cells/body.ts'
import { shardKey } from '../../src/cells/cell-table.ts'
import { scanIndexed } from '../../src/cells/indexed-table.ts'
import { definitionJson, storedName, type NumberedIndex } from '../../src/cells/index-definition.ts'
import type { IndexWhere } from '../../src/client/cell-indexes.ts'
import type { Tables } from '../../src/tables/tables.ts'
import type { SeededRandom } from '../world/random.ts'
import { shardOf } from './datastore.ts'

export const datastore = 'indexed'
export const name = 'by_city'
export const cities = ['Oslo', 'Rome', 'Bern'] as const
export const atMax = 9
/**
 * Every client writes to these rows. Behind them comes one more, to which only the lone writer
 * writes.
 */
export const sharedRows = 5
export const rowCount: number = sharedRows + 1

export const columns = ['BASE', 'STATUS'] as const

/** The latest bodies of a row, by column. */
export type Bodies = Readonly<Record<(typeof columns)[number], Json | undefined>>

export interface Shape {
  readonly fields: readonly (readonly [
    column: (typeof columns)[number],
    field: string,
    type: string,
  ])[]
  /** Of the shard field. */
  readonly values: readonly (string | number)[]
}

const city = ['BASE', 'city', 'string'] as const
const at = ['BASE', 'at', 'integer'] as const

/** A later index of the name differs, so entries left from the one before would show. */
export const shapes: readonly [Shape, Shape] = [
  { fields: [city, at, ['STATUS', 'done', 'boolean']], values: cities },
  { fields: [at, city], values: Array.from({ length: atMax }, (_, k) => k + 1) },
]

export function buildDefinition({ fields }: Shape): object {
  const defs = fields.map(([column_key, field, type]) => ({
    column_key,
    fields: [{ field, type }],
  }))
  return { table: name, datastore, column_defs: defs }
}

/** Whether an index that the cluster has was declared so. */
export function isOfShape(definition: NumberedIndex, shape: Shape): boolean {
  return definitionJson(definition) === JSON.stringify(buildDefinition(shape))
}

export function buildRowKey(row: number): string {
  return `00000000-0000-4000-8000-00000000000${row}`
}

export interface DrawnQuery {
  readonly where: IndexWhere
  /** Of the shard field. */
  readonly value: string | number
  fits(entry: Readonly<Record<string, unknown>>): boolean
}

/** A query that either of the shapes may have an answer to, and what its entries must be. */
export function drawQuery(random: SeededRandom, { fields }: Shape): DrawnQuery {
  const [one, least] = [random.pick(cities), random.chance(500_000) ? 1 : random.int(1, atMax)]
  return fields[0]?.[1] === 'city'
    ? {
        where: { city: one, at: { gte: least } },
        value: one,
        fits: (entry) => entry['city'] === one && Number(entry['at']) >= least,
      }
    : {
        where: { at: least, city: one },
        value: least,
        fits: (entry) => entry['at'] === least && entry['city'] === one,
      }
}

/** The entry of a row, as text; undefined when it has none. */
export function buildEntry({ fields }: Shape, rowKey: string, bodies: Bodies): string | undefined {
  const values = fields.map(([column, field, type]) => {
    const value = member(bodies[column], field)
    const isOfType = typeof value === (type === 'integer' ? 'number' : type)
    return isOfType ? value : null
  })
  return values[0] === null ? undefined : JSON.stringify([rowKey, ...values])
}

/** Of all rows of these worlds. */
export const shards: readonly number[] = [
  ...new Set(Array.from({ length: rowCount }, (_, k) => shardOf(buildRowKey(k + 1)))),
]

/** Entries of rows in indexes of the name other than `live`, read in their shards. */
export async function leftOvers(
  tables: Tables,
  live: NumberedIndex | undefined,
): Promise<readonly string[]> {
  const found: string[] = []
  for (const shard of shards) {
    const of = { datastore, shard }
    const { value } = await tables.read(shardKey(of), 'current', (rows) =>
      scanIndexed(rows, of, undefined, {}),
    )
    for (const { index, rowKey } of value.items) {
      if (live === undefined || index !== storedName(live)) found.push(`${index}: ${rowKey}`)
    }
  }
  return found
}

function member(body: Json | undefined, field: string): unknown {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return undefined
  return Object.entries(body).find(([one]) => one === field)?.[1]
}
