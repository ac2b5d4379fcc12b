/** Planted bugs in buffered writes. */
import type { Edit, Mutant } from './mutant.ts'

/** Only runs of several sets have buffers: all of the mutant's seeds are such. */
const inSets: Edit = {
  file: 'sim/sets-draw.ts',
  find: 'const splitRate = 80_000',
  replace: 'const splitRate = 1_000_000',
}

export const bufferMutants: readonly Mutant[] = [
  {
    id: 'B01',
    title: 'a cell leaves the buffer though its shard did not answer for it',
    edits: [
      inSets,
      {
        file: 'src/cells/buffer-drain.ts',
        find: 'else silence = outcome.problem',
        replace: 'else moved.push(row)',
      },
    ],
  },
  {
    id: 'B02',
    title: 'a cell that its shard would not have is forgotten',
    edits: [
      inSets,
      {
        file: 'src/cells/buffer-drain.ts',
        find: '      tx.put(underTopic(key, bufferTopic, rejectedTopic), encodeRejected({ ...cell, reason }))\n',
        replace:
          '      if (key.length === 0) tx.put(underTopic(key, bufferTopic, rejectedTopic), encodeRejected({ ...cell, reason }))\n',
      },
    ],
  },
  {
    id: 'B03',
    title: 'on its way home a cell may be buffered again',
    edits: [
      inSets,
      {
        file: 'src/cells/buffer-drain.ts',
        find: 'items, isDirect: true } as const',
        replace: 'items } as const',
      },
    ],
  },
  {
    id: 'B04',
    title: 'a cell is said to be buffered when perhaps it is not',
    edits: [
      inSets,
      {
        file: 'src/cells/buffered-cells.ts',
        find: "    if (!written.every((one) => one === 'yes')) return unknownOutcome\n",
        replace: '',
      },
    ],
  },
  {
    id: 'B05',
    title: 'a put is said to have failed when perhaps it is buffered',
    edits: [
      inSets,
      {
        file: 'src/cells/buffered-cells.ts',
        find: "=== 'check-first' ? 'perhaps' : 'no'",
        replace: "=== 'never' ? 'perhaps' : 'no'",
      },
    ],
  },
]
