/**
 * Logs of shards as they are asked for: pages of several shards, and the wait for what comes to be in
 * them.
 */
import { present } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import { errorOf, outcomeOf, type Outcome } from '../base/problem.ts'
import type { Clock } from '../ports/clock.ts'
import type { LocalReplica } from '../replica/local-replica.ts'
import { AnswerRoom } from './answer-room.ts'
import { batchConcurrencyMax, watchedShardsMax } from './bounds.ts'
import type { ShardPosition } from './cell.ts'
import { placeProblem } from './operation-check.ts'
import {
  positionOf,
  type Answer,
  type GetLog,
  type LogPlace,
  type ReadFrom,
  type StoredLogPage,
} from './operation.ts'
import { mapBounded } from './pool.ts'
import { logPage } from './shard-log.ts'
import type { Call, ShardReader } from './shard-reader.ts'
import { shardGroup } from './shard.ts'

export interface LogReaderParts {
  readonly replica: LocalReplica
  readonly clock: Clock
  readonly reader: ShardReader
}

export class LogReader {
  readonly #parts: LogReaderParts
  readonly #waits = new Set<() => void>()
  #watchedShards = 0
  #isStopped = false

  constructor(parts: LogReaderParts) {
    this.#parts = parts
  }

  /** Ends what waits for new cells. */
  stop(): void {
    this.#isStopped = true
    for (const wake of this.#waits) wake()
  }

  async read(operation: GetLog, call: Call): Promise<Answer> {
    const { clock } = this.#parts
    const waitUntilMs = Math.min(clock.monotonicMs() + operation.waitMs, call.deadlineMs)
    let reading: GetLog = operation
    for (;;) {
      const pages = await this.#logPages(reading, call)
      const isFound = pages.some((page) => page.kind === 'problem' || page.value.cells.length > 0)
      const isGone = call.signal?.aborted === true
      const isOver = clock.monotonicMs() >= waitUntilMs || this.#isStopped || isGone
      if (isFound || isOver) return { kind: 'log', items: pages }
      await this.#change(operation.datastore, reachedBy(pages), waitUntilMs, call.signal)
      // Who was woken here sees here what woke it.
      const read: ReadFrom = { level: 'any', atLeast: operation.read.atLeast }
      reading = {
        ...reading,
        read,
        items: pages.map((page, i) => placeAfter(page, operation.items[i])),
      }
    }
  }

  /** Most of those who follow many shards follow idle ones: these cost no promise. */
  async #logPages(operation: GetLog, call: Call): Promise<Outcome<StoredLogPage>[]> {
    const { items } = operation
    const pages = items.map((place) => this.#unchanged(operation, place))
    const open = items.flatMap((place, at) => (pages[at] === undefined ? [{ place, at }] : []))
    const room = new AnswerRoom()
    await mapBounded(open, batchConcurrencyMax, async ({ place, at }) => {
      pages[at] = await outcomeOf(() => this.#logPage(operation, place, room, call))
    })
    return pages.map((page) => present(page, 'cells: each place has its page'))
  }

  async #logPage(
    operation: GetLog,
    place: LogPlace,
    room: AnswerRoom,
    call: Call,
  ): Promise<StoredLogPage> {
    const refused = placeProblem(place)
    if (refused !== undefined) throw errorOf(refused)
    const { limit } = operation
    const { value, position } = await this.#parts.reader.readAt(
      operation,
      place.shard,
      call,
      (view) => room.attempt((share) => logPage(view, place, { limit, share })),
    )
    return value.isWhole ? { asOf: position, ...value.page } : value.page
  }

  /**
   * The page of a shard that has not gone on, here, since its reader came to the end of its log. Not for
   * who has seen the shard go on, nor of a shard that is not in memory.
   */
  #unchanged({ datastore, read }: GetLog, place: LogPlace): Outcome<StoredLogPage> | undefined {
    if (place.kind === 'since' || place.asOf === undefined || read.level !== 'any') return undefined
    if (placeProblem(place) !== undefined) return undefined
    const { shard, addedId, asOf } = place
    if ((positionOf(read.atLeast, shard) ?? 0) > asOf) return undefined
    const here = this.#parts.replica.positionHere(shardGroup(datastore, shard))
    if (here === undefined || here > asOf) return undefined
    return { kind: 'ok', value: { shard, cells: [], next: addedId, asOf } }
  }

  /** Resolves when one of the shards has gone on since, it is time, or nobody waits any more. */
  async #change(
    datastore: string,
    positions: readonly ShardPosition[],
    untilMs: number,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    if (this.#watchedShards + positions.length > watchedShardsMax) {
      throw new StoreError('overloaded', 'too many calls wait for new cells at this node')
    }
    const { replica, clock } = this.#parts
    let wake = (): void => undefined
    const woken = new Promise<void>((resolve) => (wake = resolve))
    const timer = clock.setTimer(Math.max(0, untilMs - clock.monotonicMs()), wake)
    const cancels = positions.map(([shard, position]) =>
      replica.watch(shardGroup(datastore, shard), position, wake),
    )
    this.#watchedShards += positions.length
    this.#waits.add(wake)
    signal?.addEventListener('abort', wake)
    try {
      // What was applied between the reading and the watching wakes nobody.
      if (!(await this.#hasGoneOn(datastore, positions))) await woken
    } finally {
      this.#waits.delete(wake)
      signal?.removeEventListener('abort', wake)
      this.#watchedShards -= positions.length
      timer.cancel()
      for (const cancel of cancels) cancel()
    }
  }

  async #hasGoneOn(datastore: string, positions: readonly ShardPosition[]): Promise<boolean> {
    const { replica } = this.#parts
    for (const [shard, position] of positions) {
      const group = shardGroup(datastore, shard)
      const here = replica.positionHere(group) ?? (await replica.read(group, 'any', 1)).position
      if (here > position) return true
    }
    return false
  }
}

/** Where to go on: a time, once looked up, is an added id. */
function placeAfter(page: Outcome<StoredLogPage>, place: LogPlace | undefined): LogPlace {
  if (page.kind === 'problem') return place ?? { kind: 'after', shard: 0, addedId: 0 }
  const { shard, next, asOf } = page.value
  return { kind: 'after', shard, addedId: next, ...(asOf !== undefined && { asOf }) }
}

/** How far shards had come in which there was nothing to be read. */
function reachedBy(pages: readonly Outcome<StoredLogPage>[]): ShardPosition[] {
  return pages.flatMap((page): ShardPosition[] =>
    page.kind === 'ok' && page.value.asOf !== undefined
      ? [[page.value.shard, page.value.asOf]]
      : [],
  )
}
