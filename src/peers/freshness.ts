/**
 * Whether what this node has applied of a group may answer a read of bounded staleness. It asks the voters again and again
 * how far their flushes go, as long as such reads come (`peer-rounds.ts`).
 *
 * STALE-1  The answer has every write of the group that was acknowledged more than the bound before this node looked.
 * STALE-3  Answers of one epoch count, the one in which this node acts: a majority of its voters had not begun another one.
 * STALE-4  Behind the first epoch a voter counts once a whole directory of it has come, which this node asked for in that epoch.
 * STALE-5  This node counts itself only as a voter that has nothing open or damaged in the group. A read-only member counts the
 *          voters alone.
 * STALE-6  An age is the longer one of two clocks, and allows for their drift.
 *
 * A write that was acknowledged in this epoch was accepted by a majority. One voter of it is among those that count here,
 * and its flushes name the write. A write of an earlier epoch need not stand in any flush of a present voter: a snapshot may
 * have brought it. A directory names that, too.
 */
import { assert } from '../base/assert.ts'
import { numbersFrom } from '../base/drawn-numbers.ts'
import type { GroupId, NodeId, Position } from '../base/ids.ts'
import type { Limits } from '../base/limits.ts'
import type { ClockReading } from '../lease/clock-reading.ts'
import type { OwnEpochs } from '../log/own-epochs.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import type { Trace } from '../ports/trace.ts'
import type { Reach, ReachRequest } from '../replication/message.ts'
import type { PeerMarks } from './peer-marks.ts'
import type { PeerRounds } from './peer-rounds.ts'

export interface FreshnessParts {
  readonly incarnation: number
  readonly clock: Clock
  readonly trace: Trace
  readonly limits: Pick<Limits, 'clockDriftPpm'>
  readonly node: NodeId
  readonly log: { readonly durableFlush: number }
  readonly epochs: {
    readonly own: OwnEpochs
    /** The nodes that vote in that epoch. */
    readonly voters: readonly NodeId[]
    readonly isKept: boolean
    readonly isVoting: boolean
    readonly isReader: boolean
  }
  readonly peers: {
    readonly isAdmitted: boolean
    /** Of the voting store; undefined: there is no link with one, or never was. */
    marksOf(node: NodeId): PeerMarks | undefined
    tellsReach(node: NodeId): boolean
    send(to: NodeId, message: Reach | ReachRequest): void
    askDigest(node: NodeId): void
    requireDirectory(node: NodeId, epoch: number, isPastGate: boolean): void
  }
  /** Whether the data store holds what the log has given up (LOG-19). */
  isRestored(): boolean
  onFailed(error: unknown): void
}

/** The answer that a read of bounded staleness would get from this node alone. */
export interface BoundedRead {
  readonly group: GroupId
  /** Applied here. */
  readonly position: Position
  /** This node votes in the group, and has nothing above the position, nor a damaged record. */
  readonly isQuiet: boolean
  readonly maxStalenessMs: number
}

/** Rounds in the time of one bound: an answer that is late costs no read its bound. */
const roundsPerBound = 4
const [everyMsMin, everyMsMax] = [25, 2_000]
/** After this time without such reads this node asks no more. */
const restMs = 10_000

export class Freshness {
  readonly #parts: FreshnessParts
  #asked: number
  #timer: Timer | undefined
  #isStopped = false
  /** When the last such read came. */
  #lastMs = 0
  /** The smallest bound of late, and when a read named it. */
  #bound = { ms: Infinity, atMs: 0 }

  constructor(parts: FreshnessParts) {
    this.#parts = parts
    this.#asked = numbersFrom(parts.incarnation)
  }

  /** A read of that bound has come, and more of them may. */
  #expect(maxStalenessMs: number): void {
    if (this.#isStopped) return
    const now = this.#parts.clock.monotonicMs()
    const { ms, atMs } = this.#bound
    if (maxStalenessMs <= ms || now - atMs > restMs) {
      this.#bound = { ms: maxStalenessMs, atMs: now }
    }
    this.#lastMs = now
    if (this.#timer === undefined) this.#ask()
  }

  /** No question leaves any more. */
  stop(): void {
    this.#isStopped = true
    this.#timer?.cancel()
  }

  #ask(): void {
    const { clock, epochs, node: own, peers, onFailed } = this.#parts
    this.#timer = undefined
    if (clock.monotonicMs() - this.#lastMs > restMs) return
    for (const node of epochs.voters) {
      const rounds = this.#roundsOf(node)
      if (node === own || rounds === undefined || !peers.tellsReach(node)) continue
      const asked = (this.#asked += 1)
      rounds.ask(asked, this.#reading())
      peers.send(node, { kind: 'reach-request', asked })
      peers.askDigest(node)
    }
    const everyMs = Math.min(everyMsMax, Math.max(everyMsMin, this.#bound.ms / roundsPerBound))
    this.#timer = clock.setTimer(everyMs, () => {
      try {
        if (!this.#isStopped) this.#ask()
      } catch (error) {
        onFailed(error)
      }
    })
  }

  #reading(): ClockReading {
    const { clock } = this.#parts
    return { now: clock.monotonicMs(), wall: clock.wallMicros() }
  }

  /** Of the epoch in which this node acts. */
  #roundsOf(node: NodeId): PeerRounds | undefined {
    const { epochs, peers } = this.#parts
    const rounds = peers.marksOf(node)?.rounds
    rounds?.takeUp(epochs.own.epoch)
    return rounds
  }

  onMessage(from: NodeId, message: Reach | ReachRequest): void {
    if (message.kind === 'reach') return this.#onReach(from, message)
    const { log, epochs, peers } = this.#parts
    const epoch = this.#hasVote ? epochs.own.epoch : 0
    const { asked } = message
    peers.send(from, { kind: 'reach', asked, epoch, through: log.durableFlush })
  }

  /** In every group. */
  get #hasVote(): boolean {
    const { epochs, peers, isRestored } = this.#parts
    const { isDoubted, blocked } = epochs.own
    const isSure = epochs.isKept && !isDoubted && blocked.length === 0
    return isSure && epochs.isVoting && peers.isAdmitted && isRestored()
  }

  #onReach(from: NodeId, { asked, epoch, through }: Reach): void {
    const { peers, epochs, trace } = this.#parts
    const [marks, rounds] = [peers.marksOf(from), this.#roundsOf(from)]
    if (marks === undefined || rounds === undefined) return
    if (epoch !== epochs.own.epoch) return trace.mark('reach_of_another_epoch')
    if (!rounds.answer(asked, through, epoch)) return trace.mark('reach_without_question')
    // A node that has a gate to pass waits for the peer's digests.
    const isPastGate = epochs.isVoting || epochs.isReader
    if (epoch > 1 && isPastGate) peers.requireDirectory(from, epoch, true)
    if (marks.knownThrough >= through) this.onNamed(from)
    else peers.askDigest(from)
  }

  /** More of the peer's flushes are known. */
  onNamed(node: NodeId): void {
    const marks = this.#parts.peers.marksOf(node)
    const { epoch } = this.#parts.epochs.own
    if (marks === undefined || !this.#isNamedWhole(marks)) return
    const isDirected = epoch === 1 || marks.hasNamedAllPastGate(epoch)
    assert(isDirected, 'STALE-4: a peer counts without its directory')
    this.#roundsOf(node)?.end(marks.knownThrough)
  }

  /** STALE-4: no flush names a group that a snapshot brought. */
  #isNamedWhole(marks: PeerMarks): boolean {
    const { epoch } = this.#parts.epochs.own
    return epoch === 1 || marks.hasNamedAllPastGate(epoch)
  }

  /** Whether it is no older than it may be. More such reads may come. */
  isFresh(read: BoundedRead): boolean {
    const isFresh = this.#isFresh(read)
    // Only now: a question that leaves with this read is of no use to it.
    this.#expect(read.maxStalenessMs)
    return isFresh
  }

  #isFresh({ group, position, isQuiet, maxStalenessMs }: BoundedRead): boolean {
    const { epochs, node } = this.#parts
    const { isMember, isDoubted } = epochs.own
    // Such a node does not know which nodes vote.
    if ((!isMember && !epochs.isReader) || isDoubted) return false
    const now = this.#reading()
    const fresh = epochs.voters.filter((voter) => {
      if (voter === node) {
        const isCounted = isQuiet && this.#hasVote
        assert(!isCounted || epochs.isVoting, 'STALE-5: a node without a vote counts itself')
        return isCounted
      }
      const at = this.#roundsOf(voter)?.freshAt(group, position)
      return at !== undefined && this.#ageMs(at, now) <= maxStalenessMs
    })
    return 2 * fresh.length > epochs.voters.length
  }

  /** The monotonic clock stands still while the machine is suspended, and the wall clock may be set back. */
  #ageMs(at: ClockReading, { now, wall }: ClockReading): number {
    const elapsedMs = Math.max(now - at.now, (wall - at.wall) / 1_000)
    assert(elapsedMs >= now - at.now, 'STALE-6: an age is shorter than the monotonic clock says')
    return elapsedMs * (1 + this.#parts.limits.clockDriftPpm / 1_000_000)
  }
}
