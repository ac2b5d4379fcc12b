/** Names: each is one, none is taken, and there are not too many of them. */
import type { Complaints, SchemaDraft, TableDraft } from './draft.ts'
import { indexesMax, messageDepthMax, propertiesMax, tablesMax } from './limits.ts'
import type { Property } from './model.ts'
import type { SchemaPath } from './problem.ts'
import { nameProblem } from './words.ts'

export function checkNames(draft: SchemaDraft, complaints: Complaints): void {
  checkName('schema', draft.name, ['name'], complaints)
  checkCount('tables', draft.tables.length, tablesMax, complaints)
  checkCount('indexes', draft.indexes.length, indexesMax, complaints)
  if (draft.tables.length === 0) {
    complaints.add('empty', ['name'], `schema ${draft.name} has no tables`)
  }
  // Tables and indexes share one space of names: an inline index looks like a property, and
  // commands take either.
  const taken = new Taken()
  for (const [index, { name }] of draft.tables.entries()) {
    checkName('table', name, ['tables', index, 'name'], complaints)
    taken.take('table', name, ['tables', index, 'name'], complaints)
  }
  for (const [index, { name }] of draft.indexes.entries()) {
    checkName('index', name, ['indexes', index, 'name'], complaints)
    taken.take('index', name, ['indexes', index, 'name'], complaints)
  }
  for (const [index, table] of draft.tables.entries()) {
    checkTable(table, ['tables', index], complaints)
  }
}

function checkTable(table: TableDraft, at: SchemaPath, complaints: Complaints): void {
  const owner = `table ${table.name}`
  checkProperties(owner, table.properties, at, 0, complaints)
  const count = propertyCount(table.properties)
  if (count > propertiesMax) {
    const message = `${owner}: has ${count} properties, fields of messages included; at most ${propertiesMax}`
    complaints.add('too-many', [...at, 'name'], message)
  }
}

function checkProperties(
  owner: string,
  properties: readonly Property[],
  at: SchemaPath,
  depth: number,
  complaints: Complaints,
): void {
  const noun = depth === 0 ? 'property' : 'field'
  if (properties.length === 0) {
    const plural = depth === 0 ? 'properties' : 'fields'
    complaints.add('empty', [...at, 'name'], `${owner}: has no ${plural}`)
  }
  const taken = new Taken(`${owner}: `)
  for (const [index, { name, type }] of properties.entries()) {
    const here = [...at, 'properties', index]
    checkName(`${owner}: ${noun}`, name, [...here, 'name'], complaints)
    taken.take(noun, name, [...here, 'name'], complaints)
    if (type.kind !== 'message') continue
    if (depth >= messageDepthMax) {
      const message = `${owner}: ${noun} ${name} lies deeper than ${messageDepthMax} messages inside one another`
      complaints.add('too-many', [...here, 'name'], message)
    } else {
      const inner = depth === 0 ? `${owner}: message ${name}` : `${owner}.${name}`
      checkProperties(inner, type.properties, here, depth + 1, complaints)
    }
  }
}

function propertyCount(properties: readonly Property[]): number {
  return properties.reduce(
    (sum, { type }) => sum + 1 + (type.kind === 'message' ? propertyCount(type.properties) : 0),
    0,
  )
}

function checkName(what: string, name: string, at: SchemaPath, complaints: Complaints): void {
  const problem = nameProblem(name)
  if (problem === undefined) return
  const shown = /^\w*$/.test(name) && name !== '' ? name : JSON.stringify(name)
  complaints.add(problem.kind, at, `${what} ${shown} ${problem.reason}`, problem.hint)
}

function checkCount(what: string, count: number, most: number, complaints: Complaints): void {
  if (count <= most) return
  complaints.add('too-many', ['name'], `the schema has ${count} ${what}, at most ${most}`)
}

/** Names that differ only in their letters' case count as one: people and shells mix them up. */
class Taken {
  readonly #prefix: string
  readonly #byLowerCase = new Map<string, { readonly what: string; readonly name: string }>()

  constructor(prefix = '') {
    this.#prefix = prefix
  }

  take(what: string, name: string, at: SchemaPath, complaints: Complaints): void {
    const before = this.#byLowerCase.get(name.toLowerCase())
    if (before === undefined) {
      this.#byLowerCase.set(name.toLowerCase(), { what, name })
    } else if (before.name === name) {
      const also =
        before.what === what
          ? `two of the name ${name}`
          : `a ${before.what} and an ${what} of the name ${name}`
      complaints.add('duplicate-name', at, `${this.#prefix}there are ${also}`)
    } else {
      const message = `${this.#prefix}${what} ${name} and ${before.what} ${before.name} differ only in capital letters`
      complaints.add('duplicate-name', at, message)
    }
  }
}
