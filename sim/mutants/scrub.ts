/** Planted bugs in the checks that a start and the scrub make (DISK-14 to DISK-16). */
import type { Mutant } from './mutant.ts'

export const scrubMutants: readonly Mutant[] = [
  {
    id: 'SCR1',
    title: 'start: a node votes before the state records of its groups are checked',
    edits: [
      {
        file: 'src/log/start-check.ts',
        find: '  await checked(store.check?.(votingSpans))\n',
        replace: '',
      },
    ],
  },
  {
    id: 'SCR2',
    title: 'scrub: damage that is found is taken for good',
    edits: [
      {
        file: 'src/log/scrubber.ts',
        find: '      onFailed(error)\n',
        replace: '',
      },
    ],
  },
  {
    id: 'SCR5',
    title: 'scrub: damage of the log is not told',
    rules: ['DISK-16'],
    edits: [
      {
        file: 'src/log/scrubber.ts',
        find: '    this.#ports.onLogDamaged(what)\n',
        replace: '',
      },
    ],
  },
]
