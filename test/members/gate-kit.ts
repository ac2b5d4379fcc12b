/** A node before the gate of epoch 2, with a log in memory, and the seals that others tell it. */
import type { GroupId, NodeId, Position } from '../../src/base/ids.ts'
import { firstEpochs } from '../../src/log/own-epochs.ts'
import { GateKeeper } from '../../src/members/gate-keeper.ts'
import type { GroupLook } from '../../src/members/seal-pages.ts'
import { compareBallots } from '../../src/paxos/ballot.ts'
import type { GroupEvent } from '../../src/replication/group.ts'
import type {
  EpochMessage,
  OpenAcceptance,
  SealedGroup,
  SealPage,
} from '../../src/replication/message.ts'
import { HandClock } from '../ports/hand-clock.ts'
import { Member, n1, n2, n3, renewedTo, type MemberOptions } from './epochs-kit.ts'

export function acceptance(position: Position, round = 1, epoch = 1): OpenAcceptance {
  const ballot = { epoch, round, node: n2, incarnation: 1 }
  return { position, ballot, value: Buffer.from(`value of round ${round}`) }
}

export function sealed(
  group: GroupId,
  applied: Position,
  ...open: readonly OpenAcceptance[]
): SealedGroup {
  return { group, applied, open }
}

/** The voter's record of the group is damaged. */
export function damaged(group: GroupId, applied: Position = 0): SealedGroup {
  return { group, applied, open: undefined }
}

export function page(groups: readonly SealedGroup[], rest: Partial<SealPage> = {}): SealPage {
  return { kind: 'seal-page', epoch: 2, through: 10, groups, ...rest }
}

/** Its own seal of epoch 1 counts for nothing. */
export const lateVoter: MemberOptions = { own: { ...firstEpochs, gated: 0 } }

export class AtGate {
  readonly clock: HandClock = new HandClock()
  readonly member: Member
  readonly looks: Map<GroupId, GroupLook> = new Map()
  readonly sent: (readonly [NodeId, EpochMessage])[] = []
  readonly digests: NodeId[] = []
  readonly stepped: (readonly [GroupId, GroupEvent])[] = []
  /** How far all that the peer's flushes name is here, but for these positions. */
  readonly here: Map<NodeId, number> = new Map([n2, n3].map((peer) => [peer, 10]))
  lacking: readonly (readonly [GroupId, Position])[] = []
  isSound = true
  /** Groups of other sets, and those whose rows a snapshot replaces. */
  aside: readonly GroupId[] = []
  /** Whether the log takes carried acceptances. */
  isCarrying = true
  passed = 0
  readonly failures: unknown[] = []
  /** Voters whose directories the node has called for, and those whose are not here. */
  readonly required: Set<NodeId> = new Set<NodeId>()
  nameless: readonly NodeId[] = []
  readonly keeper: GateKeeper
  #syncs: { readonly resolve: () => void; readonly reject: (error: Error) => void }[] = []

  /** Batches of the data store. */
  readonly data = { lastBatch: 0, durableBatch: 0 }

  /** Enters epoch 2, durably. `others`: two, or those of a larger set. */
  constructor(options: MemberOptions = {}, others: readonly NodeId[] = [n2, n3]) {
    this.member = new Member(options)
    const { member, clock } = this
    const { epochs, trace } = member
    if (epochs.own.epoch === 1) epochs.enter(renewedTo(2), () => undefined)
    member.keep()
    this.keeper = new GateKeeper({
      ...{ node: n1, others, epochs, clock, trace },
      log: { heldGroups: () => this.looks.keys(), sync: () => this.#sync() },
      data: this.data,
      isSound: () => this.isSound,
      isAside: (group) => this.aside.includes(group),
      look: (group) => this.#look(group),
      applied: (group) => this.#look(group).applied,
      step: (group, event) => this.#step(group, event),
      send: (to, message) => this.sent.push([to, message]),
      isTakenThrough: (peer, flush, isKnown) =>
        (this.here.get(peer) ?? 0) >= flush && this.lacking.every((named) => isKnown(...named)),
      requestDigest: (peer) => this.digests.push(peer),
      requireDirectory: (peer) => this.required.add(peer),
      hasNamedAll: (peer) => !this.nameless.includes(peer),
      onPassed: () => (this.passed += 1),
      onFailed: (error) => this.failures.push(error),
    })
  }

  get #own(): Member['epochs']['own'] {
    return this.member.epochs.own
  }

  /** Whether it votes in its epoch. */
  get isThrough(): boolean {
    return this.#own.gated === this.#own.epoch
  }

  #look(group: GroupId): GroupLook {
    return this.looks.get(group) ?? { applied: 0, open: [], damaged: [] }
  }

  #sync(): Promise<void> {
    return new Promise((resolve, reject) => this.#syncs.push({ resolve, reject }))
  }

  /** As the log takes a carried acceptance up: beside a record of a higher ballot it counts for nothing. */
  #step(group: GroupId, event: GroupEvent): void {
    this.stepped.push([group, event])
    if (event.kind !== 'carry' || !this.isCarrying) return
    const { applied, open, damaged: without } = this.#look(group)
    if (without.length > 0) return
    const kept = new Map(open.map((one) => [one.position, one]))
    for (const told of event.acceptances) {
      const own = kept.get(told.position)
      if (own === undefined || compareBallots(own.ballot, told.ballot) < 0) {
        kept.set(told.position, told)
      }
    }
    this.looks.set(group, { applied, open: [...kept.values()], damaged: [] })
  }

  /** How many syncs of the log are under way. */
  get syncing(): number {
    return this.#syncs.length
  }

  /** The log is synced, or the disk refuses. */
  async synced(error?: Error): Promise<void> {
    for (const sync of this.#syncs.splice(0)) {
      if (error === undefined) sync.resolve()
      else sync.reject(error)
    }
    await Promise.resolve()
    await Promise.resolve()
  }

  /** Time passes, and the keeper goes on. */
  go(ms = 200): void {
    this.clock.pass(ms)
    this.keeper.go()
  }

  /** Whole seals, with nothing else in them than these groups. */
  tell(from: NodeId, ...groups: readonly SealedGroup[]): void {
    this.keeper.onPage(from, page(groups))
  }

  /** The questions since the last look, by node; a group stands for where it goes on. */
  asked(): readonly (readonly [NodeId, GroupId | undefined])[] {
    return this.sent.splice(0).flatMap(([to, message]) => {
      return message.kind === 'seal-request' ? [[to, message.after] as const] : []
    })
  }
}
