/**
 * Decides what becomes of a group of which two nodes have different rows at one position.
 *
 * HEAL-3  This node takes its own rows for wrong where a count of them is not what its own state record says, or where
 *         a majority of the replicas has another hash at the position. It never takes up what a minority has.
 * HEAL-6  Where no hash has a majority, the group takes no write at a node that knows of it, until one
 *         has.
 * HEAL-8  An operator may decide for one node's rows then, and only then. Another node takes up the hash that this node
 *         has told, at the position where they differ or above it.
 *
 * A node cannot tell from its own rows alone which side is wrong, so it counts its rows first: damage that came after a
 * write shows there, without any peer.
 */
import { assert } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import type { GroupId, NodeId, Position } from '../base/ids.ts'
import type { Limits } from '../base/limits.ts'
import type { Clock } from '../ports/clock.ts'
import type { Trace } from '../ports/trace.ts'
import type { GroupMark } from '../store/bucket-sums.ts'
import type { CompareAsks } from './compare-asks.ts'

/** The reason why a group is put aside, and the snapshot that it needs. */
export interface Finding {
  readonly cause: 'rows' | 'minority' | 'operator'
  /** The hash that a snapshot of this position must have. Absent: a snapshot of any hash. */
  readonly right?: GroupMark
  /** The nodes that may send it. */
  readonly sources: readonly NodeId[]
}

/** A count of the group's rows against its state record. `unknown`: there is none, or the group was written meanwhile. */
export type Recount = 'sound' | 'damaged' | 'unknown'

export interface DifferencesParts {
  readonly node: NodeId
  readonly others: readonly NodeId[]
  readonly clock: Clock
  readonly trace: Trace
  readonly limits: Pick<Limits, 'compareAgainMs'>
  readonly asks: Pick<CompareAsks, 'marks'>
  compares(peer: NodeId): boolean
  find(group: GroupId): GroupMark | undefined
  recount(group: GroupId): Promise<Recount>
  isAside(group: GroupId): boolean
  putAside(group: GroupId, finding: Finding): void
  onFailed(error: unknown): void
}

const triesMax = 4
/** Groups that are looked at; one more is found again by the next round. */
const groupsMax = 1_000
/** Groups without a majority are looked at again after this many times `compareAgainMs`. */
const undecidedRests = 20

type Decision =
  | { readonly kind: 'own' }
  | { readonly kind: 'theirs'; readonly right: GroupMark; readonly sources: readonly NodeId[] }
  | { readonly kind: 'undecided' }
  /** Positions are unequal, or a node has nothing to tell now. */
  | { readonly kind: 'later' }

export class Differences {
  readonly #parts: DifferencesParts
  readonly #looking = new Set<GroupId>()
  readonly #undecided = new Map<GroupId, number>()
  #isStopped = false

  constructor(parts: DifferencesParts) {
    this.#parts = parts
  }

  /** Groups without a majority for any hash. */
  get undecided(): readonly GroupId[] {
    return [...this.#undecided.keys()]
  }

  isUndecided(group: GroupId): boolean {
    return this.#undecided.has(group)
  }

  /** Differences that are not decided yet. */
  get open(): number {
    return this.#looking.size
  }

  /** Another node has other rows at the same position. */
  look(group: GroupId): void {
    const isKnown = this.#looking.has(group) || this.#parts.isAside(group)
    if (this.#isStopped || isKnown || this.#looking.size >= groupsMax) return
    this.#looking.add(group)
    this.#decide(group)
      .catch((error: unknown) => {
        if (!this.#isStopped) this.#parts.onFailed(error)
      })
      .finally(() => this.#looking.delete(group))
      .catch(() => undefined)
  }

  /** Now and then: those without a majority may have one. */
  go(): void {
    const nowMs = this.#parts.clock.monotonicMs()
    for (const [group, againMs] of this.#undecided) if (againMs <= nowMs) this.look(group)
  }

  /** The operator's decision (HEAL-8): this node takes what `from` has. Rejects with a StoreError where it may not. */
  async resolve(group: GroupId, from: NodeId): Promise<void> {
    const { node, others, asks, compares, find, putAside } = this.#parts
    if (from === node) {
      throw new StoreError('invalid', `node ${node} keeps the rows that it has: ask the others`)
    }
    if (!others.includes(from)) {
      const names = others.join(', ')
      throw new StoreError('invalid', `node ${from} is not of this replica set, only ${names} are`)
    }
    this.#refuseDecided(group)
    const marks = compares(from) ? await asks.marks(from, [group]) : undefined
    if (marks === undefined) {
      const text = `node ${from} does not answer node ${node}: start it, or take the rows of another one`
      throw new StoreError('unavailable', text)
    }
    this.#refuseDecided(group)
    const own = find(group)
    const [, position, hash] = marks[0] ?? [group, 0, new Uint8Array()]
    if (own === undefined || position < own.position || hash.length === 0) {
      const text = `node ${from} does not have this group as far as node ${node} has it: take the rows of another one`
      throw new StoreError('not-found', text)
    }
    assert(this.isUndecided(group), 'HEAL-8: an operator decides where the nodes can')
    assert(from !== node, 'HEAL-8: a node takes its own rows from itself')
    this.#undecided.delete(group)
    const right = { position, hash: Buffer.from(hash).toString('latin1') }
    putAside(group, { cause: 'operator', right, sources: [from] })
  }

  #refuseDecided(group: GroupId): void {
    if (this.isUndecided(group) && !this.#parts.isAside(group)) return
    const text = `this group is not undecided at node ${this.#parts.node}: trilithon compare status lists those that are`
    throw new StoreError('invalid', text)
  }

  async #decide(group: GroupId): Promise<void> {
    const { trace, putAside } = this.#parts
    for (let tries = 0; tries < triesMax; tries++) {
      if (tries > 0) await this.#rest()
      const count = await this.#parts.recount(group)
      if (this.#isStopped || this.#parts.isAside(group)) return
      if (count === 'damaged') {
        // Rows or record: a count cannot tell which of them is wrong.
        this.#undecided.delete(group)
        return putAside(group, { cause: 'rows', sources: this.#parts.others })
      }
      const decision = count === 'unknown' ? laterDecision : await this.#vote(group)
      if (this.#isStopped) return
      if (decision.kind === 'later') continue
      if (decision.kind === 'undecided') return this.#onUndecided(group)
      this.#undecided.delete(group)
      if (decision.kind === 'own') return trace.mark('difference_is_of_others')
      const { right, sources } = decision
      const replicas = this.#parts.others.length + 1
      assert(2 * sources.length > replicas, 'HEAL-3: a node takes up what a minority has')
      return putAside(group, { cause: 'minority', right, sources })
    }
    trace.mark('difference_left_open')
    if (this.#undecided.has(group)) this.#onUndecided(group)
  }

  #onUndecided(group: GroupId): void {
    const { clock, limits, trace } = this.#parts
    assert(!this.#parts.isAside(group), 'HEAL-6: a group that is aside waits for a majority')
    if (!this.#undecided.has(group)) {
      trace.mark('difference_without_majority')
      trace.emit({ kind: 'undecided', group })
    }
    this.#undecided.set(group, clock.monotonicMs() + undecidedRests * limits.compareAgainMs)
  }

  #rest(): Promise<void> {
    const { clock, limits } = this.#parts
    return new Promise((resolve) => clock.setTimer(limits.compareAgainMs, resolve))
  }

  async #vote(group: GroupId): Promise<Decision> {
    const { node, others, asks, compares } = this.#parts
    const own = this.#parts.find(group)
    if (own === undefined) return laterDecision
    const told = await Promise.all(
      others.map(async (peer) => {
        const marks = compares(peer) ? await asks.marks(peer, [group]) : undefined
        return [peer, marks?.[0]] as const
      }),
    )
    if (this.#parts.find(group)?.position !== own.position) return laterDecision
    const votes = new Map<string, NodeId[]>([[own.hash, [node]]])
    let isOpen = false
    for (const [peer, mark] of told) {
      if (mark === undefined) continue
      const [, position, hash] = mark
      if (position !== own.position || hash.length === 0) isOpen = true
      else addVote(votes, Buffer.from(hash).toString('latin1'), peer)
    }
    return countVotes(votes, own, others.length + 1, isOpen)
  }

  stop(): void {
    this.#isStopped = true
  }
}

const laterDecision: Decision = { kind: 'later' }

function addVote(votes: Map<string, NodeId[]>, hash: string, peer: NodeId): void {
  const nodes = votes.get(hash)
  if (nodes === undefined) votes.set(hash, [peer])
  else nodes.push(peer)
}

/** `isOpen`: a replica that answers has not told its hash at the position. */
function countVotes(
  votes: ReadonlyMap<string, readonly NodeId[]>,
  own: { readonly position: Position; readonly hash: string },
  replicas: number,
  isOpen: boolean,
): Decision {
  for (const [hash, nodes] of votes) {
    if (2 * nodes.length <= replicas) continue
    if (hash === own.hash) return { kind: 'own' }
    return { kind: 'theirs', right: { position: own.position, hash }, sources: nodes }
  }
  return isOpen || votes.size === 1 ? laterDecision : { kind: 'undecided' }
}
