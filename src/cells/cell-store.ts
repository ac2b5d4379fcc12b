/**
 * Cells over this node's replica (SCHEMALESS): carries out operations on any shard, whoever leads
 * it. Everything it waits for is the replica and the clock, so it runs in the simulator as it is.
 *
 * CELL-1 to CELL-8, IDX-7, see SPEC.md.
 */
import { present } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import { checkBody } from './body.ts'
import { batchConcurrencyMax, watchedShardsMax } from './bounds.ts'
import type { GroupId, Position } from '../base/ids.ts'
import { nameProblem, type ShardPosition, type StoredCell, type Written } from './cell.ts'
import { operationProblem, placeProblem } from './operation-check.ts'
import {
  positionOf,
  type Answer,
  type Answered,
  type CallOptions,
  type CellOperation,
  type CellService,
  type GetCells,
  type GetItem,
  type GetLog,
  type GetRow,
  type GetVersions,
  type IndexedCells,
  type LogPlace,
  type PurgeCells,
  type PutCells,
  type PutItem,
  type QueryIndex,
  type ReadFrom,
  type StoredLogPage,
} from './operation.ts'
import { mapBounded } from './pool.ts'
import { Sightings } from './sightings.ts'
import { errorOf, outcomeOf, problem, type Outcome, type Problem } from '../base/problem.ts'
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import type { LocalReplica } from '../replica/local-replica.ts'
import { schemaTrustMs } from '../tables/bounds.ts'
import type { GroupTables, Tables } from '../tables/open.ts'
import type { GroupPort } from '../txn/group-port.ts'
import { LocalGroups } from '../txn/local-groups.ts'
import { getCells, openCellTables, shardKey } from './cell-table.ts'
import { getNow } from './get-now.ts'
import type { ReplicaSets } from './index-copies.ts'
import { queryIndex, type FoundEntry } from './index-query.ts'
import { IndexService } from './index-service.ts'
import { putCell } from './put.ts'
import { intentsProblem, timeoutProblem, type Intents } from '../txn/intents.ts'
import { Sessions } from '../txn/session.ts'
import { remainingOrTimeout, untilDeadline } from '../txn/time.ts'
import { pageItemsMax } from '../base/limits.ts'
import { logPage } from './shard-log.ts'
import { purgePage } from './shard-purge.ts'
import {
  answerFull,
  fitting,
  fullBudget,
  latestCell,
  readShard,
  rowOf,
  versionsOf,
  type ShardView,
  type Budget,
} from './shard-read.ts'
import { ByShard, shardGroup, shardOf } from './shard.ts'

/** One call under way. */
interface Call {
  readonly deadlineMs: number
  readonly seen: Sightings
}

/** What cells are made of: a replica, time and chance. */
export interface CellPorts {
  readonly replica: LocalReplica
  /** Groups of all replica sets, for indexes; those of the replica, when it is absent. */
  readonly groups?: GroupPort
  readonly clock: Clock
  readonly random: Random
  /** The replica sets of those groups; one, when it is absent. */
  readonly sets?: ReplicaSets
  /** False: nobody declares indexes over cells, and no put asks for them. */
  readonly hasIndexes?: boolean
  /** So long a node goes by definitions of indexes that it has read; as usual when absent. */
  readonly indexTrustMs?: number
  /** Names of the groups that begin so, of all sets; those of the replica, when it is absent. */
  listGroups?(
    prefix: GroupId,
    after: GroupId | undefined,
    limit: number,
    timeoutMs: number,
  ): Promise<readonly GroupId[]>
}

export class CellStore implements CellService {
  readonly #ports: CellPorts
  readonly #shards: ByShard<GroupTables>
  readonly #tables: Tables
  readonly #indexes: IndexService
  readonly #sessions: Sessions
  readonly #waits = new Set<() => void>()
  #watchedShards = 0
  #isStopped = false

  constructor(ports: CellPorts) {
    this.#ports = ports
    const tables = openCellTables(ports.groups ?? new LocalGroups(ports.replica), ports)
    this.#shards = new ByShard((of) => tables.of(shardKey(of)))
    this.#tables = tables
    const { clock, replica, sets, indexTrustMs: trustMs = schemaTrustMs } = ports
    this.#indexes = new IndexService({
      ...{ tables, clock, trustMs, sets },
      list: (prefix, after, limit, timeoutMs) =>
        ports.listGroups?.(prefix, after, limit, timeoutMs) ??
        replica.groups(prefix, after, limit, timeoutMs),
    })
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

  /** By far the most reads are of one cell by its name, current, and under a lease. */
  answerNow(operation: CellOperation): Answered | undefined {
    if (operation.kind !== 'get' || this.#isStopped) return undefined
    return getNow(this.#ports.replica, operation)
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
      case 'purge':
        return this.#purge(operation, call)
      case 'index':
        return this.#query(operation, call)
      case 'spread-indexes':
        return this.#indexes
          .spread(operation.datastore, deadlineMs)
          .then(() => ({ kind: 'spread-indexes' }))
      case 'drop-index':
        return this.#indexes
          .drop(operation, deadlineMs)
          .then((one) => ({ kind: 'drop-index', ...one }))
    }
  }

  async #purge(operation: PurgeCells, { deadlineMs, seen }: Call): Promise<Answer> {
    const { datastore, shard, kind, ...task } = operation
    const of = { datastore, shard }
    const tables = this.#shards.get(datastore, shard)
    const indexes = () => this.#indexesOver(datastore, task.column, deadlineMs)
    const ports = { tables, clock: this.#ports.clock, indexes }
    const { purged, next, position } = await purgePage(ports, { ...task, of, deadlineMs })
    seen.see(shard, position)
    seen.seeLeader(shard, this.#ports.replica.leaderElsewhere(tables.group))
    return next === undefined ? { kind, purged } : { kind, purged, next }
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
    const { creator } = item
    const task = { datastore, shard, name: item, body: checked.body, intent, creator, deadlineMs }
    const ports = {
      ...{ tables: this.#shards.get(datastore, shard), clock: this.#ports.clock },
      indexes: () => this.#indexesOver(datastore, item.column, deadlineMs),
    }
    const { written, group, position } = await putCell(ports, task)
    seen.see(shard, position)
    seen.seeLeader(shard, this.#ports.replica.leaderElsewhere(group))
    return written
  }

  async #get(operation: GetCells, call: Call): Promise<Answer> {
    const [only] = operation.items
    if (operation.items.length === 1 && only !== undefined) {
      return { kind: 'get', items: [await this.#getOnly(operation, only, call)] }
    }
    const found: Outcome<StoredCell | undefined>[] = []
    const shards = new Map<number, number[]>()
    for (const [place, item] of operation.items.entries()) {
      const refused = nameProblem(item)
      if (refused !== undefined) found[place] = { kind: 'problem', problem: refused }
      else add(shards, shardOf(item.rowKey), place)
    }
    // One moment for all of a shard.
    await mapBounded([...shards], batchConcurrencyMax, async ([shard, places]) => {
      const items = places.flatMap((place) => operation.items[place] ?? [])
      const outcomes = await this.#getOfShard(operation, shard, items, call)
      for (const [nth, place] of places.entries()) found[place] = outcomes[nth] ?? answerFull
    })
    return { kind: 'get', items: fitting(found) }
  }

  /** By far the most batches are of one. */
  #getOnly(
    operation: GetCells,
    item: GetItem,
    call: Call,
  ): Promise<Outcome<StoredCell | undefined>> {
    const refused = nameProblem(item)
    if (refused !== undefined) return Promise.resolve({ kind: 'problem', problem: refused })
    const shard = shardOf(item.rowKey)
    return outcomeOf(() => this.#read(operation, shard, call, (view) => getOne(view, item)))
  }

  /** What goes wrong does so for all of a shard's items: their names have been checked. */
  async #getOfShard(
    operation: GetCells,
    shard: number,
    items: readonly GetItem[],
    call: Call,
  ): Promise<readonly Outcome<StoredCell | undefined>[]> {
    const read = await outcomeOf(() =>
      this.#read(operation, shard, call, (view) =>
        mapBounded(items, batchConcurrencyMax, (item) => getOne(view, item)),
      ),
    )
    if (read.kind === 'problem') return items.map(() => read)
    return read.value.map((value) => ({ kind: 'ok', value }))
  }

  /** Reads a shard at one moment, and notes how far it had come. */
  async #read<Value>(
    { datastore, read }: { readonly datastore: string; readonly read: ReadFrom },
    shard: number,
    call: Call,
    work: (view: ShardView) => Promise<Value>,
  ): Promise<Value> {
    return (await this.#readAt({ datastore, read }, shard, call, work)).value
  }

  async #readAt<Value>(
    { datastore, read }: { readonly datastore: string; readonly read: ReadFrom },
    shard: number,
    call: Call,
    work: (view: ShardView) => Promise<Value>,
  ): Promise<{ readonly value: Value; readonly position: Position }> {
    const ports = { tables: this.#shards.get(datastore, shard), clock: this.#ports.clock }
    const of = { datastore, shard }
    const { value, view } = await readShard(ports, of, read, call.deadlineMs, work)
    call.seen.see(shard, view.position)
    return { value, position: view.position }
  }

  #indexesOver(
    datastore: string,
    column: string | undefined,
    deadlineMs: number,
  ): ReturnType<IndexService['over']> {
    const { hasIndexes, clock } = this.#ports
    const known = hasIndexes === false ? [] : this.#indexes.over(datastore, column)
    // One look is for all who wait, and has a time of its own.
    return known instanceof Promise ? untilDeadline(clock, known, deadlineMs) : known
  }

  async #query(operation: QueryIndex, call: Call): Promise<Answer> {
    const { datastore, name, read, columns } = operation
    const { definition } = await this.#indexes.toAsk(datastore, name)
    const leftMs = (): number => remainingOrTimeout(this.#ports.clock, call.deadlineMs)
    const level = read.level === 'any' ? 'snapshot' : 'current'
    const parts = { tables: this.#tables, definition, level, leftMs } as const
    const { entries, cursor } = await queryIndex(parts, operation)
    const budget = fullBudget()
    const withCells = async (entry: FoundEntry): Promise<IndexedCells> => {
      if (columns === undefined) return entry
      return { ...entry, cells: await this.#cellsOf(operation, entry.rowKey, columns, call) }
    }
    const found = await mapBounded(entries, batchConcurrencyMax, withCells)
    for (const { cells = [] } of found) {
      for (const { body } of cells) budget.bytesLeft -= body.length
    }
    if (budget.bytesLeft < 0)
      throw errorOf(
        problem(
          'too-large',
          'the cells of these rows do not fit one answer; ask for fewer entries',
        ),
      )
    const fields = definition.fields.map(({ field }) => field)
    const types = definition.fields.map(({ type }) => type)
    return { kind: 'index', fields, types, entries: found, ...(cursor !== undefined && { cursor }) }
  }

  #cellsOf(
    operation: QueryIndex,
    rowKey: string,
    columns: readonly string[] | 'all',
    call: Call,
  ): Promise<readonly StoredCell[]> {
    return this.#read(operation, shardOf(rowKey), call, async (view) => {
      if (columns === 'all') return (await rowOf(view, { rowKey, limit: pageItemsMax })).cells
      const cells = await mapBounded(columns, batchConcurrencyMax, (column) =>
        latestCell(view, { rowKey, column }),
      )
      return cells.flatMap((cell) => cell ?? [])
    })
  }

  async #row(operation: GetRow, call: Call): Promise<Answer> {
    const shard = shardOf(operation.rowKey)
    const page = await this.#read(operation, shard, call, (view) => rowOf(view, operation))
    return { kind: 'row', page }
  }

  async #versions(operation: GetVersions, call: Call): Promise<Answer> {
    const shard = shardOf(operation.rowKey)
    const page = await this.#read(operation, shard, call, (view) => versionsOf(view, operation))
    return { kind: 'versions', page }
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
      await this.#change(operation.datastore, reachedBy(pages), waitUntilMs)
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
    const budget = fullBudget()
    await mapBounded(open, batchConcurrencyMax, async ({ place, at }) => {
      pages[at] = await outcomeOf(() => this.#logPage(operation, place, budget, call))
    })
    return pages.map((page) => present(page, 'cells: each place has its page'))
  }

  async #logPage(
    operation: GetLog,
    place: LogPlace,
    budget: Budget,
    call: Call,
  ): Promise<StoredLogPage> {
    refuse(placeProblem(place))
    const { limit } = operation
    const { value, position } = await this.#readAt(operation, place.shard, call, (view) =>
      logPage(view, place, { limit, budget }),
    )
    return value.isWhole ? { ...value.page, asOf: position } : value.page
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
    const here = this.#ports.replica.positionHere(shardGroup(datastore, shard))
    if (here === undefined || here > asOf) return undefined
    return { kind: 'ok', value: { shard, cells: [], next: addedId, asOf } }
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
    const { replica } = this.#ports
    for (const [shard, position] of positions) {
      const group = shardGroup(datastore, shard)
      const here = replica.positionHere(group) ?? (await replica.read(group, 'any', 1)).position
      if (here > position) return true
    }
    return false
  }
}

function add(lists: Map<number, number[]>, key: number, value: number): void {
  const known = lists.get(key)
  if (known === undefined) lists.set(key, [value])
  else known.push(value)
}

async function getOne(view: ShardView, item: GetItem): Promise<StoredCell | undefined> {
  const { rowKey, column, refKey } = item
  if (refKey === undefined) return latestCell(view, { rowKey, column })
  const [found] = await getCells(view.rows, view.of, [{ rowKey, column, refKey }])
  return found?.cell
}

function refuse(refused: Problem | undefined): void {
  if (refused !== undefined) throw errorOf(refused)
}

function isUnknown(outcome: Outcome<Written>): boolean {
  return outcome.kind === 'problem' && outcome.problem.code === 'unknown-outcome'
}

/** Where to go on: a time, once looked up, is an added id. */
function placeAfter(page: Outcome<StoredLogPage>, place: LogPlace | undefined): LogPlace {
  if (page.kind === 'problem') return place ?? { kind: 'after', shard: 0, addedId: 0 }
  const { shard, next, asOf } = page.value
  const after = { kind: 'after', shard, addedId: next } as const
  return asOf === undefined ? after : { ...after, asOf }
}

/** How far shards had come in which there was nothing to be read. */
function reachedBy(pages: readonly Outcome<StoredLogPage>[]): ShardPosition[] {
  return pages.flatMap((page): ShardPosition[] =>
    page.kind === 'ok' && page.value.asOf !== undefined
      ? [[page.value.shard, page.value.asOf]]
      : [],
  )
}
