/**
 * The content of global indexes, worked out from plain rows of all stores: no keys, no worklists, no relay.
 */
import type { Named } from '../workloads/table-step.ts'
import { listRows, describeValue, type TableState } from './table-model.ts'

export interface GlobalIndexModel {
  readonly name: string
  readonly table: string
  readonly key: readonly string[]
  /**
   * The indexed properties. An entry leaves an absent one out; a list has an entry for each
   * distinct element.
   */
  readonly parts: readonly string[]
  readonly storing: readonly string[]
}

export const globalIndexes: readonly GlobalIndexModel[] = [
  {
    name: 'AllItemsByTag',
    table: 'Item',
    key: ['store', 'shelf', 'item'],
    parts: ['tag', 'price'],
    storing: ['note'],
  },
  {
    name: 'AllShelvesByLabel',
    table: 'Shelf',
    key: ['store', 'shelf'],
    parts: ['label'],
    storing: [],
  },
  { name: 'AllVisitsByWho', table: 'Visit', key: ['store', 'visit'], parts: ['who'], storing: [] },
]

/** It comes with the second version, and so does one of the properties that it stores. */
export const laterIndex: GlobalIndexModel = {
  name: 'AllItemsByNote',
  table: 'Item',
  key: ['store', 'shelf', 'item'],
  parts: ['note'],
  storing: ['price', 'origin'],
}

/** The entries of a state's rows, each as a text. */
export function globalEntries(state: TableState, index: GlobalIndexModel): readonly string[] {
  return listRows(state, index.table).flatMap((row) => entriesOfRow(row, index).map(describeValue))
}

function entriesOfRow(row: Named, { key, parts, storing }: GlobalIndexModel): readonly Named[] {
  const list = parts.find((name) => Array.isArray(row[name]))
  const values: unknown = list === undefined ? [undefined] : row[list]
  const elements: readonly unknown[] = Array.isArray(values) ? [...new Set(values)] : []
  return elements.flatMap((element) => {
    const whole: Named = list === undefined ? row : { ...row, [list]: element }
    const names = [...key, ...parts, ...storing].filter((name) => whole[name] !== undefined)
    return [Object.fromEntries(names.map((name) => [name, whole[name]]))]
  })
}
