/** The key of a table in steps: the parts it shares with those above it, and its own parts. */
import { present } from '../base/assert.ts'
import type { PropertyKind, Table } from '../../schema/model.ts'
import type { CompiledProperty, CompiledTable, KeyPart, KeyStep } from './compiled.ts'

interface Keyless {
  readonly table: Table
  readonly number: number
  readonly properties: readonly CompiledProperty[]
}

export interface Keyed extends Keyless {
  readonly key: readonly KeyPart[]
  readonly groupPartCount: number
  readonly steps: readonly KeyStep[]
  readonly ownParts: readonly KeyPart[]
}

/** The parts that the root and the parent have too are written as these write them. */
export function compileKey(
  { table, number, properties }: Keyless,
  root: CompiledTable | undefined,
  above: CompiledTable | undefined,
): Keyed {
  const inherited = above?.key ?? root?.key ?? []
  const key = table.key.parts.map(({ property: name, direction }, place): KeyPart => {
    const kind = inherited[place]?.kind ?? findKind(properties, name)
    return { name, kind, direction }
  })
  const groupPartCount = root?.key.length ?? key.length
  const group = key.slice(0, groupPartCount)
  const part = (one: KeyPart): KeyStep => ({ kind: 'part', part: one })
  const mark: KeyStep = { kind: 'mark', number }
  const ownParts = key.slice(above?.key.length ?? groupPartCount)
  if (above === undefined) {
    const named = group.map(({ name }, place): KeyStep => ({ kind: 'group', name, place }))
    const steps = [...named, mark, ...ownParts.map(part)]
    return { table, number, properties, key, groupPartCount, ownParts, steps }
  }
  // The parent's steps, by the names that its parts have here.
  let place = 0
  const renamed = above.steps.map((step): KeyStep => {
    if (step.kind === 'mark') return step
    const own = present(key[place++], "TAB-2: a key begins with its parent's")
    return step.kind === 'group' ? { ...step, name: own.name } : part(own)
  })
  const steps = [...renamed, mark, ...ownParts.map(part)]
  return { table, number, properties, key, groupPartCount, ownParts, steps }
}

export function findKind(properties: readonly CompiledProperty[], name: string): PropertyKind {
  const property = properties.find((one) => one.name === name)
  return present(property, 'TAB-2: a key is of properties').kind
}

export function findSequence(
  properties: readonly CompiledProperty[],
  key: readonly KeyPart[],
): CompiledTable['sequence'] {
  const name = properties.find(({ kind }) => kind === 'sequence')?.name
  return name === undefined ? undefined : { name, isInKey: key.some((part) => part.name === name) }
}

/** The names that a scan or an index query may give. */
export function listQueryNames(steps: readonly KeyStep[]): ReadonlySet<string> {
  return new Set(
    steps.flatMap((step) => {
      if (step.kind === 'mark') return []
      return [step.kind === 'group' ? step.name : step.part.name]
    }),
  )
}

/** A sequence's numbers, where the key has them from a table above. */
export function listNumbered(
  properties: readonly CompiledProperty[],
  key: readonly KeyPart[],
): readonly KeyPart[] {
  return key.filter(
    ({ name, kind }) => kind === 'sequence' && findKind(properties, name) !== 'sequence',
  )
}
