/** Planted bugs in the build of an index on rows that are there: what it reads, puts, and waits for. */
import type { Mutant } from './mutant.ts'

export const buildMutants: readonly Mutant[] = [
  {
    id: 'X05',
    title: 'an index over cells is ready before what its build has said is relayed',
    rules: ['IDX-6'],
    edits: [
      {
        file: 'src/cells/index-build.ts',
        find: '    await untilRelayedFrom(port, shardGroupOf(of), indexAgenda, { clock })\n',
        replace:
          '    if (rows < 0) await untilRelayedFrom(port, shardGroupOf(of), indexAgenda, { clock })\n',
      },
    ],
  },
  {
    id: 'X06',
    title: 'a later index of a table is ready before what its build has said is relayed',
    rules: ['IDX-6'],
    edits: [
      {
        file: 'src/tables/index-upkeep.ts',
        find: '  await untilRelayed(parts, groups)\n',
        replace: '  if (groups < 0) await untilRelayed(parts, groups)\n',
      },
    ],
  },
  {
    id: 'X07',
    title:
      'a build of a later index puts the entries of rows that were read before its transaction',
    edits: [
      {
        file: 'src/tables/index-upkeep.ts',
        find: '  const page = await transaction.scan(range)\n',
        replace: '  const page = await transaction.peek(range)\n',
      },
    ],
  },
  {
    id: 'X08',
    title: 'a build of an index over cells puts what a row said before its transaction',
    edits: [
      {
        file: 'src/cells/index-build.ts',
        find: '  await tables.transaction(shardKey(of), async (tx) => {\n',
        replace:
          "  const { value: said } = await tables.read(shardKey(of), 'current', (reads) => indexRowsOf(reads, of, rowKey, [definition]))\n  await tables.transaction(shardKey(of), async (tx) => {\n",
      },
      {
        file: 'src/cells/index-build.ts',
        find: 'await indexRowsOf(tx, of, rowKey, [definition]))\n',
        replace: 'said)\n',
      },
    ],
  },
  {
    id: 'X09',
    title: 'a build of a later index fills in its first stored property alone',
    edits: [
      {
        file: 'src/tables/index-upkeep.ts',
        find: '  for (const entry of entriesOf(table, index, values).values()) {\n',
        replace:
          "  const few = { ...values, [index.storing.at(-1)?.names[0] ?? '']: undefined }\n  for (const entry of entriesOf(table, index, few).values()) {\n",
      },
    ],
  },
  {
    id: 'X10',
    title:
      'a program of before puts entries of a later index without the properties that it does not know',
    edits: [
      {
        file: 'src/tables/global-writes.ts',
        find: '  if (newest === undefined) return row\n',
        replace: '  if (newest === undefined || sequence === undefined) return row\n',
      },
    ],
  },
  {
    id: 'X11',
    title:
      'a build of an index over cells does not settle what one node alone may have accepted in a shard',
    edits: [
      {
        file: 'src/cells/index-build.ts',
        find: '      transaction.takePosition()\n',
        replace: '      await transaction.view()\n',
      },
    ],
  },
  {
    id: 'X12',
    title:
      'a build of a later index does not settle what one node alone may have accepted in a group',
    edits: [
      {
        file: 'src/tables/index-upkeep.ts',
        find: '  transaction.takePosition()\n',
        replace: '',
      },
    ],
  },
]
