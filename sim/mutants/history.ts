/**
 * Planted bugs that show in answers to clients, and that only the judge of histories finds: the
 * rule that each of them names is one that only this judge reports.
 */
import type { Mutant } from './mutant.ts'

/** Only the judge of histories reports it. */
const historyRules = ['TXN-1', 'LEASE-4']

export const historyMutants: readonly Mutant[] = [
  {
    id: 'H01',
    title: 'validation: what a transaction has read may have changed since',
    rules: historyRules,
    edits: [
      {
        file: 'src/replication/compose.ts',
        find: 'window.conflict(readPosition, reads, ranges, state.position)',
        replace: 'window.conflict(readPosition, [], [], state.position)',
      },
    ],
  },
  {
    id: 'H02',
    title: 'validation: of what a transaction has read only the first key is looked at',
    rules: historyRules,
    edits: [
      {
        file: 'src/replication/compose.ts',
        find: 'window.conflict(readPosition, reads, ranges, state.position)',
        replace: 'window.conflict(readPosition, reads.slice(0, 1), ranges, state.position)',
      },
    ],
  },
  {
    id: 'H03',
    title: 'combining: transactions share an entry although one wrote what the other read',
    rules: historyRules,
    edits: [
      {
        file: 'src/replication/compose.ts',
        find: 'if (draft.writes.meets(reads, ranges)) return',
        replace: 'if (draft.writes.meets([], [])) return',
      },
    ],
  },
  {
    id: 'H04',
    title: 'reads: a replica that is behind answers a session that has seen more',
    rules: historyRules,
    edits: [
      {
        file: 'src/replica/reads.ts',
        find: 'if (position >= atLeast) return this.#served',
        replace: 'if (position >= 0) return this.#served',
      },
    ],
  },
  {
    id: 'H05',
    title: 'reads: a current read asks nobody',
    rules: historyRules,
    edits: [
      {
        file: 'src/replica/reads.ts',
        find: "    if (level === 'snapshot' && this.#parts.isRestored()) {\n",
        replace: '    if (group.length > 0) {\n',
      },
    ],
  },
  {
    id: 'H06',
    title: 'numbers: who draws two in one transaction leaves them to the next one, too',
    rules: historyRules,
    edits: [
      {
        file: 'src/replication/apply.ts',
        find: '    state.counters.set(counter, drawn)\n',
        replace:
          '    if (transaction.allocations.length === 1) state.counters.set(counter, drawn)\n',
      },
    ],
  },
]
