/**
 * SCH-17: a root table says where its groups are, by the name of a set or a region, or by a text of its key.
 */
import type { Complaints, SchemaDraft, TableDraft } from './draft.ts'
import type { TablePlacement } from './model.ts'
import { isPlaceName, placementText } from './placement.ts'
import { didYouMean, type SchemaPath } from './problem.ts'

/** The draft with the schema's placement at each root table that has none of its own. */
export function spreadPlacement(draft: SchemaDraft): SchemaDraft {
  const { placement, tables } = draft
  if (placement === undefined) return draft
  const isOpen = (table: TableDraft): boolean => table.isRoot && table.placement === undefined
  return {
    ...draft,
    tables: tables.map((table) => (isOpen(table) ? { ...table, placement } : table)),
  }
}

export function checkPlacement(table: TableDraft, at: SchemaPath, complaints: Complaints): void {
  const { placement } = table
  if (placement === undefined) return
  const complain = (reason: string, hint?: string): void => {
    const message = `table ${table.name}: ${reason}`
    complaints.add('bad-placement', [...at, 'placement'], message, hint)
  }
  if (!table.isRoot) {
    const hint = 'its rows are where the group of their root row is: say it of the root table'
    return complain('PLACEMENT is of entity group roots', hint)
  }
  if (placement.kind === 'by') return checkProperty(table, placement, complain)
  if (isPlaceName(placement.name)) return
  const hint = 'a set or a region has 1 to 32 of a-z, 0-9 and -'
  complain(`${placementText(placement)} names no ${placement.kind}`, hint)
}

function checkProperty(
  { key, properties }: TableDraft,
  { property: name }: TablePlacement & { readonly kind: 'by' },
  complain: (reason: string, hint?: string) => void,
): void {
  // A table without a key is reported already.
  if (key === undefined) return
  const ofKey = key.parts.map(({ property }) => property)
  if (!ofKey.includes(name)) {
    const hint = didYouMean(name, ofKey)
    return complain(`PLACEMENT BY ${name}, which is not in its primary key`, hint)
  }
  const kind = properties.find((one) => one.name === name)?.type.kind
  if (kind === undefined || kind === 'string') return
  const hint = 'the value is the name of a region: make it a string'
  complain(`PLACEMENT BY ${name}, which is of type ${kind}`, hint)
}
