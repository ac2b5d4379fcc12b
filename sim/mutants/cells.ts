/** Planted bugs in cells: purging. */
import type { Mutant } from './mutant.ts'

export const cellMutants: readonly Mutant[] = [
  {
    id: 'C01',
    title: 'a column does not remember how far it was purged',
    edits: [
      {
        file: 'src/cells/cell-table.ts',
        find: 'await tx.put(purgedTable, { ...key, ref_key: Math.max(before, refKey) })',
        replace: 'await tx.put(purgedTable, { ...key, ref_key: before })',
      },
    ],
    rules: ['CELL-1'],
  },
  {
    id: 'C02',
    title: 'a purge takes the latest cell of a column for superseded',
    edits: [
      {
        file: 'src/cells/shard-purge.ts',
        find: 'later.refKey > cell.refKey)) {',
        replace: 'later.refKey >= cell.refKey)) {',
      },
    ],
    rules: ['CELL-8'],
  },
  {
    id: 'C03',
    title: 'a purge that finds one cell to remove is acknowledged and leaves it there',
    edits: [
      {
        file: 'src/cells/shard-purge.ts',
        find: 'if (still.length > 0) await removeCells',
        replace: 'if (still.length > 1) await removeCells',
      },
    ],
    rules: ['CELL-7'],
  },
]
