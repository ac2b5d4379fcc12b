/**
 * Planted bugs in the past of rows: reads at a timestamp, and the moment when versions are
 * collected.
 */
import type { Mutant } from './mutant.ts'

export const mvccMutants: readonly Mutant[] = [
  {
    id: 'G15-pin',
    title: 'collection does not heed snapshots that are open',
    edits: [
      {
        file: 'src/store/collection.ts',
        find: 'return oldestPin === undefined ? horizon : Math.min(horizon, oldestPin)',
        replace: 'return Math.min(horizon, (oldestPin ?? 0) + horizon)',
      },
    ],
  },
  {
    id: 'G15-last',
    title: 'of the versions that began by the horizon the newest goes, too',
    edits: [
      {
        file: 'src/store/group-batch.ts',
        find: '      if (isRead) supersede(',
        replace: '      if (isRead && stored.stamp > oldest) supersede(',
      },
    ],
  },
  {
    id: 'M01',
    title: 'what was stored is taken to end where the newest version begins, not the next one',
    edits: [
      {
        file: 'src/store/group-batch.ts',
        find: '    later = one\n',
        replace: '',
      },
    ],
  },
  {
    id: 'M02',
    title: 'a timestamp of the future is served as it is asked for',
    edits: [
      {
        file: 'src/replica/reads.ts',
        find: 'const point = { position, timestamp: Math.min(at, timestamp) }',
        replace: 'const point = { position, timestamp: Math.max(at, Math.min(at, timestamp)) }',
      },
      {
        file: 'src/replica/reads.ts',
        find: '    if (at > timestamp) {',
        replace: '    if (at > timestamp && position < 0) {',
      },
      {
        file: 'src/replica/reads.ts',
        find: 'const { timestamp, horizon } = replica.applied(group)',
        replace: 'const { position, timestamp, horizon } = replica.applied(group)',
      },
    ],
  },
  {
    id: 'M03',
    title: 'the overlay shows a snapshot the oldest version it has, though that is newer',
    edits: [
      {
        file: 'src/store/overlay.ts',
        find: 'version.timestamp > at) version = version.previous\n',
        replace: 'version.timestamp > at && version.previous) version = version.previous\n',
      },
    ],
  },
  {
    id: 'M04',
    title: 'what lies before the horizon is read, whether it is still there or not',
    edits: [
      {
        file: 'src/replica/reads.ts',
        find: 'if (at < horizon && !isPinned) {',
        replace: 'if (at < horizon && !isPinned && at < 0) {',
      },
    ],
  },
  {
    id: 'M06',
    title: 'a snapshot that is almost the newest state is shown the newest state',
    edits: [
      {
        file: 'src/replica/reads.ts',
        find: 'isNewest: at === timestamp }',
        replace: 'isNewest: at >= timestamp - 20_000 }',
      },
    ],
  },
  {
    id: 'M05',
    title: 'a version that began at the timestamp of a snapshot is left out of it',
    edits: [
      {
        file: 'src/store/collection.ts',
        find: 'return start <= at && at < end',
        replace: 'return start < at && at < end',
      },
    ],
  },
  {
    id: 'M07',
    title: 'a row is taken for new when its transaction has read any row that is not there',
    edits: [
      {
        file: 'src/txn/read-set.ts',
        find: 'this.#absent.size > 0 && this.#absent.has(latin1(key))',
        replace: 'this.#absent.size > 0 && latin1(key).length > 0',
      },
    ],
  },
  {
    id: 'M08',
    title: 'a row is taken for new when its transaction has read it, whatever it read',
    edits: [
      {
        file: 'src/txn/read-set.ts',
        find: 'this.#absent.size > 0 && this.#absent.has(latin1(key))',
        replace: 'this.#keys.has(latin1(key))',
      },
    ],
  },
  {
    id: 'M09',
    title: 'a row that was read lately stays in memory when it is written',
    edits: [
      {
        file: 'src/store/data-store.ts',
        find: '    for (const { text } of commit.writes) this.#cache.drop(commit.group, text)\n',
        replace: '',
      },
    ],
  },
]
