/**
 * The waits of this node's edge: outcomes of submissions, reads to be served, applied positions. Every wait
 * has a deadline; a submission that reaches it is `unknown`, never `aborted`.
 */
import { assert } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import type { GroupId, Position } from '../base/ids.ts'
import type { Clock } from '../ports/clock.ts'
import { Deadlines } from '../time/deadlines.ts'
import type { Outcome, ReadPoint } from '../group/replica-port.ts'

interface Submission {
  readonly sinceMs: number
  readonly resolve: (outcome: Outcome) => void
  readonly cancel: (request: number) => void
}

interface Read {
  readonly group: GroupId
  readonly resolve: (point: ReadPoint) => void
  readonly reject: (error: StoreError) => void
}

interface Watch {
  readonly position: Position
  readonly wake: () => void
}

export class Requests {
  /** Told how long each submission took, milliseconds. */
  onSettled: (ms: number) => void = () => undefined
  readonly #clock: Clock
  readonly #submissions = new Map<number, Submission>()
  readonly #reads = new Map<number, Read>()
  readonly #watches = new Map<GroupId, Set<Watch>>()
  readonly #deadlines: Deadlines<number>
  readonly #onReadTimeout: (group: GroupId, read: number) => void
  #drawn = 0

  constructor(clock: Clock, onReadTimeout: (group: GroupId, read: number) => void) {
    this.#clock = clock
    this.#onReadTimeout = onReadTimeout
    this.#deadlines = new Deadlines(clock, (request) => this.#expire(request))
  }

  /** Submissions and reads without an answer. */
  get count(): number {
    return this.#submissions.size + this.#reads.size
  }

  /** Calls `cancel` when its caller waits no longer, and it has no outcome. */
  submission(
    timeoutMs: number,
    start: (request: number) => void,
    cancel: (request: number) => void,
  ): Promise<Outcome> {
    return new Promise((resolve) => {
      const request = this.#draw(timeoutMs)
      this.#submissions.set(request, { resolve, cancel, sinceMs: this.#clock.monotonicMs() })
      start(request)
    })
  }

  read(group: GroupId, timeoutMs: number, start: (read: number) => void): Promise<ReadPoint> {
    return new Promise((resolve, reject) => {
      const read = this.#draw(timeoutMs)
      this.#reads.set(read, { group, resolve, reject })
      start(read)
    })
  }

  settle(request: number, outcome: Outcome): void {
    const submission = this.#submissions.get(request)
    this.#submissions.delete(request)
    if (submission === undefined) return
    assert(!this.#reads.has(request), 'TXN-5: a read is settled as a submission')
    this.onSettled(this.#clock.monotonicMs() - submission.sinceMs)
    submission.resolve(outcome)
  }

  serve(request: number, point: ReadPoint): void {
    const read = this.#reads.get(request)
    this.#reads.delete(request)
    assert(!this.#submissions.has(request), 'TXN-5: a submission is served as a read')
    read?.resolve(point)
  }

  watch(group: GroupId, position: Position, wake: () => void): () => void {
    const watch: Watch = { position, wake }
    const watches = this.#watches.get(group) ?? new Set()
    this.#watches.set(group, watches.add(watch))
    return () => this.#unwatch(group, watches, watch)
  }

  #unwatch(group: GroupId, watches: Set<Watch>, watch: Watch): void {
    watches.delete(watch)
    // One that was emptied before may be asked again; another set has the group by then.
    if (watches.size === 0 && this.#watches.get(group) === watches) this.#watches.delete(group)
  }

  applied(group: GroupId, position: Position): void {
    const watches = this.#watches.get(group)
    if (watches === undefined) return
    for (const watch of [...watches]) {
      if (watch.position >= position) continue
      this.#unwatch(group, watches, watch)
      watch.wake()
    }
  }

  /** The node stops: nothing that waits will be answered. */
  stop(): void {
    this.#deadlines.stop()
    for (const { resolve } of this.#submissions.values()) resolve({ kind: 'unknown' })
    for (const { reject } of this.#reads.values()) {
      reject(new StoreError('closed', 'this node is stopping; ask another one'))
    }
    this.#submissions.clear()
    this.#reads.clear()
    this.#watches.clear()
  }

  #draw(timeoutMs: number): number {
    const request = (this.#drawn += 1)
    assert(timeoutMs >= 0 && timeoutMs < Infinity, 'LIVE-1: a request waits without an end')
    assert(Number.isSafeInteger(request), 'TXN-5: a node has no more numbers for requests')
    this.#deadlines.add(request, this.#clock.monotonicMs() + timeoutMs)
    return request
  }

  #expire(request: number): void {
    const submission = this.#submissions.get(request)
    this.settle(request, { kind: 'unknown' })
    submission?.cancel(request)
    const read = this.#reads.get(request)
    if (read === undefined) return
    this.#reads.delete(request)
    this.#onReadTimeout(read.group, request)
    const message = 'no majority of the replicas answered in time; the read may be tried again'
    read.reject(new StoreError('unavailable', message, { group: read.group }))
  }
}
