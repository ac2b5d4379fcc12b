/**
 * Whether this node keeps up with what it takes on. A majority does not wait for the slowest: what the disk of
 * that one has taken and not written would grow for as long as the others are faster. And a node without a
 * majority goes on with proposals that no caller waits for any more, each in a group that cannot leave
 * memory.
 */
import type { Limits } from '../base/limits.ts'
import type { GroupMessage } from '../replication/message.ts'

/** A leader stops at its bounds; a follower that is behind has this many times as much. */
const followerFactor = 2

export interface BackpressureParts {
  readonly limits: Pick<
    Limits,
    'overlayBytesMax' | 'logQueueBytesMax' | 'groupsInMemoryMax' | 'nodeQueueMax' | 'leaseGroupsMax'
  >
  readonly log: { readonly queueBytes: number }
  readonly data: { readonly overlayBytes: number }
  held(): { readonly groupsInMemory: number }
}

export class Backpressure {
  readonly #parts: BackpressureParts

  constructor(parts: BackpressureParts) {
    this.#parts = parts
  }

  get mayPropose(): boolean {
    return this.#isWithin(1) && this.#parts.held().groupsInMemory < this.#groupsMax
  }

  /** Those that may leave, one for each request, and those under a lease. */
  get #groupsMax(): number {
    const { groupsInMemoryMax, nodeQueueMax, leaseGroupsMax } = this.#parts.limits
    return groupsInMemoryMax + nodeQueueMax + leaseGroupsMax
  }

  /**
   * A message that makes the log or the overlay grow may be lost: the node that sent it, or asked for it,
   * tries again.
   */
  admits({ kind }: GroupMessage): boolean {
    switch (kind) {
      case 'prepare':
      case 'accept':
      case 'entries':
        return this.#isWithin(followerFactor)
      default:
        return true
    }
  }

  /**
   * Whether peers may be asked for more: half of the room is left to messages that this node did not ask
   * for.
   */
  get mayFetch(): boolean {
    return this.#isWithin(0.5)
  }

  #isWithin(factor: number): boolean {
    const { limits, log, data } = this.#parts
    const isLogWithin = log.queueBytes < limits.logQueueBytesMax * factor
    return isLogWithin && data.overlayBytes < limits.overlayBytesMax * factor
  }
}
