/**
 * Cells of several replica sets as one service: each operation goes to the set that holds its shard,
 * a batch in parts. Whoever asks need not know where a shard is.
 */
import { present, unreachable } from '../base/assert.ts'
import { problem, problemOf, type Outcome, type Problem } from '../base/problem.ts'
import { gone } from '../ports/pace.ts'
import { isRowKey, type ShardLeader, type StoredCell, type Written } from './cell.ts'
import { operationProblem } from './operation-check.ts'
import type {
  Answer,
  Answered,
  CallOptions,
  CellOperation,
  CellService,
  GetCells,
  GetLog,
  LogPlace,
  PutCells,
  StoredLogPage,
} from './operation.ts'
import { fittingPages } from './shard-log.ts'
import { fitting } from './shard-read.ts'
import { isShard, shardOf } from './shard.ts'

export interface RoutedCellsParts {
  /** By the numbers of their sets. */
  readonly services: readonly CellService[]
  /** One of them, which asks the others by itself for what is of indexes. */
  readonly own: CellService
  /** The set that holds a shard. */
  setOf(datastore: string, shard: number): number
}

type Batch = PutCells | GetCells | GetLog

/** Sets are waited for so long at a time: what nobody waits for any more goes on for no longer. */
const waitSliceMs = 2_000

/** What one set is asked of a batch: the items at these places. */
interface Part {
  readonly service: CellService
  readonly places: number[]
}

export class RoutedCells implements CellService {
  readonly #parts: RoutedCellsParts

  constructor(parts: RoutedCellsParts) {
    this.#parts = parts
  }

  execute(operation: CellOperation, options: CallOptions): Promise<Answered> {
    const { datastore } = operation
    switch (operation.kind) {
      case 'row':
      case 'versions':
        return this.#ofRow(datastore, operation.rowKey).execute(operation, options)
      case 'purge':
        return this.#serviceOf(datastore, operation.shard).execute(operation, options)
      case 'index':
      case 'spread-indexes':
      case 'drop-index':
        return this.#parts.own.execute(operation, options)
      default:
        return this.#executeBatch(operation, options)
    }
  }

  answerNow(operation: CellOperation): Answered | undefined {
    const [first] = operation.kind === 'get' ? operation.items : []
    if (operation.kind !== 'get' || operation.items.length !== 1) return undefined
    return this.#ofRow(operation.datastore, first?.rowKey ?? '').answerNow?.(operation)
  }

  #executeBatch(operation: Batch, options: CallOptions): Promise<Answered> {
    const [first, ...others] = this.#split(operation)
    if (first === undefined)
      return this.#serviceOf(operation.datastore, 0).execute(operation, options)
    if (others.length === 0) return first.service.execute(operation, options)
    // Each set sees its own part: what is too much, or waits for too long, is so as a whole.
    const refused = operationProblem(operation)
    if (refused !== undefined) return Promise.resolve(refusal(refused))
    const parts = [first, ...others]
    if (operation.kind === 'log') return readLogs(operation, parts, options)
    return carryOut(operation, parts, options)
  }

  #ofRow(datastore: string, rowKey: string): CellService {
    return this.#serviceOf(datastore, shardOfRow(rowKey))
  }

  /** What is no shard is refused wherever it is asked for. */
  #serviceOf(datastore: string, shard: number): CellService {
    const { services, setOf } = this.#parts
    const set = setOf(datastore, isShard(shard) ? shard : 0)
    return present(services[set], 'cells: a shard is of one of the sets')
  }

  #split(operation: Batch): Part[] {
    const parts = new Map<CellService, number[]>()
    for (const [place, item] of operation.items.entries()) {
      const shard = 'shard' in item ? item.shard : shardOfRow(item.rowKey)
      const service = this.#serviceOf(operation.datastore, shard)
      const places = parts.get(service)
      if (places === undefined) parts.set(service, [place])
      else places.push(place)
    }
    return [...parts].map(([service, places]) => ({ service, places }))
  }
}

function refusal(refused: Problem): Answered {
  return { answer: { kind: 'problem', problem: refused }, positions: [] }
}

function shardOfRow(rowKey: string): number {
  return isRowKey(rowKey) ? shardOf(rowKey) : 0
}

async function carryOut(
  operation: Batch,
  parts: readonly Part[],
  options: CallOptions,
): Promise<Answered> {
  const answers = await Promise.all(
    parts.map(({ service, places }) =>
      service.execute(partOf(operation, places), optionsOf(options, places)),
    ),
  )
  return merge(operation, parts, answers)
}

/** The first look asks for what is there; then each set is waited for, and the first one ends it. */
async function readLogs(
  operation: GetLog,
  parts: readonly Part[],
  options: CallOptions,
): Promise<Answered> {
  // A set that does not answer must not keep the others' cells back for as long as one may wait.
  const timeoutMs = Math.max(1, options.timeoutMs - operation.waitMs)
  const looked = await carryOut({ ...operation, waitMs: 0 }, parts, { ...options, timeoutMs })
  const { answer } = looked
  if (options.pace?.isGone === true) return refusal(nobody)
  if (operation.waitMs === 0 || answer.kind !== 'log' || answer.items.some(isNews)) return looked
  const items = answer.items.map((page, place) => {
    const known = present(operation.items[place], 'cells: a page is of a place')
    return page.kind === 'problem' ? known : afterPage(page.value)
  })
  for (let leftMs = operation.waitMs; ;) {
    const waitMs = Math.min(leftMs, waitSliceMs)
    leftMs -= waitMs
    const given = { ...options, timeoutMs: timeoutMs + waitMs }
    const first = await firstOf({ ...operation, items, waitMs }, parts, given)
    if (first === undefined) return refusal(nobody)
    const { part, one } = first
    const isOver = leftMs <= 0
    if (isOver || !isLogWithoutNews(one)) return over(looked, answer.items, part, one)
  }
}

/** What each set is asked at once, and the first one answers; undefined: nobody waits for that any more. */
function firstOf(
  operation: GetLog,
  parts: readonly Part[],
  options: CallOptions,
): Promise<{ readonly part: Part; readonly one: Answered } | undefined> {
  return new Promise((resolve, reject) => {
    const forget = options.pace?.onGone(() => resolve(undefined))
    for (const part of parts) {
      part.service
        .execute(partOf(operation, part.places), options)
        .then((one) => resolve({ part, one }), reject)
        .finally(() => forget?.())
    }
  })
}

function isLogWithoutNews({ answer }: Answered): boolean {
  return answer.kind === 'log' && !answer.items.some(isNews)
}

/** As of where the look found nothing: a shard that has not gone on since need not be read again. */
function afterPage({ shard, next, asOf }: StoredLogPage): LogPlace {
  const place = { kind: 'after', shard, addedId: next } as const
  return asOf === undefined ? place : { ...place, asOf }
}

/** The look, with what one part has found since in its places. */
function over(
  looked: Answered,
  pages: readonly Outcome<StoredLogPage>[],
  { places }: Part,
  { answer, positions }: Answered,
): Answered {
  const items = [...pages]
  for (const [nth, place] of places.entries()) items[place] = itemOf(answer, logItems, nth)
  return { answer: { kind: 'log', items }, positions: [...looked.positions, ...positions] }
}

function isNews(page: Outcome<StoredLogPage>): boolean {
  return page.kind === 'problem' || page.value.cells.length > 0
}

function partOf<Of extends Batch>(operation: Of, places: readonly number[]): Of {
  const items = places.map((place) => operation.items[place])
  return { ...operation, items }
}

function optionsOf(options: CallOptions, places: readonly number[]): CallOptions {
  const { intents } = options
  if (intents === undefined) return options
  const sequences = places.flatMap((place) => intents.sequences[place] ?? [])
  return { ...options, intents: { ...intents, sequences } }
}

function merge(operation: Batch, parts: readonly Part[], answers: readonly Answered[]): Answered {
  const positions = answers.flatMap((answered) => answered.positions)
  const leaders: readonly ShardLeader[] = answers.flatMap((answered) => answered.leaders ?? [])
  const answer = mergedAnswer(operation, parts, answers)
  return leaders.length === 0 ? { answer, positions } : { answer, positions, leaders }
}

function mergedAnswer(
  { kind }: Batch,
  parts: readonly Part[],
  answers: readonly Answered[],
): Answer {
  switch (kind) {
    case 'put':
      return { kind, items: gathered(parts, answers, putItems) }
    case 'get':
      return { kind, items: fitting(gathered(parts, answers, getItems)) }
    case 'log':
      return { kind, items: fittingPages(gathered(parts, answers, logItems)) }
    default:
      return unreachable(kind)
  }
}

/** Of an answer to one kind of batch, the outcomes. */
type ItemsOf<Value> = (answer: Answer) => readonly Outcome<Value>[] | undefined

const putItems: ItemsOf<Written> = (answer) => (answer.kind === 'put' ? answer.items : undefined)
const getItems: ItemsOf<StoredCell | undefined> = (answer) =>
  answer.kind === 'get' ? answer.items : undefined
const logItems: ItemsOf<StoredLogPage> = (answer) =>
  answer.kind === 'log' ? answer.items : undefined

function gathered<Value>(
  parts: readonly Part[],
  answers: readonly Answered[],
  itemsOf: ItemsOf<Value>,
): Outcome<Value>[] {
  const items: Outcome<Value>[] = []
  for (const [index, { places }] of parts.entries()) {
    const answered = present(answers[index], 'cells: each part is answered')
    for (const [nth, place] of places.entries())
      items[place] = itemOf(answered.answer, itemsOf, nth)
  }
  return items
}

/** A problem of the whole is one of each item. */
function itemOf<Value>(answer: Answer, itemsOf: ItemsOf<Value>, nth: number): Outcome<Value> {
  if (answer.kind === 'problem') return answer
  return itemsOf(answer)?.[nth] ?? lost
}

const nobody: Problem = problemOf(gone())

const lost: Outcome<never> = {
  kind: 'problem',
  problem: problem('corrupt', 'a node answered fewer items than it was asked for'),
}
