/** Planted bugs in a node's share of its turns, and in its work for clients that are gone. */
import type { Mutant } from './mutant.ts'

export const costMutants: readonly Mutant[] = [
  {
    id: 'E01',
    title: 'slices: a turn goes on with whatever there is',
    edits: [
      {
        file: 'src/ports/turn-budget.ts',
        find: '    if (this.#work >= turnWorkMax) return true\n',
        replace: '',
      },
    ],
  },
  {
    id: 'E02',
    title: 'client-server: what a client had asked for goes on when its link is down',
    edits: [
      {
        file: 'src/node/client-server.ts',
        find: '      linked.line.close()\n',
        replace: '',
      },
    ],
  },
  {
    id: 'E03',
    title: 'intake: all requests of a frame are taken up in the turn in which it comes',
    edits: [
      {
        file: 'src/ports/slices.ts',
        find: '    if (this.isWaiting || this.#isHeld || this.#slices.isSpent) return false\n',
        replace: '    if (this.#isClosed) return false\n',
      },
    ],
  },
  {
    id: 'E04',
    title: 'client-server: what an answer held is never given back',
    edits: [
      {
        file: 'src/node/client-server.ts',
        find: '    task.end()\n',
        replace: '',
      },
    ],
  },
  {
    id: 'E05',
    title: 'shard-waits: a poll that is over stays among those that wait for its shards',
    edits: [
      {
        file: 'src/cells/shard-waits.ts',
        find: '    for (const record of this.#records) if (record !== undefined) this.#waits.unwatch(record)\n',
        replace: '',
      },
    ],
  },
]
