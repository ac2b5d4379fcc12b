/** The requests of the mover of buckets to this node, to its set and to the other one (`bucket-mover.ts`). */
import { StoreError } from '../base/errors.ts'
import type { GroupId } from '../base/ids.ts'
import { tablesPrefix } from '../base/placed-group.ts'
import { toStoreError } from '../base/problem.ts'
import { notAnAnswer } from '../client/call.ts'
import type { Relay } from '../client/relay.ts'
import type { MovingPort } from '../group/moving-port.ts'
import type { LocalReplica } from '../group/replica-port.ts'
import { setGroupOf } from '../members/set-group.ts'
import type { SharesPort } from '../members/share-requests.ts'
import type { Placement } from '../placement/placement.ts'
import type { Share } from '../placement/shares.ts'
import type { GroupAnswer, GroupOperation } from '../txn/group-operation.ts'
import type { Moves, Whereabouts } from './bucket-mover.ts'
import type { MovedGroups } from './moved-groups.ts'

export interface BucketMovesParts {
  readonly placement: Placement
  /** The number of this node's set. */
  readonly own: number
  readonly moving: MovingPort
  readonly shares: Pick<SharesPort, 'of' | 'isVoid'>
  readonly moved: MovedGroups
  readonly replica: Pick<LocalReplica, 'groups' | 'worklist'>
  relay(set: number): Relay
  execute(operation: GroupOperation, timeoutMs: number): Promise<GroupAnswer>
}

const callMs = 10_000

export class BucketMoves implements Moves {
  readonly #parts: BucketMovesParts
  /** Groups of a third set that have been in the other one, and are in the third one again. */
  readonly #returned = new Set<GroupId>()

  constructor(parts: BucketMovesParts) {
    this.#parts = parts
  }

  isFirst(): boolean {
    const { placement, own, replica } = this.#parts
    return replica.worklist.isOurs(setGroupOf(placement, own))
  }

  shareOf(group: GroupId): Share | undefined {
    return this.#parts.shares.of(group)
  }

  list(after: GroupId | undefined, limit: number): Promise<readonly GroupId[]> {
    return this.#parts.replica.groups(tablesPrefix, after, limit, callMs)
  }

  async where(group: GroupId, share: Share): Promise<Whereabouts> {
    const { moving, moved, shares } = this.#parts
    const { set } = share
    const to = moving.movedTo(group)
    if (to === undefined) return shares.isVoid(group, share) ? 'void' : 'here'
    if (to !== set) return this.#returned.has(group) ? 'there' : 'here'
    if (moving.isCleared(group)) return 'there'
    return (await moved.isThere(group, callMs)) ? 'there' : 'on-its-way'
  }

  async move(group: GroupId, to: string): Promise<void> {
    const { moving, moved } = this.#parts
    const third = moving.movedTo(group)
    if (third === undefined) return moved.leave(group, to, callMs)
    await this.#ask(group, to)
    if (third === to) return
    // An operator has put it there: it goes back, and the other set knows from now on where it is.
    await this.#ask(group, third)
    this.#returned.add(group)
  }

  async #ask(group: GroupId, to: string): Promise<void> {
    const operation = { kind: 'move-group', group, to } as const
    expectKind(await this.#parts.execute(operation, callMs), 'move-group')
  }

  async admit({ set }: Share): Promise<void> {
    const { placement, own } = this.#parts
    const [target, from] = [this.#numberOf(set), placement.siteOf(own).name]
    const operation = { kind: 'admit-group', group: setGroupOf(placement, target), from } as const
    const answer = await this.#parts.relay(target).groups.execute(operation, callMs)
    expectKind(answer, 'admit-group')
  }

  async open({ set, term, buckets }: Share): Promise<void> {
    const { placement, own } = this.#parts
    const target = this.#numberOf(set)
    const of = { group: setGroupOf(placement, target), from: placement.siteOf(own).name }
    const operation = { kind: 'open-buckets', ...of, term, buckets } as const
    const answer = await this.#parts.relay(target).groups.execute(operation, callMs)
    expectKind(answer, 'open-buckets')
  }

  #numberOf(set: string): number {
    const number = this.#parts.placement.sites.findIndex(({ name }) => name === set)
    if (number >= 0) return number
    // A node that has started hears of the sets that have come later in a moment.
    throw new StoreError('unavailable', `this node knows of no replica set ${set} yet`)
  }
}

function expectKind(answer: GroupAnswer, kind: GroupAnswer['kind']): void {
  if (answer.kind === 'problem') throw toStoreError(answer.problem)
  if (answer.kind !== kind) throw toStoreError(notAnAnswer)
}
