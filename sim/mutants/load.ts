/** Planted bugs of nodes and clients under overload. */
import type { Mutant } from './mutant.ts'

export const loadMutants: readonly Mutant[] = [
  {
    id: 'O1',
    title: 'caller: what waits at a node is given up before its time, and sent to the next one',
    edits: [
      {
        file: 'src/client/request-sender.ts',
        find: '      const isLate = lostAtMs <= nowMs\n',
        replace: '      const isLate = lostAtMs - 1_000 <= nowMs\n',
      },
    ],
  },
  {
    id: 'O2',
    title: 'retry budget: a retry is taken whether or not there is one left',
    edits: [
      {
        file: 'src/client/retry-budget.ts',
        find: '    if (this.#left < 1) return false\n',
        replace: '',
      },
    ],
  },
  {
    id: 'O3',
    title: 'admission: everything begins as it comes, and nothing is refused',
    edits: [
      {
        file: 'src/node/admission.ts',
        find: '    else if (lane.length === 0 && this.#hasRoom(name) && this.#mayBegin(nowMs)) {\n',
        replace: '    else if (lane.length === 0) {\n',
      },
      {
        file: 'src/node/work-limit.ts',
        find: "    assert(this.hasRoom, 'LOAD-3: work begins above the limit')\n",
        replace: '',
      },
      {
        file: 'src/node/admission.ts',
        find: "    assert(this.#begunInTurn < this.#limits.turnBeginsMax, 'LOAD-4: a turn begins too much')\n",
        replace: '',
      },
    ],
  },
]
