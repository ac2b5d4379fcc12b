/**
 * Planted bugs of validation: a row that a transaction has read changes, and it commits all the
 * same. The judge of histories finds it in the clients' answers (TXN-1), the explorer in the log
 * (TXN-2).
 */
import type { Mutant } from './mutant.ts'

const rules = ['TXN-1', 'TXN-2']

export const validationMutants: readonly Mutant[] = [
  {
    id: 'G09-ranges',
    title: 'phantom: the ranges that a transaction has read are not looked at',
    rules,
    edits: [
      {
        file: 'src/replication/compose.ts',
        find: 'window.conflict(readPosition, reads, ranges, state.position)',
        replace: 'window.conflict(readPosition, reads, [], state.position)',
      },
      {
        file: 'src/replication/compose.ts',
        find: 'draft.writes.meets(reads, ranges)',
        replace: 'draft.writes.meets(reads, [])',
      },
    ],
  },
  {
    id: 'G09-absent',
    title: 'phantom: that a key has come into being is no change to who has found it absent',
    rules,
    edits: [
      {
        file: 'src/replication/window.ts',
        find: '  #keyCount = 0\n',
        replace: '  #keyCount = 0\n  readonly #known = new Set<string>()\n',
      },
      {
        file: 'src/replication/window.ts',
        find: '      for (const key of keys) this.#lastWrite.set(key, written)\n',
        replace:
          '      for (const key of keys) {\n' +
          '        if (this.#known.has(key)) this.#lastWrite.set(key, written)\n' +
          '        this.#known.add(key)\n' +
          '      }\n',
      },
    ],
  },
  {
    id: 'V01',
    title: 'combining: a key whose number is not drawn yet counts for nothing',
    rules,
    edits: [
      {
        file: 'src/replication/entry-writes.ts',
        find: 'this.#prefixes.add(latin1(mutation.key.subarray(0, known)))',
        replace: "this.#prefixes.add('?')",
      },
    ],
  },
  {
    id: 'V02',
    title: 'ranges: of the entries since a transaction read only the last one is looked at',
    rules,
    edits: [
      {
        file: 'src/replication/window.ts',
        find: '      if (found !== undefined) return found\n',
        replace: '      return found\n',
      },
    ],
  },
  {
    id: 'V03',
    title: 'ranges: they stay behind when a transaction is forwarded',
    rules,
    edits: [
      {
        file: 'src/replication/submit.ts',
        find: 'pending.ranges.map(rangeOfText)',
        replace: 'pending.ranges.slice(0, 0).map(rangeOfText)',
      },
    ],
  },
  {
    id: 'V04',
    title: 'ranges: where keys and ranges take turns, the first key of a range is passed over',
    rules,
    edits: [
      {
        file: 'src/replication/key-range.ts',
        find: '    if (range.gte <= key) return key\n',
        replace:
          '    if (range.gte <= key && keyAt > 0) return key\n    if (keyAt === 0) keyAt = 1\n',
      },
    ],
  },
]
