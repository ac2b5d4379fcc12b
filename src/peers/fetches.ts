/**
 * Asks peers for the entries that this node lacks, of all its groups together, at the pace at which it
 * takes them up. A node that was away lacks something in thousands of groups. If it asked for all of it at
 * once, the answers would come for minutes, and meanwhile it would ask for the same again.
 *
 * LIVE-6  A node asks a peer for `fetchesMax` groups at once, and for the next one when an answer has come
 *         and is taken up. Groups that a client waits for come first: as many of them may be under way
 *         beside those that no client waits for.
 *
 * This node goes after groups that a digest named (`../replication/catch-up.ts`) when there is room, and
 * has them not in memory before. Every list of groups includes them (LOG-8).
 */
import { assert } from '../base/assert.ts'
import type { GroupId, NodeId, Position } from '../base/ids.ts'
import type { Limits } from '../base/limits.ts'
import type { Clock } from '../ports/clock.ts'
import type { Trace } from '../ports/trace.ts'
import type { Fetch } from '../replication/message.ts'
import type { Slices } from './slices.ts'

/** A peer that answers others of this node's questions gets this many times as long for one. */
const answeringPatience = 4

export interface FetchesParts {
  readonly limits: Pick<Limits, 'fetchesMax' | 'settleMs' | 'phaseTimeoutMs'>
  readonly clock: Clock
  readonly trace: Trace
  send(to: NodeId, message: Fetch): void
  /** How far the group is applied, if it is in memory. */
  applied(group: GroupId): Position | undefined
  /** Whether a client waits for what the group lacks. */
  isAwaited(group: GroupId): boolean
  /** Whether the log and the data store keep up with what has come. */
  hasRoom(): boolean
  readonly slices: Pick<Slices, 'add'>
  /** There is room to go after what a digest named: the group takes a step. */
  onTurn(group: GroupId, position: Position, informer: NodeId): void
}

/** A fetch that left, and when. */
interface Sent {
  readonly message: Fetch
  readonly sinceMs: number
}

/** The questions to one peer, sent or waiting. */
interface Asking {
  readonly awaited: Map<GroupId, Fetch>
  readonly waiting: Map<GroupId, Fetch>
  readonly inFlight: Map<GroupId, Sent>
  /** How many of those in flight a client waits for. */
  awaitedInFlight: number
  /** Named by its digests, and not gone after yet. */
  readonly named: Map<GroupId, Position>
  /**
   * The peer has as many questions as it may have: named groups wait until half of them are answered, and
   * go together.
   */
  isFull: boolean
  /** When its last answer came, or the first question left. */
  heardMs: number
}

export class Fetches {
  readonly #parts: FetchesParts
  readonly #asking = new Map<NodeId, Asking>()
  #isGoing = false
  #isTakingNamed = false

  constructor(parts: FetchesParts) {
    this.#parts = parts
  }

  /** Groups that a digest named, and that are not in memory for that yet. */
  named(): readonly GroupId[] {
    return [...this.#asking.values()].flatMap(({ named }) => [...named.keys()])
  }

  /** Groups whose entries this node asks for, or will; one that it asks two peers for counts twice. */
  get lacking(): number {
    let groups = 0
    for (const { awaited, waiting, inFlight, named } of this.#asking.values()) {
      groups += awaited.size + waiting.size + inFlight.size + named.size
    }
    return groups
  }

  /** A digest says that the informer has this position. */
  name(group: GroupId, position: Position, informer: NodeId): void {
    const { named } = this.#of(informer)
    if ((named.get(group) ?? 0) < position) named.set(group, position)
    this.go()
  }

  /** The group lacks entries. */
  ask(to: NodeId, message: Fetch): void {
    const { group, isAwaited } = message
    for (const { awaited, waiting } of this.#asking.values()) {
      awaited.delete(group)
      waiting.delete(group)
    }
    const { awaited, waiting } = this.#of(to)
    if (isAwaited) awaited.set(group, message)
    else waiting.set(group, message)
    this.go()
  }

  /** The group took a step: a client may wait by now for what is not asked for as awaited. */
  onStep(group: GroupId): void {
    for (const [peer, { waiting, inFlight }] of this.#asking) {
      const message = waiting.get(group) ?? inFlight.get(group)?.message
      if (message === undefined || message.isAwaited || !this.#parts.isAwaited(group)) continue
      this.#parts.trace.mark('entry_request_joined')
      this.ask(peer, { ...message, isAwaited: true })
    }
  }

  /** The peer's answer is taken up. */
  answered(from: NodeId, group: GroupId): void {
    const asking = this.#asking.get(from)
    if (asking !== undefined && land(asking, group)) {
      asking.heardMs = this.#parts.clock.monotonicMs()
    }
    this.go()
  }

  /** The peer is gone: it answers nothing, and groups that wait for it ask another one. */
  forget(peer: NodeId): void {
    const asking = this.#of(peer)
    const { awaited, waiting, inFlight } = asking
    for (const each of [awaited, waiting, inFlight]) each.clear()
    asking.awaitedInFlight = 0
  }

  /**
   * How long an answer for the group may still take, or its question to leave. Until then this node need
   * not ask another peer. The more it asks a peer for, the longer the answer takes. 0: no peer has the
   * question.
   */
  patienceMs(group: GroupId): number {
    const { clock, limits } = this.#parts
    for (const { awaited, waiting, inFlight } of this.#asking.values()) {
      if (awaited.has(group) || waiting.has(group)) return limits.phaseTimeoutMs
      const { sinceMs } = inFlight.get(group) ?? {}
      if (sinceMs === undefined) continue
      const wholeMs = Math.min(limits.settleMs * inFlight.size, limits.phaseTimeoutMs)
      const leftMs = sinceMs + wholeMs - clock.monotonicMs()
      if (leftMs > 0) return leftMs
    }
    return 0
  }

  /** Asks for as much as there is room for. Called when there may be room again, and every now and then. */
  go(): void {
    if (this.#isGoing) return
    this.#isGoing = true
    try {
      for (const [peer, asking] of this.#asking) this.#goOn(peer, asking)
    } finally {
      this.#isGoing = false
    }
    if (this.#isTakingNamed || this.#nextNamed() === undefined) return
    this.#isTakingNamed = true
    this.#parts.slices.add('named', { name: 'digest', pieces: this.#takeNamed() })
  }

  #of(peer: NodeId): Asking {
    let asking = this.#asking.get(peer)
    if (asking === undefined) {
      const heardMs = this.#parts.clock.monotonicMs()
      const [awaited, waiting] = [new Map<GroupId, Fetch>(), new Map<GroupId, Fetch>()]
      const [inFlight, named] = [new Map<GroupId, Sent>(), new Map<GroupId, Position>()]
      asking = { awaited, waiting, inFlight, awaitedInFlight: 0, named, isFull: false, heardMs }
      this.#asking.set(peer, asking)
    }
    return asking
  }

  #goOn(peer: NodeId, asking: Asking): void {
    const { awaited, waiting } = asking
    if (awaited.size + waiting.size === 0) return
    this.#forgetLost(asking)
    for (const queue of [awaited, waiting]) {
      for (const [group, message] of queue) {
        if (!this.#hasRoomFor(asking, message)) break
        queue.delete(group)
        this.#send(peer, asking, message)
      }
    }
    if (awaited.size + waiting.size > 0) this.#parts.trace.mark('entry_request_deferred')
  }

  #send(peer: NodeId, asking: Asking, message: Fetch): void {
    const { applied, send, clock, limits } = this.#parts
    const { group, through, isAwaited } = message
    const from = Math.max(message.from, (applied(group) ?? 0) + 1)
    land(asking, group)
    // It has come otherwise.
    if (from > through) return
    asking.inFlight.set(group, { message, sinceMs: clock.monotonicMs() })
    if (isAwaited) asking.awaitedInFlight += 1
    const usual = asking.inFlight.size - asking.awaitedInFlight
    const most = Math.max(usual, asking.awaitedInFlight)
    assert(most <= limits.fetchesMax, 'LIVE-6: more is asked for than can be taken up')
    send(peer, { ...message, from })
  }

  /**
   * A question that a client waits for finds room beside those that no client waits for, and where the disk
   * is behind.
   */
  #hasRoomFor({ inFlight, awaitedInFlight }: Asking, { isAwaited }: Fetch): boolean {
    const { limits, hasRoom } = this.#parts
    if (isAwaited) return awaitedInFlight < limits.fetchesMax
    return inFlight.size - awaitedInFlight < limits.fetchesMax && hasRoom()
  }

  /**
   * A fetch that a peer has not answered for long is lost; sooner where the peer has answered nothing since.
   */
  #forgetLost(asking: Asking): void {
    const { clock, limits, trace } = this.#parts
    const { inFlight, heardMs } = asking
    const nowMs = clock.monotonicMs()
    for (const [group, { sinceMs }] of inFlight) {
      // In the order in which they left: those behind it are younger.
      if (nowMs - sinceMs < limits.phaseTimeoutMs) return
      const patienceMs = limits.phaseTimeoutMs * (heardMs > sinceMs ? answeringPatience : 1)
      if (nowMs - sinceMs < patienceMs) continue
      trace.mark('entry_request_lost')
      land(asking, group)
    }
  }

  /** Goes after what digests named, one group a piece, for as long as there is room. */
  *#takeNamed(): Generator<number, void> {
    for (let next = this.#nextNamed(); next !== undefined; next = this.#nextNamed()) {
      const { peer, named, group, position } = next
      named.delete(group)
      this.#parts.onTurn(group, position, peer)
      yield 0
    }
    this.#isTakingNamed = false
  }

  #nextNamed():
    | (Pick<Asking, 'named'> & {
        readonly peer: NodeId
        readonly group: GroupId
        readonly position: Position
      })
    | undefined {
    const { limits, hasRoom } = this.#parts
    if (!hasRoom()) return undefined
    for (const [peer, asking] of this.#asking) {
      const { awaited, waiting, inFlight, named } = asking
      const [first] = named
      if (first === undefined) continue
      const size = awaited.size + waiting.size + inFlight.size
      if (size >= limits.fetchesMax) asking.isFull = true
      else if (size <= limits.fetchesMax / 2) asking.isFull = false
      if (asking.isFull) continue
      const [group, position] = first
      return { peer, named, group, position }
    }
    return undefined
  }
}

/** It is in flight no longer; whether it was. */
function land(asking: Asking, group: GroupId): boolean {
  const sent = asking.inFlight.get(group)
  if (sent === undefined) return false
  asking.inFlight.delete(group)
  if (sent.message.isAwaited) asking.awaitedInFlight -= 1
  return true
}
