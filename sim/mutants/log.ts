/** Planted bugs in what a log copies of its open positions, and in what leads to the settled ones. */
import type { Mutant } from './mutant.ts'

const settling = 'src/log/log-settling.ts'
const index = 'src/log/log-index.ts'

export const logMutants: readonly Mutant[] = [
  {
    id: 'N01',
    title: 'log: the mark passes flushes whose positions are open, and nothing is kept of those',
    edits: [
      {
        file: settling,
        find: "      if (isNeeded && !this.#carry(found, flush, durableFlush, through)) return 'wait'\n",
        replace: '',
      },
    ],
  },
  {
    id: 'N02',
    title: 'log: a copy of an open position leaves out its promise',
    edits: [
      { file: 'src/log/copies.ts', find: 'isHigher === true', replace: "isHigher === 'never'" },
    ],
  },
  {
    id: 'N03',
    title: 'log: a batch is taken to settle one position more than it does',
    edits: [
      {
        file: index,
        find: '    found.settled = position\n',
        replace: '    found.settled = position + 1\n',
      },
    ],
  },
  {
    id: 'N04',
    title: 'log: a flush counts as copied that has records of after the copies',
    edits: [
      {
        file: settling,
        find: 'through > found.settled && flush >= found.copiedIn',
        replace: 'through > found.settled && flush > found.copiedIn',
      },
    ],
  },
  {
    id: 'N05',
    title: 'log: a copy of an open position leaves out its acceptance',
    edits: [
      {
        file: 'src/log/copies.ts',
        find: '  if (ballot !== undefined) {\n',
        replace: '  if (chosen !== undefined && ballot !== undefined) {\n',
      },
    ],
  },
  {
    id: 'N06',
    title: 'log: a group that comes back names no flush before',
    rules: ['LOG-15'],
    edits: [
      {
        file: index,
        find: '      if (!this.#isFolding) found.lastFlush = lastFlush\n',
        replace: '',
      },
    ],
  },
  {
    id: 'N09',
    title: 'log: a state record names the flush of a batch before as the last of its group',
    rules: ['LOG-15'],
    edits: [
      {
        file: 'src/log/log-store.ts',
        find: '    return { flush: this.#index.lastFlush(group), snapshot',
        replace: '    return { flush: Math.max(0, this.#index.lastFlush(group) - 1), snapshot',
      },
    ],
  },
  {
    id: 'N07',
    title: 'log: the data store takes in positions whose choice the log does not hold durably',
    edits: [{ file: 'src/replica/store-hooks.ts', find: '    await log.sync()\n', replace: '' }],
  },
  {
    id: 'N08',
    title: 'acceptor: an applied position is voted on as if nothing had been accepted there',
    edits: [
      {
        file: 'src/replication/acceptance.ts',
        find: '  if (position <= applied) {\n',
        replace: '  if (position <= applied - applied) {\n',
      },
      {
        file: 'src/replication/acceptance.ts',
        find: "  assert(position > log.state.position, 'PAX-8: a vote at an applied position')\n",
        replace: '  if (position <= log.state.position) return\n',
      },
    ],
  },
]
