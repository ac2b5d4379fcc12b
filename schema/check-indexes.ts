/**
 * Indexes (Megastore, 3.2.2): their parts, what they store, and what each kind asks for. An index
 * over a list has an entry for each element; over two lists it would have one for each pair, so
 * that is refused, unless both are fields of the elements of one list.
 */
import { keyBytesMax } from '../src/base/limits.ts'
import { checkOptions } from './check-options.ts'
import type { Complaints, IndexDraft, SchemaDraft, TableDraft } from './draft.ts'
import { keyText, kindInChild, findKind } from './key-text.ts'
import { indexPartsMax, storedMax } from './limits.ts'
import type { IndexPart, Property } from './model.ts'
import { followPath, mayBeAbsent, repeatedOn } from './path.ts'
import { didYouMean, type SchemaPath } from './problem.ts'

export function checkIndex(
  draft: SchemaDraft,
  index: IndexDraft,
  at: SchemaPath,
  sound: ReadonlySet<TableDraft>,
  complaints: Complaints,
): void {
  const table = draft.tables.find(({ name }) => name === index.table)
  if (table === undefined) {
    const message = `index ${index.name}: is ON ${index.table}, which is not a table`
    const hint = didYouMean(
      index.table,
      draft.tables.map(({ name }) => name),
    )
    return complaints.add('unknown-table', [...at, 'table'], message, hint)
  }
  const before = complaints.count
  checkParts(index, table, at, complaints)
  if (complaints.count > before || !sound.has(table)) return
  checkDefaultBytes(index, table, at, complaints)
  checkStoring(index, table, at, complaints)
  if (index.kind === 'inline') checkInline(draft, index, table, at, sound, complaints)
  else checkDirections(index, groupNames(draft, table), at, complaints)
  checkAbsent(draft, index, at, complaints)
  checkOptions(index, at, complaints)
}

/** Is there a part that a row may be without? */
export function hasOptionalPart(
  { table: name, parts }: Pick<IndexDraft, 'table' | 'parts'>,
  tables: readonly TableDraft[],
): boolean {
  const properties = tables.find((table) => table.name === name)?.properties ?? []
  return parts.some(({ path }) => {
    const step = followPath(properties, path)
    return step.kind === 'found' && mayBeAbsent(step.trail)
  })
}

function checkAbsent(
  { tables }: SchemaDraft,
  index: IndexDraft,
  at: SchemaPath,
  complaints: Complaints,
): void {
  if (index.absent !== 'left-out' || hasOptionalPart(index, tables)) return
  const message = `index ${index.name}: is WHERE PRESENT, and every row has all that it is over`
  complaints.add('bad-option', [...at, 'absent'], message, 'leave it out')
}

function checkParts(
  index: IndexDraft,
  table: TableDraft,
  at: SchemaPath,
  complaints: Complaints,
): void {
  const { name, parts } = index
  if (parts.length === 0) {
    return complaints.add('empty', [...at, 'parts'], `index ${name}: is over nothing`)
  }
  if (parts.length > indexPartsMax) {
    const message = `index ${name}: is over ${parts.length} properties, at most ${indexPartsMax}`
    return complaints.add('too-many', [...at, 'parts'], message)
  }
  let list: string | undefined
  for (const [place, part] of parts.entries()) {
    const here = [...at, 'parts', place]
    const trail = findTrail(index, table, part.path, here, complaints)
    if (trail === undefined) continue
    if (parts.findIndex(({ path }) => path === part.path) < place) {
      complaints.add('duplicate-part', here, `index ${name}: ${part.path} is in it twice`)
      continue
    }
    checkPart(index, table, part, trail, here, complaints)
    const { path } = repeatedOn(trail)
    if (path !== undefined && list !== undefined && path !== list) {
      const message = `index ${name}: ${list} and ${path} are both repeated, so each pair of elements would be an entry`
      complaints.add('bad-index-part', here, message, 'make an index for each')
    }
    list ??= path
  }
}

/** Defaults that no entry of the index has room for: no row could be inserted without a value of its own. */
function checkDefaultBytes(
  { name, parts }: IndexDraft,
  table: TableDraft,
  at: SchemaPath,
  complaints: Complaints,
): void {
  const bytes = parts.reduce((sum, { path }) => {
    const step = followPath(table.properties, path)
    return sum + (step.kind === 'found' ? bytesOfDefault(step.property) : 0)
  }, 0)
  if (bytes < keyBytesMax) return
  const message = `index ${name}: the defaults of what it is over have ${bytes} bytes, and an entry at most ${keyBytesMax}`
  complaints.add('bad-default', [...at, 'parts', 0], message)
}

function bytesOfDefault({ type, default: literal }: Property): number {
  if (typeof literal !== 'string') return 0
  return type.kind === 'bytes' ? literal.length / 2 : new TextEncoder().encode(literal).length
}

function checkPart(
  index: IndexDraft,
  table: TableDraft,
  part: IndexPart,
  trail: readonly Property[],
  at: SchemaPath,
  complaints: Complaints,
): void {
  const complain = (reason: string, hint?: string): void => {
    complaints.add('bad-index-part', at, `index ${index.name}: ${part.path} ${reason}`, hint)
  }
  const type = trail.at(-1)?.type
  if (type?.kind === 'json') {
    return complain(
      'is json, which has no order',
      `index a property of another type of ${table.name}`,
    )
  }
  if (type?.kind === 'message') {
    const field = type.properties[0]?.name ?? 'field'
    return complain('is a message', `index its fields, such as ${part.path}.${field}`)
  }
  if (repeatedOn(trail).count > 1) {
    return complain('is a list inside a list', 'an index goes over one list')
  }
  if (type?.kind === 'sequence' && part.direction === 'desc') {
    const message = `index ${index.name}: sequence ${part.path} is DESC, and numbers are given in ascending order`
    complaints.add('bad-direction', at, message, 'leave DESC out and scan in reverse')
  }
}

/** The properties that a path leads over; complains and gives undefined when it leads nowhere. */
function findTrail(
  index: IndexDraft,
  table: TableDraft,
  path: string,
  at: SchemaPath,
  complaints: Complaints,
): readonly Property[] | undefined {
  const step = followPath(table.properties, path)
  if (step.kind === 'found') return step.trail
  if (step.kind === 'not-a-message') {
    const inside = step.inside.join('.')
    const message = `index ${index.name}: ${path} leads into ${inside}, which is ${step.property.type.kind} and not a message`
    complaints.add('unknown-field', at, message)
  } else if (step.inside.length === 0) {
    const message = `index ${index.name}: ${step.word} is not a property of ${table.name}`
    complaints.add('unknown-property', at, message, didYouMean(step.word, step.known))
  } else {
    const message = `index ${index.name}: ${step.word} is not a field of ${table.name}.${step.inside.join('.')}`
    complaints.add('unknown-field', at, message, didYouMean(step.word, step.known))
  }
  return undefined
}

function checkStoring(
  index: IndexDraft,
  table: TableDraft,
  at: SchemaPath,
  complaints: Complaints,
): void {
  const { name, storing } = index
  if (storing.length > storedMax) {
    const message = `index ${name}: stores ${storing.length} properties, at most ${storedMax}`
    return complaints.add('too-many', [...at, 'storing'], message)
  }
  const there = new Set([
    ...index.parts.map(({ path }) => path),
    ...(table.key?.parts ?? []).map(({ property }) => property),
  ])
  for (const [place, path] of storing.entries()) {
    const here = [...at, 'storing', place]
    const trail = findTrail(index, table, path, here, complaints)
    if (trail === undefined) continue
    const around = storing.find((other) => path.startsWith(`${other}.`))
    const list = repeatedOn(trail.slice(0, -1)).path
    const complain = (reason: string, hint?: string): void => {
      complaints.add('bad-storing', here, `index ${name}: STORING ${path} ${reason}`, hint)
    }
    if (there.has(path)) complain('stores what the entry has already', 'leave it out')
    else if (storing.indexOf(path) < place) complain('is there twice')
    else if (around !== undefined) complain(`is a part of ${around}, which is stored whole`)
    else if (list !== undefined) complain(`is inside the list ${list}`, `store ${list} whole`)
  }
}

/** Entries of one group all have its key: no direction turns that around. */
function checkDirections(
  index: IndexDraft,
  groupKey: readonly string[],
  at: SchemaPath,
  complaints: Complaints,
): void {
  if (index.kind === 'global') return
  for (const [place, name] of groupKey.entries()) {
    const part = index.parts[place]
    if (part?.path !== name) return
    if (part.direction === 'asc') continue
    const message = `index ${index.name}: ${name} is DESC, and it is the same in all of a group`
    complaints.add('bad-direction', [...at, 'parts', place], message, 'leave DESC out')
  }
}

function checkInline(
  draft: SchemaDraft,
  index: IndexDraft,
  table: TableDraft,
  at: SchemaPath,
  sound: ReadonlySet<TableDraft>,
  complaints: Complaints,
): void {
  const here = [...at, 'into']
  if (index.unique) {
    const message = `index ${index.name}: is INLINE and UNIQUE`
    return complaints.add('bad-option', at, message, 'make a UNIQUE LOCAL INDEX beside it')
  }
  if (index.into === undefined) {
    const message = `index ${index.name}: is INLINE and does not say into which table`
    return complaints.add('bad-option', at, message, 'add IN TABLE and its name')
  }
  const target = draft.tables.find(({ name }) => name === index.into)
  if (target === undefined) {
    const message = `index ${index.name}: is IN TABLE ${index.into}, which is not a table`
    const hint = didYouMean(
      index.into,
      draft.tables.map(({ name }) => name),
    )
    return complaints.add('unknown-table', here, message, hint)
  }
  if (findRoot(target) !== findRoot(table)) {
    const message = `index ${index.name}: rows of ${table.name} and of ${target.name} are never of one group`
    const hint = `their roots are ${findRoot(table)} and ${findRoot(target)}`
    return complaints.add('wrong-root', here, message, hint)
  }
  if (target.properties.some(({ name }) => name === index.name)) {
    const message = `index ${index.name}: ${target.name} has a property of that name`
    return complaints.add('duplicate-name', [...at, 'name'], message, 'its entries appear as one')
  }
  if (!sound.has(target)) return
  checkTargetKey(index, table, target, groupNames(draft, table), at, complaints)
}

/** The first parts name the row that the entries appear in. */
function checkTargetKey(
  index: IndexDraft,
  table: TableDraft,
  target: TableDraft,
  groupKey: readonly string[],
  at: SchemaPath,
  complaints: Complaints,
): void {
  const wanted = target.key?.parts ?? []
  const startsWithGroup = groupKey.every((name, place) => index.parts[place]?.path === name)
  const fits = wanted.every((part, place) => {
    const step = followPath(table.properties, index.parts[place]?.path ?? '')
    const kind = step.kind === 'found' ? step.property.type.kind : undefined
    return (kind === 'sequence' ? 'integer' : kind) === kindInChild(target, part)
  })
  if (!startsWithGroup || !fits) {
    const message = `index ${index.name}: its first parts do not name a row of ${target.name}`
    const names = groupKey.map((name) => `${findKind(table, name)} ${name}`).join(', ')
    const hint = `begin with (${names}${wanted.length > groupKey.length ? ', …' : ''}), which fits the key ${keyText(target)}`
    return complaints.add('bad-index-part', [...at, 'parts', 0], message, hint)
  }
  for (const [place, part] of index.parts.slice(0, wanted.length).entries()) {
    if (part.direction === 'asc') continue
    const message = `index ${index.name}: ${part.path} is DESC, and it is the same in all entries of a row of ${target.name}`
    complaints.add('bad-direction', [...at, 'parts', place], message, 'leave DESC out')
  }
}

function findRoot(table: TableDraft): string | undefined {
  return table.isRoot ? table.name : table.group?.root
}

/** The properties that name a table's group in its own rows. */
function groupNames(draft: SchemaDraft, table: TableDraft): readonly string[] {
  if (table.isRoot) return table.key?.parts.map(({ property }) => property) ?? []
  const isKnown = draft.tables.some(({ name }) => name === table.group?.root)
  return isKnown ? (table.group?.key ?? []) : []
}
