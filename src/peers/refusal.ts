/**
 * Why a peer would not have this node's store: whether that ends the node. It does for good, so the
 * claim is held against what this node itself knows first.
 *
 * LOG-12  A node retires for a claim about its log only where its own log does not refute it.
 */
import { assert } from '../base/assert.ts'
import { firstVersion, ownVersions, type Versions } from '../base/cluster-version.ts'
import { StoreError } from '../base/errors.ts'
import type { Trace } from '../ports/trace.ts'
import type { LinkInfo } from '../ports/transport.ts'
import { areCredible } from './admission.ts'
import type { LogStore } from '../log/log-store.ts'
import type { OwnEpochs } from '../log/own-epochs.ts'
import type { PeerMemory } from '../log/peer-memory.ts'

/**
 * The facts on its store that this node tells as a link begins. Of its log it tells the end that the start found: later
 * flushes take the numbers of those that the disk may have lost, and a peer that knew these would not see that (LOG-10).
 * `supports`: a build of the first cluster version alone tells of no versions.
 */
export function describeSelf(
  { identity, memory, openedFlush, run }: OwnLog,
  supports: Versions = ownVersions,
): LinkInfo {
  const { storeId, incarnation, seat } = identity
  const durableFlush = openedFlush
  const known = memory.isWhole ? { known: memory.kept } : {}
  const later = { knowsEpochs: true, knowsReaders: true, tellsReach: true, movesGroups: true }
  const capable = { knowsLogEnds: true, compares: true, ...later }
  return {
    storeId,
    incarnation,
    durableFlush,
    run,
    ...known,
    ...capable,
    ...(seat > 0 && { seat }),
    ...(supports.max > firstVersion && { supports }),
    ...votersOf(memory.keptEpochs),
  }
}

function votersOf({ epoch, voters, isMember, isDoubted }: OwnEpochs): Pick<LinkInfo, 'voters'> {
  if (voters === undefined || !isMember || isDoubted) return {}
  return { voters: { epoch, nodes: voters } }
}

export type OwnLog = Pick<LogStore, 'memory' | 'openedFlush' | 'run'> & {
  readonly identity: Pick<LogStore['identity'], 'storeId' | 'incarnation' | 'seat'>
}

/** The log of this store ends before what a peer has heard of it, or is a copy of the past: the store must not vote again. */
export class StaleLog extends StoreError {
  constructor(message: string) {
    super('corrupt', message, { store: 'log' })
  }
}

/** Another store has the place of this one: it must not vote again, and no other one takes its place. */
export class RetiredStore extends StoreError {
  constructor(message: string) {
    super('corrupt', message, { store: 'log' })
  }
}

/** The claims with which peers refuse this node. */
export class Refusals {
  /** Those that this node's own log refutes. */
  falseClaims = 0
  readonly #own: Omit<OwnWord, 'epoch' | 'isMember' | 'isDoubted' | 'hasVoted'>
  readonly #memory: Pick<PeerMemory, 'epochs'>
  readonly #trace: Trace
  readonly #retire: (error: StoreError) => void

  constructor(
    { identity, openedFlush, memory }: LogStore,
    trace: Trace,
    retire: (error: StoreError) => void,
  ) {
    const { storeId, incarnation, seat } = identity
    this.#own = { storeId, incarnation, openedFlush, seat }
    this.#memory = memory
    this.#trace = trace
    this.#retire = retire
  }

  hear(peer: string, reason: string): void {
    this.#trace.mark('refused_by_peer')
    const { epoch, isMember, isDoubted, gated } = this.#memory.epochs
    // A node that lost its record has passed no gate that it knows of. A store that took no other one's place began as a voter.
    const hasVoted = gated > 0 || this.#own.seat === 0
    const own = { ...this.#own, epoch, isMember, isDoubted, hasVoted }
    const claim = claimIn(reason, own)
    if (claim === 'refuted') {
      this.falseClaims += 1
      this.#trace.mark('false_claim_about_log')
      this.#trace.emit({ kind: 'false-claim', peer, reason })
    }
    if (claim !== 'fatal') return
    const isRefuted = claimIn(reason, own) === 'refuted'
    assert(!isRefuted, 'LOG-12: a node retires for a claim that its own log refutes')
    const text = `${peer} will not vote with this store any more (${reason})`
    this.#retire(reason.startsWith('stale-disk') ? new StaleLog(text) : new RetiredStore(text))
  }
}

/** This node, as it was when its log was opened: later flushes may have come to an old log. */
export interface OwnWord {
  readonly storeId: string
  readonly incarnation: number
  readonly openedFlush: number
  readonly seat: number
  /** The last epoch that it has heard of, and whether it votes in it. */
  readonly epoch: number
  readonly isMember: boolean
  /** It does not know whether it votes in that epoch: the record is lost. */
  readonly isDoubted: boolean
  /** Whether it ever had a vote, as far as it knows: a newcomer has had none. */
  readonly hasVoted: boolean
}

export type Claim = 'none' | 'refuted' | 'fatal'

const flushClaim = /^stale-disk: \S+ once had flush (\d+) /
const incarnationClaim = /^stale-disk: \S+ once was in incarnation (\d+) /
const removedClaim = /^removed-node: \S+ has no vote since epoch (\d+);/
/** Where the peer knows the very store: it had a vote. */
const voterClaim = /^removed-node: [^;]+; store (\S+) had one before;/
/** Only a row that has handed this seat out, and does not name it any more, says so. */
const seatClaim = /^removed-seat: \S+ has no part in the replica set with seat (\d+) any more;/
const storeClaim = /^unknown-store: \S+ voted with store ([^;\s]+)(?: \(epoch (\d+)\))?;/

/**
 * `refuted`: this log has that flush and had it when it was opened, or is in that incarnation, or is that
 * store; or no log can have come so far.
 */
export function claimIn(reason: string, own: OwnWord): Claim {
  const removedIn = numberIn(removedClaim, reason)
  // A newcomer has no vote either, as its peers know; and a peer that is behind knows no node that was added since.
  if (removedIn !== undefined) {
    const hasVoted = own.hasVoted || voterClaim.exec(reason)?.[1] === own.storeId
    return isRemovedBy(removedIn, { ...own, hasVoted }) ? 'fatal' : 'none'
  }
  const removedSeat = numberIn(seatClaim, reason)
  if (removedSeat !== undefined) return removedSeat === own.seat && !own.isMember ? 'fatal' : 'none'
  if (!reason.startsWith('stale-disk') && !reason.startsWith('unknown-store')) return 'none'
  const [flush, incarnation] = [flushClaim, incarnationClaim].map((form) => numberIn(form, reason))
  if (flush !== undefined) return judged(flush, own.openedFlush)
  if (incarnation !== undefined) return judged(incarnation, own.incarnation)
  return judgeStore(reason, own)
}

/** It may have sealed its last epoch for the one that begins without it, and have lost its record of that. */
function isRemovedBy(epoch: number, own: OwnWord): boolean {
  const { isMember, isDoubted, hasVoted } = own
  return (
    (isMember && epoch > own.epoch) || ((!isMember || isDoubted) && hasVoted && epoch >= own.epoch)
  )
}

/** A peer that is behind in epochs does not know that this store has its node's vote, or a seat. */
function judgeStore(reason: string, { storeId, seat, epoch, isMember }: OwnWord): Claim {
  const [, named, told = '1'] = storeClaim.exec(reason) ?? []
  if (named === storeId) return 'refuted'
  const isLater = Number(told) > epoch
  if (!isMember || (seat > 0 && !isLater) || Number(told) < epoch) return 'none'
  return 'fatal'
}

function numberIn(form: RegExp, reason: string): number | undefined {
  const found = form.exec(reason)?.[1]
  return found === undefined ? undefined : Number(found)
}

function judged(claimed: number, own: number): Claim {
  return claimed <= own || !areCredible({ durableFlush: claimed }) ? 'refuted' : 'fatal'
}
