/**
 * Tables of one group as plain maps, and the rows that a read must find in them: worked out from
 * the schema by the shortest way, without a key or an entry in bytes.
 */
import { latin1 } from '../../src/base/bytes.ts'
import { followPath, repeatedOn } from '../../schema/path.ts'
import type { ChildTable, Direction, Index, OnDelete, Schema, Table } from '../../schema/model.ts'
import { readField } from '../../src/tables/row-value.ts'
import { compareValues } from './values.ts'

export type ModelRow = Readonly<Record<string, unknown>>

/** A text that is equal for equal values only. */
export function textOf(value: unknown): string {
  return JSON.stringify(value, (_, one: unknown) => {
    if (typeof one === 'bigint') return `${one}n`
    return one instanceof Uint8Array ? `bytes ${latin1(one)}` : one
  })
}

interface Sorted {
  readonly values: readonly unknown[]
  readonly directions: readonly Direction[]
}

function compareSorted(a: Sorted, b: Sorted): number {
  for (const [place, value] of a.values.entries()) {
    const order = compareValues(value, b.values[place])
    if (order !== 0) return a.directions[place] === 'desc' ? -order : order
  }
  return 0
}

export class ModelGroup {
  readonly schema: Schema
  readonly #rows = new Map<string, Map<string, ModelRow>>()

  constructor(schema: Schema) {
    this.schema = schema
  }

  keyOf(table: Table, row: ModelRow): readonly unknown[] {
    return table.key.parts.map(({ property }) => row[property])
  }

  get(table: Table, row: ModelRow): ModelRow | undefined {
    return this.#rows.get(table.name)?.get(textOf(this.keyOf(table, row)))
  }

  set(table: Table, row: ModelRow): void {
    // No read sees it any more: the log's time is later than that.
    if (hasExpired(table, row)) return this.delete(table, row)
    const rows = this.#rows.get(table.name) ?? new Map<string, ModelRow>()
    this.#rows.set(table.name, rows.set(textOf(this.keyOf(table, row)), row))
  }

  delete(table: Table, row: ModelRow): void {
    this.#rows.get(table.name)?.delete(textOf(this.keyOf(table, row)))
  }

  /** Is there a row that restricts, below this one or below one that would go with it? */
  isHeld(table: Table, row: ModelRow): boolean {
    return this.#children(table, row).some(
      ({ rule, child, row: below }) =>
        rule === 'restrict' || (rule === 'cascade' && this.isHeld(child, below)),
    )
  }

  /** The row, and those below it that go with it. */
  deleteTree(table: Table, row: ModelRow): void {
    for (const { rule, child, row: below } of this.#children(table, row)) {
      if (rule === 'cascade') this.deleteTree(child, below)
    }
    this.delete(table, row)
  }

  /** Rows that belong to the row, there or not. A table that says nothing restricts. */
  #children(
    table: Table,
    row: ModelRow,
  ): readonly { readonly rule: OnDelete; readonly child: ChildTable; readonly row: ModelRow }[] {
    const key = textOf(this.keyOf(table, row))
    return this.schema.tables.flatMap((child) => {
      if (child.kind !== 'child' || (child.inTable ?? child.root) !== table.name) return []
      const rule = child.onDelete ?? 'restrict'
      return this.rows(child)
        .filter((one) => textOf(this.keyOf(child, one).slice(0, table.key.parts.length)) === key)
        .map((one) => ({ rule, child, row: one }))
    })
  }

  /** In the order of the key. */
  rows(table: Table): readonly ModelRow[] {
    const directions = table.key.parts.map(({ direction }) => direction)
    return [...(this.#rows.get(table.name)?.values() ?? [])].sort((a, b) =>
      compareSorted(
        { values: this.keyOf(table, a), directions },
        { values: this.keyOf(table, b), directions },
      ),
    )
  }

  /** The indexed values of a row, one list for each distinct entry. */
  valuesIn(table: Table, index: Index, row: ModelRow): readonly (readonly unknown[])[] {
    const paths = index.parts.map(({ path }) => path)
    const list = paths.map((path) => listOf(table, path)).find((one) => one !== undefined)
    const elements = list === undefined ? [undefined] : at(row, list)
    const distinct = new Map<string, readonly unknown[]>()
    for (const element of Array.isArray(elements) ? elements : []) {
      const values = paths.map((path) =>
        listOf(table, path) === undefined
          ? at(row, path)
          : at(element, path.slice(list?.length).slice(1)),
      )
      const isIn = index.absent === 'first' || !values.includes(undefined)
      if (isIn) distinct.set(textOf(values), values)
    }
    return [...distinct.values()]
  }

  /** Indexed values and keys of all entries, in the order of the index. */
  entries(table: Table, index: Index): readonly (readonly unknown[])[] {
    const directions = [...index.parts, ...table.key.parts].map(({ direction }) => direction)
    return this.rows(table)
      .flatMap((row) =>
        this.valuesIn(table, index, row).map((values) => [...values, ...this.keyOf(table, row)]),
      )
      .sort((a, b) => compareSorted({ values: a, directions }, { values: b, directions }))
  }

  /** Entries with this first value, or with a first value in these bounds, which absent is never. */
  entriesWith(
    table: Table,
    index: Index,
    fits: (first: unknown) => boolean,
  ): readonly (readonly unknown[])[] {
    return this.entries(table, index).filter(([first]) => fits(first))
  }

  /** Would the row be a second one with the same values in a unique index? */
  isTwice(table: Table, row: ModelRow): boolean {
    const own = textOf(this.keyOf(table, row))
    return this.schema.indexes.some((index) => {
      if (index.table !== table.name || index.kind !== 'local' || !index.unique) return false
      const taken = this.rows(table)
        .filter((other) => textOf(this.keyOf(table, other)) !== own)
        .flatMap((other) => this.valuesIn(table, index, other).map(textOf))
      // Rows that are without a value have none in common.
      return this.valuesIn(table, index, row).some(
        (values) => !values.includes(undefined) && taken.includes(textOf(values)),
      )
    })
  }

  /** The row and what lies below it. */
  below(table: Table, row: ModelRow): number {
    const own = this.get(table, row) === undefined ? 0 : 1
    const key = textOf(this.keyOf(table, row))
    const children = this.schema.tables.filter(
      (child) => child.kind === 'child' && child.inTable === table.name,
    )
    return children.reduce((sum, child) => {
      const inside = this.#allBelow(child).filter((one) => {
        const above = this.keyOf(one.table, one.row).slice(0, table.key.parts.length)
        return textOf(above) === key
      })
      return sum + inside.length
    }, own)
  }

  #allBelow(table: Table): readonly { readonly table: Table; readonly row: ModelRow }[] {
    const children = this.schema.tables.filter(
      (child) => child.kind === 'child' && child.inTable === table.name,
    )
    const own = this.rows(table).map((row) => ({ table, row }))
    return [...own, ...children.flatMap((child) => this.#allBelow(child))]
  }
}

/** Of the log that these groups have, which begins a second after 1970, and is over long before a day has passed. */
const logMicros = 1_000_000

function hasExpired({ expiry }: Table, row: ModelRow): boolean {
  const moment = expiry?.kind === 'at' ? row[expiry.property] : undefined
  return typeof moment === 'number' && moment <= logMicros
}

function listOf(table: Table, path: string): string | undefined {
  const step = followPath(table.properties, path)
  return step.kind === 'found' ? repeatedOn(step.trail).path : undefined
}

function at(from: unknown, path: string): unknown {
  return path === '' ? from : path.split('.').reduce(readField, from)
}
