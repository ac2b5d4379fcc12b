/** The parts that a run starts from: its plan, as plain data, its listeners, and its cluster. */
import type { ClientFrame } from '../src/wire/client/client-message.ts'
import { deliveryBounds } from '../src/queues/limits.ts'
import { relayBounds } from '../src/tables/limits.ts'
import { worklistBounds } from '../src/worklist/worklist-worker.ts'
import type { Bug } from '../src/node/bugs.ts'
import { Node } from '../src/node/compose.ts'
import { classifyEnd } from '../src/node/overloaded.ts'
import {
  decodeClientFrame,
  encodeClientFrame,
  openClientFrame,
} from '../src/wire/client/client-codec.ts'
import { ownError } from './checkers/own-error-checker.ts'
import { Cluster, type ClusterParts } from './cluster/cluster.ts'
import type { SimCluster } from './cluster/comparison.ts'
import { computeEventsMax } from './cluster/event-bound.ts'
import type { Fault } from './faults/fault.ts'
import { drawFaults } from './faults/fault-draw.ts'
import type { History } from './history/operation.ts'
import { createHostDisk, createLevelLog } from './cluster/host-disk.ts'
import { createSegmentLog } from './cluster/segment-host.ts'
import { renderLine, type StoryLine } from './cluster/narrator.ts'
import type { Surroundings } from './faults/nemesis-context.ts'
import type { Operation } from './scenarios/scenario-operation.ts'
import { drawSwarm, type SwarmOptions } from './swarm.ts'
import type { Switches } from './faults/swarm-faults.ts'
import { withBounded } from './workloads/bounded-draw.ts'
import { noTimes } from './world/turn-costs.ts'

export interface RunHooks {
  /** Gets the run told line by line. */
  readonly watch?: (line: string) => void
  /** Gets the same lines as data. */
  readonly story?: (line: StoryLine) => void
  /** Only violations of these rules count, assertions included. */
  readonly rules?: readonly string[] | undefined
  /** A run that takes more events than this is taken for a storm; absent: as its options say. */
  readonly eventsMax?: number | undefined
  /** Ends the run when the world heals: for those who look for a failure that came before. */
  readonly endsAtHealing?: boolean
  /** Called with each operation as it begins, except the operations of all clients at the end. */
  readonly onOperation?: (operation: Operation) => void
  /** Gets, at the end of the run, all clients' operations and answers. */
  readonly onHistory?: (history: History) => void
}

/** A run before it is run: plain data, which a scenario can hold and shrinking can make smaller. */
export interface RunPlan {
  readonly options: SwarmOptions
  readonly faults: readonly Fault[]
  /** The only operations of the clients; without it clients draw their operations as they go. */
  readonly operations?: readonly Operation[]
  /** The nodes a client knows, by its name; drawn for those that are not named. */
  readonly nodesByClient?: Readonly<Record<string, readonly string[]>>
}

/** Everything that is drawn from a seed before its run begins. */
export function drawPlan(seed: number, switches: Switches = {}): RunPlan {
  const options = withBounded(drawSwarm(seed, switches), switches)
  return { options, faults: drawFaults(options) }
}

/** Rows and cells of a run live for seconds: the workers look as often. */
const expirySweepMs = 400

const readers: Pick<
  ClusterParts<Node, ClientFrame>,
  'readLeases' | 'readMembers' | 'readClocks'
> = {
  readLeases: ({ replica }) => replica.observedLeases,
  readMembers: ({ members }) => members,
  readClocks: ({ replica }) => replica.clocks,
}

/** For clusters without clients and gateways: nothing befalls them. */
export const nobody: Pick<Surroundings, 'killClient' | 'pauseClient'> = {
  killClient: () => undefined,
  pauseClient: () => undefined,
}

export function makeCluster(
  { options, faults }: RunPlan,
  hooks: RunHooks,
  { killClient, pauseClient }: Pick<Surroundings, 'killClient' | 'pauseClient'>,
): SimCluster {
  const { pageRows, receiversAtOnce, receivedMax, deliveryTimeoutMs } = options.workload.queues
  const timeoutMs = deliveryTimeoutMs
  const { times = noTimes } = options
  const { indexClientCount, cellTtl } = options.workload
  const hasCellIndexes = indexClientCount > 0 || cellTtl !== undefined
  const cellIndexTrustMs = options.workload.schemaTrustMs
  const delivery = { ...deliveryBounds, pageRows, receiversAtOnce, receivedMax, timeoutMs }
  return new Cluster<Node, ClientFrame>({
    options,
    eventsMax: hooks.eventsMax ?? computeEventsMax(options),
    faults,
    watch: makeWatcher(hooks),
    rules: hooks.rules,
    clientCodec: {
      encode: encodeClientFrame,
      decode(bytes) {
        // Nodes open the requests that they get; their answers are decoded.
        const opened = openClientFrame(bytes)
        const decoded = opened.ok ? opened : decodeClientFrame(bytes)
        return decoded.ok ? decoded.frame : undefined
      },
      asks: ({ kind }) => kind !== 'responses' && kind !== 'nodes',
      refused(frame) {
        const answers = frame.kind === 'responses' ? frame.responses : []
        return answers.flatMap(({ id, answer }) => (classifyEnd(answer) === 'refused' ? [id] : []))
      },
      requests: (frame) => (frame.kind === 'requests' ? frame.requests.map(({ id }) => id) : []),
      messagesIn(frame) {
        if (frame.kind === 'requests') return frame.requests.length
        // The node opens the requests of a packed frame one by one, later.
        return frame.kind === 'responses' ? frame.responses.length : 1
      },
    },
    killClient,
    pauseClient,
    ...readers,
    open: (ports, nodeOptions, fail) => {
      const { groupsAtOnceMax } = relayBounds
      const relay = { ...worklistBounds, groupsAtOnceMax, ...options.relay }
      const { heavy } = options.workload
      const slices = heavy === undefined ? {} : { slices: heavy.slices }
      const onBug = (bug: Bug): void => fail(ownError(bug))
      const trust = { cellIndexTrustMs, schemaTrustMs: cellIndexTrustMs }
      const known = { delivery, relay, hasCellIndexes, ...trust, expirySweepMs }
      const told = { onBug, onDamagedIndex: fail }
      const own = { ...known, ...told, ...slices, ...nodeOptions }
      return Node.open(ports, own, fail)
    },
    makeLog: (world, name, priorities, onDurable) => {
      const conditions = { ...options.disk, ...times }
      const { segmentBytes } = options
      if (segmentBytes === undefined) {
        return createLevelLog(world, name, conditions, priorities, onDurable)
      }
      return createSegmentLog(world, name, { ...conditions, segmentBytes }, priorities, onDurable)
    },
    makeDisk: (world, name, priorities, onDurable) => {
      const conditions = { ...options.disk, ...times }
      const keepsRemains = options.limits.eraseWithinMs > 0
      return createHostDisk(world, name, conditions, priorities, onDurable, { keepsRemains })
    },
  })
}

/** No line is made without a listener. */
function makeWatcher({ watch, story }: RunHooks): ((line: StoryLine) => void) | undefined {
  if (watch === undefined) return story
  return (line) => {
    watch(renderLine(line))
    story?.(line)
  }
}
