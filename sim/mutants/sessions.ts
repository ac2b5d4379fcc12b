/**
 * Planted bugs in what a session is shown: by versions, rows, logs and batches, and by their pages.
 */
import type { Mutant } from './mutant.ts'

/** Rules about a session and the states that it has seen. */
const sessionRules = ['TXN-1', 'LEASE-4']

export const sessionMutants: readonly Mutant[] = [
  {
    id: 'Y01',
    title: 'sessions: versions of a column are read from any replica as if nothing had been seen',
    rules: sessionRules,
    edits: [
      {
        file: 'src/client/cells.ts',
        find: 'const read = this.#readFrom(options, [{ rowKey }])\n    const range',
        replace: 'const read = this.#readFrom(options, [])\n    const range',
      },
    ],
  },
  {
    id: 'Y02',
    title: 'sessions: all columns of a row are read from any replica as if nothing had been seen',
    rules: sessionRules,
    edits: [
      {
        file: 'src/client/cells.ts',
        find: 'const read = this.#readFrom(options, [{ rowKey }])\n    const first',
        replace: 'const read = this.#readFrom(options, [])\n    const first',
      },
    ],
  },
  {
    id: 'Y03',
    title: 'sessions: of several logs only the first is held to what was seen',
    rules: sessionRules,
    edits: [
      {
        file: 'src/client/cells.ts',
        find: 'const shards = places.map(({ shard }) => shard)',
        replace: 'const shards = places.slice(0, 1).map(({ shard }) => shard)',
      },
    ],
  },
  {
    id: 'Y04',
    title: 'sessions: of an answer about several shards only the first is remembered',
    rules: sessionRules,
    edits: [
      {
        file: 'src/client/client.ts',
        find: 'for (const [shard, position] of positions) {',
        replace: 'for (const [shard, position] of positions.slice(0, 1)) {',
      },
    ],
  },
  {
    id: 'Y05',
    title: 'pages: a page of a row begins behind the column that the page before named',
    edits: [
      {
        file: 'src/cells/shard-read.ts',
        find: "await firstColumn(rows, of, rowKey, { gte: from ?? '' })",
        replace:
          "await firstColumn(rows, of, rowKey, from === undefined ? { gte: '' } : { gt: from })",
      },
    ],
  },
  {
    id: 'Y06',
    title: 'pages: going down, the next page of versions begins one too low',
    edits: [
      {
        file: 'src/cells/shard-read.ts',
        find: '{ cells: cells.slice(0, limit), next: next.refKey }',
        replace: '{ cells: cells.slice(0, limit), next: next.refKey - (reverse ? 1 : 0) }',
      },
    ],
  },
]
