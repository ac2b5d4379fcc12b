/**
 * Logs of shards, as a call asks for them: pages of several shards, and the wait for new cells in them.
 * Reading goes on in slices. The shards that a call waits for wake it, and then it reads those.
 */
import { present } from '../base/assert.ts'
import { toStoreError, captureOutcome, type Outcome } from '../base/problem.ts'
import type { Clock } from '../ports/clock.ts'
import { gone, type Pace } from '../ports/pace.ts'
import type { LocalReplica } from '../group/replica-port.ts'
import { AnswerRoom } from './answer-room.ts'
import { logsAtOnceMax, packedPartWork, shardReadWork } from './limits.ts'
import { placeProblem } from './operation-check.ts'
import {
  findPosition,
  replicaLevel,
  type Answer,
  type GetLog,
  type LogPlace,
  type ReadFrom,
  type StoredLogPage,
} from './operation.ts'
import { mapPaced } from './pool.ts'
import { checkWithin, logPage } from './shard-log.ts'
import type { Call, ShardReader } from './shard-reader.ts'
import { ShardWaits, type Awaited } from './shard-waits.ts'
import { shardGroup } from './shard.ts'

export interface LogReaderParts {
  readonly replica: LocalReplica
  readonly clock: Clock
  readonly reader: ShardReader
}

type Pages = Outcome<StoredLogPage>[]

/** Places that are only looked at between two that are paid for. */
const lookedAtOnce = 256
/** Pages without a cell have none in common. */
const noCells: readonly [] = []

export class LogReader {
  readonly #parts: LogReaderParts
  readonly #waits: ShardWaits

  constructor(parts: LogReaderParts) {
    this.#parts = parts
    this.#waits = new ShardWaits(parts)
  }

  /** Ends what waits for new cells. */
  stop(): void {
    this.#waits.stop()
  }

  async read(operation: GetLog, call: Call): Promise<Answer> {
    const { clock } = this.#parts
    const { datastore, items, waitMs } = operation
    const untilMs = Math.min(clock.monotonicMs() + waitMs, call.deadlineMs)
    const pages = await this.#read(operation, items, call)
    if (waitMs > 0 && !pages.some(isNews)) {
      const wait = this.#waits.begin(datastore, untilMs, call.pace)
      try {
        await this.#untilNews(operation, pages, wait, call)
      } finally {
        wait.end()
      }
    }
    await spend(call.pace, items.length * packedPartWork)
    return { kind: 'log', items: pages }
  }

  /** Reads the shards that went on, again and again, until one has a new cell or the wait is over. */
  async #untilNews(
    operation: GetLog,
    pages: Pages,
    wait: ReturnType<ShardWaits['begin']>,
    call: Call,
  ): Promise<void> {
    // A call that this replica woke sees the change in this replica.
    const read: ReadFrom = { level: 'snapshot', atLeast: operation.read.atLeast }
    for (let places = [...pages.keys()]; ;) {
      for (const at of places) {
        if (at % lookedAtOnce === 0) await spend(call.pace, lookedAtOnce * packedPartWork)
        const known = wait.add(awaited(pages[at], at))
        if (known !== undefined) await known
      }
      places = await wait.next()
      // Many may have been woken at once, or be over.
      await spend(call.pace, 1)
      if (places.length === 0) return
      const asked = places.map((at) => placeAfter(pages[at], operation.items[at]))
      const found = await this.#read({ ...operation, read }, asked, call)
      for (const [nth, at] of places.entries()) {
        pages[at] = present(found[nth], 'cells: each place has its page')
      }
      if (found.some(isNews)) return
    }
  }

  /** Most of those who follow many shards follow idle ones: these cost no promise. */
  async #read(operation: GetLog, items: readonly LogPlace[], call: Call): Promise<Pages> {
    const { pace } = call
    const pages: (Outcome<StoredLogPage> | undefined)[] = []
    const open: { readonly place: LogPlace; readonly at: number }[] = []
    for (const [at, place] of items.entries()) {
      if (at > 0 && at % lookedAtOnce === 0) await spend(pace, lookedAtOnce * packedPartWork)
      const page = this.#unchanged(operation, place)
      pages.push(page)
      if (page === undefined) open.push({ place, at })
    }
    const room = new AnswerRoom(pace)
    const paid = { most: logsAtOnceMax, pace, computeCost: () => shardReadWork }
    await mapPaced(open, paid, async ({ place, at }) => {
      pages[at] = await captureOutcome(() => this.#logPage(operation, place, room, call))
    })
    // A failure that came only because the caller has gone is no page.
    if (pace?.isGone === true) throw gone()
    return pages.map((page) => present(page, 'cells: each place has its page'))
  }

  async #logPage(
    operation: GetLog,
    place: LogPlace,
    room: AnswerRoom,
    call: Call,
  ): Promise<StoredLogPage> {
    const refused = placeProblem(operation.datastore, place)
    if (refused !== undefined) throw toStoreError(refused)
    const { limit } = operation
    const { value, position } = await this.#parts.reader.readAt(
      operation,
      place.shard,
      call,
      async (view) => {
        const found = await room.attempt((share) => logPage(view, place, { limit, share }))
        if (found.page.cells.length === 0 && mayBeBeyond(operation, place)) {
          await checkWithin(view, place)
        }
        return found
      },
    )
    const { isWhole, page } = value
    const cells = page.cells.length === 0 ? noCells : page.cells
    return isWhole ? { ...page, cells, asOf: position } : page
  }

  /**
   * The page of a shard that has not gone on, here, since its reader came to the end of its log. Not for
   * who has seen the shard go on, nor of a shard that is not in memory.
   */
  #unchanged({ datastore, read }: GetLog, place: LogPlace): Outcome<StoredLogPage> | undefined {
    if (place.kind === 'since' || place.asOf === undefined) return undefined
    if (replicaLevel(read) !== 'snapshot') return undefined
    if (placeProblem(datastore, place) !== undefined) return undefined
    const { shard, addedId, asOf } = place
    if ((findPosition(read.atLeast, shard) ?? 0) > asOf) return undefined
    const here = this.#parts.replica.positionHere(shardGroup(datastore, shard))
    if (here === undefined || here > asOf) return undefined
    return { kind: 'ok', value: { shard, cells: noCells, next: addedId, asOf } }
  }
}

/** Whether a place of which nothing is known may be none of the log; one with `asOf` an answer has given. */
function mayBeBeyond({ read }: GetLog, place: LogPlace): place is LogPlace & { kind: 'after' } {
  return read.level === 'current' && place.kind === 'after' && place.asOf === undefined
}

async function spend(pace: Pace | undefined, work: number): Promise<void> {
  const turn = pace?.spend(work)
  if (turn !== undefined) await turn
}

function isNews(page: Outcome<StoredLogPage>): boolean {
  return page.kind === 'problem' || page.value.cells.length > 0
}

/** How far a shard had come in which there was nothing to be read. */
function awaited(page: Outcome<StoredLogPage> | undefined, at: number): Awaited | undefined {
  if (page?.kind !== 'ok' || page.value.asOf === undefined) return undefined
  return { at, shard: page.value.shard, position: page.value.asOf }
}

/** Where to go on: a time, once looked up, is an added id. */
function placeAfter(
  page: Outcome<StoredLogPage> | undefined,
  place: LogPlace | undefined,
): LogPlace {
  if (page?.kind !== 'ok') return place ?? { kind: 'after', shard: 0, addedId: 0 }
  const { shard, next, asOf } = page.value
  return { kind: 'after', shard, addedId: next, ...(asOf !== undefined && { asOf }) }
}
