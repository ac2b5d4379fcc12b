/** Planted bugs in what a log gives up, and in what it goes by (LOG-16 to LOG-19). */
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
        file: 'src/log/log-cut.ts',
        find: '    records.moveFirst(first, crc)\n',
        replace: '    void this.#parts.journal.drop(first)\n    records.moveFirst(first, crc)\n',
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
  {
    id: 'END7',
    title: 'log: a replica that is not restored votes',
    edits: [
      {
        file: 'src/replication/acceptance.ts',
        find: "record?.kind === 'faulty' || !hasVote(log, context)",
        replace: "record?.kind === 'faulty'",
      },
    ],
  },
  {
    id: 'END8',
    title: 'log: a replica that is not restored answers read rounds',
    edits: [
      {
        file: 'src/replication/read.ts',
        find: "if (!hasVote(log, context)) return context.trace.mark('round_asked_of_node_without_vote')",
        replace:
          "if (!hasVote(log, context)) context.trace.mark('round_asked_of_node_without_vote')",
      },
    ],
  },
  {
    id: 'END9',
    title: 'log: a replica that is not restored counts itself in its own read rounds',
    scopes: ['lost-data-read'],
    edits: [
      {
        file: 'src/replication/read.ts',
        find: 'const countsOwn = hasVote(log, context)',
        replace: 'const countsOwn = true',
      },
    ],
  },
  {
    id: 'END10',
    title: 'log: a node is restored by half of the others',
    scopes: ['lost-data'],
    edits: [
      {
        file: 'src/peers/restoring.ts',
        find: 'taken >= majority',
        replace: 'taken + 1 >= majority',
      },
    ],
  },
  {
    id: 'END11',
    title: 'log: a node that starts anew while it is being restored takes itself for restored',
    edits: [
      {
        file: 'src/log/log-opening.ts',
        find: 'if (mark === undefined && isLacking) rows.keepRestored(false)',
        replace: 'if (mark === undefined && isLacking) rows.keepRestored(true)',
      },
    ],
  },
]
