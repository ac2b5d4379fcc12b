/**
 * Schemas drawn by fast-check, good ones by construction: several roots, children to any depth, every
 * type, messages, defaults, sequences, every kind of index with every option.
 */
import * as fc from 'fast-check'
import { checkSchema } from '../../schema/check.ts'
import { hasOptionalPart } from '../../schema/check-indexes.ts'
import { toLiteral } from '../../schema/default.ts'
import type { IndexDraft, SchemaDraft, TableDraft } from '../../schema/draft.ts'
import {
  deleteRules,
  scalarKinds,
  type Direction,
  type Expiry,
  type IndexPart,
  type KeyPart,
  type Property,
  type PropertyDefault,
  type ScalarKind,
  type Schema,
  type TablePlacement,
} from '../../schema/model.ts'
import { problemText } from '../../schema/problem.ts'

/** Words of the text that may also be names; most need care. */
const words = [
  'a',
  'key',
  'message',
  'true',
  'index',
  'unique',
  'default',
  'string',
  'Shard',
  'x_1',
]

/** Draws one schema; `g` draws its parts, and shrinks them. */
class Draw {
  readonly #g: fc.GeneratorValue
  #count = 0

  constructor(g: fc.GeneratorValue) {
    this.#g = g
  }

  schema(): SchemaDraft {
    const tables: TableDraft[] = []
    const count = this.#upTo(6) + 1
    for (let i = 0; i < count; i++) {
      const parent = i === 0 || this.#chance(4) ? undefined : this.#oneOf(tables)
      tables.push(parent === undefined ? this.#root() : this.#child(tables, parent))
    }
    const indexes = tables.flatMap((table) =>
      Array.from({ length: this.#upTo(3) }, () => this.#index(tables, table)),
    )
    return { name: this.#name(), tables, indexes }
  }

  #root(): TableDraft {
    const key = this.#properties(this.#upTo(2) + 1, 'key')
    const scatter = this.#chance(3)
    const parts = key.map((property) => this.#part(property, scatter ? 1 : 3))
    const properties = this.#shuffled([...key, ...this.#properties(this.#upTo(5), 'snapshot')])
    const place = {
      isRoot: true,
      group: undefined,
      inTable: undefined,
      onDelete: undefined,
      expiry: undefined,
      placement: this.#placement(key),
    }
    return { name: this.#name(), properties, key: { parts, scatter }, ...place }
  }

  #child(tables: readonly TableDraft[], parent: TableDraft): TableDraft {
    const root = parent.group?.root ?? parent.name
    const isIn = !this.#chance(3)
    const above = isIn ? parent : tables.find(({ name }) => name === root)
    const inherited = (above?.key?.parts ?? []).map((part): Property & KeyPart => {
      const property = above?.properties.find(({ name }) => name === part.property)
      const kind = property?.type.kind === 'sequence' ? 'integer' : property?.type.kind
      if (kind === undefined || kind === 'message') throw new Error('a key part has an order')
      const name = this.#name()
      return {
        ...{ name, presence: 'required', type: { kind } },
        ...{ property: name, direction: part.direction },
      }
    })
    const own = this.#properties(this.#upTo(2), 'key')
    const sequence = this.#chance(3) ? [this.#property('sequence')] : []
    const others = this.#properties(this.#upTo(5), 'snapshot')
    const parts = [
      ...inherited.map(({ property, direction }) => ({ property, direction })),
      ...own.map((property) => this.#part(property, 3)),
      ...sequence.map(({ name }): KeyPart => ({ property: name, direction: 'asc' })),
    ]
    const named = inherited.map(({ name, presence, type }) => ({ name, presence, type }))
    const groupSize = tables.find(({ name }) => name === root)?.key?.parts.length ?? 0
    return {
      name: this.#name(),
      properties: this.#shuffled([...named, ...own, ...sequence, ...others]),
      key: { parts, scatter: false },
      isRoot: false,
      group: { root, key: parts.slice(0, groupSize).map(({ property }) => property) },
      inTable: isIn ? parent.name : undefined,
      onDelete: this.#chance(2) ? this.#oneOf(deleteRules) : undefined,
      expiry: this.#expiry([...named, ...own, ...others]),
      placement: undefined,
    }
  }

  #placement(key: readonly Property[]): TablePlacement | undefined {
    if (!this.#chance(3)) return undefined
    const texts = key.filter(({ type }) => type.kind === 'string')
    if (texts.length > 0 && this.#chance(2))
      return { kind: 'by', property: this.#oneOf(texts).name }
    const name = this.#oneOf(['eu', 'us-east', 'in', 'set', '1', 'a--b', '-', '2-b'])
    return { kind: this.#oneOf(['set', 'region'] as const), name }
  }

  #expiry(properties: readonly Property[]): Expiry | undefined {
    if (!this.#chance(4)) return undefined
    const moments = properties.filter(
      ({ presence, type }) => type.kind === 'timestamp' && presence !== 'repeated',
    )
    const moment = moments.length > 0 && this.#chance(2) ? this.#oneOf(moments) : undefined
    if (moment !== undefined) return { kind: 'at', property: moment.name }
    return { kind: 'after', seconds: 86_400 * (this.#upTo(400) + 1) + this.#upTo(1) * 60 }
  }

  #index(tables: readonly TableDraft[], table: TableDraft): IndexDraft {
    const root = tables.find(({ name }) => name === table.group?.root)
    const kind = this.#oneOf(['local', 'global', ...(root ? (['inline'] as const) : [])] as const)
    const isGrouped = kind === 'inline' || this.#chance(3)
    const parts = this.#indexParts(table, isGrouped ? (table.group?.key ?? []) : [])
    const storing = table.properties
      .map(({ name }) => name)
      .filter((name) => !keyNames(table).includes(name))
      .filter((name) => !parts.some(({ path }) => path === name) && this.#chance(3))
    const unique = kind !== 'inline' && this.#chance(4)
    const into = kind === 'inline' ? root?.name : undefined
    const isLeftOut = hasOptionalPart({ table: table.name, parts }, [table]) && this.#chance(2)
    const absent = isLeftOut ? 'left-out' : 'first'
    const index = { kind, name: this.#name(), table: table.name, parts, absent, storing } as const
    return { ...index, unique, into, ...this.#shards(kind === 'global', unique, parts) }
  }

  /** `first`, and then some that have an order and are in one list at most. */
  #indexParts(table: TableDraft, first: readonly string[]): readonly IndexPart[] {
    const parts: IndexPart[] = first.map((path) => ({ path, direction: 'asc' }))
    let list: string | undefined
    for (const { path, inside, kind } of this.#shuffled(pathsOf(table.properties, '', undefined))) {
      if (parts.length > first.length + 2 || first.includes(path)) continue
      if (kind === 'json' || kind === 'message' || inside === 'two') continue
      if (inside !== undefined && list !== undefined && inside !== list) continue
      list ??= inside
      const mayTurn = kind !== 'sequence' && !keyNames(table).includes(path)
      parts.push({ path, direction: mayTurn ? this.#direction(3) : 'asc' })
    }
    return parts
  }

  #shards(
    isGlobal: boolean,
    unique: boolean,
    parts: readonly IndexPart[],
  ): Pick<IndexDraft, 'shards' | 'shardBy' | 'spread'> {
    if (!isGlobal) return { shards: undefined, shardBy: undefined, spread: undefined }
    return {
      shards: this.#chance(2) ? this.#upTo(4000) + 64 : undefined,
      shardBy: this.#chance(2) ? this.#oneOf(parts).path : undefined,
      spread: this.#chance(2) && !unique ? this.#upTo(15) + 1 : undefined,
    }
  }

  #properties(count: number, use: 'key' | 'snapshot', depth = 0): readonly Property[] {
    return Array.from({ length: count }, () => {
      if (use === 'snapshot' && depth < 3 && this.#chance(6)) return this.#message(depth)
      return this.#property(this.#oneOf(use === 'key' ? keyKinds : anyKinds), use)
    })
  }

  #message(depth: number): Property {
    const properties = this.#properties(this.#upTo(2) + 1, 'snapshot', depth + 1)
    return { name: this.#name(), presence: this.#presence(), type: { kind: 'message', properties } }
  }

  #property(kind: ScalarKind, use: 'key' | 'snapshot' = 'key'): Property {
    const property = { name: this.#name(), presence: 'required', type: { kind } } as const
    if (use === 'key') return property
    const presence = this.#presence()
    const literal = presence === 'required' && this.#chance(2) ? this.#literal(kind) : undefined
    return { ...property, presence, ...(literal !== undefined && { default: literal }) }
  }

  #literal(kind: ScalarKind): PropertyDefault | undefined {
    const values = valuesByKind[kind]
    return values === undefined ? undefined : toLiteral(this.#g(() => values))
  }

  #part({ name }: Property, oneIn: number): KeyPart {
    return { property: name, direction: this.#direction(oneIn) }
  }

  /** `desc` once in `oneIn`, 1 for never. */
  #direction(oneIn: number): Direction {
    return oneIn > 1 && this.#chance(oneIn) ? 'desc' : 'asc'
  }

  #presence(): Property['presence'] {
    return this.#oneOf(['required', 'optional', 'repeated'])
  }

  /** A name like no other, whatever its letters' case. */
  #name(): string {
    this.#count += 1
    return `${this.#oneOf(words)}${this.#count}`
  }

  #upTo(most: number): number {
    return this.#g(fc.nat, { max: most })
  }

  #chance(oneIn: number): boolean {
    return this.#upTo(oneIn - 1) === oneIn - 1
  }

  #oneOf<Element>(elements: readonly Element[]): Element {
    const element = elements[this.#upTo(elements.length - 1)]
    if (element === undefined) throw new Error('there is none to draw')
    return element
  }

  #shuffled<Element>(elements: readonly Element[]): readonly Element[] {
    const rest = [...elements]
    return elements.flatMap(() => rest.splice(this.#upTo(rest.length - 1), 1))
  }
}

function keyNames({ key }: TableDraft): readonly string[] {
  return (key?.parts ?? []).map(({ property }) => property)
}

const keyKinds = [
  'string',
  'bytes',
  'bool',
  'int32',
  'int64',
  'integer',
  'timestamp',
  'uuid',
] as const
const anyKinds = scalarKinds.filter((kind) => kind !== 'sequence')

const valuesByKind: Readonly<Record<ScalarKind, fc.Arbitrary<unknown> | undefined>> = {
  // Any whole characters, control characters too.
  string: fc.string({ unit: 'binary' }),
  bytes: fc.uint8Array({ maxLength: 20 }),
  bool: fc.boolean(),
  int32: fc.integer(),
  int64: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  integer: fc.maxSafeInteger(),
  float: fc.float({ noNaN: true, noDefaultInfinity: true }),
  double: fc.double({ noNaN: true, noDefaultInfinity: true }),
  timestamp: fc.maxSafeInteger(),
  uuid: fc.uuid(),
  json: undefined,
  sequence: undefined,
}

interface Path {
  readonly path: string
  readonly kind: string
  /** The list it is in, or `two` lists. */
  readonly inside: string | undefined
}

function pathsOf(
  properties: readonly Property[],
  prefix: string,
  list: string | undefined,
): readonly Path[] {
  return properties.flatMap(({ name, presence, type }) => {
    const path = `${prefix}${name}`
    const own = list === undefined ? path : 'two'
    const inside = presence === 'repeated' ? own : list
    const fields = type.kind === 'message' ? pathsOf(type.properties, `${path}.`, inside) : []
    return [{ path, kind: type.kind, inside }, ...fields]
  })
}

/** Good drafts. */
export const drafts: fc.Arbitrary<SchemaDraft> = fc.gen().map((g) => new Draw(g).schema())

/** Checked schemas; one that is refused is a mistake here or there, and thrown. */
export const schemas: fc.Arbitrary<Schema> = drafts.map((draft) => checked(draft))

export function checked(draft: SchemaDraft): Schema {
  const result = checkSchema(draft)
  if (result.ok) return result.schema
  throw new Error(result.problems.map(problemText).join('\n'))
}
