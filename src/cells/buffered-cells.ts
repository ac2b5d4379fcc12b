/**
 * Buffered writes: a put whose shard's replica set does not answer goes into buffers on other sets. There
 * it is durable, not readable yet, and on its way to the shard (`buffer-drain.ts`).
 *
 * BUF-1  A node answers `buffered` only when every copy is committed in its group.
 */
import { assert } from '../base/assert.ts'
import { retryByCode, type StoreErrorCode } from '../base/errors.ts'
import type { GroupId } from '../base/ids.ts'
import { captureOutcome, problem, type Outcome } from '../base/problem.ts'
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import type { GroupPort } from '../group/group-port.ts'
import { runTransaction } from '../txn/run.ts'
import type { IntentSource } from '../txn/session.ts'
import { remainingMs } from '../time/moments.ts'
import { readOutcomes, pick, putItems, splitBatch } from './batch.ts'
import { checkBody } from './body.ts'
import { bufferedPartBytesMax } from './limits.ts'
import { nameProblem, type ShardName, type Written } from './cell.ts'
import { hashCreator } from './cell-table.ts'
import { bufferGroup, bufferKey, bufferTopic, encodeBuffered } from './buffer-rows.ts'
import type {
  Answered,
  CallOptions,
  CellOperation,
  CellService,
  PutCells,
  PutItem,
} from './operation.ts'
import { shardGroup, shardOf } from './shard.ts'

export interface BufferedCellsParts {
  /** Of all sets, without buffers. */
  readonly cells: CellService
  /** Groups of all sets. */
  readonly groups: GroupPort
  readonly clock: Clock
  readonly random: Random
  readonly intents: IntentSource
  readonly setCount: number
  setOf(group: GroupId): number
  /** The sets that may hold a group of the same place: a copy leaves no region that its datastore is in. */
  setsAlong(group: GroupId): readonly number[]
  /** Other sets that each take a copy. */
  readonly copies: number
  /** Cells were buffered. */
  onBuffered(count: number): void
}

/** The part of a put's time that the shard's own set has; the rest is for the buffer. */
const homeShare = 0.55

/** The codes with which a call ends at a set that lost its majority, or that cannot be reached. */
const isSilence: ReadonlySet<StoreErrorCode> = new Set<StoreErrorCode>([
  ...(['unavailable', 'unknown-outcome', 'timeout'] as const),
])

export class BufferedCells implements CellService {
  readonly #parts: BufferedCellsParts

  constructor(parts: BufferedCellsParts) {
    assert(parts.copies >= 1 && parts.copies < parts.setCount, 'BUF-1: copies go to other sets')
    this.#parts = parts
  }

  async execute(operation: CellOperation, options: CallOptions): Promise<Answered> {
    const { cells, clock } = this.#parts
    if (operation.kind !== 'put' || operation.isDirect) return cells.execute(operation, options)
    const deadlineMs = clock.monotonicMs() + options.timeoutMs
    const homeMs = Math.max(1, Math.floor(options.timeoutMs * homeShare))
    const { kind, datastore } = operation
    const direct = { kind, datastore, items: operation.items, isDirect: true } as const
    const answered = await cells.execute(direct, { ...options, timeoutMs: homeMs })
    const { answer } = answered
    if (answer.kind === 'problem' && !isSilence.has(answer.problem.code)) return answered
    if (answer.kind !== 'put' && answer.kind !== 'problem') return answered
    const atHome = readOutcomes(answer, putItems, operation.items.length)
    const items = await this.#bufferSilent(withCreators(operation, options), atHome, deadlineMs)
    return { ...answered, answer: { kind: 'put', items } }
  }

  answerNow(operation: CellOperation): Answered | undefined {
    return this.#parts.cells.answerNow?.(operation)
  }

  async #bufferSilent(
    { datastore, items }: PutCells,
    atHome: readonly Outcome<Written>[],
    deadlineMs: number,
  ): Promise<readonly Outcome<Written>[]> {
    const outcomes = [...atHome]
    const parts = splitBatch(
      items,
      (item, place) => silentShard(datastore, item, atHome[place]),
      partLimit,
    )
    await Promise.all(
      parts.map(async ({ to: shard, places }) => {
        const outcome = await this.#buffer({ datastore, shard }, pick(items, places), deadlineMs)
        if (outcome !== undefined) for (const place of places) outcomes[place] = outcome
      }),
    )
    return outcomes
  }

  /** Undefined when there is surely no copy: the caller then gets the outcome of the shard's own set. */
  async #buffer(
    of: ShardName,
    items: readonly PutItem[],
    deadlineMs: number,
  ): Promise<Outcome<Written> | undefined> {
    const { setOf, clock, onBuffered } = this.#parts
    const rows = encodeRows(items, clock.wallMicros())
    const sets = this.#otherSets(shardGroup(of.datastore, of.shard))
    if (rows === undefined || sets.length === 0) return undefined
    const groups = sets.map((set) => bufferGroup(of, set, setOf))
    const written = await Promise.all(groups.map((group) => this.#write(group, rows, deadlineMs)))
    if (written.every((one) => one === 'no')) return undefined
    // One copy, certain or not, may bring the cell into its shard: no caller may hear that it failed.
    if (!written.every((one) => one === 'yes')) return unknownOutcome
    onBuffered(items.length)
    return { kind: 'ok', value: { shard: of.shard, buffered: true } }
  }

  /** The sets for the copies: those behind the shard's own one, in turn. */
  #otherSets(shard: GroupId): readonly number[] {
    const { setOf, setsAlong, copies } = this.#parts
    const [home, sets] = [setOf(shard), setsAlong(shard)]
    const at = sets.indexOf(home)
    return [...sets.slice(at + 1), ...sets.slice(0, at)].slice(0, copies)
  }

  async #write(
    group: GroupId,
    rows: readonly (readonly [key: Uint8Array, value: Uint8Array])[],
    deadlineMs: number,
  ): Promise<'yes' | 'no' | 'perhaps'> {
    const { groups, clock, random, intents } = this.#parts
    const timeoutMs = Math.max(1, remainingMs(clock, deadlineMs))
    const outcome = await captureOutcome(() =>
      runTransaction(groups, group, { clock, random, intents, timeoutMs }, async (tx) => {
        for (const [key, value] of rows) tx.put(key, value)
      }),
    )
    if (outcome.kind === 'ok') return 'yes'
    return retryByCode[outcome.problem.code] === 'check-first' ? 'perhaps' : 'no'
  }
}

/** Names the creator, so that a caller that tries again learns that its own put took effect. */
function withCreators(operation: PutCells, { intents }: CallOptions): PutCells {
  if (intents === undefined) return operation
  const { session, sequences } = intents
  const items = operation.items.map((item, place): PutItem => {
    const sequence = sequences[place]
    if (sequence === undefined) return item
    const { rowKey, column, refKey, body } = item
    return { rowKey, column, refKey, body, creator: hashCreator({ session, sequence }) }
  })
  return { ...operation, items }
}

/** The shard of a cell whose set is silent; undefined where that set has answered. */
function silentShard(
  datastore: string,
  item: PutItem,
  atHome: Outcome<Written> | undefined,
): number | undefined {
  const isSilent = atHome?.kind === 'problem' && isSilence.has(atHome.problem.code)
  return isSilent && nameProblem(item) === undefined ? shardOf(datastore, item.rowKey) : undefined
}

/** A part fits one transaction. */
const partLimit = {
  sizeInBytes: ({ body }: PutItem): number => body.length,
  bytesMax: bufferedPartBytesMax,
}

/** Undefined when a body is none: nothing that its shard would refuse is taken in knowingly. */
function encodeRows(
  items: readonly PutItem[],
  bufferedAt: number,
): (readonly [key: Uint8Array, value: Uint8Array])[] | undefined {
  const rows: (readonly [Uint8Array, Uint8Array])[] = []
  for (const item of items) {
    const checked = checkBody(item.body)
    if (checked.kind === 'problem') return undefined
    const key = bufferKey(bufferTopic, item, checked.body.hash)
    const { creator } = item
    rows.push([key, encodeBuffered({ body: checked.body.bytes, bufferedAt, creator })])
  }
  return rows
}

const unknownOutcome: Outcome<Written> = {
  kind: 'problem',
  problem: problem(
    'unknown-outcome',
    'it is not known whether the cell was taken into a buffer; read it later, or put it again',
  ),
}
