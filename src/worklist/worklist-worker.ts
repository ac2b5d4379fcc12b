/**
 * Serves a topic at a node: looks after each group that is listed under it (`store/worklist-index.ts`), some
 * at a time, for as long as the group has something there. Of the nodes that hold a group the first one alive
 * serves it; another takes over what stays listed too long. So two nodes may serve a group at once, and the
 * work of a serve must bear that. An idle topic costs one look at an empty listing now and then.
 */
import { assert } from '../base/assert.ts'
import type { GroupId, Position } from '../base/ids.ts'
import { listedGroupsMax } from '../base/limits.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import type { Worklist, ListedGroup } from '../group/replica-port.ts'
import { Dues } from '../time/group-timers.ts'
import { ServeQueue, type ServeTurn } from './serve-queue.ts'

/** How a look at a group's worklist ended. */
export type Served =
  /** At `position` there was nothing under the topic. */
  | { readonly kind: 'empty'; readonly position: Position }
  /** Something may be left; look again, after the others. */
  | { readonly kind: 'again' }
  /** The rest, as of `position`, is not due before `delayMs` have passed. */
  | { readonly kind: 'later'; readonly delayMs: number; readonly position: Position }
  /** Some of it could be done. The rest is tried again after a while, or soon after something new comes. */
  | { readonly kind: 'partly'; readonly error: unknown }

export interface WorklistWorkerParts {
  readonly topic: string
  readonly worklist: Worklist
  readonly clock: Clock
  readonly random: Random
  readonly bounds: WorklistBounds
  /** Does what is due of the group. When it rejects, it is called again after a while. */
  serve(group: GroupId): Promise<Served>
  /** It rejected, or did a part: to be counted, or told. Must not throw. */
  onFailed(group: GroupId, error: unknown): void
}

export interface WorklistBounds {
  /** Groups served at once; of those whose last serve failed, half as many. */
  readonly groupsAtOnceMax: number
  /** Groups of one page of the listing; `listedGroupsMax` at most. */
  readonly pageGroups: number
  /** Groups remembered that wait for a slot, or for their time: the listing has the others. */
  readonly groupsWaitingMax: number
  /** How often the listing is looked through. */
  readonly lookMs: number
  /** How long a group of another node is listed unchanged before it is served here. */
  readonly patienceMs: number
  /** The wait after a failure, doubled by each one that follows up to the most. */
  readonly backoffMs: number
  readonly backoffMaxMs: number
}

export const worklistBounds: WorklistBounds = {
  groupsAtOnceMax: 16,
  pageGroups: listedGroupsMax,
  groupsWaitingMax: 10_000,
  lookMs: 1_000,
  patienceMs: 3_000,
  backoffMs: 50,
  backoffMaxMs: 10_000,
}

type State =
  /** In the queue. */
  | 'waiting'
  /** Being served; `again`: something came meanwhile. */
  | 'served'
  | 'again'
  /** Until its time comes, or something new. */
  | 'later'

interface Known {
  state: State
  failures: number
  /** Since it fails, a part could be done: that something fails says nothing of what is new. */
  isPartly: boolean
  /** When it falls due, while `later`. */
  dueMs: number
  /** As of which it was put off, while `later` and nothing failed. */
  position: Position
}

/** Listed by another node's doing, and since when unchanged. */
interface Foreign {
  readonly position: Position
  readonly sinceMs: number
}

export class WorklistWorker {
  readonly #parts: WorklistWorkerParts
  readonly #known = new Map<GroupId, Known>()
  readonly #queue: ServeQueue
  readonly #dues: Dues
  #foreign = new Map<GroupId, Foreign>()
  #foreignSeen = new Map<GroupId, Foreign>()
  #cursor: GroupId | undefined
  #timer: Timer | undefined
  #cancelWatch: () => void = () => undefined
  #isStopped = true
  #onIdle: (() => void)[] = []

  constructor(parts: WorklistWorkerParts) {
    this.#parts = parts
    this.#queue = new ServeQueue(parts.bounds.groupsAtOnceMax)
    this.#dues = new Dues(parts.clock, (group) => this.#onDue(group))
  }

  /** Groups that wait or are being served. */
  get busyGroups(): number {
    return this.#queue.size + this.#queue.served
  }

  start(): void {
    assert(this.#isStopped, 'txn: a worker is started once')
    this.#isStopped = false
    const { worklist, topic } = this.#parts
    this.#cancelWatch = worklist.watch(topic, ({ group }) => {
      if (worklist.isOurs(group)) this.#onDirty(group)
    })
    void this.#look()
  }

  /** Begins nothing more; resolves when what is under way has ended. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#cancelWatch()
    this.#timer?.cancel()
    this.#dues.stop()
    this.#queue.clear()
    if (this.#queue.served > 0) await new Promise<void>((resolve) => this.#onIdle.push(resolve))
  }

  /** One page of the listing; the next one soon, or the first one again after a while. */
  async #look(): Promise<void> {
    const { worklist, topic, clock, bounds } = this.#parts
    let isEnd = true
    let isFull = false
    try {
      const limit = Math.min(listedGroupsMax, bounds.pageGroups)
      const page = await worklist.list(topic, this.#cursor, limit)
      const seen = this.#takeUp(page)
      isFull = seen < page.length
      isEnd = !isFull && page.length < limit
      this.#cursor = isEnd ? undefined : (page[seen - 1]?.group ?? this.#cursor)
    } catch {
      // The store says itself what is wrong with it, and the node ends.
      this.#cursor = undefined
    }
    // Nothing was listed most of the time: then these two are empty, and stay.
    if (isEnd && this.#foreign.size + this.#foreignSeen.size > 0) {
      this.#foreign = this.#foreignSeen
      this.#foreignSeen = new Map()
    }
    if (this.#isStopped) return
    // A long listing is gone through in steps that leave room for what it asks for.
    const delayMs = isEnd || isFull ? bounds.lookMs : bounds.lookMs / 10
    this.#timer = clock.setTimer(delayMs, () => void this.#look())
  }

  /** How many of a page were gone through: from where there is no room the next look goes on. */
  #takeUp(page: readonly ListedGroup[]): number {
    for (const [seen, { group, position }] of page.entries()) {
      const known = this.#known.get(group)
      if (known !== undefined && !isBehind(known, position)) continue
      if (!this.#isToBeServed(group, position)) continue
      if (known === undefined && !this.#hasRoom()) return seen
      this.#onDirty(group)
    }
    return page.length
  }

  /** It is this one's, or another one has left it alone for too long. */
  #isToBeServed(group: GroupId, position: Position): boolean {
    const { worklist, clock, bounds } = this.#parts
    if (worklist.isOurs(group)) return true
    const now = clock.monotonicMs()
    const before = this.#foreign.get(group)
    const sinceMs = before?.position === position ? before.sinceMs : now
    if (now - sinceMs >= bounds.patienceMs) return true
    if (this.#foreignSeen.size < bounds.groupsWaitingMax) {
      this.#foreignSeen.set(group, { position, sinceMs })
    }
    return false
  }

  /** Something is there, or may be. */
  #onDirty(group: GroupId): void {
    const known = this.#known.get(group)
    if (known === undefined) {
      if (this.#isStopped || this.#queue.size >= this.#parts.bounds.groupsWaitingMax) return
      const fresh = { failures: 0, isPartly: false, dueMs: 0, position: 0 }
      this.#known.set(group, { state: 'waiting', ...fresh })
      this.#queue.push(group, false)
    } else if (known.state === 'served') known.state = 'again'
    else if (known.state === 'later' && known.failures === 0) this.#enqueue(group, known)
    // Else what waits after a failure goes on waiting: more of the same does not help it.
    else if (known.state === 'later' && known.isPartly) this.#hasten(group, known)
    this.#serveNext()
  }

  /**
   * For a group that is listed. Beyond those that may be remembered as many have their turn with each
   * look as are served at once: all come to it in the end, and none is looked at over and over.
   */
  #hasRoom(): boolean {
    const { groupsWaitingMax, groupsAtOnceMax } = this.#parts.bounds
    return this.#known.size < groupsWaitingMax || this.#queue.sizeWell < groupsAtOnceMax
  }

  #enqueue(group: GroupId, known: Known): void {
    known.state = 'waiting'
    this.#queue.push(group, known.failures > 0)
  }

  #onDue(group: GroupId): void {
    const known = this.#known.get(group)
    if (known?.state !== 'later') return
    if (known.dueMs > this.#parts.clock.monotonicMs()) return this.#dues.add(group, known.dueMs)
    this.#enqueue(group, known)
    this.#serveNext()
  }

  #serveNext(): void {
    while (!this.#isStopped) {
      const turn = this.#queue.next()
      if (turn === undefined) return
      void this.#serve(turn)
    }
  }

  async #serve({ group, end }: ServeTurn): Promise<void> {
    const known = this.#known.get(group)
    assert(known !== undefined, 'txn: a group that is served is known')
    known.state = 'served'
    try {
      this.#onServed(group, known, await this.#parts.serve(group))
    } catch (error) {
      this.#onFailed(group, known, error, false)
    } finally {
      end()
      if (this.#queue.served === 0) for (const resolve of this.#onIdle.splice(0)) resolve()
      this.#serveNext()
    }
  }

  #onServed(group: GroupId, known: Known, served: Served): void {
    const { worklist, topic } = this.#parts
    if (served.kind === 'partly') return this.#onFailed(group, known, served.error, true)
    known.failures = 0
    known.isPartly = false
    if (served.kind === 'empty') worklist.unlist(topic, group, served.position)
    if (this.#isStopped) return
    if (known.state === 'again' || served.kind === 'again') this.#enqueue(group, known)
    else if (served.kind === 'later') {
      known.position = served.position
      this.#putOff(group, known, served.delayMs)
    } else this.#known.delete(group)
  }

  #onFailed(group: GroupId, known: Known, error: unknown, isPartly: boolean): void {
    if (this.#parts.worklist.hasLeft?.(group) === true) {
      // A node of the next set serves it.
      this.#known.delete(group)
      return
    }
    known.isPartly ||= isPartly
    if (!this.#isStopped) this.#tryLater(group, known)
    this.#parts.onFailed(group, error)
  }

  #tryLater(group: GroupId, known: Known): void {
    const { bounds, random } = this.#parts
    const most = Math.min(bounds.backoffMaxMs, bounds.backoffMs * 2 ** known.failures)
    known.failures += 1
    const isNew = known.state === 'again' && known.isPartly
    this.#putOff(group, known, most / 2 + random.int(0, Math.ceil(most / 2)))
    if (isNew) this.#hasten(group, known)
  }

  /** Not at once: all that comes meanwhile is one look at what fails as well. */
  #hasten(group: GroupId, known: Known): void {
    const { clock, bounds } = this.#parts
    const isSoon = known.dueMs <= clock.monotonicMs() + bounds.backoffMs
    if (!isSoon) this.#putOff(group, known, bounds.backoffMs)
  }

  /** A group that there is no room for is found in the listing, when it comes to its turn there. */
  #putOff(group: GroupId, known: Known, delayMs: number): void {
    if (this.#known.size > this.#parts.bounds.groupsWaitingMax) {
      this.#known.delete(group)
      return
    }
    known.state = 'later'
    known.dueMs = this.#parts.clock.monotonicMs() + delayMs
    this.#dues.add(group, known.dueMs)
  }
}

/** Something was put since it was put off: another process heard of it, and does not serve it. */
function isBehind({ state, failures, position }: Known, listed: Position): boolean {
  return state === 'later' && failures === 0 && listed > position
}
