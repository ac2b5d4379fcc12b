/** Planted bugs in reads of bounded staleness: what counts as fresh, and from when. */
import type { Fault } from '../faults/fault.ts'
import type { Edit, Mutant } from './mutant.ts'

const ofFreshness = 'src/peers/freshness.ts'
const ofRounds = 'src/peers/peer-rounds.ts'

const nodes = ['n1', 'n2', 'n3']

interface World {
  /** The nodes that the clients ask, and that so propose most entries. */
  readonly asked?: readonly string[]
  readonly faults?: readonly Fault[]
}

/** By their names, such as `n1>n2`, the delays of ways, microseconds. */
type Ways = Readonly<Record<string, number>>

/**
 * A world that shows such a bug: three nodes, clients that write cells, sessions that read with the smallest bound,
 * and ways that are slow in one direction, so that one node lags behind what the others have acknowledged.
 */
function among(between: Ways, { asked = nodes, faults = [] }: World = {}): readonly Edit[] {
  const few = 'blindSessionCount: 0, listSessionCount: 0, pastSessionCount: 0, tableSessionCount: 0'
  const none = 'triggerWorkerCount: 0, indexClientCount: 0, gateways: undefined, lone: undefined'
  const much =
    'shardCount: 6, clientCount: 8, operationsPerClient: 25, writes: 900_000, boundedSessionCount: 6, timeoutMs: 10_000, tryTimeoutMs: 4_000'
  const idle = 'heavy: undefined, openLoad: undefined, erases: undefined, schemaChanges: 0'
  const ways = `{ ...drawn.link, drop: 0, tail: 0, far: 0, reorder: 0, duplicate: 0, between: ${JSON.stringify(between)} }`
  const rates =
    '{ ...drawn.faultRates, meanMicros: {}, lengthMicros: 5_000_000, lostData: undefined }'
  const limits =
    '{ ...drawn.limits, phaseTimeoutMs: 3_000, forwardMs: 6_000, suspectMs: 6_000, leaseMs: 0 }'
  return [
    {
      file: 'sim/run-setup.ts',
      find: '  const options = withBounded(drawSwarm(seed, switches), switches)\n  return { options, faults: drawFaults(options) }\n',
      replace: `  const drawn = drawSwarm(seed, switches)
  const workload = {
    ...drawn.workload, ${few}, ${none}, ${idle}, ${much},
    thinkMeanMicros: 10_000, queues: { ...drawn.workload.queues, sessionCount: 0 },
  }
  const options = {
    ...drawn, nodeCount: 3, setCount: 1, spares: undefined, skews: drawn.skews.slice(0, 3),
    inspections: 0, endsWithRestart: false, priorities: undefined, times: undefined, workload,
    disk: { writeMinMicros: 100, writeMeanMicros: 100 },
    healing: { ...drawn.healing, isCoreFirst: false },
    link: ${ways}, faultRates: ${rates}, limits: ${limits},
  }
  const clients = Array.from({ length: 8 }, (_, i) => [\`c\${i + 1}\`, ${JSON.stringify(asked)}])
  return { options, faults: ${JSON.stringify(faults)}, nodesByClient: Object.fromEntries(clients) }
`,
    },
    {
      file: 'sim/workloads/bounded-workload.ts',
      find: 'const boundsMs = [100, 100, 150, 400, 1_500]',
      replace: 'const boundsMs = [100]',
    },
  ]
}

const [near, slow, slowest] = [1_000, 250_000, 600_000]
/** The second node accepts what the first one proposes long before the third, and hears later that it was chosen. */
const slowFromFirst: Ways = { 'n1>n2': slow, 'n1>n3': slowest, 'n2>n3': near, 'n3>n2': near }
/** The third node lags behind the other two. */
const slowToThird: Ways = { 'n1>n3': slow, 'n2>n3': slow }
/** The same; the second one is near to it. */
const slowFromFirstToThird: Ways = { 'n1>n3': slowest, 'n2>n3': near, 'n3>n2': near }

/** New epochs begin, with the same voters. */
const renewals: readonly Fault[] = [1, 2, 3].map((second) => {
  return { kind: 'renew', atMicros: second * 1_000_000, node: 'n1' }
})

export const freshnessMutants: readonly Mutant[] = [
  {
    id: 'STALE1',
    title: 'freshness: a round counts from when its answer came',
    rules: ['STALE-1'],
    edits: [
      ...among(slowToThird),
      {
        file: ofRounds,
        find: '    const asked = this.#questions.get(number)\n    if (asked === undefined) return false\n',
        replace: '    if (!this.#questions.has(number)) return false\n    const asked = at\n',
      },
      {
        file: ofRounds,
        find: '  answer(number: number, through: number, epoch: number): boolean {',
        replace:
          '  answer(number: number, through: number, epoch: number, at: ClockReading): boolean {',
      },
      {
        file: ofFreshness,
        find: 'if (!rounds.answer(asked, through, epoch))',
        replace: 'if (!rounds.answer(asked, through, epoch, this.#reading()))',
      },
    ],
  },
  {
    id: 'STALE2',
    title: 'freshness: an acceptance that is open counts as applied',
    rules: ['STALE-1'],
    edits: [
      ...among(slowFromFirst, { asked: ['n1'] }),
      {
        file: 'src/replica/replica.ts',
        find: '    return highestKnown(log) === log.state.position\n',
        replace: '    return true\n',
      },
    ],
  },
  {
    id: 'STALE3',
    title: 'freshness: a round is over though a digest was not whole',
    rules: ['STALE-1'],
    edits: [
      ...among(slowFromFirstToThird),
      {
        file: ofFreshness,
        find: '?.end(marks.knownThrough)',
        replace: '?.end(marks.digestedThrough)',
      },
      // As if each flush was damaged: directories name all.
      {
        file: 'src/peers/replies.ts',
        find: "send(to, { kind: 'digest', after, asked: number, ...written })",
        replace:
          "send(to, { kind: 'digest', after, asked: number, ...written, groups: [], isWhole: false })",
      },
    ],
  },
  {
    id: 'STALE4',
    title: 'freshness: a group counts though something that was named of it is missing',
    rules: ['STALE-1'],
    edits: [
      ...among(slowFromFirstToThird),
      {
        file: ofRounds,
        find: 'if ((named.get(group) ?? 0) > position) return fresh',
        replace: 'if ((named.get(group) ?? 0) < 0) return fresh',
      },
      {
        file: ofRounds,
        find: 'if ((this.#before.get(group) ?? 0) > position) return undefined',
        replace: 'if ((this.#before.get(group) ?? 0) < 0) return undefined',
      },
    ],
  },
  {
    id: 'STALE5',
    title: 'freshness: the age of a round is not looked at',
    rules: ['STALE-1'],
    edits: [
      ...among(slowFromFirstToThird),
      {
        file: ofFreshness,
        find: 'this.#ageMs(at, now) <= maxStalenessMs',
        replace: 'this.#ageMs(at, now) <= maxStalenessMs + 1e9',
      },
    ],
  },
  {
    id: 'STALE6',
    title: 'freshness: the epoch that an answer names is not compared',
    rules: ['STALE-1', 'STALE-3'],
    edits: [
      ...among({}, { faults: renewals }),
      {
        file: ofFreshness,
        find: "    if (epoch !== epochs.own.epoch) return trace.mark('reach_of_another_epoch')\n",
        replace: '',
      },
    ],
  },
  {
    id: 'STALE7',
    title: 'freshness: behind the first epoch a peer counts without its directory',
    rules: ['STALE-1', 'STALE-4'],
    edits: [
      ...among({}, { faults: renewals }),
      {
        file: ofFreshness,
        find: 'if (epoch > 1 && isPastGate)',
        replace: 'if (epoch > 1e9 && isPastGate)',
      },
      {
        file: ofFreshness,
        find: 'if (marks === undefined || !this.#isNamedWhole(marks)) return',
        replace: 'if (marks === undefined) return',
      },
    ],
  },
]
