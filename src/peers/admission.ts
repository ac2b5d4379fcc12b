/**
 * Which peer may have a link: this node compares the peer's store, and how far its log is, with what its
 * own log remembers of the peer (`../log/peer-memory.ts`).
 *
 * LOG-10  A peer has a link only once its store, and how far its log is, stand in this node's log.
 * UPG-1   A peer has a link only while its build supports the cluster version that is in force here.
 * LOG-11  A node that has a log and has lost that record lets no peer in before a majority has told it.
 *
 * A peer tells as a link begins how far its log was at its start: this node may have heard of later flushes. They are of
 * the same run then, which has lost nothing; a folder of the past runs anew, even where it
 * counts the same incarnation.
 */
import { assert } from '../base/assert.ts'
import {
  supportsVersion,
  untoldVersions,
  versionsText,
  type Versions,
} from '../base/cluster-version.ts'
import { isNodeId, type NodeId } from '../base/ids.ts'
import { nodeCountMax } from '../base/limits.ts'
import { pack, unpack } from '../base/pack.ts'
import type { RememberedStore } from '../base/remembered.ts'
import type { Trace } from '../ports/trace.ts'
import { passingRefusal, type LinkInfo, type VotersTold } from '../ports/transport.ts'
import type { PeerMemory } from '../log/peer-memory.ts'
import type { SetNodes } from '../placement/set-nodes.ts'

/** Small values kept with the data store. */
export interface MetaStore {
  meta(name: string): Uint8Array | undefined
  setMeta(name: string, value: Uint8Array): void
}

/** A store that may have a link, and has no vote: it is to take the place of a node's present one, or it is a read-only member. */
export interface Newcomer {
  readonly seat: number
  /** It has all that it came for: no other store is waited for. */
  readonly isReader?: boolean
  /** Absent: none has come as yet. */
  readonly store?: string
  /** Of the change that replaces it. */
  readonly number: number
}

export interface AdmissionParts {
  readonly node: NodeId
  readonly nodes: SetNodes
  /** Of this node's own log. */
  readonly storeId: string
  readonly trace: Trace
  readonly meta: MetaStore
  /** Which store of each peer may vote, as the log remembers it. */
  readonly memory: PeerMemory
  /** Has the news in `memory` made durable. */
  remember(): void
  /** A peer tells which nodes vote: this node may begin with a list that is out of date. */
  hearVoters(told: VotersTold): void
  /** The store that may come to the node's name without a vote; undefined: none may. */
  findNewcomer(node: NodeId): Newcomer | undefined
  /** The highest seat that a change has handed out, as far as this node knows. */
  lastSeat(): number
  /** The cluster version that is in force at this node. */
  version(): number
  /** Whether this node has the row of the last epoch that it has heard of: else it does not know who takes part. */
  knowsNodes(): boolean
}

/** Stores that a peer may tell of: as many as a set can have several times over. */
const knownMax = 4 * nodeCountMax

const uninformed = `${passingRefusal} this node does not know yet which nodes take part; it catches up`

const forgetful = `${passingRefusal} this node has lost its memory of who votes with which store; it lets nobody in before a majority has told it`

export class Admission {
  readonly #parts: AdmissionParts
  readonly #vouchers = new Map<NodeId, LinkInfo>()

  constructor(parts: AdmissionParts) {
    this.#parts = parts
    if (!parts.memory.isWhole) this.#takeOver()
  }

  /** Versions before kept this with the data store: the log takes it over, once. */
  #takeOver(): void {
    const { meta, memory, nodes, trace } = this.#parts
    let count = 0
    for (const node of nodes.otherVoters) {
      const known = unpack(meta.meta(`peer/${node}`) ?? new Uint8Array())
      const [storeId, durableFlush]: unknown[] = Array.isArray(known) ? known : []
      if (typeof storeId !== 'string' || typeof durableFlush !== 'number') continue
      memory.learn({ node, storeId, durableFlush, incarnation: 0, run: 0 })
      // It grows old there: a log that loses its memory later must not believe it.
      meta.setMeta(`peer/${node}`, pack([]))
      count += 1
    }
    // A node without others has no peer to forget.
    const others = nodes.otherVoters.length
    if (count > 0 || others === 0) memory.restore(others, others)
    else trace.mark('peer_memory_missing')
  }

  /** Why this peer may not have a link, or undefined when it may. */
  findProblem(name: string, info: LinkInfo): string | undefined {
    const { memory, nodes } = this.#parts
    if (info.voters !== undefined) this.#parts.hearVoters(info.voters)
    const node = nodes.others.find((one) => one === name)
    if (node === undefined) return this.#outside(name, info)
    if (info.storeId === undefined) return 'malformed: no store id'
    if (!areCredible(info)) return 'malformed: no log can have come so far'
    const version = this.#parts.version()
    if (!supportsVersion(versionsOf(info), version)) return unsupported(node, version, info)
    if (!memory.isWhole) this.#askVoucher(node, info)
    if (!memory.isWhole) return forgetful
    const known = memory.of(node)
    const newcomer = this.#parts.findNewcomer(node)
    if (newcomer !== undefined && known?.storeId !== info.storeId) {
      return seatProblem(node, newcomer, info)
    }
    // A change that is under way has a seat for one store alone, and the old one gives its name up.
    if (newcomer !== undefined && seatOf(info) !== newcomer.seat)
      return beingReplaced(node, newcomer)
    return known && staleness(known, info, memory.epochs.epoch)
  }

  #outside(name: string, { seat = 0, storeId }: LinkInfo): string {
    const { memory, lastSeat, knowsNodes } = this.#parts
    // The node may be a member that this one has not heard of, and it would end for good.
    if (!knowsNodes()) return uninformed
    const { epoch } = memory.epochs
    const known = isNodeId(name) ? memory.of(name) : undefined
    // The row that handed the seat out named the node: a store that never had a vote leaves the row with its seat.
    const hadVote = known !== undefined && known.storeId === storeId
    if (!hadVote && seat > 0 && seat <= lastSeat()) return removedSeat(name, seat)
    // A store that has lost its record does not know whether it ever had a vote.
    const store = hadVote ? `; store ${storeId} had one before` : ''
    return known !== undefined
      ? `removed-node: ${name} has no vote since epoch ${epoch}${store}; move its data folder away`
      : `unknown-node: this cluster has no node ${name}; trilithon nodes add makes it a member`
  }

  /** Whether the store is neither the one that votes for the node, nor may come to take its place. */
  isForeign(node: NodeId, info: LinkInfo): boolean {
    const known = this.#parts.memory.of(node)
    if (known === undefined || known.storeId === info.storeId) return false
    return this.#parts.findNewcomer(node) === undefined
  }

  /** Whether the store, which may have a link, has no vote. A read-only member may have had one, in an earlier epoch. */
  isNewcomer(node: NodeId, info: LinkInfo): boolean {
    const { memory, nodes, findNewcomer } = this.#parts
    if (findNewcomer(node) === undefined) return false
    return memory.of(node)?.storeId !== info.storeId || !nodes.isVoter(node)
  }

  /**
   * Of what this node has forgotten, a majority knows. A peer's word counts as long as no other's speaks
   * against its store: one that was emptied remembers no node. A peer sends nothing before the receiver
   * stands in its log. So where all others are there, and none knows this node, no peer has ever counted a
   * vote of this one. Of two words about one peer the higher counts.
   */
  #askVoucher(peer: NodeId, info: LinkInfo): void {
    const { memory, node, nodes, trace, remember } = this.#parts
    if (info.known !== undefined) this.#vouchers.set(peer, info)
    const vouchers = [...this.#vouchers].filter(([one, said]) => {
      return nodes.otherVoters.includes(one) && !this.#isDoubted(one, said)
    })
    const others = nodes.otherVoters.length
    const needed = Math.min(others, nodes.majority)
    if (vouchers.length < needed) return
    // No node knows a store that has come to take another's place.
    const isKnown = vouchers.some(([, said]) => this.#knowsOwn(said)) || !memory.epochs.isMember
    if (vouchers.length < others && !isKnown) return
    // Of nodes that have left, too: another store under such a name must not count for the old one.
    for (const one of vouchers.flatMap(([, { known = [] }]) => known.slice(0, knownMax))) {
      if (one.node !== node && areCredible(one)) memory.learn(one)
    }
    trace.mark('peer_memory_restored')
    memory.restore(vouchers.length, needed)
    remember()
  }

  #knowsOwn({ known = [] }: LinkInfo): boolean {
    const { node, storeId } = this.#parts
    return known.some((one) => one.node === node && one.storeId === storeId)
  }

  #isDoubted(peer: NodeId, info: LinkInfo): boolean {
    const told = [...this.#vouchers.values()].flatMap(({ known = [] }) => known)
    return told.some((one) => one.node === peer && staleness(one, info, 1) !== undefined)
  }

  /**
   * Takes up what a peer that is let in says of itself. Of others its word counts only to a node that has
   * lost its own.
   */
  learn(node: NodeId, info: LinkInfo): void {
    const { storeId, durableFlush = 0, incarnation = 0, run = 0 } = info
    if (storeId === undefined) return
    this.#parts.memory.learn({ node, storeId, durableFlush, incarnation, run })
  }

  /** The peer's log has come so far. */
  raise(node: NodeId, durableFlush: number): void {
    const { memory } = this.#parts
    const known = memory.of(node)
    if (known !== undefined) memory.learn({ ...known, durableFlush })
  }

  /** Called as the peer's link comes into use. */
  checkKept(node: NodeId, info: LinkInfo): void {
    const { memory } = this.#parts
    const kept = memory.kept.find((one) => one.node === node)
    assert(
      kept?.storeId === info.storeId &&
        kept?.durableFlush !== undefined &&
        kept.durableFlush >= (info.durableFlush ?? 0),
      'LOG-10: a store has a link that a crash would make this node forget',
    )
    assert(memory.isWhole, 'LOG-11: a node that forgot its peers let one in')
  }
}

/** Why the store may not come to the seat. */
function seatProblem(node: NodeId, newcomer: Newcomer, info: LinkInfo): string | undefined {
  const { seat, store, isReader } = newcomer
  const own = seatOf(info)
  if (isReader === true && own > 0 && own < seat) return removedSeat(node, own)
  if (own !== seat) return beingReplaced(node, newcomer)
  if (store === undefined || store === info.storeId) return undefined
  return `seat-taken: store ${store} has come to seat ${seat} of ${node}, and no other one may`
}

/** The cluster versions that the peer's build supports. */
export function versionsOf({ supports = untoldVersions }: LinkInfo): Versions {
  return supports
}

function unsupported(node: NodeId, version: number, info: LinkInfo): string {
  const built = `${node} runs a build that supports ${versionsText(versionsOf(info))}`
  return `unsupported-version: cluster version ${version} is in force in this replica set, and ${built}: start it with a build that supports version ${version}`
}

/** Seat 0: the store is its node's first. */
function seatOf({ seat = 0 }: LinkInfo): number {
  return seat
}

function removedSeat(node: string, seat: number): string {
  return `removed-seat: ${node} has no part in the replica set with seat ${seat} any more; move its data folder away`
}

function beingReplaced(node: NodeId, { number, seat }: Newcomer): string {
  return `being-replaced: change ${number} replaces the store of ${node}; an empty folder comes with --seat ${seat}, and the old one after trilithon nodes cancel`
}

/** Why such a store must not vote, given what is known of it. */
function staleness(known: RememberedStore, info: LinkInfo, epoch: number): string | undefined {
  const { node } = known
  const { storeId, durableFlush = 0, incarnation = 0, run = 0 } = info
  if (known.storeId !== storeId) {
    return `unknown-store: ${node} voted with store ${known.storeId} (epoch ${epoch}); an emptied or exchanged data folder must not vote under its name: trilithon nodes replace ${node} makes it a member`
  }
  const isSameIncarnation = known.incarnation === incarnation
  if (isSameIncarnation && known.run === run) return undefined
  if (durableFlush < known.durableFlush) {
    return `stale-disk: ${node} once had flush ${known.durableFlush} on disk and now has ${durableFlush}`
  }
  if (incarnation < known.incarnation) {
    return `stale-disk: ${node} once was in incarnation ${known.incarnation} and now is in ${incarnation}`
  }
  if (isSameIncarnation) return `stale-disk: ${node} begins incarnation ${incarnation} again`
  return undefined
}

/**
 * More flushes than a node that wrote one each 10 µs for a century: a peer that names such a number lies,
 * or errs.
 */
const flushesMax = 3e14

/** Whether the log of a node can have come so far. */
export function areCredible({
  durableFlush = 0,
  incarnation = 0,
}: Pick<LinkInfo, 'durableFlush' | 'incarnation'>): boolean {
  return durableFlush <= flushesMax && incarnation <= flushesMax
}
