/** The checker of indexes over cells, on transactions that put rows into an index. */
import { expect, test } from 'vitest'
import { Coverage } from '../../sim/coverage.ts'
import { IndexedRows } from '../../sim/checkers/indexed-rows.ts'
import { LogModel, type ModelEffect } from '../../sim/checkers/log-model.ts'
import { Referee } from '../../sim/checkers/referee.ts'
import { present } from '../../src/base/assert.ts'
import { latin1 } from '../../src/base/bytes.ts'
import { bytesOfGroup } from '../../src/base/ids.ts'
import { pack, type Packable } from '../../src/base/pack.ts'
import { cellVersion, findShardGroup } from '../../src/cells/cell-table.ts'
import { compileSchema } from '../../src/tables/compile.ts'
import { writeRowKey } from '../../src/tables/row-key.ts'
import { encodeRow } from '../../src/tables/row-value.ts'

const of = { datastore: 'indexed', shard: 7 }
const group = latin1(bytesOfGroup(findShardGroup(of)))
const rowKey = '00000000-0000-4000-8000-000000000001'
const schema = compileSchema(cellVersion)

interface Write {
  readonly table: string
  readonly key: readonly unknown[]
  /** Absent: it goes. */
  readonly row?: Readonly<Record<string, unknown>>
}

class Court {
  readonly #referee = new Referee(() => 0)
  readonly #model = new LogModel({ referee: this.#referee })
  readonly #rows = new IndexedRows(this.#model, this.#referee, new Coverage())
  #position = 0

  get rules(): readonly string[] {
    return this.#referee.violations.map(({ rule }) => rule)
  }

  /** A transaction takes effect. */
  commit(...writes: readonly Write[]): void {
    const position = (this.#position += 1)
    const { rows } = this.#model.of(group)
    const mutations = writes.map(({ table: name, key: values, row }) => {
      const table = present(schema.tables.get(name), 'the table is there')
      const key = writeRowKey(table, values).bytes
      const value = row && encodeRow(table, row).bytes
      if (value === undefined) rows.delete(latin1(key))
      else rows.set(latin1(key), { value: Buffer.from(value), timestamp: position })
      return { key, value }
    })
    const transaction = { ...nothing, mutations }
    this.#rows.onEffect({ group, position, timestamp: position, transaction })
  }
}

const nothing: ModelEffect['transaction'] = {
  ...{ session: 's', sequence: 1, attempt: 1, floor: 1, expiresAt: 1 },
  ...{ allocations: [], mutations: [] },
}

function cell(column: string, refKey: number, body: Packable): Write {
  const key = [of.datastore, of.shard, rowKey, column, refKey]
  const own = { added_id: 1, creator: new Uint8Array(8), body_hash: new Uint8Array(32) }
  return { table: 'Cell', key, row: { ...own, body: pack(body) } }
}

function indexed(...values: readonly Packable[]): Write {
  const key = [of.datastore, of.shard, 'by_city', rowKey]
  const row = { place: new Uint8Array(16), sort: new Uint8Array(), fields: pack(values) }
  return { table: 'Indexed', key, row }
}

const gone = (write: Write): Write => ({ table: write.table, key: write.key })

test('IDX-7: a row that agrees with its latest cells is clean, whichever writer puts it', () => {
  const court = new Court()
  court.commit(cell('BASE', 2, { city: 'Oslo', at: 3 }), indexed('Oslo', 3, null))
  court.commit(cell('BASE', 1, { city: 'Rome', at: 1 }))
  court.commit(cell('STATUS', 1, { done: true }), indexed('Oslo', 3, true))
  court.commit(indexed('Oslo', 3, true))
  court.commit(gone(cell('BASE', 2, {})), indexed('Rome', 1, true))
  court.commit(gone(cell('BASE', 1, {})), gone(indexed()))
  expect(court.rules).toEqual([])
})

test('IDX-7: a build that puts what a row said before its transaction is found', () => {
  const court = new Court()
  court.commit(cell('BASE', 1, { city: 'Oslo', at: 3 }))
  court.commit(cell('BASE', 2, { city: 'Rome', at: 3 }), indexed('Rome', 3, null))
  expect(court.rules).toEqual([])
  court.commit(indexed('Oslo', 3, null))
  expect(court.rules).toEqual(['IDX-7'])
})

test('IDX-7: a row without a latest cell that is to be in the index has nothing in it', () => {
  const court = new Court()
  court.commit(cell('BASE', 1, { city: 0, at: 3 }), indexed(null, 3, null))
  expect(court.rules).toEqual(['IDX-7'])
})
