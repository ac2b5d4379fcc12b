/** Asks the peers for digests and directories of their logs, and takes the answers up. */
import { numbersFrom } from '../base/drawn-numbers.ts'
import type { NodeId } from '../base/ids.ts'
import type { Limits } from '../base/limits.ts'
import type { Trace } from '../ports/trace.ts'
import type {
  Digest,
  DigestRequest,
  Directory,
  DirectoryRequest,
  Message,
} from '../replication/message.ts'
import type { Digested } from './group-discovery.ts'
import { nextPage, type Peer } from './peer.ts'
import type { Work } from './slices.ts'

export interface PeerDigestsParts {
  readonly incarnation: number
  readonly limits: Pick<Limits, 'digestGroupsMax'>
  readonly trace: Trace
  later(lane: string, work: Work): void
  send(to: NodeId, message: Message): void
  /** A digest was taken up. */
  onDigested(peer: NodeId, digested: Digested): void
}

/** A peer, with the marks of the store that has answered. */
type Answerer = Readonly<{ peer: Peer; marks: Peer['marks'] }>

export class PeerDigests {
  readonly #parts: PeerDigestsParts
  /** Digests asked for. */
  #asked: number

  constructor(parts: PeerDigestsParts) {
    this.#parts = parts
    this.#asked = numbersFrom(parts.incarnation)
  }

  /** Where there may be news. */
  ask(peer: Peer): void {
    const isBehind = peer.marks.digestedThrough < peer.durableFlush
    if (isBehind || nextPage(peer) !== undefined) this.#request(peer)
  }

  /**
   * Whether or not there is anything known to be new. Gives the number of the question; where it is put
   * off, the one that leaves instead has a higher number. `isUrgent`: it is never put off.
   */
  request(peer: Peer | undefined, isUrgent = false): number {
    // A node that has just been removed answers nothing.
    return peer === undefined ? (this.#asked += 1) : this.#request(peer, isUrgent)
  }

  /**
   * As long as one digest's worth of what the peer named is still on its way, this node asks for no more:
   * each group that it goes after stays in memory until its entries have come.
   */
  #request(peer: Peer, isUrgent = false): number {
    const { limits, trace } = this.#parts
    const asked = (this.#asked += 1)
    peer.isThrottled = !isUrgent && peer.marks.isFull(limits.digestGroupsMax)
    if (peer.isThrottled) {
      trace.mark('digest_throttled')
      return asked
    }
    const page = nextPage(peer)
    const message: DigestRequest | DirectoryRequest =
      page === undefined
        ? { kind: 'digest-request', after: peer.marks.digestedThrough, asked }
        : { kind: 'directory-request', asked, ...page }
    this.#parts.send(peer.node, message)
    return asked
  }

  /** Has the peer named all its groups once more in this epoch, where it has not since this node's start. */
  requireDirectory({ marks }: Peer, epoch: number, isPastGate: boolean): void {
    const before = isPastGate ? marks.directedPastGateIn : marks.directedIn
    if (before < epoch) marks.requireDirectory(epoch, this.#asked, isPastGate)
  }

  onDigest(peer: Peer, digest: Digest): void {
    const { marks } = peer
    this.#takeLater(peer, this.#takeIn({ peer, marks }, digest))
  }

  #takeLater({ node }: Peer, pieces: Generator<number, void>): void {
    this.#parts.later(`digest of ${node}`, { name: 'digest', pieces })
  }

  *#takeIn(from: Answerer, digest: Digest): Generator<number, void> {
    if (this.#isGone(from)) return
    const { peer } = from
    if (digest.after === peer.marks.digestedThrough) yield* this.#takeUp(peer, digest)
    if (!this.#isGone(from)) this.#tellDigested(peer, digest.asked)
  }

  /**
   * Another store has taken the place of the one that answered, since its answer came. The answer says nothing of the new store:
   * with its marks, which begin at 0, the peer would count as known whole (LOG-8, LOG-19).
   */
  #isGone({ peer, marks }: Answerer): boolean {
    if (peer.marks === marks) return false
    this.#parts.trace.mark('answer_of_another_store_dropped')
    return true
  }

  *#takeUp(peer: Peer, digest: Digest): Generator<number, void> {
    yield* peer.marks.takeDigest(digest)
    if (!digest.isWhole) this.#parts.trace.mark('digest_incomplete')
    if (digest.through > digest.after) this.ask(peer)
  }

  #tellDigested({ node, marks, durableFlush: durable, isNewcomer }: Peer, asked: number): void {
    // It may lack groups whose writes were acknowledged before it came.
    if (isNewcomer) return
    const { knownThrough: through, directedIn } = marks
    this.#parts.onDigested(node, { asked, through, durable, directedIn })
  }

  onDirectory(peer: Peer, page: Directory): void {
    const { marks } = peer
    this.#takeLater(peer, this.#takePage({ peer, marks }, page))
  }

  *#takePage(from: Answerer, page: Directory): Generator<number, void> {
    const { peer } = from
    if (this.#isGone(from) || !peer.marks.isNextPage(page)) return
    if (page.after === undefined) this.#parts.trace.mark('directory_begun')
    yield* peer.marks.takePage(page, this.#asked)
    if (this.#isGone(from)) return
    if (page.next === undefined) {
      this.#parts.trace.mark('directory_taken')
      this.#tellDigested(peer, page.asked)
    }
    this.ask(peer)
  }
}
