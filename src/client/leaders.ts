/**
 * Which node proposes a group's next entry, as the nodes told: a write sent there saves a hop. A
 * hint and no more: any node takes any write, and one that is not the leader passes it on and says
 * who is.
 */
import { BoundedMap } from '../base/bounded-map.ts'
import type { GroupId } from '../base/ids.ts'
import { shardGroup } from '../cells/shard.ts'
import { readGroup, isGroupOperation } from '../txn/group-operation.ts'
import type { Operation, Replied } from '../wire/client/client-message.ts'

/** Groups remembered; the longest known go first. */
const leadersMax = 65_536

export class Leaders {
  readonly #leaders = new BoundedMap<GroupId, string>(leadersMax)

  /** The leader's node id, where an answer named one. */
  of(group: GroupId): string | undefined {
    return this.#leaders.get(group)
  }

  /** Notes the leaders that the answer to the operation names. */
  noteFrom(operation: Operation, { answer, leaders = [] }: Replied): void {
    if (isGroupOperation(operation) && 'leader' in answer && answer.leader !== undefined) {
      this.#note(readGroup(operation), answer.leader)
    }
    if (!('datastore' in operation)) return
    for (const [shard, leader] of leaders) {
      this.#note(shardGroup(operation.datastore, shard), leader)
    }
  }

  #note(group: GroupId, leader: string): void {
    this.#leaders.setAnew(group, leader)
  }
}
