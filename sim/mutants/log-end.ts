/** Planted bugs in what a log gives up, and in what it goes by (LOG-16 to LOG-18). */
import type { Mutant } from './mutant.ts'

const store = 'src/log/log-store.ts'
const marks = 'src/peers/peer-marks.ts'

export const logEndMutants: readonly Mutant[] = [
  {
    id: 'END1',
    title: 'log: flushes are deleted before the mark that gives them up is durable',
    rules: ['LOG-17'],
    edits: [
      {
        file: store,
        find: '    this.#records.moveFirst(first, previousCrc)\n',
        replace:
          '    void this.#journal.drop(first)\n    this.#records.moveFirst(first, previousCrc)\n',
      },
    ],
  },
  {
    id: 'END2',
    title: 'log: a peer is told as durably applied what stands in the own log alone',
    rules: ['LOG-16', 'LOG-18'],
    edits: [
      { file: marks, find: 'return this.#applied.through', replace: 'return this.#known.through' },
    ],
  },
  {
    id: 'END4',
    title: 'log: flushes go that the own data store does not hold yet',
    edits: [
      {
        file: store,
        find: 'this.#settling.hasOldRows ? 0 : this.#settling.settledFlush - 1',
        replace: 'this.#durableFlush - 1',
      },
      {
        file: 'src/log/flush-ledger.ts',
        find: "    assert(first <= this.#settledFlush, 'LOG-16: a flush is given up that is not settled')\n",
        replace: '',
      },
    ],
  },
  {
    id: 'END5',
    title: 'log: a peer that has told no mark is not waited for',
    rules: ['LOG-16'],
    edits: [
      {
        file: 'src/log/log-end.ts',
        find: '    for (const [node, told] of marks()) {\n',
        replace:
          '    for (const [node, told] of marks()) {\n      if (told === undefined) continue\n',
      },
      {
        file: 'src/log/log-end.ts',
        find: 'mark ?? 0))',
        replace: 'mark ?? through))',
      },
    ],
  },
  {
    id: 'END6',
    title: 'log: the mark names the checksum of its first flush for that of the one before',
    rules: ['LOG-17'],
    edits: [
      {
        file: 'src/log/log-values.ts',
        find: 'header(flush)?.previousCrc',
        replace: 'header(flush)?.crc',
      },
    ],
  },
]
