/** Paths into rows: `thumbnail_url`, or `exif.camera` for a field of a nested message. */
import type { Property } from './model.ts'

export type PathStep =
  | { readonly kind: 'found'; readonly trail: readonly Property[]; readonly property: Property }
  | {
      readonly kind: 'unknown'
      /** The word that was not found, its place, and the names that are there instead. */
      readonly word: string
      readonly inside: readonly string[]
      readonly known: readonly string[]
    }
  | {
      readonly kind: 'not-a-message'
      readonly property: Property
      readonly inside: readonly string[]
    }

/** Follows a path; `trail` has every property on it, the last one included. */
export function followPath(properties: readonly Property[], path: string): PathStep {
  const trail: Property[] = []
  let here = properties
  for (const word of path.split('.')) {
    const inside = trail.map(({ name }) => name)
    const last = trail.at(-1)
    if (last !== undefined && last.type.kind !== 'message') {
      return { kind: 'not-a-message', property: last, inside }
    }
    const property = here.find(({ name }) => name === word)
    if (property === undefined) {
      return { kind: 'unknown', word, inside, known: here.map(({ name }) => name) }
    }
    trail.push(property)
    here = property.type.kind === 'message' ? property.type.properties : []
  }
  const property = trail.at(-1)
  if (property === undefined) return { kind: 'unknown', word: path, inside: [], known: [] }
  return { kind: 'found', trail, property }
}

/** May a row, or an element of the list on the trail, be without what the trail leads to? */
export function mayBeAbsent(trail: readonly Pick<Property, 'presence'>[]): boolean {
  const list = trail.findIndex(({ presence }) => presence === 'repeated')
  return trail.slice(list + 1).some(({ presence }) => presence === 'optional')
}

/** The path of the repeated property on a trail, and how many of them there are. */
export function repeatedOn(trail: readonly Property[]): {
  readonly path: string | undefined
  readonly count: number
} {
  const at = trail.findIndex(({ presence }) => presence === 'repeated')
  const names = trail.slice(0, at + 1).map(({ name }) => name)
  const count = trail.filter(({ presence }) => presence === 'repeated').length
  return { path: at < 0 ? undefined : names.join('.'), count }
}
