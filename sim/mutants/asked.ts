/** Planted bugs in rare requests: the outcome of an intent, a log since a time, pages. */
import type { Mutant } from './mutant.ts'

export const askedMutants: readonly Mutant[] = [
  {
    id: 'V05',
    title: 'a log since a time leaves out the cells of that very time',
    edits: [
      {
        file: 'src/cells/shard-log.ts',
        find: 'if (entry.createdAt < time) low = entry.addedId',
        replace: 'if (entry.createdAt <= time) low = entry.addedId',
      },
    ],
  },
  {
    id: 'V06',
    title: 'a log since the time of its last cell is empty',
    edits: [
      {
        file: 'src/cells/shard-log.ts',
        find: 'last === undefined || last.createdAt < time) return',
        replace: 'last === undefined || last.createdAt <= time) return',
      },
    ],
  },
  {
    id: 'V07',
    title: 'an intent of a session that a group does not know is forgotten before its time',
    edits: [
      {
        file: 'src/replica/intent-outcome.ts',
        find: 'expiresAt !== undefined && timestamp <= expiresAt',
        replace: 'expiresAt !== undefined && timestamp <= expiresAt - 2_000_000',
      },
    ],
  },
  {
    id: 'V08',
    title: 'what became of an intent is told by what the node happens to have',
    edits: [
      {
        file: 'src/replica/driver.ts',
        find: "    await this.read(group, 'current', timeoutMs)\n    return this.#replica.outcome",
        replace:
          "    await this.read(group, 'snapshot', timeoutMs)\n    return this.#replica.outcome",
      },
    ],
  },
  {
    id: 'V09',
    title: 'of an intent that its session has settled it is told that it is not in effect',
    edits: [
      {
        file: 'src/replica/intent-outcome.ts',
        find: "if (sequence < session.floor) return { kind: 'forgotten', position, timestamp }",
        replace: "if (sequence < session.floor) return { kind: 'none', position, timestamp }",
      },
    ],
  },
  {
    id: 'V10',
    title: 'a session is forgotten two seconds before the last of its intents has expired',
    edits: [
      {
        file: 'src/replication/apply.ts',
        find: 'if (session.expiresAt < state.timestamp)',
        replace: 'if (session.expiresAt < state.timestamp + 2_000_000)',
      },
    ],
  },
  {
    id: 'V11',
    title: 'a session that began anew is taken for one that remembers all',
    rules: ['TXN-5'],
    edits: [
      {
        file: 'src/replica/intent-outcome.ts',
        find: 'const isUndecided = expiresAt !== undefined && timestamp <= expiresAt',
        replace:
          'const isUndecided = session !== undefined || (expiresAt !== undefined && timestamp <= expiresAt)',
      },
    ],
  },
  {
    id: 'V12',
    title: 'a transaction takes effect for a minute after its intent has expired',
    edits: [
      {
        file: 'src/replication/compose.ts',
        find: '  if (state.timestamp > transaction.expiresAt)\n',
        replace: '  if (state.timestamp > transaction.expiresAt + 60_000_000)\n',
      },
      {
        file: 'src/replication/apply.ts',
        find: 'if (state.timestamp > transaction.expiresAt) return',
        replace: 'if (state.timestamp > transaction.expiresAt + 60_000_000) return',
      },
    ],
  },
  {
    id: 'X01',
    title: 'a full page of an index says that nothing is behind it',
    edits: [
      {
        file: 'src/cells/index-query.ts',
        find: '    return cursor === undefined ? { entries } : { entries, cursor }\n  }\n\n  async sorted',
        replace:
          '    return entries.length === limit ? { entries } : { entries, cursor }\n  }\n\n  async sorted',
      },
    ],
  },
  {
    id: 'X02',
    title:
      'an index that is asked in another order loses the last entry where it is a page by itself',
    edits: [
      {
        file: 'src/cells/index-query.ts',
        find: 'start + entries.length === all.length',
        replace: 'start + entries.length >= all.length - 1',
      },
    ],
  },
  {
    id: 'X04',
    title: 'a verified read leaves out entries that an older change of their row made',
    rules: ['IDX-10'],
    edits: [
      {
        file: 'src/tables/global-read.ts',
        find: '    const fresh = { value: stampedEntry(timestamp, entry.value), timestamp }\n',
        replace:
          '    const fresh = { value: stampedEntry(timestamp, entry.value), timestamp }\n    if (compareBytes(found.stored.value, fresh.value) !== 0) return undefined\n',
      },
    ],
  },
]
