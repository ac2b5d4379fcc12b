/**
 * Finds the differences between two schemas, and whether a cluster can go from the one to the other
 * while it works: rows of the earlier one lie there, and programs that know only the earlier one go
 * on reading and writing. So existing things keep their meaning, and new ones may be absent.
 *
 * Order means nothing: tables, properties and indexes are known by their names. Two names are two
 * things: something renamed is something dropped and something added.
 */
import { checkModel } from './given.ts'
import type { SchemaChange } from './change.ts'
import { propertyChanges } from './diff-property.ts'
import { indexForm } from './fingerprint.ts'
import {
  deleteRules,
  findIndex,
  findTable,
  type Index,
  type OnDelete,
  type Schema,
  type Table,
} from './model.ts'
import { placementText } from './placement.ts'
import { expiryText } from './ttl.ts'

/** Everything that is different, in the order of the later schema, then what is gone. */
export function diffSchemas(earlier: Schema, later: Schema): readonly SchemaChange[] {
  checkModel('diffSchemas', earlier)
  checkModel('diffSchemas', later)
  return [
    ...nameChanges(earlier, later),
    ...later.tables.flatMap((table) => tableChanges(findTable(earlier, table.name), table)),
    ...later.indexes.flatMap((index) => indexChanges(earlier, index)),
    ...earlier.tables.filter(({ name }) => !findTable(later, name)).map(droppedTable),
    // Of a table that is gone, its indexes need no word.
    ...earlier.indexes
      .filter(({ name, table }) => !findIndex(later, name) && findTable(later, table))
      .map(droppedIndex),
  ]
}

function nameChanges(earlier: Schema, later: Schema): readonly SchemaChange[] {
  if (earlier.name === later.name) return []
  const message = `schema ${earlier.name} would become ${later.name}`
  const refusal = 'the name is what tells one schema from another'
  return [{ kind: 'rename-schema', subject: earlier.name, message, refusal }]
}

function tableChanges(earlier: Table | undefined, later: Table): readonly SchemaChange[] {
  const { name } = later
  if (earlier === undefined) {
    return [{ kind: 'add-table', subject: name, message: `table ${name} is new` }]
  }
  return [
    ...keyChanges(earlier, later),
    ...groupChanges(earlier, later),
    ...deleteChanges(earlier, later),
    ...expiryChanges(earlier, later),
    ...placementChanges(earlier, later),
    ...propertyChanges(name, earlier.properties, later.properties),
  ]
}

function keyChanges(earlier: Table, later: Table): readonly SchemaChange[] {
  const before = keyForm(earlier)
  const after = keyForm(later)
  if (before === after) return []
  const message = `the key of table ${later.name} would change from ${before} to ${after}`
  const refusal = 'the rows that are there are stored under their keys'
  const hint = 'make a new table and copy them'
  return [{ kind: 'change-key', subject: later.name, message, refusal, hint }]
}

function keyForm({ key }: Table): string {
  const parts = key.parts.map(({ property, direction }) => {
    return direction === 'desc' ? `${property} DESC` : property
  })
  return `(${parts.join(', ')})${key.scatter ? ' SCATTER' : ''}`
}

function groupChanges(earlier: Table, later: Table): readonly SchemaChange[] {
  const before = groupForm(earlier)
  const after = groupForm(later)
  if (before === after) return []
  const message = `table ${later.name} would change from ${before} to ${after}`
  const refusal = 'the rows that are there would have to move'
  const hint = 'make a new table and copy them'
  return [{ kind: 'change-group', subject: later.name, message, refusal, hint }]
}

function groupForm(table: Table): string {
  if (table.kind === 'root') return 'ENTITY GROUP ROOT'
  const group = `ENTITY GROUP KEY(${table.groupKey.join(', ')}) REFERENCES ${table.root}`
  return table.inTable === undefined ? group : `IN TABLE ${table.inTable}, ${group}`
}

/** One way only: programs of two versions, each applying its own, would else undo one another's. */
function deleteChanges(earlier: Table, later: Table): readonly SchemaChange[] {
  const [before, after] = [readOnDelete(earlier), readOnDelete(later)]
  if (before === after) return []
  const subject = later.name
  const wanted = after === undefined ? 'no ON DELETE' : deleteClause(after)
  if (before === undefined) {
    const message = `table ${subject} gets ${wanted}`
    return [{ kind: 'change-delete', subject, message }]
  }
  const message = `table ${subject} would change from ${deleteClause(before)} to ${wanted}`
  const isOnward = after !== undefined && deleteRules.indexOf(after) > deleteRules.indexOf(before)
  if (isOnward) return [{ kind: 'change-delete', subject, message }]
  const refusal =
    'programs that know it so go on, and it goes from KEEP to RESTRICT to CASCADE only'
  return [
    { kind: 'change-delete', subject, message, refusal, hint: `write ${deleteClause(before)}` },
  ]
}

function readOnDelete(table: Table): OnDelete | undefined {
  return table.kind === 'child' ? table.onDelete : undefined
}

function deleteClause(rule: OnDelete): string {
  return `ON DELETE ${rule.toUpperCase()}`
}

/** SCH-16: said once; all who read a row go by the same moment. */
function expiryChanges(earlier: Table, later: Table): readonly SchemaChange[] {
  const [before, after] = [earlier, later].map(({ expiry }) =>
    expiry === undefined ? 'no TTL' : expiryText(expiry),
  )
  if (before === after) return []
  const subject = later.name
  const message = `table ${subject} would change from ${before} to ${after}`
  const refusal = 'programs would not agree on which rows are there while they learn of it'
  const hint = 'make a new table and copy them'
  return [{ kind: 'change-expiry', subject, message, refusal, hint }]
}

/** SCH-17: said once; a group's name has its place. */
function placementChanges(earlier: Table, later: Table): readonly SchemaChange[] {
  // A root that becomes a child is refused for its group.
  if (earlier.kind !== 'root' || later.kind !== 'root') return []
  const [before, after] = [earlier, later].map(({ placement }) =>
    placement === undefined ? 'no PLACEMENT' : placementText(placement),
  )
  if (before === after) return []
  const subject = later.name
  const message = `table ${subject} would change from ${before} to ${after}`
  const refusal = 'the groups that are there would be elsewhere, and nothing would find them'
  const hint = 'make a new table and copy the rows'
  return [{ kind: 'change-placement', subject, message, refusal, hint }]
}

/** One on rows that are there is kept by writers from then on, and asked when it has been built from them. */
function indexChanges(earlier: Schema, later: Index): readonly SchemaChange[] {
  const subject = later.name
  const before = findIndex(earlier, later.name)
  if (before === undefined) {
    const message = `index ${subject} on ${later.table} is new`
    const change = { kind: 'add-index', subject, message } as const
    if (findTable(earlier, later.table) === undefined) return [change]
    return [{ ...change, hint: `trilithon index build ${subject} makes it ready to be asked` }]
  }
  if (JSON.stringify(indexForm(before)) === JSON.stringify(indexForm(later))) return []
  const message = `index ${subject} would be declared differently`
  const refusal = 'its entries are stored as it was declared'
  if (before.absent !== later.absent && later.absent !== undefined) {
    const hint = before.absent === 'left-out' ? 'add WHERE PRESENT' : 'leave WHERE PRESENT out'
    return [{ kind: 'change-index', subject, message, refusal, hint }]
  }
  return [{ kind: 'change-index', subject, message, refusal }]
}

function droppedTable({ name }: Table): SchemaChange {
  const refusal = 'its rows are there, and programs of the earlier version use them'
  return { kind: 'drop-table', subject: name, message: `table ${name} is gone`, refusal }
}

function droppedIndex({ name }: Index): SchemaChange {
  const refusal = 'its entries are there, and programs of the earlier version ask it'
  const hint = `take it out first: trilithon index drop ${name}`
  return { kind: 'drop-index', subject: name, message: `index ${name} is gone`, refusal, hint }
}
