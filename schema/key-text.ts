/** Keys in messages: `(int64 user_id, int32 photo_id DESC)`; and how keys of two tables fit. */
import type { TableDraft } from './draft.ts'
import type { KeyPart, PropertyKind } from './model.ts'

export function keyText(table: TableDraft): string {
  const parts = (table.key?.parts ?? []).map((part) => {
    const direction = part.direction === 'desc' ? ' DESC' : ''
    return `${findKind(table, part.property) ?? '?'} ${part.property}${direction}`
  })
  return `(${parts.join(', ')})`
}

export function findKind(table: TableDraft, property: string): PropertyKind | undefined {
  return table.properties.find(({ name }) => name === property)?.type.kind
}

/**
 * The kind of a property that names this part of a row's key: a number that a sequence gave is an integer.
 */
export function kindInChild(
  table: TableDraft,
  part: KeyPart | undefined,
): PropertyKind | undefined {
  const kind = part === undefined ? undefined : findKind(table, part.property)
  return kind === 'sequence' ? 'integer' : kind
}
