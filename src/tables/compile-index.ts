/** An index over rows: where the values that it is over are found, and what names the row of an entry. */
import { assert, present } from '../base/assert.ts'
import type { GlobalIndex, Index, PropertyKind, Schema } from '../../schema/model.ts'
import { mayBeAbsent } from '../../schema/path.ts'
import { findKind, listQueryNames, type Keyed } from './compile-key.ts'
import type {
  CompiledGlobal,
  CompiledIndex,
  CompiledProperty,
  IndexedPart,
  KeyStep,
} from './compiled.ts'

export function compileIndex(index: Index, number: number, keyed: Keyed): CompiledIndex {
  const { table, properties, key, groupPartCount } = keyed
  const parts = index.parts.map(({ path, direction }): IndexedPart => {
    const { trail, kind } = follow(properties, path)
    const at = trail.findIndex(({ presence }) => presence === 'repeated')
    const names = trail.slice(at + 1).map(({ name }) => name)
    // A key part that a sequence of the parent gave is written alike everywhere.
    const inKey = key.find(({ name }) => name === path)
    const part = { name: path, kind: inKey?.kind ?? kind, direction, names, isInList: at >= 0 }
    return index.absent === 'first' && mayBeAbsent(trail) ? { ...part, mayBeAbsent: true } : part
  })
  const listed = index.parts.map(({ path }) => listOn(follow(properties, path).trail))
  const steps = parts.map((part): KeyStep => {
    const place = key.findIndex(({ name }) => name === part.name)
    const isOfGroup = place >= 0 && place < groupPartCount
    return isOfGroup ? { kind: 'group', name: part.name, place } : { kind: 'part', part }
  })
  return {
    kind: 'index',
    name: index.name,
    number,
    table: table.name,
    isUnique: index.kind === 'local' && index.unique,
    into: index.kind === 'inline' ? index.into : undefined,
    list: listed.find((list) => list !== undefined),
    parts,
    steps,
    queryNames: listQueryNames(steps),
    rowParts: key.slice(groupPartCount),
    rowSteps: keyed.steps,
    rowMarks: keyed.steps.filter(({ kind }) => kind === 'mark').length,
    storing: index.storing.map((path) => {
      const { trail, property } = follow(properties, path)
      return { path, names: trail.map(({ name }) => name), property }
    }),
  }
}

/** The table of a global index. */
export interface IndexedTable {
  readonly keyed: Keyed
  /** The place of all its groups, where they have the same. */
  readonly placeBytes: Uint8Array | undefined
}

/** Its entries name the whole row: they lie in no group of its. */
export function compileGlobal(
  { name: schema }: Schema,
  index: GlobalIndex,
  number: number,
  { keyed, placeBytes }: IndexedTable,
): CompiledGlobal {
  const shardPlace = index.parts.findIndex(({ path }) => path === index.shardBy)
  assert(shardPlace >= 0, 'TAB-2: an index is sharded by what it is over')
  const compiled = compileIndex(index, number, { ...keyed, groupPartCount: 0 })
  // A number that is drawn at commit says nothing before it.
  const isDrawn = findKind(keyed.properties, index.shardBy.split('.')[0] ?? '') === 'sequence'
  const { shards, spread } = isDrawn ? { shards: 1, spread: 1 } : index
  return { schema, shards, spread, shardPlace, placeBytes, ...compiled }
}

function listOn(trail: readonly CompiledProperty[]): readonly string[] | undefined {
  const at = trail.findIndex(({ presence }) => presence === 'repeated')
  return at < 0 ? undefined : trail.slice(0, at + 1).map(({ name }) => name)
}

function follow(
  properties: readonly CompiledProperty[],
  path: string,
): {
  readonly trail: readonly CompiledProperty[]
  readonly property: CompiledProperty
  readonly kind: PropertyKind
} {
  const trail: CompiledProperty[] = []
  let here = properties
  for (const word of path.split('.')) {
    const property = here.find(({ name }) => name === word)
    trail.push(present(property, 'TAB-2: an index is over properties'))
    here = property?.fields ?? []
  }
  const property = present(trail.at(-1), 'TAB-2: a path has a word')
  return { trail, property, kind: property.kind }
}
