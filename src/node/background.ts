/**
 * The work that a node does by itself, from the worklists of the groups that it holds: it delivers messages,
 * carries changes to global indexes, removes expired rows and cells, brings buffered cells home.
 */
import { bufferCopiesDefault } from '../config/node-config.ts'
import { StoreError } from '../base/errors.ts'
import {
  CellExpiryWorker,
  type CellExpiryFigures,
  type ExpiringCells,
} from '../cells/cell-expiry-worker.ts'
import type { CellService } from '../cells/operation.ts'
import type { SharesPort } from '../members/share-requests.ts'
import type { Placement } from '../placement/placement.ts'
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import type { Trace } from '../ports/trace.ts'
import { deliveryBounds, type DeliveryBounds } from '../queues/limits.ts'
import { Delivery, type DeliveryCounts } from '../queues/delivery.ts'
import type { LocalReplica, TopicCounts } from '../group/replica-port.ts'
import { HoldCount } from '../tables/hold-count.ts'
import { ExpiryWorker, type ExpiryFigures } from '../tables/expiry-worker.ts'
import { IndexRelay, type RelayFigures } from '../tables/index-relay.ts'
import type { WorklistBounds } from '../worklist/worklist-worker.ts'
import type { GroupPort } from '../group/group-port.ts'
import type { BugPlace, NoteBug } from './bugs.ts'
import { BucketMover, type BucketProgress } from './bucket-mover.ts'
import type { BucketMoves } from './bucket-moves.ts'
import { MovedSweep } from './moved-sweep.ts'
import { Buffering, type BufferCounts } from './buffering.ts'

export interface BackgroundOptions {
  /** Other replica sets that take a copy of a cell whose own set is silent. Default 1; 0: none. */
  readonly bufferCopies?: number
  /** How messages are delivered; the default bounds when absent. */
  readonly delivery?: DeliveryBounds
  /** How groups with changes of indexes are served; as usual when absent. */
  readonly relay?: WorklistBounds
  /** How groups with rows, or cells, that expire are served; as usual when absent. */
  readonly expiry?: WorklistBounds
  /** Between two looks through one of these groups, in milliseconds; as usual when absent. */
  readonly expirySweepMs?: number
  /** Of groups that leave for another set with their buckets, by this node; as usual when absent. */
  readonly groupsPerSecond?: number
  /** How long the removal of rows goes by a schema that it has read; as usual when absent. */
  readonly schemaTrustMs?: number
}

export interface BackgroundRouting {
  /** Of buckets that this node's set gives to another one; undefined where there is one set. */
  readonly bucketMoves: BucketMoves | undefined
  /** Deletes the rows of groups that have left this node's set. */
  clearMoved(isOver: () => boolean): Promise<void>
}

export interface BackgroundParts extends BackgroundOptions {
  readonly replica: LocalReplica
  readonly placement: Placement
  /** Cells and groups of all sets. */
  readonly cells: CellService
  /** Those of this node's own set. */
  readonly expiring: ExpiringCells
  readonly groups: GroupPort
  readonly clock: Clock
  readonly random: Random
  readonly trace: Trace
  readonly noteBug: NoteBug
  readonly shares: SharesPort
  readonly routing: BackgroundRouting
}

export interface QueuesStatus extends Readonly<DeliveryCounts> {
  /** Groups whose outbox waits to be looked at, or is. */
  readonly busyGroups: number
  /** Rows that came and went as applied here, by topic: `outbox`, `queue/NAME`, `dead/NAME`. */
  readonly topics: Readonly<Record<string, TopicCounts>>
}

/** Plain data, as `/status` gives it. */
export interface BackgroundStatus {
  readonly buffer: BufferCounts
  /** The deliveries of this node from group to group, and the groups that wait for it. */
  readonly queues: QueuesStatus
  readonly indexes: RelayFigures
  readonly expiry: ExpiryFigures
  readonly cellExpiry: CellExpiryFigures
  /** Legal holds that this node has, those of each shard by themselves; undefined until they are counted. */
  readonly holds: number | undefined
  /** Buckets that leave this node's set; undefined: there are none. */
  readonly buckets: BucketProgress | undefined
}

/** Between two looks for groups that have left. */
/** A move costs two commits and a copy: commits of clients go on beside it. */
const groupsPerSecondDefault = 200
const movedSweepMs = 5_000

export class Background {
  readonly #parts: BackgroundParts
  readonly #delivery: Delivery
  readonly #relay: IndexRelay
  readonly #expiry: ExpiryWorker
  readonly #cellExpiry: CellExpiryWorker
  readonly #holds: HoldCount
  readonly #buffering: Buffering
  readonly #moved: MovedSweep
  readonly #buckets: BucketMover | undefined

  constructor(parts: BackgroundParts) {
    this.#parts = parts
    const { replica, placement, cells, groups, clock, random, trace } = parts
    const common = { replica, groups, clock, random }
    // Failed work is tried again after a while. A failure that the environment did not cause is a bug, and
    // `noteBug` reports it.
    const noting = (place: BugPlace) => (error: unknown) => {
      if (!(error instanceof StoreError)) parts.noteBug(place, error)
    }
    const bounds = parts.delivery ?? deliveryBounds
    this.#delivery = new Delivery(common, bounds, noting('delivery'))
    const onFailed = noting('relay')
    this.#relay = new IndexRelay({ trace, bounds: parts.relay, onFailed, ...common })
    this.#expiry = new ExpiryWorker({
      bounds: parts.expiry,
      sweepMs: parts.expirySweepMs,
      onFailed: noting('expiry'),
      schemaTrustMs: parts.schemaTrustMs,
      ...common,
    })
    this.#cellExpiry = new CellExpiryWorker({
      ...{ replica, clock, random, expiring: parts.expiring },
      ...{ bounds: parts.expiry, sweepMs: parts.expirySweepMs, onFailed: noting('expiry') },
    })
    this.#holds = new HoldCount({ replica, clock, onFailed: noting('holds') })
    this.#moved = new MovedSweep({
      ...{ clock, sweepMs: parts.expirySweepMs ?? movedSweepMs, onFailed: noting('moved') },
      clear: (isOver) => parts.routing.clearMoved(isOver),
    })
    this.#buckets = this.#makeBucketMover(noting('buckets'))
    const copies = parts.bufferCopies ?? bufferCopiesDefault
    this.#buffering = new Buffering({
      ...{ placement, cells, copies, onFailed: noting('buffer') },
      ...common,
    })
  }

  #makeBucketMover(onFailed: (error: unknown) => void): BucketMover | undefined {
    const { clock, shares, routing, groupsPerSecond } = this.#parts
    const { bucketMoves: moves } = routing
    if (moves === undefined) return undefined
    return new BucketMover({
      ...{ clock, shares, moves, onFailed },
      groupsPerSecond: groupsPerSecond ?? groupsPerSecondDefault,
    })
  }

  /** The service that takes operations on cells: it buffers those that a silent set cannot take. */
  get cells(): CellService {
    return this.#buffering.cells
  }

  get status(): BackgroundStatus {
    const { counts, busyGroups } = this.#delivery
    const topics = this.#parts.replica.worklist.counts()
    return {
      buffer: this.#buffering.counts,
      queues: { ...counts, busyGroups, topics },
      indexes: this.#relay.figures,
      expiry: this.#expiry.figures,
      cellExpiry: this.#cellExpiry.figures,
      holds: this.#holds.held,
      buckets: this.#buckets?.progress,
    }
  }

  start(): void {
    this.#delivery.start()
    this.#relay.start()
    this.#expiry.start()
    this.#cellExpiry.start()
    this.#holds.refresh()
    if (this.#parts.placement.setCount === 1) return
    this.#buffering.start()
    this.#moved.start()
    this.#buckets?.start()
  }

  /** Begins nothing more; resolves when what is under way has ended. */
  async stop(): Promise<void> {
    await Promise.all([
      this.#buckets?.stop(),
      this.#delivery.stop(),
      this.#relay.stop(),
      this.#expiry.stop(),
      this.#cellExpiry.stop(),
      this.#buffering.stop(),
      this.#moved.stop(),
    ])
  }
}
