/**
 * A short name for what a schema says: equal for two schemas exactly when nothing is different
 * between them, whatever form they were written in and in whatever order. It never changes for a
 * given schema, so it may be stored and compared by other programs.
 */
import { checkModel } from './given.ts'
import { compareText, sha256 } from '../src/base/bytes.ts'
import type { Expiry, Index, Key, Property, Schema, Table, TablePlacement } from './model.ts'

const fingerprintChars = 32

/** 32 hexadecimal digits. */
export function fingerprintOf(schema: Schema): string {
  checkModel('fingerprintOf', schema)
  const { format, name, tables, indexes } = schema
  const said = [format, name, byName(tables).map(tableForm), byName(indexes).map(indexForm)]
  return sha256(JSON.stringify(said)).toString('hex').slice(0, fingerprintChars)
}

/** Lists only, each member in its place: no order of an object's members can matter. */
type Form = string | number | boolean | readonly Form[]

function tableForm(table: Table): Form {
  const own: Form = [table.name, byName(table.properties).map(propertyForm), keyForm(table.key)]
  const expiring = table.expiry === undefined ? [] : [expiryForm(table.expiry)]
  if (table.kind === 'root') {
    const placing = table.placement === undefined ? [] : [placementForm(table.placement)]
    return [...own, 'root', ...expiring, ...placing]
  }
  const deleting = table.onDelete === undefined ? [] : [table.onDelete]
  return [
    ...own,
    'child',
    table.root,
    table.groupKey,
    table.inTable ?? [],
    ...deleting,
    ...expiring,
  ]
}

function expiryForm(expiry: Expiry): Form {
  return expiry.kind === 'after' ? ['after', expiry.seconds] : ['at', expiry.property]
}

function placementForm(placement: TablePlacement): Form {
  const { kind } = placement
  return ['placement', kind, kind === 'by' ? placement.property : placement.name]
}

function keyForm({ parts, scatter }: Key): Form {
  return [parts.map(({ property, direction }) => [property, direction]), scatter]
}

function propertyForm({ name, presence, type, default: literal }: Property): Form {
  const fields = type.kind === 'message' ? byName(type.properties).map(propertyForm) : []
  return [name, presence, type.kind, fields, literal ?? []]
}

export function indexForm(index: Index): Form {
  const { kind, name, table, parts, absent, storing } = index
  const pathForms = parts.map(({ path, direction }) => [path, direction])
  // `left-out` says nothing more than what indexes were before there was another way.
  const withAbsent = absent === undefined || absent === 'left-out' ? [] : [absent]
  const own = [kind, name, table, pathForms, storing, ...withAbsent]
  switch (index.kind) {
    case 'inline':
      return [...own, index.into]
    case 'local':
      return [...own, index.unique]
    default:
      return [...own, index.unique, index.shards, index.shardBy, index.spread]
  }
}

function byName<Named extends { readonly name: string }>(
  named: readonly Named[],
): readonly Named[] {
  return [...named].sort((a, b) => compareText(a.name, b.name))
}
