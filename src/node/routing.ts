/**
 * Cells and groups of all replica sets as this node gives them: its own set's from its own replica,
 * others' by asking their nodes.
 */
import { present } from '../base/assert.ts'
import { compareText } from '../base/bytes.ts'
import type { CellService } from '../cells/operation.ts'
import { RoutedCells } from '../cells/routed-cells.ts'
import { shardGroup } from '../cells/shard.ts'
import { ClientGroups } from '../client/groups.ts'
import { SeenPositions } from '../client/seen-positions.ts'
import type { Placement } from '../placement/placement.ts'
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import type { Transport } from '../ports/transport.ts'
import type { LocalReplica } from '../replica/local-replica.ts'
import {
  groupOf,
  type GroupAnswer,
  type GroupOperation,
  type ListGroups,
} from '../txn/group-operation.ts'
import type { GroupPort } from '../txn/group-port.ts'
import { LocalGroups } from '../txn/local-groups.ts'
import type { ClientFrame } from '../wire/client-message.ts'
import type { GroupId, NodeId } from '../base/ids.ts'
import { Elsewhere } from './elsewhere.ts'

/** Carries out what is asked of groups: a node's own `GroupService`. */
export interface GroupExecutor {
  execute(operation: GroupOperation, timeoutMs: number): Promise<GroupAnswer>
}

export interface RoutingParts {
  readonly node: NodeId
  readonly placement: Placement
  readonly replica: LocalReplica
  /** Of this node's set. */
  readonly groups: GroupExecutor
  /** Links to the nodes of each other set, by its number. */
  readonly elsewhere: ReadonlyMap<number, Transport<ClientFrame>>
  readonly clock: Clock
  readonly random: Random
}

export class Routing implements GroupExecutor {
  /** As transactions need them. */
  readonly groups: GroupPort
  readonly #parts: RoutingParts
  readonly #elsewhere: ReadonlyMap<number, Elsewhere>

  constructor(parts: RoutingParts) {
    const { clock, random } = parts
    this.#parts = parts
    this.#elsewhere = new Map(
      [...parts.elsewhere].map(([set, transport]) => {
        return [set, new Elsewhere({ transport, clock, random })]
      }),
    )
    this.groups =
      parts.placement.setCount === 1
        ? new LocalGroups(parts.replica)
        : new ClientGroups((one, ms) => this.execute(one, ms), new SeenPositions())
  }

  execute(operation: GroupOperation, timeoutMs: number): Promise<GroupAnswer> {
    const { placement, replica, groups } = this.#parts
    if (operation.kind === 'list-groups') return this.#list(operation, timeoutMs)
    const group = groupOf(operation)
    if (replica.holds(group)) return groups.execute(operation, timeoutMs)
    return this.#set(placement.setOf(group)).askGroup(operation, timeoutMs)
  }

  /** Each set knows its own; a set that does not answer is not left out in silence. */
  async #list(operation: ListGroups, timeoutMs: number): Promise<GroupAnswer> {
    const others = [...this.#elsewhere.values()]
    const answers = await Promise.all([
      this.#parts.groups.execute(operation, timeoutMs),
      ...others.map((set) => set.askGroup(operation, timeoutMs)),
    ])
    const found: GroupId[] = []
    for (const answer of answers) {
      if (answer.kind !== 'list-groups') return answer
      found.push(...answer.groups)
    }
    const groups = [...new Set(found)].sort(compareText).slice(0, operation.limit)
    return { kind: 'list-groups', groups }
  }

  /** Ends what other sets are asked. */
  async close(): Promise<void> {
    await Promise.all([...this.#elsewhere.values()].map((set) => set.close()))
  }

  /** The cells of all sets, given those of this node's. */
  cells(own: CellService): CellService {
    const { node, placement } = this.#parts
    if (placement.setCount === 1) return own
    const ownSet = placement.setOfNode(node)
    const services = Array.from({ length: placement.setCount }, (_, set) =>
      set === ownSet ? own : this.#set(set),
    )
    const setOf = (datastore: string, shard: number): number =>
      placement.setOf(shardGroup(datastore, shard))
    return new RoutedCells({ services, own, setOf })
  }

  #set(set: number): Elsewhere {
    return present(this.#elsewhere.get(set), 'MOVE-4: there are links to every other set')
  }
}
