/**
 * The triggers' writes into the groups of shards and of their service, and the handlers' calls. It
 * sees transactions as they take effect, and trusts no belief of a worker.
 *
 * TRIG-1  An offset passes a cell only when a handler has ended well for it, or it is marked.
 * TRIG-2  After a drain every cell was handled, or is marked.
 * TRIG-3  A handler is called for a cell when all before it in the shard are done with.
 * TRIG-4  The generation of an offset never goes back, and under one it has one owner.
 * TRIG-5  An assignment gives a shard to one worker, under a generation that no other had it by.
 * TRIG-6  No trigger runs with more marked cells than its threshold.
 * TRIG-7  The count of marked cells is that of their rows, in the offset always, and in the service
 *         at the end.
 * TRIG-8  A shard is at work in one worker at a time, unless that was missed for a lease; there,
 *         one cell.
 */
import { latin1 } from '../../src/base/bytes.ts'
import { groupOfBytes } from '../../src/base/ids.ts'
import { fromLatin1 } from '../../src/base/bytes.ts'
import { cellVersion } from '../../src/cells/cell-table.ts'
import { compileSchema } from '../../src/tables/compile.ts'
import { groupContext, rootOfGroup, type GroupContext } from '../../src/tables/group-context.ts'
import { decodeRowKey } from '../../src/tables/row-key.ts'
import { decodeRow } from '../../src/tables/row-value.ts'
import type { LogModel, ModelEffect } from './log-model.ts'
import type { Referee } from './referee.ts'

type Fields = Readonly<Record<string, unknown>>

/** The known facts of a shard. */
interface ShardFacts {
  /** Cells of the trigger's column: added ids, rising. */
  readonly cells: number[]
  /** Since the last replay that went behind them. */
  readonly handled: Set<number>
  /** Those that were handled some time. */
  readonly called: Set<number>
  /** Counts replays. */
  replays: number
  readonly marked: Set<number>
  /** Those that were marked some time: a replay takes a mark away before who passed it knows. */
  readonly passed: Set<number>
  offset: Fields | undefined
}

interface Holder {
  readonly owner: string
  readonly generation: number
}

/** The caller of a handler. */
export interface Caller {
  readonly worker: string
  readonly generation: number
  isAlive(): boolean
  isOver: boolean
}

/** A call under way. */
export interface Called {
  /** It ends, or its time is over. */
  end(): void
  /** It ends well. */
  handled(): void
}

const schema = compileSchema(cellVersion)

export interface TriggerCheckerParts {
  readonly referee: Referee
  readonly model: LogModel
  readonly datastore: string
  readonly service: string
  readonly trigger: string
  readonly column: string
}

export class TriggerChecker {
  readonly #parts: TriggerCheckerParts
  readonly #shards = new Map<number, ShardFacts>()
  readonly #contexts = new Map<string, GroupContext | undefined>()
  readonly #holders = new Map<number, Holder>()
  /** By the names of cells. */
  readonly #addedIds = new Map<string, number>()
  readonly #atWork = new Map<number, readonly Caller[]>()
  /** Workers whose row was taken away, and the newest generation then. */
  readonly #missed = new Map<string, number>()
  #generation = 0
  /** Counters of the service. */
  toldMarked = 0
  /** Times that a replay went back, and that a shard was given on by one who gave it up. */
  replays = 0
  inOrder = 0
  /** Counts of calls and of marked cells: the coverage of a run. */
  calls = 0
  marks = 0

  constructor(parts: TriggerCheckerParts) {
    this.#parts = parts
  }

  /** Cells that are neither handled nor marked, in words. */
  get open(): readonly string[] {
    return [...this.#shards].flatMap(([shard, facts]) =>
      facts.cells.filter((id) => !isDone(facts, id)).map((id) => `${shard}/${id}`),
    )
  }

  /** Offsets that stand before a cell of their trigger, in words. */
  get behind(): readonly string[] {
    return [...this.#shards].flatMap(([shard, { cells, offset }]) => {
      const last = cells.at(-1)
      const after = readField(offset, 'after')
      return last === undefined || after >= last ? [] : [`${shard}: ${after} of ${last}`]
    })
  }

  get markedCount(): number {
    return [...this.#shards.values()].reduce((sum, { marked }) => sum + marked.size, 0)
  }

  onEffect({ group, transaction }: ModelEffect): void {
    const context = this.#findContext(group)
    if (context === undefined) return
    const rows = transaction.mutations.flatMap(({ key, slots }) => {
      // Entries of indexes have numbers in their keys; rows that matter here have none.
      if (slots?.some(({ at }) => at === 'key') === true) return []
      const found = decodeRowKey(context, key)
      if (found === undefined) return []
      const stored = this.#parts.model.of(group).rows.get(latin1(key))
      const row = stored && decodeRow(found.table, found.values, stored.value)
      return [{ table: found.table.name, key: zipFields(found.table.key, found.values), row }]
    })
    // The offset comes last: it may pass cells that its own transaction marks.
    for (const one of rows) if (one.table !== 'TriggerOffset') this.#onRow(one)
    for (const one of rows) if (one.table === 'TriggerOffset') this.#onOffset(one.key, one.row)
  }

  /** A handler is called. The call is over when `end` is called, or its process is gone. */
  onCalled(shard: number, addedId: number, by: Caller): Called {
    this.#onAtWork(shard, by)
    const facts = this.#of(shard)
    this.calls += 1
    const isPassed = (id: number): boolean => facts.called.has(id) || facts.passed.has(id)
    const left = facts.cells.find((id) => id < addedId && !isPassed(id))
    this.#check(
      left === undefined,
      'TRIG-3',
      'A handler is called for a cell while one before it is not done with.',
      { shard, addedId, left },
    )
    const { replays } = facts
    const end = (): void => void (by.isOver = true)
    return { end, handled: () => this.#onHandled(facts, addedId, replays) }
  }

  #onAtWork(shard: number, by: Caller): void {
    const before = (this.#atWork.get(shard) ?? []).filter((one) => !one.isOver && one.isAlive())
    const isMissed = ({ worker, generation }: Caller): boolean =>
      (this.#missed.get(worker) ?? -1) >= generation
    const other = isMissed(by) ? undefined : before.find((one) => !isMissed(one))
    this.#check(
      other === undefined,
      'TRIG-8',
      'A handler is called for a shard in which another call is under way.',
      { shard, by: by.worker, other: other?.worker, of: [by.generation, other?.generation] },
    )
    this.#atWork.set(shard, [...before, by])
  }

  /** A call ends well. A cell replayed meanwhile must be handled again. */
  #onHandled(facts: ShardFacts, addedId: number, replays: number): void {
    facts.called.add(addedId)
    if (facts.replays === replays) facts.handled.add(addedId)
  }

  /** Everything was to be handled by now. */
  onDrained(): void {
    const { open, behind } = this
    this.#check(open.length === 0, 'TRIG-2', 'A cell was not handled, and is not marked.', { open })
    const late = 'An offset is not where its trigger has come to.'
    this.#check(behind.length === 0, 'TRIG-2', late, { behind })
    const { markedCount: rows, toldMarked: told } = this
    const wrong = 'A service has been told of another number of marked cells than there are.'
    this.#check(told === rows, 'TRIG-7', wrong, { told, rows })
  }

  get isDrained(): boolean {
    return (
      this.open.length === 0 && this.behind.length === 0 && this.markedCount === this.toldMarked
    )
  }

  #onRow({ table, key, row }: { table: string; key: Fields; row: Fields | undefined }): void {
    switch (table) {
      case 'Cell':
        return this.#onCell(key, row)
      case 'MarkedCell':
        return this.#onMarked(key, row)
      case 'TriggerService':
        return this.#onService(key, row)
      case 'Trigger':
        return this.#onTrigger(key, row)
      case 'TriggerWorker':
        return this.#onWorker(key, row)
      default:
    }
  }

  #onCell(key: Fields, row: Fields | undefined): void {
    if (key['datastore'] !== this.#parts.datastore) return
    if (key['column'] !== this.#parts.column) return
    const name = JSON.stringify(key)
    const { cells } = this.#of(readField(key, 'shard'))
    if (row === undefined) return this.#onPurged(cells, name)
    const addedId = readField(row, 'added_id')
    this.#addedIds.set(name, addedId)
    if (!cells.includes(addedId)) cells.push(addedId)
  }

  /** A follower of the log that had not reached the cell never meets it. */
  #onPurged(cells: number[], name: string): void {
    const place = cells.indexOf(this.#addedIds.get(name) ?? -1)
    if (place >= 0) cells.splice(place, 1)
  }

  #isOwn(key: Fields): boolean {
    const { service, trigger } = this.#parts
    return key['service'] === service && key['trigger'] === trigger
  }

  #onMarked(key: Fields, row: Fields | undefined): void {
    if (!this.#isOwn(key)) return
    const { marked, passed } = this.#of(readField(key, 'shard'))
    const addedId = readField(key, 'added_id')
    if (row === undefined) return void marked.delete(addedId)
    if (!marked.has(addedId)) this.marks += 1
    marked.add(addedId)
    passed.add(addedId)
  }

  #onOffset(key: Fields, row: Fields | undefined): void {
    if (!this.#isOwn(key)) return
    const shard = readField(key, 'shard')
    const facts = this.#of(shard)
    const before = facts.offset
    facts.offset = row
    const after = readField(row, 'after')
    const isBack = after < readField(before, 'after')
    if (isBack && readField(row, 'revision') > readField(before, 'revision')) {
      facts.replays += 1
      for (const id of [...facts.handled]) if (id > after) facts.handled.delete(id)
      this.replays += 1
    }
    const marked = readField(row, 'marked')
    const count = 'The count of marked cells in an offset is not that of their rows.'
    const rows = facts.marked.size
    this.#check(marked === rows, 'TRIG-7', count, { shard, marked, rows })
    const passed = facts.cells.find((id) => id <= after && !isDone(facts, id))
    this.#check(
      passed === undefined,
      'TRIG-1',
      'An offset is behind a cell that was neither handled nor marked.',
      { shard, after, passed },
    )
    const [old, now] = [readField(before, 'generation'), readField(row, 'generation')]
    const isByHand = readField(row, 'revision') > readField(before, 'revision')
    const isGoingOn = after >= readField(before, 'after') || isByHand
    const isOwned = before === undefined || now > old || row?.['owner'] === before['owner']
    this.#check(
      now >= old && isOwned && isGoingOn,
      'TRIG-4',
      'An offset was changed by somebody who has not claimed it last.',
      { shard, before, row },
    )
  }

  #onService(key: Fields, row: Fields | undefined): void {
    if (key['service'] !== this.#parts.service) return
    for (const [first, last, owner, generation] of readRuns(row)) {
      for (let shard = first; shard <= last; shard++) {
        const before = this.#holders.get(shard)
        const isSame = before?.owner === owner && before.generation === generation
        const isNew = before === undefined || generation > before.generation
        this.#check(
          isSame || isNew,
          'TRIG-5',
          'A shard is given to a worker under a generation that has had an owner.',
          { shard, before, owner, generation },
        )
        if (!isSame && before !== undefined && !this.#missed.has(before.owner)) this.inOrder += 1
        this.#holders.set(shard, { owner, generation })
        this.#generation = Math.max(this.#generation, generation)
      }
    }
  }

  #onTrigger(key: Fields, row: Fields | undefined): void {
    if (!this.#isOwn(key) || row === undefined) return
    this.toldMarked = readField(row, 'marked')
    const over = readField(row, 'marked') - readField(row, 'forgiven')
    this.#check(
      row['state'] !== 'running' || over <= readField(row, 'marks_max'),
      'TRIG-6',
      'A trigger runs with more marked cells than its threshold.',
      row,
    )
  }

  /** A worker that is taken away was missed for a lease, or has left. */
  #onWorker(key: Fields, row: Fields | undefined): void {
    if (key['service'] !== this.#parts.service || row !== undefined) return
    this.#missed.set(String(key['worker']), this.#generation)
  }

  #findContext(group: string): GroupContext | undefined {
    if (this.#contexts.has(group)) return this.#contexts.get(group)
    const found = rootOfGroup(schema, groupOfBytes(fromLatin1(group)))
    const context =
      found && groupContext(schema, found.root, zipFields(found.root.key, found.values))
    this.#contexts.set(group, context)
    return context
  }

  #of(shard: number): ShardFacts {
    let facts = this.#shards.get(shard)
    if (facts === undefined) {
      facts = {
        cells: [],
        handled: new Set(),
        called: new Set(),
        replays: 0,
        marked: new Set(),
        passed: new Set(),
        offset: undefined,
      }
      this.#shards.set(shard, facts)
    }
    return facts
  }

  #check(holds: boolean, rule: string, sentence: string, detail: Fields): void {
    this.#parts.referee.check(holds, rule, sentence, () => detail)
  }
}

function isDone({ handled, marked }: ShardFacts, addedId: number): boolean {
  return handled.has(addedId) || marked.has(addedId)
}

function zipFields(
  parts: readonly { readonly name: string }[],
  values: readonly unknown[],
): Fields {
  return Object.fromEntries(parts.map(({ name }, place) => [name, values[place]]))
}

function readField(row: Fields | undefined, name: string): number {
  const value = row?.[name]
  return typeof value === 'number' ? value : 0
}

/** Runs of an assignment: first and last shard, their worker, and its generation. */
function readRuns(row: Fields | undefined): [number, number, string, number][] {
  const assignment = row?.['assignment']
  if (typeof assignment !== 'object' || assignment === null) return []
  const { workers, runs } = Object.fromEntries(Object.entries(assignment))
  if (!Array.isArray(workers) || !Array.isArray(runs)) return []
  return runs.map((run: unknown) => {
    const [first = 0, last = -1, owner = 0, generation = 0] = Array.isArray(run)
      ? run.map(Number)
      : []
    return [first, last, String(workers[owner]), generation]
  })
}
