/**
 * Planted bugs in a node's pacing of its work for a peer that was away, and in its questions to
 * peers.
 */
import type { Mutant } from './mutant.ts'

const slices = 'src/peers/slices.ts'
const learn = 'src/replication/learn.ts'
const fetches = 'src/peers/fetches.ts'
const supply = 'src/peers/replies.ts'
const driver = 'src/replica/driver.ts'

export const paceMutants: readonly Mutant[] = [
  {
    id: 'U01',
    title: 'pace: a slice goes on until all work is done',
    edits: [
      {
        file: slices,
        find: '        if (this.#isOver(spent)) break\n',
        replace: '',
      },
    ],
  },
  {
    id: 'U02',
    title: 'pace: a peer is given all that it asked for in one turn',
    edits: [
      { file: supply, find: '      yield found.value.length\n', replace: '' },
      {
        file: supply,
        find: 'const entriesMax = Math.min(limits.catchUpEntriesMax, share)',
        replace: 'const entriesMax = Math.max(limits.catchUpEntriesMax, share)',
      },
    ],
  },
  {
    id: 'U03',
    title: 'pace: a node that was away asks for everything at once',
    edits: [
      {
        file: fetches,
        find: 'return inFlight.size - awaitedInFlight < limits.fetchesMax && hasRoom()',
        replace: 'return inFlight.size >= 0 && hasRoom()',
      },
    ],
  },
  {
    id: 'U04',
    title: 'pace: a question that was lost keeps its place for good',
    edits: [
      {
        file: fetches,
        find: '      if (nowMs - sinceMs < patienceMs) continue\n',
        replace: '      if (nowMs - sinceMs >= 0 && patienceMs > 0) continue\n',
      },
    ],
  },
  {
    id: 'U05',
    title: 'pace: groups that a digest named, and that wait for their turn, are not listed',
    edits: [
      {
        file: driver,
        find: '[...this.#replica.known(), ...fetches.named()]',
        replace: '[...this.#replica.known()]',
      },
    ],
  },
  {
    id: 'U06',
    title: 'pace: whatever is decided behind a hole is applied in the step that fills it',
    edits: [
      {
        file: learn,
        find: '    if (isStrideOver(log, context)) {\n',
        replace: '    if (isStrideOver(log, context) && position < 0) {\n',
      },
    ],
  },
]
