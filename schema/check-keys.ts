/**
 * Keys and sequences of single tables. A key part is required, has one value, and has an order that
 * all machines agree on; a sequence is one number a table, last in the key, given when a row is committed.
 */
import type { Complaints, TableDraft } from './draft.ts'
import { keyPartsMax } from './limits.ts'
import type { Key, KeyPart, Property } from './model.ts'
import { didYouMean, type SchemaPath } from './problem.ts'

export function checkKeys(table: TableDraft, at: SchemaPath, complaints: Complaints): void {
  checkSequences(table, at, complaints)
  if (table.key === undefined) {
    const first = table.properties.find(({ presence }) => presence === 'required')?.name ?? 'id'
    const message = `table ${table.name}: has no primary key`
    complaints.add('missing-key', [...at, 'name'], message, `add PRIMARY KEY(${first})`)
    return
  }
  const { parts } = table.key
  if (parts.length === 0) {
    complaints.add(
      'missing-key',
      [...at, 'key'],
      `table ${table.name}: its primary key has no parts`,
    )
  }
  if (parts.length > keyPartsMax) {
    const message = `table ${table.name}: its primary key has ${parts.length} parts, at most ${keyPartsMax}`
    complaints.add('too-many', [...at, 'key'], message)
    return
  }
  for (const index of parts.keys()) {
    checkPart(table, table.key, index, [...at, 'key', 'parts', index], complaints)
  }
  checkScatter(table, table.key, at, complaints)
}

function checkPart(
  table: TableDraft,
  key: Key,
  index: number,
  at: SchemaPath,
  complaints: Complaints,
): void {
  const part = key.parts[index]
  if (part === undefined) return
  const name = part.property
  const property = table.properties.find((one) => one.name === name)
  if (property === undefined) {
    const message = `table ${table.name}: ${name}, a part of its primary key, is not one of its properties`
    const hint = didYouMean(name, listNames(table))
    return complaints.add('unknown-property', at, message, hint)
  }
  if (key.parts.findIndex(({ property }) => property === name) < index) {
    const message = `table ${table.name}: ${name} is in its primary key twice`
    return complaints.add('duplicate-part', at, message)
  }
  const reason = partReason(property)
  if (reason !== undefined) {
    const message = `table ${table.name}: ${name} cannot be in the primary key: it ${reason.why}`
    return complaints.add('bad-key-part', at, message, reason.hint)
  }
  if (property.type.kind === 'sequence') checkSequencePart(table, key, index, part, at, complaints)
}

function partReason({ name, presence, type }: Property): { why: string; hint: string } | undefined {
  if (presence !== 'required') {
    return { why: `is ${presence}`, hint: `make it required: a row has one key, always` }
  }
  switch (type.kind) {
    case 'json':
      return { why: 'is json, which has no order', hint: 'use a property of another type' }
    case 'message':
      return { why: 'is a message', hint: `make a property of the field that tells rows apart` }
    case 'float':
    case 'double':
      return {
        why: `is a ${type.kind}, and rounding would make two keys of one`,
        hint: `use int64, integer or string for ${name}`,
      }
    default:
      return undefined
  }
}

function checkSequencePart(
  table: TableDraft,
  key: Key,
  index: number,
  part: KeyPart,
  at: SchemaPath,
  complaints: Complaints,
): void {
  const name = part.property
  if (table.isRoot) return
  if (index < key.parts.length - 1) {
    const message = `table ${table.name}: sequence ${name} is not the last part of the primary key`
    complaints.add(
      'bad-sequence',
      at,
      message,
      'its number is known only when the row is committed',
    )
  } else if (part.direction === 'desc') {
    const message = `table ${table.name}: sequence ${name} is DESC, and numbers are given in ascending order`
    complaints.add('bad-direction', at, message, 'leave DESC out and scan in reverse')
  }
}

function checkScatter(table: TableDraft, key: Key, at: SchemaPath, complaints: Complaints): void {
  if (!key.scatter) return
  const here = [...at, 'key', 'scatter']
  if (!table.isRoot) {
    const message = `table ${table.name}: SCATTER is of the keys of root tables`
    return complaints.add('bad-scatter', here, message, 'the rows of a group stay together')
  }
  const descending = key.parts.find(({ direction }) => direction === 'desc')
  if (descending === undefined) return
  const message = `table ${table.name}: SCATTER leaves no order for DESC of ${descending.property} to turn around`
  complaints.add('bad-direction', here, message, 'leave one of them out')
}

/** Where sequences may be at all; their place in the key is a matter of the key. */
function checkSequences(table: TableDraft, at: SchemaPath, complaints: Complaints): void {
  let first: string | undefined
  for (const [index, { name, presence, type }] of table.properties.entries()) {
    const here = [...at, 'properties', index]
    if (type.kind === 'message')
      checkNoSequence(table.name, name, type.properties, here, complaints)
    if (type.kind !== 'sequence') continue
    const add = (reason: string, hint: string): void => {
      complaints.add('bad-sequence', here, `table ${table.name}: sequence ${name} ${reason}`, hint)
    }
    if (first !== undefined) {
      add(`is a second one, after ${first}`, 'a table has one sequence: its rows are counted once')
    } else if (table.isRoot) {
      add('is in a root table', 'a sequence counts rows of a group, and a group has one root row')
    } else if (presence !== 'required') {
      add(`is ${presence}`, 'make it required: every row gets a number')
    }
    first ??= name
  }
}

function checkNoSequence(
  table: string,
  path: string,
  properties: readonly Property[],
  at: SchemaPath,
  complaints: Complaints,
): void {
  for (const [index, { name, type }] of properties.entries()) {
    const here = [...at, 'properties', index]
    if (type.kind === 'message') {
      checkNoSequence(table, `${path}.${name}`, type.properties, here, complaints)
    } else if (type.kind === 'sequence') {
      const message = `table ${table}: ${path}.${name} is a sequence inside a message`
      complaints.add('bad-sequence', here, message, 'make it a property of the table')
    }
  }
}

function listNames(table: TableDraft): readonly string[] {
  return table.properties.map(({ name }) => name)
}
