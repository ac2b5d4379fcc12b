/** A schema as text, in one form only: as the Megastore paper prints it. `parseSchema` reads it back. */
import { checkModel } from './given.ts'
import { indexShardsDefault } from './limits.ts'
import type { Direction, Index, Property, PropertyDefault, Schema, Table } from './model.ts'
import { placementText } from './placement.ts'
import { expiryText } from './ttl.ts'

/** The whole text, with a line end at its end. */
export function printSchema(schema: Schema): string {
  checkModel('printSchema', schema)
  const { name, tables, indexes } = schema
  const statements = [
    `CREATE SCHEMA ${name};`,
    ...tables.map(printTable),
    ...indexes.map(printIndex),
  ]
  return `${statements.join('\n\n')}\n`
}

export function printTable(table: Table): string {
  const clauses = printClauses(table)
  const tail = table.kind === 'root' ? clauses.join(', ') : clauses.join(',\n  ')
  return [`CREATE TABLE ${table.name} {`, ...printLines(table.properties, '  '), `} ${tail};`].join(
    '\n',
  )
}

function printClauses(table: Table): readonly string[] {
  const { parts, scatter } = table.key
  const names = parts.map(({ property, direction }) => directed(property, direction))
  const key = `PRIMARY KEY(${names.join(', ')})${scatter ? ' SCATTER' : ''}`
  const expiring = table.expiry === undefined ? [] : [expiryText(table.expiry)]
  if (table.kind === 'root') {
    const placing = table.placement === undefined ? [] : [placementText(table.placement)]
    return [key, 'ENTITY GROUP ROOT', ...placing, ...expiring]
  }
  const group = `ENTITY GROUP KEY(${table.groupKey.join(', ')}) REFERENCES ${table.root}`
  const inside = table.inTable === undefined ? [] : [`IN TABLE ${table.inTable}`]
  const deleting = table.onDelete === undefined ? [] : [`ON DELETE ${table.onDelete.toUpperCase()}`]
  return [key, ...inside, group, ...deleting, ...expiring]
}

/** Properties as they stand in a table or a message, a line each. */
export function printProperties(properties: readonly Property[]): string {
  return printLines(properties, '')
    .map((line) => `${line}\n`)
    .join('')
}

function printLines(properties: readonly Property[], indent: string): readonly string[] {
  return properties.flatMap((property) => {
    const { name, presence, type, default: literal } = property
    if (type.kind === 'message') {
      const head = `${indent}${presence} message ${name} {`
      return [head, ...printLines(type.properties, `${indent}  `), `${indent}};`]
    }
    const tail = literal === undefined ? '' : ` DEFAULT ${literalText(type.kind, literal)}`
    return [`${indent}${presence} ${type.kind} ${name}${tail};`]
  })
}

/** Digits of an int64 stand without quotes, like all numbers. */
function literalText(kind: string, literal: PropertyDefault): string {
  return kind === 'int64' ? String(literal) : JSON.stringify(literal)
}

export function printIndex(index: Index): string {
  const unique = index.kind !== 'inline' && index.unique ? 'UNIQUE ' : ''
  const parts = index.parts.map(({ path, direction }) => directed(path, direction))
  const lines = [
    `CREATE ${unique}${index.kind.toUpperCase()} INDEX ${index.name}`,
    `  ON ${index.table}(${parts.join(', ')})`,
    ...(index.kind === 'inline' ? [`  IN TABLE ${index.into}`] : []),
    ...(index.storing.length > 0 ? [`  STORING (${index.storing.join(', ')})`] : []),
    ...(index.absent === 'left-out' ? ['  WHERE PRESENT'] : []),
    ...(index.kind === 'global' ? shardLines(index) : []),
  ]
  return `${lines.join('\n')};`
}

function shardLines(index: Index & { readonly kind: 'global' }): readonly string[] {
  const { shards, shardBy, spread, parts } = index
  const clauses = [
    ...(shards === indexShardsDefault ? [] : [`SHARDS ${shards}`]),
    ...(shardBy === parts[0]?.path ? [] : [`SHARD BY ${shardBy}`]),
    ...(spread === 1 ? [] : [`SPREAD ${spread}`]),
  ]
  return clauses.length === 0 ? [] : [`  ${clauses.join(' ')}`]
}

function directed(name: string, direction: Direction): string {
  return direction === 'desc' ? `${name} DESC` : name
}
