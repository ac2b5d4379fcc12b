/** Planted bugs in upgrades: nodes of two builds, and the version that is put in force. */
import type { Edit, Mutant } from './mutant.ts'

/**
 * A world that shows such a bug: three nodes that begin with the build before, few clients, an upgrade, new epochs now and then, and no
 * other fault.
 */
const twoBuilds: readonly Edit[] = [
  {
    file: 'sim/run-setup.ts',
    find: '  const options = withBounded(drawSwarm(seed, switches), switches)\n  return { options, faults: drawFaults(options) }\n',
    replace: `  const drawn = drawSwarm(seed, switches)
  const workload = {
    ...drawn.workload, clientCount: 2, operationsPerClient: 5,
    blindSessionCount: 0, listSessionCount: 0, pastSessionCount: 0, indexClientCount: 0, tableSessionCount: 0,
    triggerWorkerCount: 0, gateways: undefined, lone: undefined, heavy: undefined, openLoad: undefined,
    erases: undefined, schemaChanges: 0, hasGlobalIndexes: false,
    queues: { ...drawn.workload.queues, sessionCount: 0 },
  }
  const faultRates = {
    ...drawn.faultRates, lengthMicros: 8_000_000, quietMicros: 0, quietAtMicros: 0, lostData: undefined, firstBuild: 1,
    meanMicros: { renew: 500_000 },
  }
  const options = {
    ...drawn, nodeCount: 3, setCount: 1, spares: undefined, skews: drawn.skews.slice(0, 3),
    inspections: 0, endsWithRestart: false, priorities: undefined, times: undefined, workload, faultRates,
    disk: { writeMinMicros: 100, writeMeanMicros: 100 },
    link: { ...drawn.link, drop: 0, tail: 0, far: 0, reorder: 0, duplicate: 0 },
    healing: { ...drawn.healing, isCoreFirst: false },
  }
  return { options, faults: drawFaults(options) }
`,
  },
]

/** The operator asks for the next version again and again, without a look at the builds, and goes back with none. */
const blindOperator: readonly Edit[] = [
  {
    file: 'sim/upgrade-draw.ts',
    find: 'const backRate = 200_000\nconst blindRate = 500_000\n',
    replace: 'const backRate = 0\nconst blindRate = 1_000_000\n',
  },
  {
    file: 'sim/upgrade-draw.ts',
    find: 'random.int(2, 10)',
    replace: 'random.int(20, 30)',
  },
]

export const upgradeMutants: readonly Mutant[] = [
  {
    id: 'UPG-A',
    title: 'upgrade: a version is put in force, and no other node was asked whether it supports it',
    rules: ['UPG-3'],
    edits: [
      ...twoBuilds,
      ...blindOperator,
      {
        file: 'src/members/raising.ts',
        find: '  checkMembers(parts, row, to)\n  return',
        replace: '  return',
      },
    ],
  },
  {
    id: 'UPG-B',
    title: 'upgrade: a node uses all that its own build knows, whichever version is in force',
    rules: ['UPG-3'],
    edits: [
      ...twoBuilds,
      ...blindOperator,
      {
        file: 'src/members/version-gate.ts',
        find: '    return allowsFeature(this.#inForce, feature)\n',
        replace: '    return allowsFeature(this.supports.max, feature)\n',
      },
    ],
  },
  {
    id: 'UPG-C',
    title: 'upgrade: a new epoch forgets the version that is in force',
    rules: ['UPG-2'],
    edits: [
      ...twoBuilds,
      ...blindOperator,
      {
        file: 'sim/upgrade-draw.ts',
        find: 'Math.floor(lengthMicros * 0.6)',
        replace: 'Math.floor(lengthMicros * 0.1)',
      },
      {
        file: 'src/members/change.ts',
        find: 'urls, lastSeat, ...keptVersion(row) },\n',
        replace: 'urls, lastSeat },\n',
      },
    ],
  },
]
