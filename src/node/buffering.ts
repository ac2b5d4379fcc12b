/** Buffered writes at a node: takes cells whose shard's set is silent, and moves those that wait here. */
import { worklistBounds, WorklistWorker } from '../worklist/worklist-worker.ts'
import { BufferDrain } from '../cells/buffer-drain.ts'
import { bufferTopic } from '../cells/buffer-rows.ts'
import { BufferedCells } from '../cells/buffered-cells.ts'
import type { CellService } from '../cells/operation.ts'
import type { Placement } from '../placement/placement.ts'
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import type { LocalReplica } from '../group/replica-port.ts'
import type { GroupPort } from '../group/group-port.ts'
import { LocalGroups } from '../txn/local-groups.ts'
import { Sessions } from '../txn/session.ts'

export interface BufferingParts {
  readonly replica: LocalReplica
  readonly placement: Placement
  /** Cells and groups of all sets. */
  readonly cells: CellService
  readonly groups: GroupPort
  readonly clock: Clock
  readonly random: Random
  /** Told of each failure. */
  readonly onFailed: (error: unknown) => void
  /** Other sets that each take a copy of a cell; 0: none is buffered. */
  readonly copies: number
}

/** Cells, counted since the node was started. */
export interface BufferCounts {
  readonly buffered: number
  readonly moved: number
  readonly rejected: number
}

export class Buffering {
  /** The service that takes operations on cells. */
  readonly cells: CellService
  readonly #worker: WorklistWorker
  #counts: BufferCounts = { buffered: 0, moved: 0, rejected: 0 }

  constructor(parts: BufferingParts) {
    const { replica, placement, cells, groups, clock, random } = parts
    // A set that comes later shares no datastore with others.
    const { firstSetCount: setCount } = placement
    const copies = Math.min(parts.copies, setCount - 1)
    const common = { cells, clock, random, intents: new Sessions(clock, random) }
    const onBuffered = (count: number): void => this.#count(count, 0, 0)
    const { setOf, setsAlong } = placement
    const sets = { setCount, setOf, setsAlong }
    this.cells =
      copies === 0 ? cells : new BufferedCells({ groups, ...sets, copies, onBuffered, ...common })
    const drain = new BufferDrain({
      groups: new LocalGroups(replica),
      onDrained: (moved, rejected) => this.#count(0, moved, rejected),
      ...common,
    })
    this.#worker = new WorklistWorker({
      topic: bufferTopic,
      worklist: replica.worklist,
      clock,
      random,
      bounds: worklistBounds,
      serve: (group) => drain.serve(group),
      onFailed: (_group, error) => parts.onFailed(error),
    })
  }

  get counts(): BufferCounts {
    return this.#counts
  }

  start(): void {
    this.#worker.start()
  }

  stop(): Promise<void> {
    return this.#worker.stop()
  }

  #count(buffered: number, moved: number, rejected: number): void {
    const counts = this.#counts
    this.#counts = {
      buffered: counts.buffered + buffered,
      moved: counts.moved + moved,
      rejected: counts.rejected + rejected,
    }
  }
}
