/**
 * The status of a node in its own words: ready or not, whom it sees, and in words what is wrong and what to
 * do about it.
 */
import type { NodeId } from '../base/ids.ts'
import type { ReplicaStatus } from '../replica/replica-status.ts'
import type { CellExpiryFigures } from '../cells/cell-expiry-worker.ts'
import type { ExpiryFigures } from '../tables/expiry-worker.ts'
import type { RelayFigures } from '../tables/index-relay.ts'
import type { QueuesStatus } from './background.ts'
import type { BufferCounts } from './buffering.ts'
import type { DiskUse } from './disk-use.ts'
import type { NodeAddress } from '../config/values.ts'
import { describeErase, eraseFigures } from './erase-figures.ts'
import { figureName } from './figure-names.ts'
import { describeHealed, describeOpening, describeUnopened } from './healing-words.ts'
import type { HealingStatus } from './log-healing.ts'
import type { Figure } from './metrics.ts'
import { compareFigures, describeCompare } from './compare-figures.ts'
import { describeMembers, membersFigures } from './members-figures.ts'
import type { BucketProgress } from './bucket-mover.ts'
import { movedFigures, type MovedCounts } from './moved-figures.ts'
import { findOwnSet, isVoter, listSeenNodes, spareNodes, type SeenNode } from './status-nodes.ts'
import { describeSnapshots, snapshotFigures } from './snapshot-figures.ts'

export type NodeState = 'starting' | 'running' | 'draining' | 'failed'

/** One thing that readiness depends on. */
export interface Check {
  readonly name: string
  readonly ok: boolean
  readonly text: string
}

export interface StatusParts {
  readonly node: NodeId
  readonly cluster: string
  /** Those of the configuration. */
  readonly nodes: readonly NodeAddress[]
  /** Where the peers of now are, by their ids, where that is known. Absent: where the configuration says. */
  readonly peerUrls?: ReadonlyMap<string, string | undefined> | undefined
  readonly version: string
  readonly url: string
  readonly state: NodeState
  readonly startedAtMs: number
  readonly nowMs: number
  readonly dataResets: number
  readonly healing?: HealingStatus
  /** Why the stores are not being opened yet. Absent: they are. */
  readonly waitsFor?: string | undefined
  /** Absent until it was measured. */
  readonly disk?: DiskUse | undefined
  /** Absent while the stores are being opened. */
  readonly replica: ReplicaStatus | undefined
  /** Absent with it. */
  readonly queues?: QueuesStatus | undefined
  readonly buffer?: BufferCounts | undefined
  readonly indexes: RelayFigures | undefined
  readonly expiry?: ExpiryFigures | undefined
  readonly cellExpiry?: CellExpiryFigures | undefined
  readonly holds?: number | undefined
  /** Absent where there is one replica set, too. */
  readonly moves?: MovedCounts | undefined
  /** Absent where none leave. */
  readonly buckets?: BucketProgress | undefined
  /** Why peers have no link, by their ids, where that is known. */
  readonly troubles?: ReadonlyMap<string, string> | undefined
}

/** The answer of `/status`. */
export interface StatusReport {
  readonly node: string
  /** The replica set that the node is in; the fields below are about its nodes. */
  readonly set: string
  readonly cluster: string
  readonly version: string
  readonly url: string
  readonly pid: number
  readonly state: NodeState
  readonly ready: boolean
  readonly uptimeSeconds: number
  /** How many more nodes may fail, as this node sees it; -1: there is no majority. */
  readonly canLose: number
  readonly nodes: readonly SeenNode[]
  readonly replica: Omit<ReplicaStatus, 'peers'> | undefined
  /** Of the node's folder; absent until it was measured. */
  readonly disk: DiskUse | undefined
  readonly queues: QueuesStatus | undefined
  /** Of global indexes: what this node has relayed, and with which lag. */
  readonly indexes: RelayFigures | undefined
  /** Of rows that expire: those that this node has removed, and how long after they had expired. */
  readonly expiry: ExpiryFigures | undefined
  /** The same of cells. */
  readonly cellExpiry: CellExpiryFigures | undefined
  /** Legal holds that this node has; of a datastore one for each shard. Undefined until they are counted. */
  readonly holds: number | undefined
  /** Of groups that go from replica set to replica set, since the node started. Absent where there is one set. */
  readonly moves: MovedCounts | undefined
  /** Buckets that leave the node's replica set, as far as this node has come with them. Absent: none do. */
  readonly buckets: BucketProgress | undefined
  /** The faults and their remedies, in words; empty when all is well. */
  readonly messages: readonly string[]
}

export function statusReport(parts: StatusParts): StatusReport {
  const { node, cluster, version, url, state } = parts
  const nodes = listSeenNodes(parts)
  const canLose = spareNodes(nodes)
  return {
    node,
    set: findOwnSet(parts),
    cluster,
    version,
    url,
    state,
    pid: process.pid,
    ready: readinessChecks(parts).every(({ ok }) => ok),
    uptimeSeconds: Math.round((parts.nowMs - parts.startedAtMs) / 1000),
    canLose,
    nodes,
    replica: parts.replica && withoutPeers(parts.replica),
    disk: parts.disk,
    queues: parts.queues,
    indexes: parts.indexes,
    expiry: parts.expiry,
    cellExpiry: parts.cellExpiry,
    holds: parts.holds,
    moves: parts.moves,
    buckets: parts.buckets,
    messages: listMessages(parts, nodes, canLose),
  }
}

/** Peers stand in `nodes` already. */
function withoutPeers(status: ReplicaStatus): Omit<ReplicaStatus, 'peers'> {
  const { peers: _, ...rest } = status
  return rest
}

export function readinessChecks(parts: StatusParts): readonly Check[] {
  const isOpen = parts.replica !== undefined && parts.state !== 'starting'
  const nodes = listSeenNodes(parts)
  const up = nodes.filter(({ isUp }) => isUp).length
  const hasMajority = spareNodes(nodes) >= 0
  const areClocksAwaited = parts.replica?.areClocksAwaited === true
  return [
    {
      name: 'stores',
      ok: isOpen,
      text: isOpen ? 'open' : (parts.waitsFor ?? describeOpening(parts.healing)),
    },
    {
      name: 'accepting',
      ok: parts.state === 'running',
      text: parts.state === 'running' ? 'taking requests' : `this node is ${parts.state}`,
    },
    { name: 'majority', ok: hasMajority, text: `${up} of ${nodes.length} nodes are reachable` },
    {
      name: 'clocks',
      ok: !areClocksAwaited,
      text: areClocksAwaited
        ? "others' clocks are being asked for"
        : 'the clocks of the others are known',
    },
  ]
}

function listMessages(
  parts: StatusParts,
  nodes: readonly SeenNode[],
  canLose: number,
): readonly string[] {
  const messages: string[] = []
  const { state, replica, dataResets } = parts
  if (state === 'draining') messages.push('this node is stopping; requests go to the others')
  if (replica?.failure !== undefined) messages.push(`this node failed: ${replica.failure}`)
  if (replica === undefined) {
    const { waitsFor } = parts
    if (waitsFor !== undefined) messages.push(`this node waits: ${waitsFor}`)
    return [...messages, ...describeUnopened(parts.healing)]
  }
  messages.push(...describeAway(nodes, parts.troubles))
  if (canLose < 0) {
    messages.push(
      'no majority is reachable: writes and up-to-date reads wait; read=snapshot still answers',
    )
  } else if (canLose === 0 && nodes.filter(isVoter).length > 2) {
    messages.push('the cluster cannot lose another node')
  }
  if (replica.isCatchingUp) {
    messages.push(
      `this node was away and catches up: it fetches what about ${replica.lackingGroups} groups have committed meanwhile`,
    )
  }
  messages.push(...describeSnapshots(replica.snapshots), ...describeRestoring(replica))
  messages.push(...describeMembers(replica.members), ...describeErase(replica.erase))
  messages.push(...describeCompare(replica.compare))
  const behind = nodes.filter(({ isBehindLog }) => isBehindLog === true)
  for (const { id } of behind) {
    messages.push(
      `node ${id} lacks what the log here has given up, or holds up too much of it: see "The length of log/" in operating.md`,
    )
  }
  if (replica.isClockAhead) {
    const lead = `${(replica.clockLeadMs / 1000).toFixed(1)} s ahead of most others'`
    messages.push(`this node's wall clock is ${lead}: set it; commits go by the others' meanwhile`)
  }
  if (replica.isClockBehind) {
    const lag = `${(replica.clockLagMs / 1000).toFixed(1)} s behind most others'`
    messages.push(`this node's wall clock is ${lag}: set it; commits go by the others' meanwhile`)
  }
  if (!replica.remembersPeers) {
    messages.push(
      'this node no longer knows which store each node votes with: it takes part again when a majority of the others has told it',
    )
  }
  if (replica.falseClaims > 0) {
    messages.push(
      'a peer refuses this node for what its own log refutes: see "false claim" in its log, and mend that peer',
    )
  }
  messages.push(...describeHealed(parts.healing))
  return [...messages, ...describeDamages(replica, dataResets)]
}

function describeRestoring({ restoringFrom }: ReplicaStatus): readonly string[] {
  if (restoringFrom.length === 0) return []
  const peers = restoringFrom.join(', ')
  return [
    `data/ was lost, and the log had given up a part of it: this node has no vote before it has everything from a majority of the others (still lacks some of ${peers}); start those that are down`,
  ]
}

function describeAway(
  nodes: readonly SeenNode[],
  troubles: StatusParts['troubles'],
): readonly string[] {
  return (
    nodes
      // Of one that joins, the words about the change say more.
      .filter(({ isUp, isJoining }) => !isUp && isJoining !== true)
      .map(({ id }) => {
        const trouble = troubles?.get(id)
        const why = trouble === undefined ? '' : ` (${trouble})`
        return `node ${id} cannot be reached${why}: start it, or look at its log`
      })
  )
}

function describeDamages(
  { logDamages, scrubLogDamages, logDamage, lostFlushes }: ReplicaStatus,
  dataResets: number,
): readonly string[] {
  const messages: string[] = []
  if (logDamages > 0) {
    const lost =
      lostFlushes > 0
        ? `${lostFlushes} flushes are lost, and what this node promised in them stands in data/ alone: keep data/`
        : scrubLogDamages > 0
          ? 'nothing of what it promised is lost, but some of it may stand in data/ alone: keep data/'
          : 'nothing of what it promised is lost'
    messages.push(
      `log/ was found damaged (${logDamage.at(-1)}); ${lost}; check this disk, and see "A damaged log" in operating.md`,
    )
  }
  if (dataResets > 0) {
    messages.push(
      'data/ was damaged and has been rebuilt from the log and the peers; the old one is data.damaged',
    )
  }
  return messages
}

function diskFigures(disk: DiskUse | undefined): readonly Figure[] {
  if (disk === undefined) return []
  const help = "Bytes of the files of the node's stores, as they were measured last."
  const figure = (store: string, value: number): Figure => ({
    ...{ name: 'trilithon_disk_bytes', help, value, labels: { store } },
  })
  return [figure('log', disk.logBytes), figure('data', disk.dataBytes)]
}

/** The same as figures, for `/metrics`. */
export function statusFigures(parts: StatusParts): readonly Figure[] {
  const report = statusReport(parts)
  const figures: Figure[] = [
    {
      name: 'trilithon_ready',
      help: '1 when the node takes requests and sees a majority.',
      value: Number(report.ready),
    },
    {
      name: 'trilithon_nodes_can_lose',
      help: 'Nodes that may still fail, as this one sees it; -1: no majority.',
      value: report.canLose,
    },
    {
      name: 'trilithon_data_resets_total',
      help: 'Times a damaged data/ was rebuilt since this process began.',
      value: parts.dataResets,
    },
  ]
  figures.push(...diskFigures(parts.disk))
  for (const { id, isUp, isSelf } of report.nodes) {
    if (isSelf) continue
    const help = '1 when the peer is linked and heard of.'
    figures.push({ name: 'trilithon_peer_up', help, value: Number(isUp), labels: { peer: id } })
  }
  for (const [field, value] of Object.entries(parts.replica ?? {})) {
    if (typeof value !== 'number') continue
    const name = figureName('trilithon_replica', field)
    figures.push({ name, help: `The replica's ${field}, as in /status.`, value })
  }
  figures.push(...snapshotFigures(parts.replica?.snapshots), ...eraseFigures(parts.replica?.erase))
  figures.push(...compareFigures(parts.replica?.compare))
  figures.push(...membersFigures(parts.replica?.members))
  const indexes: Readonly<Record<string, number>> = { ...parts.indexes }
  for (const [field, value] of Object.entries(indexes)) {
    const name = figureName('trilithon_index', field)
    figures.push({ name, help: `The index relay's ${field}, as in /status.`, value })
  }
  const expiry: Readonly<Record<string, number>> = { ...parts.expiry }
  for (const [field, value] of Object.entries(expiry)) {
    const name = figureName('trilithon_expiry', field)
    figures.push({ name, help: `The removal of expired rows: its ${field}, as in /status.`, value })
  }
  const cellExpiry: Readonly<Record<string, number>> = { ...parts.cellExpiry }
  for (const [field, value] of Object.entries(cellExpiry)) {
    const help = `The removal of expired cells: its ${field}, as in /status.`
    figures.push({ name: figureName('trilithon_cell_expiry', field), help, value })
  }
  if (parts.holds !== undefined) {
    const help = 'Legal holds that this node has; of a datastore one for each of its shards.'
    figures.push({ name: 'trilithon_holds', help, value: parts.holds })
  }
  figures.push(...movedFigures(parts.moves, parts.buckets))
  return [...figures, ...queueFigures(parts.queues), ...bufferFigures(parts.buffer)]
}

function bufferFigures(buffer: BufferCounts | undefined): readonly Figure[] {
  if (buffer === undefined) return []
  const { buffered, moved, rejected } = buffer
  return [
    {
      name: 'trilithon_cells_buffered_total',
      help: 'Cells that this node took into buffers, since their own replica set was silent.',
      value: buffered,
    },
    {
      name: 'trilithon_cells_unbuffered_total',
      help: 'Buffered cells that this node brought into their shards.',
      value: moved,
    },
    {
      name: 'trilithon_cells_rejected_total',
      help: 'Buffered cells that their shards would not have; see `trilithon cells rejected`.',
      value: rejected,
    },
  ]
}

function queueFigures(queues: QueuesStatus | undefined): readonly Figure[] {
  if (queues === undefined) return []
  const { delivered, repeated, failures, busyGroups, topics } = queues
  const own = [
    ['delivered_total', 'Messages that this node delivered.', delivered],
    ['delivered_again_total', 'Messages delivered that had been received before.', repeated],
    ['delivery_failures_total', 'Looks at an outbox that had to be tried again.', failures],
    ['delivery_groups', 'Groups whose outbox waits to be looked at.', busyGroups],
  ] as const
  const figures = own.map(([name, help, value]): Figure => {
    return { name: `trilithon_queue_${name}`, help, value }
  })
  for (const [topic, { put, gone }] of Object.entries(topics)) {
    const labels = { topic }
    const name = 'trilithon_worklist_rows'
    const [came, went] = ['Rows put under a topic', 'Rows taken away from under a topic']
    const help = 'as applied at this node since it started.'
    figures.push({ name: `${name}_put_total`, help: `${came}, ${help}`, value: put, labels })
    figures.push({ name: `${name}_gone_total`, help: `${went}, ${help}`, value: gone, labels })
  }
  return figures
}
