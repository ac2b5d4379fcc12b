/**
 * Cells and groups of all replica sets as this node gives them: its own set's from its own replica, others'
 * by asking their nodes. A request that this node passes on names the one set it is for, so the next node
 * does not pass it on again.
 */
import { present } from '../base/assert.ts'
import type { GroupId, NodeId } from '../base/ids.ts'
import { captureOutcome, problem, toStoreError } from '../base/problem.ts'
import type { CellService } from '../cells/operation.ts'
import { KnownPlaces } from '../cells/known-places.ts'
import { RoutedCells } from '../cells/routed-cells.ts'
import { shardGroup } from '../cells/shard.ts'
import { notAnAnswer } from '../client/call.ts'
import { defaultClientLimits } from '../client/client-limits.ts'
import { Groups } from '../client/groups.ts'
import { Relay } from '../client/relay.ts'
import { SeenPositions } from '../client/seen-positions.ts'
import type { Placement } from '../placement/placement.ts'
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import type { Pace } from '../ports/pace.ts'
import type { Transport } from '../ports/transport.ts'
import type { WorklistAnswer, WorklistOperation } from '../worklist/worklist-operation.ts'
import type { LocalReplica } from '../group/replica-port.ts'
import {
  readGroup,
  type AdmitGroup,
  type ExportGroup,
  type GroupAnswer,
  type GroupOperation,
  type ListGroups,
  type OpenBuckets,
  type PassGroup,
} from '../txn/group-operation.ts'
import type { SharesPort } from '../members/share-requests.ts'
import { Sessions } from '../txn/session.ts'
import { remainingMs } from '../time/moments.ts'
import type { MovingPort } from '../group/moving-port.ts'
import type { GroupPort } from '../group/group-port.ts'
import { LocalGroups } from '../txn/local-groups.ts'
import type { ClientFrame } from '../wire/client/client-message.ts'
import { addLaterSet, type AddingSetsParts, type AskedSet } from './adding-sets.ts'
import { BucketMoves } from './bucket-moves.ts'
import type { MovedCounts } from './moved-figures.ts'
import { MovedGroups } from './moved-groups.ts'
import { mergedGroups, mergedListing, mergedSums } from './merged-sets.ts'

/** Carries out requests about groups and their worklists: a node's own services. */
export interface Executor<Operation, Answer> {
  execute(operation: Operation, timeoutMs: number, pace?: Pace): Promise<Answer>
  /** The answer, where it can be given in this call; undefined: `execute` finds it. */
  answerNow?(operation: Operation): Answer | undefined
}

export interface RoutingParts {
  readonly node: NodeId
  readonly placement: Placement
  readonly replica: LocalReplica
  /** Hands groups over to other sets, and takes theirs up. */
  readonly moving: MovingPort
  readonly shares: SharesPort
  /** Of this node's set. */
  readonly groups: Executor<GroupOperation, GroupAnswer>
  readonly worklists: Executor<WorklistOperation, WorklistAnswer>
  /** Links to the nodes of each other set, by its number. */
  readonly elsewhere: ReadonlyMap<number, Transport<ClientFrame>>
  readonly clock: Clock
  readonly random: Random
}

/** Carried out where the group is. */
type OfGroup = Exclude<
  GroupOperation,
  ListGroups | PassGroup | AdmitGroup | ExportGroup | OpenBuckets
>

export class Routing implements Executor<GroupOperation, GroupAnswer> {
  /** As transactions need them. */
  readonly groups: GroupPort
  readonly worklists: Executor<WorklistOperation, WorklistAnswer>
  readonly #parts: RoutingParts
  readonly #elsewhere: Map<number, Relay>
  /** The cells of each set, by its number; filled where there are several sets. */
  readonly #services: CellService[] = []
  readonly #moved: MovedGroups

  constructor(parts: RoutingParts) {
    const { clock, random, placement, replica } = parts
    this.#parts = parts
    this.#elsewhere = new Map(
      [...parts.elsewhere].map(([set, transport]) => [set, this.#makeRelay(transport)]),
    )
    this.groups =
      placement.setCount === 1
        ? new LocalGroups(replica)
        : new Groups((one, ms) => this.execute(one, ms), new SeenPositions())
    this.#moved = new MovedGroups({
      ...{ placement, clock, random, moving: parts.moving, shares: parts.shares },
      own: placement.setOfNode(parts.node),
      relay: (set) => this.#set(set),
      groups: () => this.groups,
      read: (group, timeoutMs) => replica.read(group, 'current', timeoutMs),
      worklist: replica.worklist,
      intents: new Sessions(clock, random),
    })
    this.worklists = { execute: (...asked) => this.#askWorklists(...asked) }
  }

  #makeRelay(transport: Transport<ClientFrame>): Relay {
    const { clock, random } = this.#parts
    return new Relay({ transport, clock, random }, defaultClientLimits)
  }

  /** A set that has come later; the placement has it from this call on. */
  addSet(set: number, transport: Transport<ClientFrame>): void {
    const relay = this.#makeRelay(transport)
    this.#elsewhere.set(set, relay)
    this.#services[set] = relay
  }

  execute(operation: GroupOperation, timeoutMs: number, pace?: Pace): Promise<GroupAnswer> {
    const { placement, replica, groups } = this.#parts
    if (operation.kind === 'list-groups') {
      if (this.#isOne || operation.isOfSet === true) {
        return groups.execute(operation, timeoutMs, pace)
      }
      const ofSet = { ...operation, isOfSet: true } as const
      const asked = this.#others.map((set) => set.groups.execute(ofSet, timeoutMs))
      return mergedGroups(operation, [groups.execute(ofSet, timeoutMs), ...asked])
    }
    const group = readGroup(operation)
    const refusal = placement.refusalOf(group)
    // No other node has another answer: the cluster has one list of sets.
    if (refusal !== undefined) {
      return Promise.resolve({ kind: 'problem', problem: problem('invalid', refusal) })
    }
    if (operation.kind === 'pass-group') return this.#receive(operation, timeoutMs, pace)
    if (operation.kind === 'admit-group') {
      return answered(() => this.#moved.admit(operation, timeoutMs))
    }
    if (operation.kind === 'open-buckets') {
      return answered(() => this.#moved.openBuckets(operation))
    }
    if (operation.kind === 'export-group') return this.#export(operation, timeoutMs)
    if (!replica.holds(group)) {
      return this.#set(placement.setOf(group)).groups.execute(operation, timeoutMs)
    }
    // A group of the only set is there.
    const isHere = this.#isOne && operation.kind !== 'locate-group'
    return isHere
      ? groups.execute(operation, timeoutMs, pace)
      : this.#executeHere(operation, timeoutMs, pace)
  }

  /** Of a group that this node's set has, or had. */
  async #executeHere(operation: OfGroup, timeoutMs: number, pace?: Pace): Promise<GroupAnswer> {
    const { groups, clock } = this.#parts
    const deadlineMs = clock.monotonicMs() + timeoutMs
    const moved = this.#moved
    const { kind } = operation
    const known = moved.here(readGroup(operation))
    if (known !== undefined) return moved.pass(operation, known, timeoutMs)
    const answer = await answered(() => {
      if (kind === 'move-group') return moved.move(operation, timeoutMs)
      if (kind === 'locate-group') return moved.locate(operation, timeoutMs)
      return groups.execute(operation, timeoutMs, pace)
    })
    // It may have left meanwhile, or be known to the leader alone.
    const next = moved.find(operation, answer)
    if (next === undefined) return answer
    return moved.pass(operation, next, remainingMs(clock, deadlineMs))
  }

  /** Of this node's set, also where this node has nothing of the group yet: the set in which the group began has no such page. */
  #export(operation: ExportGroup, timeoutMs: number): Promise<GroupAnswer> {
    if (this.#isOne) return this.#parts.groups.execute(operation, timeoutMs)
    return answered(() => this.#moved.export(operation, timeoutMs))
  }

  /** A node of a set that the group has left passes a request on. */
  async #receive(passed: PassGroup, timeoutMs: number, pace?: Pace): Promise<GroupAnswer> {
    const { clock } = this.#parts
    const deadlineMs = clock.monotonicMs() + timeoutMs
    const received = await captureOutcome(() => this.#moved.receive(passed, deadlineMs))
    if (received.kind === 'problem') return received
    return this.execute(passed.operation, remainingMs(clock, deadlineMs), pace)
  }

  answerNow(operation: GroupOperation): GroupAnswer | undefined {
    const { placement, replica, groups } = this.#parts
    const group = readGroup(operation)
    if (!replica.holds(group) || placement.refusalOf(group) !== undefined) return undefined
    return groups.answerNow?.(operation)
  }

  /** The cells of all sets, given those of this node's. */
  cells(own: CellService): CellService {
    const { node, placement } = this.#parts
    const { refusalOf } = placement
    if (this.#isOne) return new KnownPlaces({ cells: own, refusalOf })
    const ownSet = placement.setOfNode(node)
    for (let set = 0; set < placement.setCount; set++) {
      this.#services[set] = set === ownSet ? own : this.#set(set)
    }
    const setOf = (datastore: string, shard: number): number =>
      placement.setOf(shardGroup(datastore, shard))
    const cells = new RoutedCells({ services: this.#services, own, setOf })
    return new KnownPlaces({ cells, refusalOf })
  }

  /** Names of groups of all sets that begin so, a page behind `after`. */
  async list(
    prefix: GroupId,
    after: GroupId | undefined,
    limit: number,
    timeoutMs: number,
  ): Promise<readonly GroupId[]> {
    const from = after === undefined ? {} : { after }
    const operation = { kind: 'list-groups', group: prefix, limit, ...from } as const
    const answer = await this.execute(operation, timeoutMs)
    if (answer.kind === 'list-groups') return answer.groups
    throw toStoreError(answer.kind === 'problem' ? answer.problem : notAnAnswer)
  }

  /** Deletes what this node has of groups that other sets have taken up. */
  clearMoved(isOver: () => boolean): Promise<void> {
    return this.#moved.clear(isOver)
  }

  /** The requests of a mover of buckets; undefined where there is one set. */
  get bucketMoves(): BucketMoves | undefined {
    const { placement, node, moving, shares, replica } = this.#parts
    if (this.#isOne) return undefined
    return new BucketMoves({
      ...{ placement, moving, shares, replica, moved: this.#moved, own: placement.setOfNode(node) },
      relay: (set) => this.#set(set),
      execute: (...asked) => this.execute(...asked),
    })
  }

  /** Adds a set to the cluster (`adding-sets.ts`). */
  async addLaterSet(
    set: AskedSet,
    parts: Pick<AddingSetsParts, 'sets' | 'nodes' | 'look'>,
  ): Promise<void> {
    const { placement, node } = this.#parts
    const own = placement.setOfNode(node)
    await addLaterSet({ placement, own, relay: (number) => this.#set(number), ...parts }, set)
  }

  /** Of groups that go from set to set; undefined where there is one set. */
  get moves(): MovedCounts | undefined {
    return this.#isOne ? undefined : this.#moved.counts
  }

  /** Ends the requests to other sets. */
  async close(): Promise<void> {
    await Promise.all(this.#others.map((set) => set.close()))
  }

  /** A caller that watches a topic hears of this set's groups; lists cover all sets. */
  #askWorklists(
    operation: WorklistOperation,
    timeoutMs: number,
    pace?: Pace,
  ): Promise<WorklistAnswer> {
    const { worklists } = this.#parts
    const isLocal = operation.kind === 'watch-worklist' || operation.isOfSet === true
    if (this.#isOne || isLocal) return worklists.execute(operation, timeoutMs, pace)
    const ofSet = { ...operation, isOfSet: true } as const
    const asked = this.#others.map((set) => set.worklists.execute(ofSet, timeoutMs))
    const own = worklists.execute(ofSet, timeoutMs, pace)
    return operation.kind === 'list-worklist'
      ? mergedListing(operation, own, asked)
      : mergedSums([own, ...asked])
  }

  get #isOne(): boolean {
    return this.#parts.placement.setCount === 1
  }

  get #others(): readonly Relay[] {
    return [...this.#elsewhere.values()]
  }

  #set(set: number): Relay {
    return present(this.#elsewhere.get(set), 'MOVE-4: there are links to every other set')
  }
}

/** The answer, or the problem that the work met. */
async function answered(work: () => Promise<GroupAnswer>): Promise<GroupAnswer> {
  const outcome = await captureOutcome(work)
  return outcome.kind === 'ok' ? outcome.value : outcome
}
