/** Planted bugs of what becomes of a log whose journal was damaged (LOG-13). */
import type { Mutant } from './mutant.ts'

export const journalMutants: readonly Mutant[] = [
  {
    id: 'JRN1',
    title: 'log: what was damaged in the journal is not looked at',
    edits: [
      {
        file: 'src/log/log-recovery.ts',
        find: '  await mendLog(journal, owner, trace)\n',
        replace: '  await journal.lost?.putBack({ flushes: [], records: [] })\n',
      },
    ],
  },
  {
    id: 'JRN2',
    title: 'log: a batch that cannot be made out is taken for none',
    edits: [
      {
        file: 'src/log/log-mending.ts',
        find: '    if (!isWhole && !hasFlush) mayEndEarly = true\n',
        replace: '',
      },
    ],
  },
  {
    id: 'JRN3',
    title: 'log: a memory of peers is believed that may be older than it was',
    edits: [
      {
        file: 'src/log/log-mending.ts',
        find: '    else if (!isWhole) isMemoryOld = true\n',
        replace: '',
      },
    ],
  },
  {
    id: 'JRN4',
    title: 'log: damage is called mended before what was left is durable',
    edits: [
      {
        file: 'src/log/log-mending.ts',
        find: '  const left = sift(lost)\n',
        replace: '  const left = sift(lost)\n  await lost.putBack({ flushes: [], records: [] })\n',
      },
    ],
  },
]
