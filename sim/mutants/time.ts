/**
 * Planted bugs that need an event inside a read, between the look and the use of what it found;
 * and turns that take too long.
 */
import type { Mutant } from './mutant.ts'

export const timeMutants: readonly Mutant[] = [
  {
    id: 'D01',
    title: 'what the horizon passes while history is looked through goes, whoever reads it still',
    edits: [
      {
        file: 'src/store/history-sweep.ts',
        find: 'if (mayGo(this.#parts.findEnd(row), oldest)) found.push(row.key)',
        replace:
          'if (mayGo(this.#parts.findEnd(row), sweep.horizon > horizon ? sweep.horizon : oldest)) found.push(row.key)',
      },
    ],
  },
  {
    id: 'D02',
    title:
      'a group is taken off a list as of a position that is read after its rows were looked at',
    edits: [
      {
        file: 'src/worklist/worklist-service.ts',
        find:
          "    const { position } = await replica.read(group, 'snapshot', readTimeoutMs)\n" +
          '    const rows = await replica.scan(group, { limit: 1, ...buildRange(topic) })\n',
        replace:
          '    const rows = await replica.scan(group, { limit: 1, ...buildRange(topic) })\n' +
          "    const { position } = await replica.read(group, 'snapshot', readTimeoutMs)\n",
      },
    ],
  },
  {
    id: 'D03',
    title: 'of one key the history is looked at first, and then what is newest',
    edits: [
      {
        file: 'src/store/snapshot-reads.ts',
        find:
          '    const stored = read(joined(rowsPrefix(prefix), key))\n' +
          '    if (stored !== undefined && stored.stamp <= at) {\n' +
          '      return { key, value: stored.payload, timestamp: stored.stamp }\n' +
          '    }\n' +
          '    const history',
        replace: '    const history',
      },
      {
        file: 'src/store/snapshot-reads.ts',
        find:
          '    for await (const [row] of this.#history(range, history.length, at)) return row\n' +
          '    return undefined\n',
        replace:
          '    for await (const [row] of this.#history(range, history.length, at)) if (row) return row\n' +
          '    const stored = read(joined(rowsPrefix(prefix), key))\n' +
          '    if (stored === undefined || stored.stamp > at) return undefined\n' +
          '    return { key, value: stored.payload, timestamp: stored.stamp }\n',
      },
    ],
  },
  {
    id: 'D04',
    title: 'rows that wait to be written are looked up after those that are in the store',
    edits: [
      {
        file: 'src/store/merge-rows.ts',
        find:
          '  overlay: readonly OverlayRow[],\n' +
          '  stored: AsyncIterable<readonly Row[]>,\n' +
          '  range: PageRange,\n' +
          '): Promise<readonly Row[]> {\n' +
          '  const merge = new Merge(overlay, range)\n' +
          '  for await (const rows of stored) {\n' +
          '    for (const row of rows) merge.add(row)\n' +
          '    if (merge.isFull) break\n' +
          '  }\n',
        replace:
          '  overlay: readonly OverlayRow[] | (() => readonly OverlayRow[]),\n' +
          '  stored: AsyncIterable<readonly Row[]>,\n' +
          '  range: PageRange,\n' +
          '): Promise<readonly Row[]> {\n' +
          '  const found: Row[] = []\n' +
          '  for await (const rows of stored) found.push(...rows)\n' +
          "  const merge = new Merge(typeof overlay === 'function' ? overlay() : overlay, range)\n" +
          '  for (const row of found) merge.add(row)\n',
      },
      {
        file: 'src/store/data-store.ts',
        find: '    return mergeRows(pending, stored, range)\n',
        replace: '    return mergeRows(() => this.#overlay.range(group, range), stored, range)\n',
      },
    ],
  },
  {
    id: 'D05',
    title: 'for each entry that it supplies, a node looks through all before it once more',
    rules: ['LIVE-6'],
    edits: [
      {
        file: 'src/peers/replies.ts',
        find: '      if (entries.length >= entriesMax) break\n',
        replace:
          '      for (let at = from; at < position; at++) log.chosen(group, at)\n' +
          '      if (entries.length >= entriesMax) break\n',
      },
    ],
  },
]
