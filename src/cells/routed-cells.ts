/**
 * Cells of several replica sets as one service: each operation goes to the set that holds its shard,
 * a batch in parts. A caller need not know where a shard is.
 */
import { present } from '../base/assert.ts'
import { toProblem, type Outcome, type Problem } from '../base/problem.ts'
import { gone } from '../ports/pace.ts'
import {
  batchOfPart,
  logItems,
  mergeAnswers,
  readOutcomes,
  pick,
  splitBatch,
  type Batch,
  type Part,
} from './batch.ts'
import { isRowKey } from './cell.ts'
import { operationProblem } from './operation-check.ts'
import type {
  Answered,
  CallOptions,
  CellOperation,
  CellService,
  GetLog,
  LogPlace,
  StoredLogPage,
} from './operation.ts'
import { isShardOf, shardOf } from './shard.ts'

export interface RoutedCellsParts {
  /** By the numbers of their sets. */
  readonly services: readonly CellService[]
  /** One of them, which asks the others by itself for what is of indexes. */
  readonly own: CellService
  /** The set that holds a shard. */
  setOf(datastore: string, shard: number): number
}

/** The longest wait at a set in one request. A request whose caller has gone lasts no longer than that. */
const waitSliceMs = 2_000

/** Items of a batch, and the service of the set that holds them. */
type SetPart = Part<CellService>

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
        return this.#findRowService(datastore, operation.rowKey).execute(operation, options)
      case 'purge':
        return this.#findService(datastore, operation.shard).execute(operation, options)
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
    return this.#findRowService(operation.datastore, first?.rowKey ?? '').answerNow?.(operation)
  }

  #executeBatch(operation: Batch, options: CallOptions): Promise<Answered> {
    const [first, ...others] = this.#split(operation)
    if (first === undefined)
      return this.#findService(operation.datastore, 0).execute(operation, options)
    if (others.length === 0) return first.to.execute(operation, options)
    // Each set sees its own part alone, so limits of size and time are checked here, for the whole operation.
    const refused = operationProblem(operation)
    if (refused !== undefined) return Promise.resolve(refusal(refused))
    const parts = [first, ...others]
    if (operation.kind === 'log') return readLogs(operation, parts, options)
    return carryOut(operation, parts, options)
  }

  #findRowService(datastore: string, rowKey: string): CellService {
    return this.#findService(datastore, shardOfRow(datastore, rowKey))
  }

  /** Any set refuses a shard that is none. */
  #findService(datastore: string, shard: number): CellService {
    const { services, setOf } = this.#parts
    const set = setOf(datastore, isShardOf(datastore, shard) ? shard : 0)
    return present(services[set], 'cells: a shard is of one of the sets')
  }

  #split({ datastore, items }: Batch): readonly SetPart[] {
    return splitBatch<Batch['items'][number], CellService>(items, (item) =>
      this.#findService(
        datastore,
        'shard' in item ? item.shard : shardOfRow(datastore, item.rowKey),
      ),
    )
  }
}

function refusal(refused: Problem): Answered {
  return { answer: { kind: 'problem', problem: refused }, positions: [] }
}

function shardOfRow(datastore: string, rowKey: string): number {
  return isRowKey(rowKey) ? shardOf(datastore, rowKey) : 0
}

async function carryOut(
  operation: Batch,
  parts: readonly SetPart[],
  options: CallOptions,
): Promise<Answered> {
  const answers = await Promise.all(
    parts.map((part) => part.to.execute(batchOfPart(operation, part), pickOptions(options, part))),
  )
  return mergeAnswers(operation.kind, parts, answers)
}

/** The first look asks for what is there; then each set is waited for, and the first one ends it. */
async function readLogs(
  operation: GetLog,
  parts: readonly SetPart[],
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
    const first = await askFirst({ ...operation, items, waitMs }, parts, given)
    if (first === undefined) return refusal(nobody)
    const { part, one } = first
    const isOver = leftMs <= 0
    if (isOver || !isLogWithoutNews(one)) return over(looked, answer.items, part, one)
  }
}

/** Sends its part to each set at once, and gives the first answer. Undefined: the caller waits no longer. */
function askFirst(
  operation: GetLog,
  parts: readonly SetPart[],
  options: CallOptions,
): Promise<{ readonly part: SetPart; readonly one: Answered } | undefined> {
  return new Promise((resolve, reject) => {
    const forget = options.pace?.onGone(() => resolve(undefined))
    for (const part of parts) {
      part.to
        .execute(batchOfPart(operation, part), options)
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
  { places }: SetPart,
  { answer, positions }: Answered,
): Answered {
  const items = [...pages]
  const found = readOutcomes(answer, logItems, places.length)
  for (const [nth, page] of found.entries()) items[present(places[nth], noPlace)] = page
  return { answer: { kind: 'log', items }, positions: [...looked.positions, ...positions] }
}

function isNews(page: Outcome<StoredLogPage>): boolean {
  return page.kind === 'problem' || page.value.cells.length > 0
}

function pickOptions(options: CallOptions, { places }: SetPart): CallOptions {
  const { intents } = options
  if (intents === undefined) return options
  const sequences = pick(intents.sequences, places)
  return { ...options, intents: { ...intents, sequences } }
}

const nobody: Problem = toProblem(gone())
const noPlace = 'cells: an outcome is of a place'
