/** From what was written to a `Schema`, or to everything that is wrong with it: one problem a mistake. */
import { unreachable } from '../src/base/assert.ts'
import { checkDefaults } from './check-defaults.ts'
import { checkExpiry } from './check-expiry.ts'
import { checkGroup } from './check-groups.ts'
import { checkIndex, hasOptionalPart } from './check-indexes.ts'
import { checkKeys } from './check-keys.ts'
import { checkNames } from './check-names.ts'
import { checkPlacement, spreadPlacement } from './check-placement.ts'
import { Complaints, type IndexDraft, type SchemaDraft, type TableDraft } from './draft.ts'
import { indexShardsDefault, indexesMax, tablesMax } from './limits.ts'
import { schemaFormat, type Index, type Schema, type Table } from './model.ts'
import type { SchemaProblem } from './problem.ts'

export type SchemaResult =
  | { readonly ok: true; readonly schema: Schema }
  | { readonly ok: false; readonly problems: readonly SchemaProblem[] }

/** Where a schema comes from. What a cluster has stored it keeps, whatever became of the rules for defaults since. */
export type SchemaOrigin = 'given' | 'stored'

export function checkSchema(given: SchemaDraft, origin: SchemaOrigin = 'given'): SchemaResult {
  const draft = spreadPlacement(given)
  const complaints = new Complaints()
  checkNames(draft, complaints)
  if (draft.tables.length <= tablesMax && draft.indexes.length <= indexesMax) {
    checkTables(draft, complaints)
  }
  const problems = complaints.problems.filter(
    ({ kind }) => origin === 'given' || kind !== 'bad-default',
  )
  if (problems.length > 0) return { ok: false, problems }
  return { ok: true, schema: deepFrozen(toSchema(draft)) }
}

function checkTables(draft: SchemaDraft, complaints: Complaints): void {
  const sound = new Set<TableDraft>()
  for (const [place, table] of draft.tables.entries()) {
    const before = complaints.count
    checkKeys(table, ['tables', place], complaints)
    if (complaints.count === before) sound.add(table)
    checkDefaults(table, ['tables', place], complaints)
    checkExpiry(table, ['tables', place], complaints)
    checkPlacement(table, ['tables', place], complaints)
  }
  for (const [place, table] of draft.tables.entries()) {
    const before = complaints.count
    checkGroup(draft, table, ['tables', place], sound, complaints)
    if (complaints.count > before) sound.delete(table)
  }
  for (const [place, index] of draft.indexes.entries()) {
    checkIndex(draft, index, ['indexes', place], sound, complaints)
  }
}

function toSchema({ name, tables, indexes }: SchemaDraft): Schema {
  const grouped = tables.flatMap((table) => indexes.filter((index) => index.table === table.name))
  return {
    format: schemaFormat,
    name,
    tables: tables.flatMap(toTable),
    indexes: grouped.map((index) => toIndex(index, tables)),
  }
}

/** Checked before: a table has a key, and is a root or has a group. */
function toTable(draft: TableDraft): readonly Table[] {
  const { name, properties, key, group, inTable, onDelete, expiry, placement } = draft
  if (key === undefined) return []
  const expiring = expiry === undefined ? {} : { expiry }
  if (group === undefined) {
    const placing = placement === undefined ? {} : { placement }
    return [{ kind: 'root', name, properties, key, ...expiring, ...placing }]
  }
  const { root, key: groupKey } = group
  const inside = inTable === undefined ? {} : { inTable }
  const deleting = onDelete === undefined ? {} : { onDelete }
  return [
    { kind: 'child', name, properties, key, ...expiring, root, groupKey, ...inside, ...deleting },
  ]
}

function toIndex(draft: IndexDraft, tables: readonly TableDraft[]): Index {
  const { kind, name, table, parts, storing, unique } = draft
  const isSure = !hasOptionalPart(draft, tables)
  const absent = isSure ? {} : { absent: draft.absent ?? 'left-out' }
  const base = { name, table, parts, ...absent, storing }
  switch (kind) {
    case 'inline':
      return { kind, ...base, into: draft.into ?? '' }
    case 'local':
      return { kind, ...base, unique }
    case 'global': {
      const shards = draft.shards ?? indexShardsDefault
      const shardBy = draft.shardBy ?? parts[0]?.path ?? ''
      return { kind, ...base, unique, shards, shardBy, spread: draft.spread ?? 1 }
    }
    default:
      return unreachable(kind)
  }
}

/** A frozen copy: the caller may still change its own value. */
function deepFrozen<Value>(value: Value): Value {
  const copy = structuredClone(value)
  freeze(copy)
  return copy
}

function freeze(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  for (const member of Object.values(value)) freeze(member)
  Object.freeze(value)
}
