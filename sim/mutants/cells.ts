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
  {
    id: 'C04',
    title: 'the log of a shard shows cells that have expired',
    edits: [
      {
        file: 'src/cells/shard-log.ts',
        find: 'for (const row of await living(rows, read)) if (row !== undefined) found.push(row)',
        replace: 'await living(rows, [])\n      for (const row of read) found.push(row)',
      },
    ],
    rules: ['TTL-3'],
  },
  {
    id: 'C06',
    title: 'the clock of a node, which is ahead, decides that a cell has expired and goes',
    edits: [
      {
        file: 'src/cells/shard-expiry.ts',
        find: "const asOf = present(await tx.asOf(), 'TTL-4: cells are removed at a moment')",
        replace:
          "const asOf = present(await tx.asOf(), 'TTL-4: cells are removed at a moment') + 800_000",
      },
      {
        file: 'src/cells/cell-expiry-worker.ts',
        find: 'const now = Math.max(clock.wallMicros(), timestamp)',
        replace: 'const now = Math.max(clock.wallMicros(), timestamp) + 800_000',
      },
    ],
    rules: ['TTL-4'],
  },
  {
    id: 'C07',
    title: 'a read of one cell by its name shows it when it has expired',
    edits: [
      {
        file: 'src/cells/living.ts',
        find: 'return living(rows, await getCells(rows, of, names))',
        replace: 'return getCells(rows, of, names)',
      },
      {
        file: 'src/cells/get-now.ts',
        find: 'return isGone({ createdAt, ttl }, point.timestamp) ? undefined : cell',
        replace: 'return isGone({ createdAt, ttl }, point.timestamp && 1) ? undefined : cell',
      },
    ],
    rules: ['TTL-3'],
  },
  {
    id: 'C08',
    title: 'the purge of a cell does not look for holds',
    edits: [
      {
        file: 'src/cells/cell-purge.ts',
        find: '  await checkHeldCell(tx, of, rowKey, said)\n',
        replace: '  if (refKey < 0) await checkHeldCell(tx, of, rowKey, said)\n',
      },
    ],
    rules: ['HOLD-1'],
  },
  {
    id: 'C09',
    title: 'expired cells are removed whether or not they are held',
    edits: [
      {
        file: 'src/cells/shard-expiry.ts',
        find: "held !== 'all' && !held.has(cell.rowKey)",
        replace: "held !== 'all' && (!held.has(cell.rowKey) || cell.refKey >= 0)",
      },
    ],
    rules: ['HOLD-1'],
  },
  {
    id: 'C10',
    title: 'the purge of a cell takes the one before it',
    edits: [
      {
        file: 'src/cells/cell-purge.ts',
        find: 'const [row] = await getCells(tx, of, [name])\n',
        replace:
          'const earlier = { ...name, refKey: Math.max(0, refKey - 1) }\n' +
          '  const [row] = await getCells(tx, of, [earlier])\n',
      },
    ],
  },
  {
    id: 'C11',
    title: 'the latest cell of a column may be one that has expired',
    edits: [
      {
        file: 'src/cells/living.ts',
        find: 'const latest = (await living(rows, page.items)).find((row) => row !== undefined)',
        replace: 'const latest = page.items.find((row) => row.cell.refKey >= 0)',
      },
    ],
    rules: ['TTL-3'],
  },
]
