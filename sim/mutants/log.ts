/** Planted bugs in what a log keeps in rows of its settled positions, and takes up from them. */
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
        find: 'left > 0 && (isSettled || this.#mayCarry(group, this.#isOld(flush, durableFlush), through))',
        replace: 'left > 0 && flush > 0',
      },
      {
        file: settling,
        find: 'this.#pass(group, durableFlush, through)',
        replace: 'this.#pass(group, durableFlush, isSettled ? through : 0)',
      },
    ],
  },
  {
    id: 'N02',
    title: 'log: a position that is carried over is not listed, so that no start finds it',
    edits: [{ file: settling, find: '    this.#carried.set(found.group, found)\n', replace: '' }],
  },
  {
    id: 'N03',
    title: 'log: a batch is taken to settle one position more than it does',
    edits: [
      {
        file: index,
        find: '    else found.settled = position\n',
        replace: '    else found.settled = position + 1\n',
      },
    ],
  },
  {
    id: 'N04',
    title: 'log: a position leaves memory with what was written to it after its row',
    edits: [
      {
        file: index,
        find: 'const isKept = cells[row + rowFlushAt] === cells[row + lastFlushAt]\n',
        replace: 'const isKept = cells[row + rowFlushAt] !== none\n',
      },
      {
        file: index,
        find: 'if (!isKept || (cells[row] ?? 0) > settled) break\n',
        replace: 'if (!isKept || (cells[row] ?? 0) > settled + 1) break\n',
      },
    ],
  },
  {
    id: 'N05',
    title: 'log: a row has what was known when it was first written, and not the last record',
    edits: [
      {
        file: index,
        find: '      } else if (cells[row + rowFlushAt] !== lastFlush) {\n',
        replace: '      } else if (cells[row + rowFlushAt] === none) {\n',
      },
    ],
  },
  {
    id: 'N06',
    title: 'log: a later record of a settled position is folded as if it were the first',
    edits: [
      {
        file: index,
        find: 'position <= settled ? this.#rows.row(group, position) : undefined',
        replace: 'position <= -settled ? this.#rows.row(group, position) : undefined',
      },
    ],
  },
  {
    id: 'N07',
    title: 'log: the data store takes in positions whose choice the log does not hold durably',
    edits: [{ file: 'src/replica/driver.ts', find: '      await log.sync()\n', replace: '' }],
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
