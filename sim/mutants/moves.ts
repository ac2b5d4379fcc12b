/** Planted bugs in groups that go from one replica set to another. */
import type { Edit, Mutant } from './mutant.ts'

const ofStanding = 'src/replication/standing.ts'
const ofReads = 'src/replica/reads.ts'
const ofMoves = 'src/node/moved-groups.ts'

/**
 * A world that shows such a bug: two sets of three nodes, sessions that write and read tables, and an operator who moves their groups to
 * and fro without a pause.
 */
export const toAndFro: readonly Edit[] = [
  {
    file: 'sim/run-setup.ts',
    find: '  const options = withBounded(drawSwarm(seed, switches), switches)\n  return { options, faults: drawFaults(options) }\n',
    replace: `  const drawn = drawSwarm(seed, switches)
  const workload = {
    ...drawn.workload, clientCount: 2, operationsPerClient: 5,
    blindSessionCount: 0, listSessionCount: 0, pastSessionCount: 0, indexClientCount: 0,
    triggerWorkerCount: 0, gateways: undefined, lone: undefined, heavy: undefined, openLoad: undefined,
    erases: undefined, schemaChanges: 0, hasGlobalIndexes: false,
    tableSessionCount: 4, tableOperations: 20, thinkMeanMicros: 20_000, timeoutMs: 10_000, tryTimeoutMs: 4_000,
    queues: { ...drawn.workload.queues, sessionCount: 0 },
  }
  const skews = Array.from({ length: 6 }, (_, i) => present(drawn.skews[i % drawn.skews.length], 'six'))
  const options = {
    ...drawn, nodeCount: 6, setCount: 2, spares: undefined, skews,
    inspections: 0, endsWithRestart: false, priorities: undefined, times: undefined, workload,
    disk: { writeMinMicros: 100, writeMeanMicros: 100 },
    link: { ...drawn.link, drop: 0, tail: 0, far: 0, reorder: 0, duplicate: 0 },
    healing: { ...drawn.healing, isCoreFirst: false },
  }
  return { options, faults: [] }
`,
  },
  {
    file: 'sim/run-setup.ts',
    find: "import { noTimes } from './world/turn-costs.ts'\n",
    replace:
      "import { noTimes } from './world/turn-costs.ts'\nimport { present } from '../src/base/assert.ts'\n",
  },
  {
    file: 'sim/workloads/group-mover.ts',
    find: 'const movesRate = 700_000\nconst thinkMeanMicros = 1_500_000\n',
    replace: 'const movesRate = 1_000_000\nconst thinkMeanMicros = 100_000\n',
  },
]

export const moveMutants: readonly Mutant[] = [
  {
    id: 'GRP1',
    title: 'moves: a node of the old set goes on with the log behind its last entry there',
    rules: ['MOVE-9'],
    edits: [
      ...toAndFro,
      {
        file: ofStanding,
        find: '  if (hasLeft(log) || lacksBase(log)) return false\n',
        replace: '  if (lacksBase(log)) return false\n',
      },
      {
        file: 'src/replication/submit.ts',
        find: '  const moved = findMoved(log)\n  if (moved === undefined) return\n',
        replace:
          '  const moved = findMoved(log)\n  if (moved === undefined || moved.set.length > 0) return\n',
      },
    ],
  },
  {
    id: 'GRP2',
    title: 'moves: a node of the new set begins the log anew, without what the old set has',
    rules: ['PAX-5', 'PAX-1', 'LOG-1'],
    scopes: ['arrive'],
    edits: [
      {
        file: ofStanding,
        find: '  return home.isGuest && state.position === 0\n',
        replace: '  return home.isGuest && state.position < 0\n',
      },
    ],
  },
  {
    id: 'GRP3',
    title: 'moves: a node of the old set still shows its rows',
    rules: ['MOVE-11', 'LEASE-3', 'TXN-1'],
    edits: [
      ...toAndFro,
      {
        file: ofReads,
        find: '  if (movedTo !== undefined) throw movedError(group, movedTo)\n',
        replace: '  if (movedTo === "") throw movedError(group, movedTo)\n',
      },
      {
        file: 'src/node/routing.ts',
        find: '    if (known !== undefined) return moved.pass(operation, known, timeoutMs)\n',
        replace:
          "    if (known !== undefined && kind !== 'read-group') return moved.pass(operation, known, timeoutMs)\n",
      },
    ],
  },
  {
    id: 'GRP4',
    title: 'moves: the old set hands the newest rows over, and not their past',
    rules: ['MVCC-1'],
    edits: [
      ...toAndFro,
      {
        file: 'src/replica/moving.ts',
        find: '        const row = toSnapshotRow(prefix.length, key, stored)\n',
        replace:
          '        if (key[prefix.length] !== rowSubspace) continue\n        const row = toSnapshotRow(prefix.length, key, stored)\n',
      },
    ],
  },
  {
    id: 'GRP5',
    title: 'moves: a node of the old set deletes its rows before the new set has the group',
    rules: ['MOVE-13', 'LIVE-1'],
    edits: [
      ...toAndFro,
      {
        file: ofMoves,
        find: '    if (!(await this.#isTakenUp(group, moved))) return undefined\n',
        replace: '    if (moved.position === 0) return undefined\n',
      },
    ],
  },
]
