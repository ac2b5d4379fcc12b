/** Planted bugs in the build of an index on existing rows: its reads, its puts, and its waits. */
import { withLaterIndex } from './indexes.ts'
import type { Mutant } from './mutant.ts'

export const buildMutants: readonly Mutant[] = [
  {
    id: 'X09',
    title: 'a build of a later index fills in its first stored property alone',
    edits: [
      {
        file: 'src/tables/index-backfill.ts',
        find: '  const fitting = fittingEntries(parts, row)\n',
        replace:
          "  const values = { ...row.values, [index.storing.at(-1)?.names[0] ?? '']: undefined }\n  const fitting = fittingEntries(parts, { ...row, values })\n",
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
        find: 'if (whole === undefined || newest === undefined) return whole?.row',
        replace:
          'if (whole === undefined || newest === undefined || sequence === undefined) return whole?.row',
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
    id: 'X13',
    title: 'a build of a later index reads a group once, and puts all its pages as they were then',
    edits: [
      {
        file: 'src/tables/index-backfill.ts',
        find: 'async function putPage(\n',
        replace: 'const seen = new Map()\n\nasync function putPage(\n',
      },
      {
        file: 'src/tables/index-backfill.ts',
        find: "import { StoreError } from '../base/errors.ts'\n",
        replace:
          "import { compareBytes } from '../base/bytes.ts'\nimport { StoreError } from '../base/errors.ts'\n",
      },
      {
        file: 'src/tables/index-backfill.ts',
        find: '  const page = await transaction.scan(range)\n',
        replace: [
          "  const place = String(context.group) + ' ' + parts.index.name",
          '  if (range.gte === rowRange.gte) {',
          '    seen.set(place, (await transaction.peek({ ...range, limit: 1_000 })).rows)',
          '  }',
          '  const all = seen.get(place) ?? []',
          '  const from = all.findIndex(({ key }) => compareBytes(key, range.gte) >= 0)',
          '  const rest = from < 0 ? [] : all.slice(from)',
          '  const page = {',
          '    rows: rest.slice(0, range.limit),',
          '    isWhole: rest.length <= (range.limit ?? rest.length),',
          '  }',
          '',
        ].join('\n'),
      },
    ],
  },
  {
    id: 'X14',
    title:
      'a build of an index over cells puts rows of a shard as they were before the first of them',
    edits: [
      {
        file: 'src/cells/index-build.ts',
        find: '    for await (const rowKey of listRows(parts, of, look)) {\n      await fillRow(parts, of, rowKey)\n',
        replace: [
          '    const said = new Map()',
          '    for await (const rowKey of listRows(parts, of, look)) {',
          "      const { value } = await parts.tables.read(shardKey(of), 'current', (reads) =>",
          '        buildIndexRows(reads, of, rowKey, [parts.definition]),',
          '      )',
          '      said.set(rowKey, value)',
          '    }',
          '    for (const [rowKey, row] of said) {',
          '      await fillRow(parts, of, rowKey, row)',
          '',
        ].join('\n'),
      },
      {
        file: 'src/cells/index-build.ts',
        find: 'async function fillRow(parts: CellBuildParts, of: ShardName, rowKey: string): Promise<void> {\n',
        replace:
          'async function fillRow(parts: CellBuildParts, of: ShardName, rowKey: string, said: any): Promise<void> {\n',
      },
      {
        file: 'src/cells/index-build.ts',
        find: 'await buildIndexRows(tx, of, rowKey, [definition]))\n',
        replace: 'said)\n',
      },
    ],
  },
  {
    id: 'X15',
    title: 'a build of a later index begins while programs that do not know it may still write',
    edits: [
      ...withLaterIndex,
      {
        file: 'src/tables/index-build.ts',
        find: "else if (life.state === 'known') await graceFrom(parts, life.since, graceMs)\n",
        replace:
          "else if (life.state === 'known') await graceFrom(parts, life.since, graceMs * 0)\n",
      },
    ],
  },
  {
    id: 'X16',
    title: 'a later index is ready before its rows are filled in',
    edits: [
      ...withLaterIndex,
      {
        file: 'src/tables/index-build.ts',
        find: '  const made = await makeIndex(parts, {\n',
        replace:
          '  await markReady(port, schema.name, index, 1, options)\n  const made = await makeIndex(parts, {\n',
      },
    ],
  },
  {
    id: 'X17',
    title: 'a later local index is asked as of moments before it was filled',
    edits: [
      ...withLaterIndex,
      {
        file: 'src/tables/index-gate.ts',
        find: '  if (asOf === undefined || asOf >= watch.findLife(index.name).since) return\n',
        replace: '  if (asOf === undefined || asOf > 0) return\n',
      },
    ],
  },
  {
    id: 'X18',
    title: 'a program of before does not keep a later local index',
    edits: [
      ...withLaterIndex,
      {
        file: 'src/tables/compile.ts',
        find: '    newest: later,\n',
        replace: '    newest: later && { ...later, indexes },\n',
      },
    ],
  },
]
