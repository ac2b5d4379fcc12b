/**
 * Entries of an index over cells, against the rows' cells: in each transaction of the log that
 * changes a row's entries, a put of a cell or a build alike.
 *
 * IDX-7  A row's entries that a transaction puts into an index follow from its latest cells after
 *        that transaction.
 */
import { fromLatin1, latin1 } from '../../src/base/bytes.ts'
import { groupOfBytes } from '../../src/base/ids.ts'
import { unpack } from '../../src/base/pack.ts'
import { unpackBody, type Json } from '../../src/cells/body.ts'
import { cellVersion } from '../../src/cells/cell-table.ts'
import { compileSchema } from '../../src/tables/compile.ts'
import { groupContext, rootOfGroup, type GroupContext } from '../../src/tables/group-context.ts'
import { decodeRowKey } from '../../src/tables/row-key.ts'
import { decodeRow } from '../../src/tables/row-value.ts'
import {
  columns,
  datastore,
  buildEntry,
  shapes,
  type Bodies,
} from '../workloads/cell-index-shapes.ts'
import type { Coverage } from '../coverage.ts'
import type { LogModel, ModelEffect } from './log-model.ts'
import type { Referee } from './referee.ts'

type Values = Readonly<Record<string, unknown>>

const schema = compileSchema(cellVersion)

/** A row of a table as a transaction leaves it; without a value it is gone. */
interface Changed {
  readonly table: string
  readonly key: readonly unknown[]
  readonly row: Values | undefined
}

export class IndexedRows {
  readonly #model: LogModel
  readonly #referee: Referee
  readonly #coverage: Coverage
  readonly #contexts = new Map<string, GroupContext | undefined>()
  /** Of each row and column, by ref key. */
  readonly #bodies = new Map<string, Map<number, Json | undefined>>()

  constructor(model: LogModel, referee: Referee, coverage: Coverage) {
    this.#model = model
    this.#referee = referee
    this.#coverage = coverage
  }

  onEffect({ group, position, transaction }: ModelEffect): void {
    const context = this.#findContext(group)
    if (context === undefined) return
    const changed = transaction.mutations.flatMap(({ key, slots }): Changed[] => {
      // Entries of indexes have numbers in their keys; rows that matter here have none.
      if (slots?.some(({ at }) => at === 'key') === true) return []
      const found = decodeRowKey(context, key)
      if (found === undefined) return []
      const stored = this.#model.of(group).rows.get(latin1(key))
      const row = stored && decodeRow(found.table, found.values, stored.value)
      return [{ table: found.table.name, key: found.values, row }]
    })
    const cells = changed.filter(({ table }) => table === 'Cell')
    for (const cell of cells) this.#onCell(cell)
    for (const { table, row } of changed) {
      if (table !== 'Indexed' || row === undefined) continue
      const isFilled = cells.every(({ key: [, , rowKey] }) => rowKey !== row['row_key'])
      if (isFilled) this.#coverage.count('cells: a row filled into an index')
      this.#onIndexed(row, position)
    }
  }

  #onCell({ key: [, , rowKey, column, refKey], row }: Changed): void {
    const place = formatPlace(rowKey, column)
    const bodies = this.#bodies.get(place) ?? new Map<number, Json | undefined>()
    this.#bodies.set(place, bodies)
    const body = row?.['body']
    if (body instanceof Uint8Array) bodies.set(Number(refKey), unpackBody(body))
    else bodies.delete(Number(refKey))
  }

  #onIndexed({ row_key: rowKey, fields, index_name: index }: Values, position: number): void {
    const values: unknown = fields instanceof Uint8Array ? unpack(fields) : []
    const list: readonly unknown[] = Array.isArray(values) ? values : []
    const shape = shapes.find((one) => one.fields.length === list.length)
    if (shape === undefined) return
    const said = buildEntry(shape, String(rowKey), this.#latest(rowKey))
    const put = JSON.stringify([rowKey, ...list])
    const sentence = 'A row was put into an index that says something else than its latest cells.'
    this.#referee.check(said === put, 'IDX-7', sentence, () => ({ position, index, put, said }))
  }

  #latest(rowKey: unknown): Bodies {
    const [base, status] = columns.map((column) => {
      const bodies = this.#bodies.get(formatPlace(rowKey, column)) ?? new Map<number, Json>()
      return bodies.get(Math.max(...bodies.keys()))
    })
    return { BASE: base, STATUS: status }
  }

  #findContext(group: string): GroupContext | undefined {
    if (this.#contexts.has(group)) return this.#contexts.get(group)
    const found = rootOfGroup(schema, groupOfBytes(fromLatin1(group)))
    const [of, shard] = found?.values ?? []
    const isShard = of === datastore && shard !== undefined
    const context =
      found && isShard ? groupContext(schema, found.root, { datastore, shard }) : undefined
    this.#contexts.set(group, context)
    return context
  }
}

function formatPlace(rowKey: unknown, column: unknown): string {
  return `${String(rowKey)} ${String(column)}`
}
