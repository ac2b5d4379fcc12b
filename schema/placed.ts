/** The placement of groups as programs in TypeScript give it. */
import type { Rule } from '../src/base/arguments.ts'
import { isPlain } from '../src/base/words.ts'
import { wrong } from './given.ts'
import type { TablePlacement } from './model.ts'

/**
 * Where groups are: in the replica set of this name, in the sets of this region, or in those of the region that the value of this
 * string of the key names. Names are 1 to 32 of `a-z 0-9 -`.
 */
export type PlacementOption<Part extends string = string> =
  { readonly set: string } | { readonly region: string } | { readonly by: Part }

const words = "{ set: 'a' }, { region: 'eu' } or { by: 'a property of the key' }"

export const placementRule: Rule = {
  accepts: (value) => readOne(value) !== undefined,
  words,
}

/** Undefined for no placement. Throws `SchemaError` for a value that is none. */
export function readPlacement(subject: string, given: unknown): TablePlacement | undefined {
  if (given === undefined) return undefined
  const placement = readOne(given)
  if (placement === undefined) throw wrong(subject, `its placement is not one; expected ${words}`)
  return placement
}

function readOne(given: unknown): TablePlacement | undefined {
  if (typeof given !== 'object' || given === null || !isPlain(given)) return undefined
  const [entry, ...others] = Object.entries(given)
  const [kind, name]: readonly unknown[] = entry ?? []
  if (others.length > 0 || typeof name !== 'string') return undefined
  if (kind === 'by') return { kind, property: name }
  return kind === 'set' || kind === 'region' ? { kind, name } : undefined
}
