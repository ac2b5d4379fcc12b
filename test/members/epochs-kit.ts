/** A node's part in the epochs for tests: its memory is durable when the test says so. */
import { groupOfBytes, nodeId, storeId, type GroupId, type NodeId } from '../../src/base/ids.ts'
import { firstEpochs, lostEpochs, type OwnEpochs } from '../../src/log/own-epochs.ts'
import { decodeEpochs, decodeMemory, PeerMemory } from '../../src/log/peer-memory.ts'
import type { Recovery } from '../../src/log/quorum-loss.ts'
import {
  beginEpoch,
  beginRenew,
  beginReplace,
  bindStore,
  firstRow,
  type SetRow,
} from '../../src/members/change.ts'
import { SetNodes } from '../../src/placement/set-nodes.ts'
import { Epochs } from '../../src/members/epochs.ts'
import type { Trace, TraceEvent } from '../../src/ports/trace.ts'

export const n1: NodeId = nodeId('n1')
export const n2: NodeId = nodeId('n2')
export const n3: NodeId = nodeId('n3')

/** The first store of a node, and those that came after it. */
export function storeOf(node: NodeId, turn = 1): ReturnType<typeof storeId> {
  return storeId(`00000000-0000-4000-8000-00000000${turn}00${node.slice(1)}`)
}

export function groupNamed(name: string): GroupId {
  return groupOfBytes(Buffer.from(name))
}

/** Of the second store of a node. */
const seat = 4_100
/** Of an empty store that has come to a seat. */
export const newcomerEpochs: OwnEpochs = lostEpochs(seat, 1)

/** The row that renewals have taken to the epoch. */
export function renewedTo(epoch: number): SetRow {
  return { ...beginRenew({ ...firstRow, epoch: epoch - 1 }, 1) }
}

/** The row in which the second store of a node has come to vote. */
export function replaced(node: NodeId, before: SetRow = firstRow): SetRow {
  return beginEpoch(
    bindStore(beginReplace(before, node, seat, 1), storeOf(node, 2)),
    [n1, n2, n3],
    2,
  )
}

export class RecordedTrace implements Trace {
  readonly marks: string[] = []
  readonly events: TraceEvent[] = []

  mark(name: string): void {
    this.marks.push(name)
  }

  emit(event: TraceEvent): void {
    this.events.push(event)
  }
}

export interface MemberOptions {
  readonly node?: NodeId
  readonly storeId?: string
  /** Whether the store came to a seat. */
  readonly isSeated?: boolean
  readonly own?: OwnEpochs
  readonly memory?: PeerMemory
  readonly recovery?: Recovery
}

/** One node, which knows the first stores of the others. */
export class Member {
  readonly trace: RecordedTrace = new RecordedTrace()
  readonly memory: PeerMemory
  readonly epochs: Epochs
  readonly nodes: SetNodes
  /** How often the news in the memory was to be made durable. */
  remembered = 0
  /** How often the log was to write what waits for a flush. */
  forced = 0
  /** The log's last flush, and how far its flushes are durable. */
  readonly flushes: { last: number; durable: number } = { last: 20, durable: 20 }
  readonly #storeId: string
  readonly #node: NodeId

  constructor(options: MemberOptions = {}) {
    const { node = n1, storeId: id = storeOf(node), own = firstEpochs, memory } = options
    const known = [n1, n2, n3]
      .filter((one) => one !== node)
      .map((one) => {
        return { node: one, storeId: storeOf(one), durableFlush: 7, incarnation: 2, run: 1 }
      })
    this.memory = memory ?? new PeerMemory(known, own)
    this.#storeId = id
    this.#node = node
    this.nodes = new SetNodes(node, [n1, n2, n3])
    const { flushes } = this
    const count = (): void => void (this.remembered += 1)
    const force = (): void => void (this.forced += 1)
    this.epochs = new Epochs({
      ...{ node, storeId: id, seat: options.isSeated === true ? seat : 0, trace: this.trace },
      ...{ nodes: this.nodes, first: [n1, n2, n3] },
      ...(options.recovery !== undefined && { recovery: options.recovery }),
      log: {
        memory: this.memory,
        remember: count,
        force,
        get lastFlush() {
          return flushes.last
        },
        get durableFlush() {
          return flushes.durable
        },
      },
    })
  }

  /** The news becomes durable. */
  keep(): void {
    if (this.memory.take() !== undefined) this.memory.onWritten()
  }

  /** The same node after a crash, with as much of the memory as the last write took along. */
  restarted(written: Uint8Array): Member {
    const memory = new PeerMemory(decodeMemory(written), decodeEpochs(written))
    return new Member({ node: this.#node, storeId: this.#storeId, memory })
  }
}
