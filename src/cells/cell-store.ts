/**
 * Cells over this node's replica (SCHEMALESS): carries out operations on any shard, whoever leads
 * it. Everything it waits for is the replica and the clock, so it runs in the simulator as it is.
 *
 * CELL-1 to CELL-5, see SPEC.md. Indexes, triggers and buffered writes are not here yet.
 */
import { StoreError } from '../base/errors.ts'
import { checkBody } from './body.ts'
import { batchConcurrencyMax, watchedShardsMax } from './bounds.ts'
import type { NodeId } from '../base/ids.ts'
import {
  nameProblem,
  type ShardLeader,
  type ShardPosition,
  type StoredCell,
  type Written,
} from './cell.ts'
import { operationProblem, placeProblem } from './operation-check.ts'
import type {
  Answer,
  Answered,
  CallOptions,
  CellOperation,
  CellService,
  GetCells,
  GetItem,
  GetLog,
  GetRow,
  GetVersions,
  LogPlace,
  PutCells,
  PutItem,
  ReadFrom,
  StoredLogPage,
} from './operation.ts'
import { mapBounded } from './pool.ts'
import { errorOf, outcomeOf, problemOf, type Outcome, type Problem } from '../base/problem.ts'
import { putCell, type CellPorts } from './put.ts'
import { intentsProblem, timeoutProblem, type Intents } from '../txn/intents.ts'
import { Sessions } from '../txn/session.ts'
import { logPage } from './shard-log.ts'
import {
  cellAt,
  fullBudget,
  latestCell,
  rowOf,
  versionsOf,
  viewShard,
  type ShardView,
} from './shard-read.ts'
import { shardGroup, shardOf } from './shard.ts'

/** What is seen of the shards an answer is of: their highest positions, and leaders elsewhere. */
class Sightings {
  readonly #byShard = new Map<number, number>()
  readonly #leaders = new Map<number, NodeId>()

  see(shard: number, position: number): void {
    this.#byShard.set(shard, Math.max(position, this.#byShard.get(shard) ?? 0))
  }

  seeLeader(shard: number, leader: NodeId | undefined): void {
    if (leader !== undefined) this.#leaders.set(shard, leader)
  }

  positions(): ShardPosition[] {
    return [...this.#byShard]
  }

  leaders(): ShardLeader[] | undefined {
    return this.#leaders.size === 0 ? undefined : [...this.#leaders]
  }
}

/** One call under way. */
interface Call {
  readonly deadlineMs: number
  readonly seen: Sightings
}

export class CellStore implements CellService {
  readonly #ports: CellPorts
  readonly #sessions: Sessions
  readonly #waits = new Set<() => void>()
  #watchedShards = 0
  #isStopped = false

  constructor(ports: CellPorts) {
    this.#ports = ports
    this.#sessions = new Sessions(ports.clock, ports.random)
  }

  async execute(operation: CellOperation, options: CallOptions): Promise<Answered> {
    const seen = new Sightings()
    const outcome = await outcomeOf(() => this.#execute(operation, options, seen))
    const answer: Answer = outcome.kind === 'ok' ? outcome.value : outcome
    const leaders = seen.leaders()
    const positions = seen.positions()
    return leaders === undefined ? { answer, positions } : { answer, positions, leaders }
  }

  /** Ends what waits for new cells and takes nothing more; what is at work comes to its end. */
  stop(): void {
    this.#isStopped = true
    for (const wake of this.#waits) wake()
  }

  #execute(operation: CellOperation, options: CallOptions, seen: Sightings): Promise<Answer> {
    if (this.#isStopped) throw new StoreError('closed', 'this node is stopping; ask another one')
    const refused = operationProblem(operation) ?? timeoutProblem(options.timeoutMs)
    if (refused !== undefined) throw errorOf(refused)
    const deadlineMs = this.#ports.clock.monotonicMs() + options.timeoutMs
    const call: Call = { deadlineMs, seen }
    switch (operation.kind) {
      case 'put':
        return this.#put(operation, options.intents, call)
      case 'get':
        return this.#get(operation, call)
      case 'row':
        return this.#row(operation, call)
      case 'versions':
        return this.#versions(operation, call)
      case 'log':
        return this.#log(operation, call)
    }
  }

  async #put(operation: PutCells, given: Intents | undefined, call: Call): Promise<Answer> {
    if (given !== undefined) {
      const wall = this.#ports.clock.wallMicros()
      const refused = intentsProblem(given, operation.items.length, wall)
      if (refused !== undefined) throw errorOf(refused)
      return { kind: 'put', items: await this.#putAll(operation, given, call) }
    }
    const open = this.#sessions.openMany(operation.items.length)
    const items = await this.#putAll(operation, open.intents(open.sequences), call)
    open.settle(!items.some(isUnknown))
    return { kind: 'put', items }
  }

  #putAll(operation: PutCells, intents: Intents, call: Call): Promise<Outcome<Written>[]> {
    return mapBounded(operation.items, batchConcurrencyMax, (item, i) =>
      outcomeOf(() => this.#putOne(operation.datastore, item, intents, i, call)),
    )
  }

  async #putOne(
    datastore: string,
    item: PutItem,
    intents: Intents,
    index: number,
    call: Call,
  ): Promise<Written> {
    refuse(nameProblem(item))
    const checked = checkBody(item.body)
    if (checked.kind === 'problem') throw errorOf(checked.problem)
    const { session, sequences, floor, expiresAt } = intents
    const intent = { session, sequence: sequences[index] ?? 0, floor, expiresAt }
    const shard = shardOf(item.rowKey)
    const { deadlineMs, seen } = call
    const task = { datastore, shard, name: item, body: checked.body, intent, deadlineMs }
    const { written, position } = await putCell(this.#ports, task)
    seen.see(shard, position)
    seen.seeLeader(shard, this.#ports.replica.leaderElsewhere(shardGroup(task.datastore, shard)))
    return written
  }

  async #get(operation: GetCells, call: Call): Promise<Answer> {
    const views = new ViewCache((shard) => this.#view(operation, shard, call))
    const found = await mapBounded(operation.items, batchConcurrencyMax, (item) =>
      outcomeOf(() => this.#getOne(item, views)),
    )
    const budget = fullBudget()
    const items = found.map((outcome): Outcome<StoredCell | undefined> => {
      if (outcome.kind === 'problem' || outcome.value === undefined) return outcome
      if (outcome.value.body.length > budget.bytesLeft)
        return { kind: 'problem', problem: answerFull }
      budget.bytesLeft -= outcome.value.body.length
      return outcome
    })
    return { kind: 'get', items }
  }

  async #getOne(item: GetItem, views: ViewCache): Promise<StoredCell | undefined> {
    refuse(nameProblem(item))
    const { rowKey, column, refKey } = item
    const view = await views.get(shardOf(rowKey))
    if (refKey !== undefined) return cellAt(this.#ports, view, { rowKey, column, refKey })
    return latestCell(this.#ports, view, { rowKey, column })
  }

  async #view(
    of: { readonly datastore: string; readonly read: ReadFrom },
    shard: number,
    call: Call,
  ): Promise<ShardView> {
    const place = { datastore: of.datastore, shard }
    const view = await viewShard(this.#ports, place, of.read, call.deadlineMs)
    call.seen.see(shard, view.point.position)
    return view
  }

  async #row(operation: GetRow, call: Call): Promise<Answer> {
    const view = await this.#view(operation, shardOf(operation.rowKey), call)
    return { kind: 'row', page: await rowOf(this.#ports, view, operation) }
  }

  async #versions(operation: GetVersions, call: Call): Promise<Answer> {
    const view = await this.#view(operation, shardOf(operation.rowKey), call)
    return { kind: 'versions', page: await versionsOf(this.#ports, view, operation) }
  }

  async #log(operation: GetLog, call: Call): Promise<Answer> {
    const { clock } = this.#ports
    const waitUntilMs = Math.min(clock.monotonicMs() + operation.waitMs, call.deadlineMs)
    let reading: GetLog = operation
    for (;;) {
      const pages = await this.#logPages(reading, call)
      const isFound = pages.some((page) => page.kind === 'problem' || page.value.cells.length > 0)
      const isOver = clock.monotonicMs() >= waitUntilMs || this.#isStopped
      if (isFound || isOver) return { kind: 'log', items: pages }
      await this.#change(operation.datastore, call.seen.positions(), waitUntilMs)
      // Who was woken here sees here what woke it.
      const read: ReadFrom = { level: 'any', atLeast: operation.read.atLeast }
      reading = {
        ...reading,
        read,
        items: pages.map((page, i) => placeAfter(page, operation.items[i])),
      }
    }
  }

  #logPages(operation: GetLog, call: Call): Promise<Outcome<StoredLogPage>[]> {
    const budget = fullBudget()
    const { limit } = operation
    return mapBounded(operation.items, batchConcurrencyMax, (place) =>
      outcomeOf(async () => {
        refuse(placeProblem(place))
        const view = await this.#view(operation, place.shard, call)
        return logPage(this.#ports, view, place, { limit, budget })
      }),
    )
  }

  /** Resolves when one of the shards has gone on since, or it is time. */
  async #change(
    datastore: string,
    positions: readonly ShardPosition[],
    untilMs: number,
  ): Promise<void> {
    if (this.#watchedShards + positions.length > watchedShardsMax) {
      throw new StoreError('overloaded', 'too many calls wait for new cells at this node')
    }
    const { replica, clock } = this.#ports
    let wake = (): void => undefined
    const woken = new Promise<void>((resolve) => (wake = resolve))
    const timer = clock.setTimer(Math.max(0, untilMs - clock.monotonicMs()), wake)
    const cancels = positions.map(([shard, position]) =>
      replica.watch(shardGroup(datastore, shard), position, wake),
    )
    this.#watchedShards += positions.length
    this.#waits.add(wake)
    try {
      // What was applied between the reading and the watching wakes nobody.
      if (!(await this.#hasGoneOn(datastore, positions))) await woken
    } finally {
      this.#waits.delete(wake)
      this.#watchedShards -= positions.length
      timer.cancel()
      for (const cancel of cancels) cancel()
    }
  }

  async #hasGoneOn(datastore: string, positions: readonly ShardPosition[]): Promise<boolean> {
    for (const [shard, position] of positions) {
      const point = await this.#ports.replica.read(shardGroup(datastore, shard), 'any', 1)
      if (point.position > position) return true
    }
    return false
  }
}

/** One view of a shard for all items of a batch. */
class ViewCache {
  readonly #views = new Map<number, Promise<ShardView>>()
  readonly #make: (shard: number) => Promise<ShardView>

  constructor(make: (shard: number) => Promise<ShardView>) {
    this.#make = make
  }

  get(shard: number): Promise<ShardView> {
    const known = this.#views.get(shard)
    if (known !== undefined) return known
    const made = this.#make(shard)
    this.#views.set(shard, made)
    return made
  }
}

const answerFull: Problem = problemOf(
  new StoreError('too-large', 'the answer is full; ask for this cell in another batch'),
)

function refuse(refused: Problem | undefined): void {
  if (refused !== undefined) throw errorOf(refused)
}

function isUnknown(outcome: Outcome<Written>): boolean {
  return outcome.kind === 'problem' && outcome.problem.code === 'unknown-outcome'
}

/** Where to go on: a time, once looked up, is an added id. */
function placeAfter(page: Outcome<StoredLogPage>, place: LogPlace | undefined): LogPlace {
  if (page.kind === 'ok')
    return { kind: 'after', shard: page.value.shard, addedId: page.value.next }
  return place ?? { kind: 'after', shard: 0, addedId: 0 }
}
