/**
 * Cells over this node's replica: carries out operations on any shard, whichever node leads it. Everything it
 * waits for is the replica and the clock, so it runs in the simulator as it is.
 *
 * CELL-1 to CELL-8, IDX-7, see SPEC.md.
 */
import { assert } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import type { GroupId } from '../base/ids.ts'
import { toStoreError, captureOutcome, type Outcome, type Problem } from '../base/problem.ts'
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import type { LocalReplica } from '../group/replica-port.ts'
import { schemaTrustMs } from '../indexes/limits.ts'
import { takeNoteOff } from '../tables/notes.ts'
import type { GroupTables } from '../tables/tables.ts'
import type { GroupTransaction } from '../tables/types.ts'
import type { GroupPort } from '../group/group-port.ts'
import { intentsProblem, timeoutProblem, type Intents } from '../txn/intents.ts'
import { LocalGroups } from '../txn/local-groups.ts'
import { Sessions } from '../txn/session.ts'
import { untilDeadline } from '../time/moments.ts'
import { AnswerRoom, type AnswerShare } from './answer-room.ts'
import { checkBody } from './body.ts'
import {
  batchConcurrencyMax,
  cellExpiryBounds,
  cellReadWork,
  checkedBytesPerWork,
  putWork,
  shardReadWork,
} from './limits.ts'
import type { ExpiringCells } from './cell-expiry-worker.ts'
import { cellExpiryNote, openCellTables, placedCellTables, shardKey } from './cell-table.ts'
import { nameProblem, type StoredCell, type Written } from './cell.ts'
import { getNow } from './get-now.ts'
import { answerQuery, type IndexAnswerParts } from './index-answer.ts'
import type { ReplicaSets } from './index-copies.ts'
import { IndexService, type ColumnRules } from './index-service.ts'
import { getLiving } from './living.ts'
import { LogReader } from './log-reader.ts'
import { operationProblem } from './operation-check.ts'
import type {
  Answer,
  Answered,
  CallOptions,
  CellOperation,
  CellService,
  GetCells,
  GetItem,
  GetRow,
  GetVersions,
  PurgeCells,
  PutCells,
  PutItem,
} from './operation.ts'
import { mapPaced } from './pool.ts'
import { putCell } from './put.ts'
import { sweepShard } from './shard-expiry.ts'
import { purgeCell } from './cell-purge.ts'
import { purgePage } from './shard-purge.ts'
import { answerFull, latestCell, readRow, readVersions, type ShardView } from './shard-read.ts'
import { ShardReader, type Call } from './shard-reader.ts'
import { ByShard, isShardOf, shardOf } from './shard.ts'
import { ObservedPositions } from './observed-positions.ts'

/** The parts that cells are made of: a replica, time and chance. */
export interface CellPorts {
  readonly replica: LocalReplica
  /** Groups of all replica sets, for indexes; those of the replica, when it is absent. */
  readonly groups?: GroupPort
  readonly clock: Clock
  readonly random: Random
  /** The replica sets of those groups; one, when it is absent. */
  readonly sets?: ReplicaSets
  /** False: no program declares indexes over cells or TTLs of columns, and no put asks for them. */
  readonly hasIndexes?: boolean
  /** How long a node goes by definitions of indexes that it has read; `schemaTrustMs` when absent. */
  readonly indexTrustMs?: number
  /** Of a bug that one item of a batch met: it is answered with this. Absent: the whole operation throws it. */
  noteBug?(thrown: unknown): Problem
  /** Of each index whose stored definition cannot be read, once: its message names the index, and says what to do. */
  readonly onDamagedIndex?: ((error: StoreError) => void) | undefined
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
  readonly #indexes: IndexService
  readonly #reader: ShardReader
  readonly #logs: LogReader
  readonly #queries: IndexAnswerParts
  readonly #sessions: Sessions
  #isStopped = false

  constructor(ports: CellPorts) {
    this.#ports = ports
    const groups = ports.groups ?? new LocalGroups(ports.replica)
    const shared = { ...ports, intents: new Sessions(ports.clock, ports.random) }
    const tablesOf = placedCellTables(groups, shared)
    this.#shards = new ByShard((of) => tablesOf(of.datastore).of(shardKey(of)))
    const { clock, replica, sets, indexTrustMs: trustMs = schemaTrustMs } = ports
    this.#indexes = new IndexService({
      tables: openCellTables(groups, shared),
      tablesOf,
      clock,
      trustMs,
      sets,
      noteDamaged: (error) => ports.onDamagedIndex?.(error),
      list: (prefix, after, limit, timeoutMs) =>
        ports.listGroups?.(prefix, after, limit, timeoutMs) ??
        replica.groups(prefix, after, limit, timeoutMs),
    })
    const reader = new ShardReader(this.#shards, clock)
    this.#reader = reader
    this.#logs = new LogReader({ replica, clock, reader })
    this.#queries = { tablesOf, indexes: this.#indexes, clock, reader }
    this.#sessions = new Sessions(ports.clock, ports.random)
  }

  async execute(operation: CellOperation, options: CallOptions): Promise<Answered> {
    const seen = new ObservedPositions()
    const outcome = await captureOutcome(() => this.#execute(operation, options, seen))
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

  /** For the worker that removes expired cells (`cell-expiry-worker.ts`). */
  get expiring(): ExpiringCells {
    return {
      sweep: (of, now) => {
        const tables = this.#shards.get(of.datastore, of.shard)
        const { clock } = this.#ports
        const deadlineMs = clock.monotonicMs() + cellExpiryBounds.callMs
        const rules = () => this.#rulesOf(of.datastore, undefined, deadlineMs)
        return sweepShard({ tables, rules }, of, now)
      },
      takeNoteOff: async (of, putAt) => {
        const tables = this.#shards.get(of.datastore, of.shard)
        const take = (tx: GroupTransaction) => takeNoteOff(tx, cellExpiryNote, putAt)
        return (await tables.transaction(take, { timeoutMs: cellExpiryBounds.callMs })).value
      },
    }
  }

  /** Ends the calls that wait for new cells and takes no more calls. Calls at work come to their end. */
  stop(): void {
    this.#isStopped = true
    this.#logs.stop()
  }

  #execute(
    operation: CellOperation,
    options: CallOptions,
    seen: ObservedPositions,
  ): Promise<Answer> {
    if (this.#isStopped) throw new StoreError('closed', 'this node is stopping; ask another one')
    const refused = operationProblem(operation) ?? timeoutProblem(options.timeoutMs)
    if (refused !== undefined) throw toStoreError(refused)
    const deadlineMs = this.#ports.clock.monotonicMs() + options.timeoutMs
    const call: Call = { deadlineMs, seen, pace: options.pace }
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
        return this.#logs.read(operation, call)
      case 'purge':
        return this.#purge(operation, call)
      case 'index':
        return answerQuery(this.#queries, operation, call)
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
    const { datastore, shard, kind, cell, ...task } = operation
    const of = { datastore, shard }
    const tables = this.#shards.get(datastore, shard)
    const rules = () => this.#rulesOf(datastore, cell?.column ?? task.column, deadlineMs)
    const ports = { tables, clock: this.#ports.clock, rules }
    const { purged, next, position } =
      cell === undefined
        ? await purgePage(ports, { of, deadlineMs, ...task })
        : await purgeCell(ports, { of, deadlineMs, cell })
    seen.see(shard, position)
    seen.seeLeader(shard, this.#ports.replica.leaderElsewhere(tables.group))
    return next === undefined ? { kind, purged } : { kind, purged, next }
  }

  async #put(operation: PutCells, given: Intents | undefined, call: Call): Promise<Answer> {
    if (given !== undefined) {
      const wall = this.#ports.clock.wallMicros()
      const refused = intentsProblem(given, operation.items.length, wall)
      if (refused !== undefined) throw toStoreError(refused)
      return { kind: 'put', items: await this.#putAll(operation, given, call) }
    }
    const open = this.#sessions.openMany(operation.items.length)
    let isKnown = false
    try {
      const items = await this.#putAll(operation, open.intents(open.sequences), call)
      isKnown = !items.some(isUnknown)
      return { kind: 'put', items }
    } finally {
      // A caller that goes away leaves some of its puts under way.
      open.settle(isKnown)
    }
  }

  #putAll(operation: PutCells, intents: Intents, call: Call): Promise<Outcome<Written>[]> {
    const { pace } = call
    const computeCost = ({ body }: PutItem): number => putWork + body.length / checkedBytesPerWork
    const paid = { most: batchConcurrencyMax, pace, computeCost }
    return mapPaced(operation.items, paid, (item, i) =>
      this.#captureOutcome(() => this.#putOne(operation.datastore, item, intents, i, call)),
    )
  }

  /** Of one item, or of the items of one shard: a failure of theirs is no failure of the others. */
  async #captureOutcome<Value>(work: () => Promise<Value>): Promise<Outcome<Value>> {
    try {
      return await captureOutcome(work)
    } catch (error) {
      if (this.#ports.noteBug === undefined) throw error
      return { kind: 'problem', problem: this.#ports.noteBug(error) }
    }
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
    if (checked.kind === 'problem') throw toStoreError(checked.problem)
    const { session, sequences, floor, expiresAt } = intents
    const intent = { session, sequence: sequences[index] ?? 0, floor, expiresAt }
    const shard = shardOf(datastore, item.rowKey)
    assert(isShardOf(datastore, shard), 'CELL-9: a row is in a shard of its datastore')
    const { deadlineMs, seen } = call
    const { creator } = item
    const task = { datastore, shard, name: item, body: checked.body, intent, creator, deadlineMs }
    const ports = {
      tables: this.#shards.get(datastore, shard),
      clock: this.#ports.clock,
      rules: () => this.#rulesOf(datastore, item.column, deadlineMs),
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
      else add(shards, shardOf(operation.datastore, item.rowKey), place)
    }
    const { pace } = call
    const room = new AnswerRoom(pace)
    const paid = { most: batchConcurrencyMax, pace, computeCost: () => shardReadWork }
    // One moment for all of a shard.
    await mapPaced([...shards], paid, async ([shard, places]) => {
      const items = places.flatMap((place) => operation.items[place] ?? [])
      const outcomes = await this.#getOfShard(operation, shard, items, room, call)
      for (const [nth, place] of places.entries()) found[place] = outcomes[nth] ?? answerFull
    })
    return { kind: 'get', items: found }
  }

  /** By far the most batches are of one. */
  #getOnly(
    operation: GetCells,
    item: GetItem,
    call: Call,
  ): Promise<Outcome<StoredCell | undefined>> {
    const refused = nameProblem(item)
    if (refused !== undefined) return Promise.resolve({ kind: 'problem', problem: refused })
    const shard = shardOf(operation.datastore, item.rowKey)
    return captureOutcome(() =>
      this.#reader.read(operation, shard, call, (view) => getOne(view, item)),
    )
  }

  /** An error concerns all of a shard's items: their names have been checked. */
  async #getOfShard(
    operation: GetCells,
    shard: number,
    items: readonly GetItem[],
    room: AnswerRoom,
    call: Call,
  ): Promise<readonly Outcome<StoredCell | undefined>[]> {
    if (room.isFull) return items.map(() => answerFull)
    const paid = { most: batchConcurrencyMax, pace: call.pace, computeCost: () => cellReadWork }
    const read = await this.#captureOutcome(() =>
      this.#reader.read(operation, shard, call, (view) =>
        room.attempt((share) => mapPaced(items, paid, (item) => getFitting(view, item, share))),
      ),
    )
    return read.kind === 'problem' ? items.map(() => read) : read.value
  }

  #rulesOf(
    datastore: string,
    column: string | undefined,
    deadlineMs: number,
  ): ReturnType<IndexService['over']> {
    const { hasIndexes, clock } = this.#ports
    const known = hasIndexes === false ? noRules : this.#indexes.over(datastore, column)
    // One look is for all who wait, and has a time of its own.
    return known instanceof Promise ? untilDeadline(clock, known, deadlineMs) : known
  }

  async #row(operation: GetRow, call: Call): Promise<Answer> {
    const shard = shardOf(operation.datastore, operation.rowKey)
    const page = await this.#reader.read(operation, shard, call, (view) =>
      readRow(view, operation, new AnswerRoom(call.pace).share()),
    )
    return { kind: 'row', page }
  }

  async #versions(operation: GetVersions, call: Call): Promise<Answer> {
    const shard = shardOf(operation.datastore, operation.rowKey)
    const page = await this.#reader.read(operation, shard, call, (view) =>
      readVersions(view, operation, new AnswerRoom(call.pace)),
    )
    return { kind: 'versions', page }
  }
}

const noRules: ColumnRules = { indexes: [], ttl: undefined }

function add(lists: Map<number, number[]>, key: number, value: number): void {
  const known = lists.get(key)
  if (known === undefined) lists.set(key, [value])
  else known.push(value)
}

async function getOne(view: ShardView, item: GetItem): Promise<StoredCell | undefined> {
  const { rowKey, column, refKey } = item
  if (refKey === undefined) return latestCell(view, { rowKey, column })
  const [found] = await getLiving(view.rows, view.of, [{ rowKey, column, refKey }])
  return found?.cell
}

async function getFitting(
  view: ShardView,
  item: GetItem,
  share: AnswerShare,
): Promise<Outcome<StoredCell | undefined>> {
  const cell = await share.readOne(() => getOne(view, item))
  return cell === 'full' ? answerFull : { kind: 'ok', value: cell }
}

function refuse(refused: Problem | undefined): void {
  if (refused !== undefined) throw toStoreError(refused)
}

function isUnknown(outcome: Outcome<Written>): boolean {
  if (outcome.kind === 'ok') return false
  const { code } = outcome.problem
  return code === 'unknown-outcome' || code === 'internal'
}
