/**
 * Which group a row belongs to and where in it: roots, ENTITY GROUP KEY and IN TABLE. A child's key
 * begins with the key of its root, and with that of the table it is in, so that both can be read off
 * it and its rows stand where they should.
 *
 * A table whose own key is wrong is left alone here: the same mistake is not told twice.
 */
import type { Complaints, SchemaDraft, TableDraft } from './draft.ts'
import { tableDepthMax } from './limits.ts'
import type { KeyPart } from './model.ts'
import { didYouMean, type SchemaPath } from './problem.ts'
import { keyText, kindInChild, findKind } from './key-text.ts'

export function checkGroup(
  draft: SchemaDraft,
  table: TableDraft,
  at: SchemaPath,
  sound: ReadonlySet<TableDraft>,
  complaints: Complaints,
): void {
  const { name, isRoot, group, inTable } = table
  if (isRoot) return checkRootTable(table, at, complaints)
  if (group === undefined) return complainOfNoGroup(draft, table, at, complaints)
  const root = draft.tables.find((one) => one.name === group.root)
  if (root === undefined) {
    const message = `table ${name}: REFERENCES ${group.root}, which is not a table`
    return complaints.add(
      'unknown-table',
      [...at, 'group', 'root'],
      message,
      tableHint(draft, group.root),
    )
  }
  if (!root.isRoot) {
    const message = `table ${name}: REFERENCES ${root.name}, which is not an ENTITY GROUP ROOT`
    // Tables that reference one another in a circle have no root to be named.
    const above = draft.tables.find((one) => one.name === root.group?.root)
    const hint = above?.isRoot === true ? `its root is ${above.name}` : undefined
    return complaints.add('not-a-root', [...at, 'group', 'root'], message, hint)
  }
  if (!sound.has(table) || !sound.has(root)) return
  if (!checkGroupKey(table, root, at, complaints)) return
  if (inTable !== undefined) checkParent(draft, table, inTable, at, sound, complaints)
}

/** A root has no place below another row. */
function checkRootTable(
  { name, group, inTable, onDelete }: TableDraft,
  at: SchemaPath,
  complaints: Complaints,
): void {
  const complain = (member: 'inTable' | 'onDelete', clause: string, hint: string): void => {
    const message = `table ${name}: is an ENTITY GROUP ROOT and ${clause}`
    complaints.add('bad-parent', [...at, member], message, hint)
  }
  if (group !== undefined) {
    const message = `table ${name}: is an ENTITY GROUP ROOT and has an ENTITY GROUP KEY`
    complaints.add('bad-group-key', [...at, 'group'], message, 'leave one of them out')
  } else if (inTable !== undefined) {
    complain('inTable', `IN TABLE ${inTable}`, 'a root stands in a group of its own')
  } else if (onDelete !== undefined) {
    const hint =
      'it says what becomes of rows below another row; say it of the tables below this one'
    complain('onDelete', `has ON DELETE ${onDelete.toUpperCase()}`, hint)
  }
}

/** Without IN TABLE, any root could be meant; with it, the parent's. */
function complainOfNoGroup(
  draft: SchemaDraft,
  table: TableDraft,
  at: SchemaPath,
  complaints: Complaints,
): void {
  const parent = draft.tables.find(({ name }) => name === table.inTable)
  const root = parent?.isRoot === true ? parent.name : parent?.group?.root
  const roots = draft.tables.filter(({ isRoot }) => isRoot).map(({ name }) => name)
  const only = root ?? (roots.length === 1 ? roots[0] : undefined)
  const rootTable = draft.tables.find(({ name }) => name === only)
  const count = rootTable?.key?.parts.length ?? 1
  const names = table.key?.parts.slice(0, count).map(({ property }) => property) ?? []
  const example = `ENTITY GROUP KEY(${names.join(', ')}) REFERENCES ${only ?? 'ROOT_TABLE'}`
  const message = `table ${table.name}: is neither an ENTITY GROUP ROOT nor has an ENTITY GROUP KEY`
  complaints.add('missing-group', [...at, 'name'], message, `add ENTITY GROUP ROOT or ${example}`)
}

function checkGroupKey(
  table: TableDraft,
  root: TableDraft,
  at: SchemaPath,
  complaints: Complaints,
): boolean {
  const names = table.group?.key ?? []
  const own = table.key?.parts ?? []
  const wanted = root.key?.parts ?? []
  const here = [...at, 'group', 'key']
  if (!areProperties(table, names, here, complaints)) return false
  const misfit = groupKeyMisfit(table, root)
  if (misfit !== undefined) {
    const message = `table ${table.name}: ${misfit.reason}`
    complaints.add('bad-group-key', here, message, misfit.hint)
    return false
  }
  const turned = own.find(
    (part, index) => index < wanted.length && part.direction !== wanted[index]?.direction,
  )
  // With IN TABLE, the key of the parent says the same, and more.
  if (turned === undefined || table.inTable !== undefined) return true
  const message = `table ${table.name}: ${turned.property} is ${nameDirection(turned)} here and not in ${root.name}`
  complaints.add('bad-direction', [...at, 'key'], message, 'it is the same in all rows of a group')
  return false
}

function areProperties(
  table: TableDraft,
  names: readonly string[],
  at: SchemaPath,
  complaints: Complaints,
): boolean {
  const known = table.properties.map(({ name }) => name)
  const index = names.findIndex((name) => !known.includes(name))
  const name = names[index]
  if (name === undefined) return true
  const message = `table ${table.name}: ${name}, a part of its ENTITY GROUP KEY, is not one of its properties`
  complaints.add('unknown-property', [...at, index], message, didYouMean(name, known))
  return false
}

/** Why the group key, all properties, is not one: it names a row of the root, and begins the key. */
function groupKeyMisfit(
  table: TableDraft,
  root: TableDraft,
): { readonly reason: string; readonly hint: string } | undefined {
  const names = table.group?.key ?? []
  const wanted = root.key?.parts ?? []
  const list = `ENTITY GROUP KEY(${names.join(', ')})`
  const hint = `the key of ${root.name} is ${keyText(root)}`
  if (names.length !== wanted.length) {
    return { reason: `${list} does not name a row of ${root.name}`, hint }
  }
  for (const [index, name] of names.entries()) {
    if (findKind(table, name) !== kindInChild(root, wanted[index])) {
      return { reason: `${name} is ${findKind(table, name)} and names a row of ${root.name}`, hint }
    }
    if (table.key?.parts[index]?.property === name) continue
    return {
      reason: `the primary key ${keyText(table)} does not begin with the ${list}`,
      hint: 'rows of a group are found by it, so it comes first',
    }
  }
  return undefined
}

function checkParent(
  draft: SchemaDraft,
  table: TableDraft,
  parentName: string,
  at: SchemaPath,
  sound: ReadonlySet<TableDraft>,
  complaints: Complaints,
): void {
  const here = [...at, 'inTable']
  const complain = (message: string, hint?: string): void => {
    complaints.add('bad-parent', here, `table ${table.name}: ${message}`, hint)
  }
  const parent = draft.tables.find(({ name }) => name === parentName)
  if (parent === undefined) {
    const message = `table ${table.name}: is IN TABLE ${parentName}, which is not a table`
    return complaints.add('unknown-table', here, message, tableHint(draft, parentName))
  }
  const trail = findTrail(draft, table)
  if (trail.length > tableDepthMax) {
    return complain(
      `lies in more than ${tableDepthMax} tables: ${trail.slice(0, 4).join(' in ')} in …`,
    )
  }
  // Each of a circle's tables leads into it; the first one declared tells it.
  if (trail.at(-1) === table.name && trail.length > 1) {
    const isFirst = draft.tables.find(({ name }) => trail.includes(name))?.name === table.name
    return isFirst ? complain(`lies in itself: ${trail.join(' in ')}`) : undefined
  }
  const parentRoot = parent.isRoot ? parent.name : parent.group?.root
  if (parentRoot !== undefined && parentRoot !== table.group?.root) {
    const message = `table ${table.name}: its root is ${table.group?.root}, and it is IN TABLE ${parent.name} of root ${parentRoot}`
    return complaints.add(
      'wrong-root',
      here,
      message,
      'a row and the row it stands next to are of one group',
    )
  }
  if (sound.has(parent)) checkKeyOfParent(table, parent, here, complaints)
}

function checkKeyOfParent(
  table: TableDraft,
  parent: TableDraft,
  at: SchemaPath,
  complaints: Complaints,
): void {
  const own = table.key?.parts ?? []
  for (const [index, part] of (parent.key?.parts ?? []).entries()) {
    const mine = own[index]
    if (mine === undefined || findKind(table, mine.property) !== kindInChild(parent, part)) {
      const message = `table ${table.name}: its key ${keyText(table)} does not begin with the key of ${parent.name}`
      return complaints.add(
        'bad-parent',
        at,
        message,
        `the key of ${parent.name} is ${keyText(parent)}`,
      )
    }
    if (mine.direction === part.direction) continue
    const message = `table ${table.name}: ${mine.property} is ${nameDirection(mine)} and ${part.property} of ${parent.name} is ${nameDirection(part)}`
    return complaints.add('bad-direction', at, message, 'rows IN TABLE stand in one order')
  }
}

/** The table, what it is in, what that is in …, until a circle closes or nothing follows. */
function findTrail(draft: SchemaDraft, table: TableDraft): readonly string[] {
  const trail = [table.name]
  for (let here = table; here.inTable !== undefined && trail.length <= tableDepthMax + 1;) {
    const next = draft.tables.find(({ name }) => name === here.inTable)
    if (next === undefined) break
    const isCircle = trail.includes(next.name)
    trail.push(next.name)
    if (isCircle) break
    here = next
  }
  return trail
}

function nameDirection({ direction }: KeyPart): string {
  return direction === 'desc' ? 'DESC' : 'ascending'
}

function tableHint(draft: SchemaDraft, name: string): string | undefined {
  return didYouMean(
    name,
    draft.tables.map((table) => table.name),
  )
}
