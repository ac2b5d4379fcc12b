/**
 * Calls that a client holds back because nodes have no room for them, writes and reads apart, since nodes
 * refuse writes sooner. A call that comes goes at once where no call waits and a window has room
 * (`window.ts`). Else it waits in its queue (`call-queue.ts`), or is refused when it would wait for too long.
 */
import type { Clock } from '../ports/clock.ts'
import { CallQueue, type QueueLimits } from './call-queue.ts'
import { heldMsMax, heldMsMin, type InFlight, type Lane } from './in-flight.ts'
import { TimeOut } from '../time/time-out.ts'

export interface HoldingPorts {
  readonly clock: Clock
  /** Sends it; false: no window has room for it. */
  send(one: InFlight, nowMs: number): boolean
  /** Before this time no window has room, whatever is answered. */
  roomAtMs(lane: Lane, nowMs: number): number
  /** Requests that are at nodes. */
  inFlight(lane: Lane): number
  /** It has waited for too long. `isLoaded`: a node has refused for load. */
  onLate(one: InFlight, isLoaded: boolean): void
}

export interface HoldingFigures {
  readonly waiting: Readonly<Record<Lane, number>>
  /** Since the client began. */
  readonly refused: Readonly<Record<Lane, number>>
}

const lanes: readonly Lane[] = ['writes', 'reads']

export class Holding {
  readonly #ports: HoldingPorts
  readonly #queues: Readonly<Record<Lane, CallQueue<InFlight>>>
  readonly #refused: Record<Lane, number> = { writes: 0, reads: 0 }
  readonly #deadlines: TimeOut
  readonly #rooms: TimeOut

  constructor(ports: HoldingPorts, limits: QueueLimits) {
    this.#ports = ports
    this.#queues = { writes: new CallQueue(limits), reads: new CallQueue(limits) }
    this.#deadlines = new TimeOut(ports.clock, (nowMs) => this.#endLate(nowMs))
    this.#rooms = new TimeOut(ports.clock, (nowMs) => this.#look(nowMs))
  }

  get figures(): HoldingFigures {
    const { writes, reads } = this.#queues
    return {
      waiting: { writes: writes.length, reads: reads.length },
      refused: { ...this.#refused },
    }
  }

  /** Undefined: it is sent, or waits. Else it is neither: when it may be worth another try, in milliseconds. */
  enter(one: InFlight, nowMs: number): number | undefined {
    const { lane } = one
    if (lane === undefined) return void this.#ports.send(one, nowMs)
    const queue = this.#queues[lane]
    if (queue.length === 0 && this.#ports.send(one, nowMs)) return undefined
    const refusalMs = queue.refusalMs(one.deadlineMs, nowMs)
    this.#shed(lane, nowMs)
    if (refusalMs !== undefined) {
      this.#refused[lane] += 1
      return Math.min(heldMsMax, Math.max(heldMsMin, Math.ceil(refusalMs)))
    }
    queue.hold(one, nowMs, this.#ports.inFlight(lane))
    this.#deadlines.by(queue.dueMs(one, nowMs))
    queue.addLast(one, nowMs)
    this.#watchRoom(lane, nowMs)
    return undefined
  }

  /** One that has been under way: before those that have not. */
  enterAgain(one: InFlight, nowMs: number): void {
    const { lane } = one
    if (lane === undefined) return void this.#ports.send(one, nowMs)
    const queue = this.#queues[lane]
    queue.addFirst(one, nowMs)
    this.#deadlines.by(queue.dueMs(one, nowMs))
    this.#goOn(lane, nowMs)
  }

  /** A try of this kind has ended. */
  onEnded(lane: Lane, nowMs: number): void {
    if (this.#queues[lane].length > 0) this.#goOn(lane, nowMs)
  }

  /** Of one that a node has refused: whether it may wait for another try, which begins at `atMs`. */
  mayWait(one: InFlight, lane: Lane, nowMs: number, atMs: number): boolean {
    const queue = this.#queues[lane]
    queue.hold(one, nowMs, this.#ports.inFlight(lane))
    queue.onRefusal(one, nowMs)
    return !queue.isLate(one, atMs)
  }

  /** A call that a node has refused waits elsewhere for as long as the node said. */
  setAside(lane: Lane, nowMs: number): void {
    this.#queues[lane].setAside(nowMs)
  }

  takeBack(lane: Lane, nowMs: number): void {
    this.#queues[lane].takeBack(nowMs)
  }

  onAnswered(lane: Lane, nowMs: number): void {
    this.#queues[lane].onAnswered(nowMs)
  }

  /** A node has refused one for load. */
  onRefused(lane: Lane, nowMs: number): void {
    this.#queues[lane].onRefused(nowMs)
  }

  /** A link is up, with windows of its own. */
  onUp(nowMs: number): void {
    for (const lane of lanes) this.onEnded(lane, nowMs)
  }

  /** Takes all out. */
  stop(): readonly InFlight[] {
    this.#deadlines.stop()
    this.#rooms.stop()
    return lanes.flatMap((lane) => this.#queues[lane].drop(() => true, 0))
  }

  #goOn(lane: Lane, nowMs: number): void {
    const queue = this.#queues[lane]
    for (;;) {
      const one = queue.first(nowMs, (late) => this.#ports.onLate(late, queue.isLoaded(nowMs)))
      if (one === undefined) return
      if (!this.#ports.send(one, nowMs)) break
      queue.take(one, nowMs)
    }
    this.#watchRoom(lane, nowMs)
  }

  /** Those that came before it was known that more comes than is answered. */
  #shed(lane: Lane, nowMs: number): void {
    for (const one of this.#queues[lane].shed(nowMs)) {
      this.#refused[lane] += 1
      this.#ports.onLate(one, true)
    }
  }

  /** Where every window rests, nothing that ends would have the next one go. */
  #watchRoom(lane: Lane, nowMs: number): void {
    const atMs = this.#ports.roomAtMs(lane, nowMs)
    if (atMs > nowMs) this.#rooms.by(atMs)
  }

  #look(nowMs: number): number {
    for (const lane of lanes) this.onEnded(lane, nowMs)
    return Number.POSITIVE_INFINITY
  }

  #endLate(nowMs: number): number {
    let nextMs = Number.POSITIVE_INFINITY
    for (const lane of lanes) {
      const queue = this.#queues[lane]
      const isLate = (one: InFlight): boolean => {
        if (queue.isLate(one, nowMs)) return true
        nextMs = Math.min(nextMs, queue.dueMs(one, nowMs))
        return false
      }
      for (const one of queue.drop(isLate, nowMs)) {
        this.#ports.onLate(one, queue.isLoaded(nowMs))
      }
    }
    return nextMs
  }
}
