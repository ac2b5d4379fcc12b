/** Drawn changes of rows of drawn schemas, compared with plain maps after each of them. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { StoreError } from '../../src/base/errors.ts'
import { compareIndexes } from '../../src/tables/check-indexes.ts'
import { compileSchema, type CompiledTable } from '../../src/tables/compile.ts'
import { groupContext, type GroupContext } from '../../src/tables/group-context.ts'
import { RowReads } from '../../src/tables/read-rows.ts'
import { RowWrites } from '../../src/tables/write-rows.ts'
import { runRead, runTransaction } from '../../src/txn/run.ts'
import { Sessions } from '../../src/txn/session.ts'
import type { Property, Schema, Table } from '../../schema/model.ts'
import { firstVersion } from '../../schema/version.ts'
import { schemas } from '../schema/arbitrary.ts'
import { MemoryPort } from '../txn/memory-port.ts'
import { TestClock, testRandom } from '../txn/test-ports.ts'
import { ModelGroup, textOf, type ModelRow } from './model.ts'
import { compareValues, keyValueByKind, valueByKind } from './values.ts'

type Pick = <Value>(values: fc.Arbitrary<Value>) => Value

/** One group of a schema's first root: its tables, and rows for them. */
class Drawn {
  readonly tables: readonly Table[]
  readonly context: GroupContext
  readonly #pick: Pick
  /** Few values of each kind, so that keys meet. */
  readonly #pools = new Map<string, readonly unknown[]>()

  constructor(schema: Schema, pick: Pick) {
    this.#pick = pick
    const compiled = compileSchema(firstVersion(schema))
    const roots = schema.tables.filter(({ kind }) => kind === 'root')
    const root = pick(fc.constantFrom(...roots))
    this.tables = schema.tables.filter(
      (one) => (one.kind === 'root' ? one : { name: one.root }).name === root.name,
    )
    const table = compiled.tables.get(root.name)
    if (table === undefined) throw new Error('a root is a table')
    const key = table.key.map(({ name, kind }) => [name, this.#pooled(kind)])
    this.context = groupContext(compiled, table, Object.fromEntries(key))
  }

  compiled({ name }: Table): CompiledTable {
    const table = this.context.schema.tables.get(name)
    if (table === undefined) throw new Error('a table is compiled')
    return table
  }

  #pooled(kind: CompiledTable['key'][number]['kind']): unknown {
    const pool = this.#pools.get(kind) ?? fc.sample(keyValueByKind(kind), { numRuns: 3, seed: 7 })
    this.#pools.set(kind, pool)
    return this.#pick(fc.constantFrom(...pool))
  }

  key(table: Table): ModelRow {
    const { key, groupPartCount } = this.compiled(table)
    const parts = key.map(({ name, kind }, place) => {
      if (place < groupPartCount) return [name, this.context.values[place]]
      return [
        name,
        kind === 'sequence' ? this.#pick(fc.integer({ min: 1, max: 3 })) : this.#pooled(kind),
      ]
    })
    return Object.fromEntries(parts)
  }

  /** All but the sequence. */
  rest(properties: readonly Property[], left: readonly string[]): ModelRow {
    const values = properties.flatMap((property): readonly (readonly [string, unknown])[] => {
      const { name, presence, type } = property
      if (left.includes(name) || type.kind === 'sequence') return []
      if (presence === 'optional' && this.#pick(fc.boolean())) return []
      if (presence !== 'repeated') return [[name, this.#value(property)]]
      const count = this.#pick(fc.nat({ max: 3 }))
      return [[name, Array.from({ length: count }, () => this.#value(property))]]
    })
    return Object.fromEntries(values)
  }

  #value({ type }: Property): unknown {
    if (type.kind === 'message') return this.rest(type.properties, [])
    if (type.kind === 'json') return this.#pick(valueByKind('json'))
    return this.#pick(fc.boolean()) ? this.#pooled(type.kind) : this.#pick(valueByKind(type.kind))
  }
}

class Replay {
  readonly #drawn: Drawn
  readonly #model: ModelGroup
  readonly #port = new MemoryPort()
  readonly #clock = new TestClock()
  readonly #random = testRandom()
  readonly #intents = new Sessions(this.#clock, this.#random)
  readonly #counts = new Map<string, number>()

  constructor(schema: Schema, drawn: Drawn) {
    this.#drawn = drawn
    this.#model = new ModelGroup(schema)
  }

  async change(table: Table, kind: 'insert' | 'put' | 'update' | 'delete'): Promise<void> {
    const drawn = this.#drawn
    const compiled = drawn.compiled(table)
    const key = drawn.key(table)
    const sequence = compiled.sequence?.name ?? ''
    const names = table.key.parts.map(({ property }) => property)
    const rest = drawn.rest(table.properties, names)
    const before = this.#model.get(table, key)
    const insert = { ...key, ...rest }
    if (kind === 'insert') Reflect.deleteProperty(insert, sequence)
    const next = (this.#counts.get(table.name) ?? 0) + 1
    const number = kind === 'insert' ? next : (before?.[sequence] ?? key[sequence])
    const after = {
      ...(kind === 'update' ? before : key),
      ...rest,
      ...(sequence !== '' && { [sequence]: number }),
    }
    const isThere =
      kind === 'insert' ? this.#model.get(table, after) !== undefined : before !== undefined
    const needsRow = kind === 'update' || (kind === 'put' && sequence !== '')
    const expected =
      kind === 'delete'
        ? undefined
        : kind === 'insert' && isThere
          ? 'already-exists'
          : needsRow && !isThere
            ? 'not-found'
            : this.#model.isTwice(table, after)
              ? 'already-exists'
              : undefined
    const code = await this.#run(async (writes) => {
      if (kind === 'insert') await writes.insert(compiled, insert)
      else if (kind === 'put')
        await writes.put(
          compiled,
          compiled.sequence?.isInKey === false ? { ...key, ...rest } : { ...key, ...rest },
        )
      else if (kind === 'update') await writes.update(compiled, key, rest)
      else await writes.delete(compiled, key)
    })
    expect(code).toBe(expected)
    if (code !== undefined) return
    if (kind === 'delete') this.#model.delete(table, key)
    else this.#model.set(table, after)
    if (kind === 'insert') this.#counts.set(table.name, next)
  }

  async #run(run: (writes: RowWrites) => Promise<void>): Promise<string | undefined> {
    const ports = { clock: this.#clock, random: this.#random, intents: this.#intents }
    const { context } = this.#drawn
    try {
      await runTransaction(this.#port, context.group, ports, (raw) =>
        run(new RowWrites(raw, context)),
      )
      return undefined
    } catch (error) {
      if (error instanceof StoreError) return error.code
      throw error
    }
  }

  /** Every table, index and tree, and a range of each key, is what the model says. */
  async compare(pick: Pick): Promise<void> {
    const { context, tables } = this.#drawn
    const from = { kind: 'current' } as const
    await runRead(this.#port, context.group, from, { clock: this.#clock }, async (reads) => {
      const rows = new RowReads(reads, context)
      for (const table of tables) {
        await this.#compareTable(rows, table)
        await this.#compareRange(rows, table, pick)
        await this.#compareIndexes(rows, table)
      }
      expect((await compareIndexes(reads, context)).faults).toEqual([])
    })
  }

  async #compareTable(rows: RowReads, table: Table): Promise<void> {
    const compiled = this.#drawn.compiled(table)
    const expected = this.#model.rows(table)
    const found: unknown[] = []
    let cursor: string | undefined
    do {
      const page = await rows.scan(
        compiled,
        {},
        { limit: 2, ...(cursor !== undefined && { cursor }) },
      )
      found.push(...page.items)
      cursor = page.cursor
    } while (cursor !== undefined)
    expect(found).toEqual(expected)
    const { items } = await rows.scan(compiled, {}, { reverse: true })
    expect(items).toEqual(expected.toReversed())
    const key = this.#drawn.key(table)
    expect(await rows.getMany(compiled, [key])).toEqual([this.#model.get(table, key)])
    const tree = await rows.scanTree(compiled, key, {})
    expect(tree.items.length).toBe(this.#model.below(table, key))
  }

  async #compareRange(rows: RowReads, table: Table, pick: Pick): Promise<void> {
    const { key, groupPartCount } = this.#drawn.compiled(table)
    const own = key.slice(groupPartCount)
    if (own.length === 0) return
    const named = this.#drawn.key(table)
    const last = groupPartCount + pick(fc.nat({ max: own.length - 1 }))
    const [low, high] = [
      pick(fc.constantFrom('gte', 'gt', '')),
      pick(fc.constantFrom('lte', 'lt', '')),
    ]
    const other = this.#drawn.key(table)
    const part = key[last]?.name ?? ''
    const bounds = {
      ...(low !== '' && { [low]: named[part] }),
      ...(high !== '' && { [high]: other[part] }),
    }
    const before = key.slice(groupPartCount, last).map(({ name }) => name)
    const query = Object.fromEntries([...before.map((name) => [name, named[name]]), [part, bounds]])
    const isLow = (value: unknown): boolean => {
      const order = compareValues(value, named[part])
      return low === '' || order > 0 || (low === 'gte' && order === 0)
    }
    const isHigh = (value: unknown): boolean => {
      const order = compareValues(value, other[part])
      return high === '' || order < 0 || (high === 'lte' && order === 0)
    }
    const expected = this.#model
      .rows(table)
      .filter((row) => before.every((name) => textOf(row[name]) === textOf(named[name])))
      .filter((row) => isLow(row[part]) && isHigh(row[part]))
    expect((await rows.scan(this.#drawn.compiled(table), query, {})).items).toEqual(expected)
  }

  async #compareIndexes(rows: RowReads, table: Table): Promise<void> {
    const compiled = this.#drawn.compiled(table)
    for (const { name } of compiled.indexes) {
      const index = this.#schemaIndex(name)
      const page = await rows.index(compiled, name, {}, {})
      const found = page.items.map((entry) => [
        ...index.parts.map(({ path }) => entry[path]),
        ...table.key.parts.map(({ property }) => entry[property]),
      ])
      expect(found).toEqual(this.#model.entries(table, index))
      const whole = await page.rows()
      expect(whole).toEqual(page.items.map((entry) => this.#model.get(table, entry)))
    }
  }

  #schemaIndex(name: string): Schema['indexes'][number] {
    const index = this.#model.schema.indexes.find((one) => one.name === name)
    if (index === undefined) throw new Error('an index is in its schema')
    return index
  }
}

const kinds = ['insert', 'insert', 'put', 'update', 'delete'] as const

test('TAB-1, TAB-2, IDX-1, IDX-2: rows, scans, trees and indexes are what plain maps say', async () => {
  await fc.assert(
    fc.asyncProperty(schemas, fc.gen(), async (schema, gen) => {
      const pick: Pick = (values) => gen(() => values)
      const drawn = new Drawn(schema, pick)
      const replay = new Replay(schema, drawn)
      for (let change = 0; change < 12; change++) {
        const table = pick(fc.constantFrom(...drawn.tables))
        await replay.change(table, pick(fc.constantFrom(...kinds)))
        if (change % 4 === 3) await replay.compare(pick)
      }
    }),
    { numRuns: 150, endOnFailure: true },
  )
}, 60_000)
