/** One group of a drawn schema: its tables, and keys and rows for them, few enough to meet. */
import * as fc from 'fast-check'
import { compileSchema } from '../../src/tables/compile.ts'
import type { CompiledTable } from '../../src/tables/compiled.ts'
import { groupContext, type GroupContext } from '../../src/tables/group-context.ts'
import type { Property, Schema, Table } from '../../schema/model.ts'
import { firstVersion } from '../../schema/version.ts'
import type { ModelRow } from './model.ts'
import { keyValueByKind, valueByKind } from './values.ts'

export type Pick = <Value>(values: fc.Arbitrary<Value>) => Value

/** One group of a schema's first root: its tables, and rows for them. */
export class Drawn {
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
    const parts = key.map(({ name, kind }, place): readonly [string, unknown] => {
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
    return this.#pick(fc.nat({ max: 3 })) > 0
      ? this.#pooled(type.kind)
      : this.#pick(valueByKind(type.kind))
  }
}
