/** Where a property is found in a line of a file: a field of its own, or a path into others. */
import type { Json } from '../cells/body.ts'

/** `contributors.0.id`: a field of that very name, or from the outside in. */
export interface FieldSource {
  readonly text: string
  /** Names of members and numbers of elements; undefined for what can only be a name. */
  readonly path: readonly string[] | undefined
}

/** Where properties are found whose name is no field of the file. */
export type Sources = ReadonlyMap<string, FieldSource>

export type Members = { readonly [name: string]: Json }

/** A value of a line, and the outermost field that it is in. */
export interface Found {
  readonly field: string
  readonly value: Json
}

export function fieldSource(text: string): FieldSource | undefined {
  if (text === '') return undefined
  const steps = text.split('.')
  return { text, path: steps.includes('') ? undefined : steps }
}

/** The field of this name, or else what is at the end of the path; undefined where there is neither. */
export function fieldAt(members: Members, { text, path }: FieldSource): Found | undefined {
  const own = memberAt(members, text)
  if (own !== undefined) return { field: text, value: own }
  const [field = '', ...steps] = path ?? []
  let value = path === undefined ? undefined : memberAt(members, field)
  for (const step of steps) value = valueAt(value, step)
  return value === undefined ? undefined : { field, value }
}

/** A member that every object has by its class is no member of a line. */
export function memberAt(members: Members, name: string): Json | undefined {
  return Object.hasOwn(members, name) ? members[name] : undefined
}

function valueAt(value: Json | undefined, step: string): Json | undefined {
  if (isList(value)) return /^(?:0|[1-9]\d*)$/.test(step) ? value[Number(step)] : undefined
  const members = readMembers(value)
  return members === undefined ? undefined : memberAt(members, step)
}

export function isList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value)
}

/** Of an object; undefined for anything else. */
export function readMembers(value: Json | undefined): Members | undefined {
  if (typeof value !== 'object' || value === null || isList(value)) return undefined
  return value
}
