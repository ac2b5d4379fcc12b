/** Changes of rows in a group, done through transactions and in plain maps, and compared. */
import * as fc from 'fast-check'
import { expect } from 'vitest'
import { StoreError } from '../../src/base/errors.ts'
import { compareIndexes } from '../../src/tables/check-indexes.ts'
import { RowReads } from '../../src/tables/read-rows.ts'
import { RowWrites } from '../../src/tables/write-rows.ts'
import { runRead } from '../../src/txn/run-read.ts'
import { runTransaction } from '../../src/txn/run.ts'
import { Sessions } from '../../src/txn/session.ts'
import type { Schema, Table } from '../../schema/model.ts'
import { MemoryPort } from '../txn/memory-port.ts'
import { TestClock, testRandom } from '../txn/test-ports.ts'
import type { Drawn, Pick } from './drawn.ts'
import { ModelGroup, textOf, type ModelRow } from './model.ts'
import { compareValues } from './values.ts'

function expectSame(found: unknown, expected: unknown): void {
  expect(found).toEqual(expected)
}

export type Change = 'insert' | 'put' | 'update' | 'delete'

export class Replay {
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

  async change(table: Table, kind: Change): Promise<void> {
    const drawn = this.#drawn
    const compiled = drawn.compiled(table)
    const key = drawn.key(table)
    const names = table.key.parts.map(({ property }) => property)
    const rest = drawn.rest(table.properties, names)
    const before = this.#model.get(table, key)
    const after = this.#after(table, kind, { key, rest, before })
    const insert = { ...key, ...rest }
    Reflect.deleteProperty(insert, compiled.sequence?.name ?? '')
    const code = await this.#run(async (writes) => {
      if (kind === 'insert') await writes.insert(compiled, insert)
      else if (kind === 'put') await writes.put(compiled, { ...key, ...rest })
      else if (kind === 'update') await writes.update(compiled, key, rest)
      else await writes.delete(compiled, key)
    })
    expectSame(code, this.#expected(table, kind, before, after))
    if (code !== undefined) return
    if (kind === 'delete') this.#model.deleteTree(table, key)
    else this.#model.set(table, after)
    if (kind === 'insert') this.#counts.set(table.name, this.#next(table))
  }

  #next({ name }: Table): number {
    return (this.#counts.get(name) ?? 0) + 1
  }

  /** The row that there is when the change succeeds. */
  #after(
    table: Table,
    kind: Change,
    given: {
      readonly key: ModelRow
      readonly rest: ModelRow
      readonly before: ModelRow | undefined
    },
  ): ModelRow {
    const { key, rest, before } = given
    const row = { ...(kind === 'update' ? before : key), ...rest }
    const { sequence } = this.#drawn.compiled(table)
    if (sequence === undefined) return row
    const kept = before?.[sequence.name] ?? key[sequence.name]
    return { ...row, [sequence.name]: kind === 'insert' ? this.#next(table) : kept }
  }

  /** The code with which the change is refused. */
  #expected(
    table: Table,
    kind: Change,
    before: ModelRow | undefined,
    after: ModelRow,
  ): string | undefined {
    if (kind === 'delete') return this.#model.isHeld(table, after) ? 'invalid' : undefined
    if (kind === 'insert' && this.#model.get(table, after) !== undefined) return 'already-exists'
    const hasSequence = this.#drawn.compiled(table).sequence !== undefined
    const needsRow = kind === 'update' || (kind === 'put' && hasSequence)
    if (needsRow && before === undefined) return 'not-found'
    return this.#model.isTwice(table, after) ? 'already-exists' : undefined
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
        await this.#compareFirstParts(rows, table, pick)
      }
      expectSame((await compareIndexes(reads, context)).faults, [])
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
    expectSame(found, expected)
    const { items } = await rows.scan(compiled, {}, { reverse: true })
    expectSame(items, expected.toReversed())
    const key = this.#drawn.key(table)
    expectSame(await rows.getMany(compiled, [key]), [this.#model.get(table, key)])
    const tree = await rows.scanTree(compiled, key, {})
    expectSame(tree.items.length, this.#model.below(table, key))
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
    // A range without bounds is refused: the part is left out.
    const ranges = low === '' && high === '' ? [] : [[part, bounds] as const]
    const before = key.slice(groupPartCount, last).map(({ name }) => name)
    const query = Object.fromEntries([...before.map((name) => [name, named[name]]), ...ranges])
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
    expectSame((await rows.scan(this.#drawn.compiled(table), query, {})).items, expected)
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
      expectSame(found, this.#model.entries(table, index))
      const whole = await page.rows()
      expectSame(
        whole,
        page.items.map((entry) => this.#model.get(table, entry)),
      )
    }
  }

  /** Of each index one value of the first part, absent among them, and a range from it on. */
  async #compareFirstParts(rows: RowReads, table: Table, pick: Pick): Promise<void> {
    const compiled = this.#drawn.compiled(table)
    for (const { name, steps } of compiled.indexes) {
      const index = this.#schemaIndex(name)
      const path = index.parts[0]?.path ?? ''
      const entries = this.#model.entries(table, index)
      if (steps[0]?.kind !== 'part' || entries.length === 0) continue
      const [value] = pick(fc.constantFrom(...entries))
      const isEqual = (first: unknown): boolean => compareValues(first, value) === 0
      const exact = await rows.index(compiled, name, { [path]: value ?? null }, {})
      expectSame(exact.items.length, this.#model.entriesWith(table, index, isEqual).length)
      const isFrom = (first: unknown): boolean =>
        first !== undefined && compareValues(first, value) >= 0
      if (value === undefined) continue
      const from = await rows.index(compiled, name, { [path]: { gte: value } }, {})
      expectSame(from.items.length, this.#model.entriesWith(table, index, isFrom).length)
      const below = await rows.index(compiled, name, { [path]: { lt: value } }, {})
      const isBelow = (first: unknown): boolean => first !== undefined && !isFrom(first)
      expectSame(below.items.length, this.#model.entriesWith(table, index, isBelow).length)
    }
  }

  #schemaIndex(name: string): Schema['indexes'][number] {
    const index = this.#model.schema.indexes.find((one) => one.name === name)
    if (index === undefined) throw new Error('an index is in its schema')
    return index
  }
}
