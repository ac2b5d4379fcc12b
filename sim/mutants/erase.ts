/** Planted bugs in the erasing of what was deleted (ERASE-1, ERASE-2). */
import type { Edit, Mutant } from './mutant.ts'

const history = 'src/replica/erase-history.ts'
const book = 'src/store/erase-book.ts'

/** No other run erases within seconds: all of the mutants' seeds do whose history is short. */
const always: Edit = {
  file: 'sim/erase-draw.ts',
  find: 'const eraseRate = 400_000',
  replace: 'const eraseRate = 1_000_000',
}

export const eraseMutants: readonly Mutant[] = [
  {
    id: 'ERS1',
    title: 'erasing: a start forgets what is to be erased',
    rules: ['ERASE-1'],
    edits: [
      always,
      {
        file: book,
        find: '    const { last, rounds } = decodeRounds(bytes)\n',
        replace: '    const { last, rounds } = decodeRounds(bytes)\n    rounds.length = 0\n',
      },
    ],
  },
  {
    id: 'ERS3',
    title: 'erasing: versions that readers may still see are not waited for',
    rules: ['ERASE-1'],
    edits: [
      always,
      {
        file: history,
        find: '      left += 1\n      if (mayGo(end, oldest)) data.dropRow(key)\n',
        replace:
          '      if (!mayGo(end, oldest)) continue\n      left += 1\n      data.dropRow(key)\n',
      },
      { file: history, find: '      else newest = Math.max(newest, end)\n', replace: '' },
      { file: history, find: '  let newest = 0\n', replace: '  const newest = 0\n' },
    ],
  },
]
