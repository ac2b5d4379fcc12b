/**
 * The calls that wait for shards to go on: they found nothing new, each at some places. A place that is
 * waited for costs one small record, and each shard one watch, however many wait for it; a call has one
 * timer. A shard wakes only the calls that wait for it, and each learns which of its places changed.
 *
 * COST-5  A place is waited for by one record, which goes when its shard goes on, or with its call.
 */
import { assert } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import type { GroupId, Position } from '../base/ids.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import { gone, type Pace } from '../ports/pace.ts'
import type { LocalReplica } from '../group/replica-port.ts'
import { watchedShardsMax } from './limits.ts'
import { shardGroup } from './shard.ts'

/** A place of a call, and the position of its shard as of which nothing is behind it. */
export interface Awaited {
  readonly at: number
  readonly shard: number
  readonly position: Position
}

export interface ShardWaitsParts {
  readonly replica: Pick<LocalReplica, 'watch' | 'positionHere' | 'read'>
  readonly clock: Clock
}

/** All that wait for one shard. */
interface Hub {
  readonly group: GroupId
  readonly records: WaitRecord[]
  cancel: () => void
}

interface WaitRecord {
  readonly wait: ShardWait
  readonly at: number
  readonly hub: Hub
  /** Its place among the hub's. */
  place: number
}

export class ShardWaits {
  readonly #parts: ShardWaitsParts
  readonly #hubs = new Map<GroupId, Hub>()
  readonly #waits = new Set<ShardWait>()
  #places = 0
  #isStopped = false

  constructor(parts: ShardWaitsParts) {
    this.#parts = parts
  }

  /** Places that are waited for. */
  get places(): number {
    return this.#places
  }

  /** Ends all waits, and those that begin later at once. */
  stop(): void {
    this.#isStopped = true
    for (const wait of this.#waits) wait.over()
  }

  /** For one call; the caller of `begin` also calls `end`. */
  begin(datastore: string, untilMs: number, pace: Pace | undefined): ShardWait {
    const { clock } = this.#parts
    const wait = new ShardWait(this, datastore, pace)
    this.#waits.add(wait)
    if (this.#isStopped) wait.over()
    else wait.limit(clock.setTimer(Math.max(0, untilMs - clock.monotonicMs()), () => wait.over()))
    return wait
  }

  /** Records it; a promise where whether the shard has gone on since must be looked up. */
  watch(wait: ShardWait, { at, position }: Awaited, group: GroupId): Promise<void> | undefined {
    if (this.#places >= watchedShardsMax) {
      throw new StoreError('overloaded', 'too many calls wait for new cells at this node')
    }
    const { replica } = this.#parts
    const hub = this.#hubs.get(group) ?? this.#open(group, position)
    const record: WaitRecord = { wait, at, hub, place: hub.records.length }
    hub.records.push(record)
    this.#places += 1
    wait.keep(record)
    // The watch wakes no call for an entry that was applied between the reading and the watching.
    const here = replica.positionHere(group)
    if (here === undefined) {
      return replica
        .read(group, 'snapshot', 1)
        .then((point) => this.#check(record, position, point.position))
    }
    this.#check(record, position, here)
    return undefined
  }

  /** A call that has not been woken waits for this shard no longer. */
  unwatch(record: WaitRecord): void {
    const { hub, place, wait, at } = record
    const { records } = hub
    assert(records[place]?.wait === wait, 'COST-5: a place is not where it waits')
    const last = records.pop()
    if (last !== undefined && (last.wait !== wait || last.at !== at)) {
      records[place] = last
      last.place = place
    }
    this.#places -= 1
    wait.drop(record)
    if (records.length > 0) return
    this.#hubs.delete(hub.group)
    hub.cancel()
  }

  forget(wait: ShardWait): void {
    assert(wait.places === 0, 'COST-5: a call that is over waits for shards')
    this.#waits.delete(wait)
  }

  #open(group: GroupId, position: Position): Hub {
    const hub: Hub = { group, records: [], cancel: () => undefined }
    this.#hubs.set(group, hub)
    hub.cancel = this.#parts.replica.watch(group, position, () => this.#wake(hub))
    return hub
  }

  #check(record: WaitRecord, position: Position, here: Position): void {
    if (here > position && record.wait.isKept(record)) {
      this.unwatch(record)
      record.wait.wake(record)
    }
  }

  /** A call that has already read further finds nothing there, and waits again. */
  #wake(hub: Hub): void {
    this.#hubs.delete(hub.group)
    this.#places -= hub.records.length
    for (const record of hub.records) {
      record.wait.drop(record)
      record.wait.wake(record)
    }
  }
}

/** One call that waits. */
export class ShardWait {
  readonly #waits: ShardWaits
  readonly #datastore: string
  readonly #pace: Pace | undefined
  readonly #forgetGone: (() => void) | undefined
  /** By the places of the call. */
  readonly #records: (WaitRecord | undefined)[] = []
  #places = 0
  #changed: number[] = []
  #timer: Timer | undefined
  #wakeUp: (() => void) | undefined
  #isOver = false

  constructor(waits: ShardWaits, datastore: string, pace: Pace | undefined) {
    this.#waits = waits
    this.#datastore = datastore
    this.#pace = pace
    this.#forgetGone = pace?.onGone(() => this.over())
  }

  /** That it waits for. */
  get places(): number {
    return this.#places
  }

  limit(timer: Timer): void {
    this.#timer = timer
  }

  add(awaited: Awaited | undefined): Promise<void> | undefined {
    if (awaited === undefined || this.#isOver) return undefined
    assert(this.#records[awaited.at] === undefined, 'COST-5: a place is waited for twice')
    return this.#waits.watch(this, awaited, shardGroup(this.#datastore, awaited.shard))
  }

  /** Resolves with the places whose shards have gone on; none: the wait is over. */
  async next(): Promise<number[]> {
    if (this.#changed.length === 0 && !this.#isOver) {
      await new Promise<void>((resolve) => (this.#wakeUp = resolve))
    }
    if (this.#pace?.isGone === true) throw gone()
    const changed = this.#changed
    this.#changed = []
    return this.#isOver ? [] : changed
  }

  end(): void {
    this.#isOver = true
    this.#timer?.cancel()
    this.#forgetGone?.()
    for (const record of this.#records) if (record !== undefined) this.#waits.unwatch(record)
    this.#records.length = 0
    this.#waits.forget(this)
  }

  /** Its time is over, the node stops, or the caller has gone. */
  over(): void {
    this.#isOver = true
    this.#wakeUp?.()
  }

  keep(record: WaitRecord): void {
    this.#places += 1
    this.#records[record.at] = record
  }

  /** The record is among those of its shard no longer. */
  drop({ at }: WaitRecord): void {
    this.#places -= 1
    this.#records[at] = undefined
  }

  isKept({ at, hub }: WaitRecord): boolean {
    return this.#records[at]?.hub === hub
  }

  wake({ at }: WaitRecord): void {
    assert(this.#pace?.isGone !== true || this.#isOver, 'COST-4: it waits for who has gone')
    this.#changed.push(at)
    this.#wakeUp?.()
  }
}
