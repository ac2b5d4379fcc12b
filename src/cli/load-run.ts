/**
 * Loads a file's rows: bounded batches in flight, every row accounted for. The sink recognises a row that is
 * there already, so a user continues an interrupted load by running it again.
 */
import { DamagedFile, gunzipSound, readChunks, splitLines, type Line } from './load-lines.ts'
import type { StoreError } from '../base/errors.ts'
import type { Json } from '../cells/body.ts'
import { CsvRows, type Blank } from './load-csv.ts'
import { textOnly } from './load-form.ts'
import { JsonlRows } from './load-jsonl.ts'
import type { Row, RowFormat, RowParser } from './load-rows.ts'

/** The outcome of a row; same order as they were put. */
export type PutAnswer =
  | { readonly kind: 'created' }
  | { readonly kind: 'changed' }
  | { readonly kind: 'already-there' }
  /** Durable, and on its way to its shard. */
  | { readonly kind: 'buffered' }
  | { readonly kind: 'rejected'; readonly reason: string }
  /** No node could take it, or say whether it was taken: ends the load. */
  | { readonly kind: 'failed'; readonly error: StoreError }

/** Where rows go: a client, or a map in tests. A rejection of the promise ends the load. */
export interface Sink<Item> {
  put(items: readonly Item[]): Promise<readonly PutAnswer[]>
}

/** The item that a row of the file is put as, or why it cannot be. */
export type ItemResult<Item> =
  { readonly ok: true; readonly item: Item } | { readonly ok: false; readonly reason: string }

export interface Rejection {
  readonly line: number
  readonly reason: string
}

/** How a file is read. */
export interface RowFile {
  readonly path: string
  readonly format: RowFormat
  readonly isGzip: boolean
  /** The value of a blank field of a CSV that is not quoted. */
  readonly blank: Blank
  /** A CSV of one column, whose name may have separators in it. */
  readonly isOneColumn?: boolean
}

export interface LoadOptions extends RowFile {
  readonly batchRows: number
  readonly batchesInFlight: number
  /** Fires to stop after what is in flight. */
  readonly signal: AbortSignal
  readonly onProgress: (progress: LoadProgress) => void
  readonly onRejection: (rejection: Rejection) => void
  readonly monotonicMs: () => number
}

export interface LoadProgress {
  readonly bytesRead: number
  readonly rowsDone: number
}

export interface LoadReport {
  /** Lines that hold something: the sum of the five below, when the load came to its end. */
  readonly rows: number
  readonly created: number
  readonly changed: number
  readonly alreadyThere: number
  readonly buffered: number
  readonly rejected: number
  readonly blankLines: number
  readonly seconds: number
  readonly rowsPerSecond: number
  /** Why the load ended before the end of the file. */
  readonly stopped?: Stopped
}

export type Stopped =
  /** All rows up to `lastLine` were dealt with. */
  | { readonly kind: 'interrupted'; readonly lastLine: number }
  /** All rows that are whole before the damage were dealt with, the last one at `lastLine`. */
  | { readonly kind: 'damaged'; readonly reason: string; readonly lastLine: number }
  | { readonly kind: 'failed'; readonly error: unknown }

/** A batch also ends when its rows make up this many characters, well under a frame. */
const batchCharsMax: number = 1024 * 1024

const countOf = {
  created: 'created',
  changed: 'changed',
  'already-there': 'alreadyThere',
  buffered: 'buffered',
} as const

/** Rejects when the file cannot be opened or has no usable header; else reports, however it ended. */
export async function loadRows<Item>(
  options: LoadOptions,
  toItem: (body: Json, line: number) => ItemResult<Item>,
  sink: Sink<Item>,
): Promise<LoadReport> {
  const startedMs = options.monotonicMs()
  const counts = {
    rows: 0,
    created: 0,
    changed: 0,
    alreadyThere: 0,
    buffered: 0,
    rejected: 0,
    blankLines: 0,
  }
  const state = { bytesRead: 0, lastLine: 0 }
  const progress = (): void =>
    options.onProgress({
      bytesRead: state.bytesRead,
      rowsDone: countDone(counts),
    })
  const reject = (line: number, reason: string): void => {
    counts.rejected += 1
    options.onRejection({ line, reason })
  }
  const batches = batchSender<Item>(options, async (batch) => {
    const answers = await sink.put(batch.map(({ item }) => item))
    let failure: Error | undefined
    for (const [i, { line }] of batch.entries()) {
      const answer = answers[i]
      if (answer === undefined) reject(line, 'the answer says nothing of it')
      else if (answer.kind === 'failed') failure ??= answer.error
      else if (answer.kind === 'rejected') reject(line, answer.reason)
      else counts[countOf[answer.kind]] += 1
    }
    if (failure !== undefined) throw failure
    progress()
  })

  async function takeRow(row: Row): Promise<void> {
    state.lastLine = row.line
    if (row.kind === 'blank') {
      counts.blankLines += 1
      return
    }
    counts.rows += 1
    if (row.kind === 'rejected') return reject(row.line, row.reason)
    const result = toItem(row.body, row.line)
    if (!result.ok) return reject(row.line, result.reason)
    return batches.add({ line: row.line, item: result.item }, row.chars)
  }

  const stopped = await readAll(options, state, takeRow, batches)
  const seconds = (options.monotonicMs() - startedMs) / 1000
  const done = countDone(counts)
  progress()
  const rowsPerSecond = seconds > 0 ? done / seconds : 0
  return { ...counts, seconds, rowsPerSecond, ...(stopped && { stopped }) }
}

/** Reads to the end, or to what stops it; everything taken has been answered when it resolves. */
async function readAll<Item>(
  options: LoadOptions,
  state: { bytesRead: number; lastLine: number },
  takeRow: (row: Row) => Promise<void>,
  batches: BatchSender<Item>,
): Promise<Stopped | undefined> {
  const parser = makeParser(options)
  const file = readChunks(options.path, (bytes) => (state.bytesRead = bytes))
  const lines = splitLines(textOnly(options.isGzip ? gunzipSound(options.path, file) : file))
  let stopped = await forEachLine(lines, async (line) => {
    for (const row of parser.push(line)) await takeRow(row)
    return options.signal.aborted || batches.failure() !== undefined
  })
  const isInterrupted = stopped === undefined && options.signal.aborted
  const hasFailed = batches.failure() !== undefined
  // Half a record may be open at the damage or interruption; it is not a row of the file then.
  if (stopped === undefined && !isInterrupted && !hasFailed) {
    for (const row of parser.end()) await takeRow(row)
  }
  await batches.finish()
  const failure = batches.failure()
  if (failure !== undefined) return { kind: 'failed', error: failure.error }
  if (isInterrupted) return { kind: 'interrupted', lastLine: state.lastLine }
  if (stopped !== undefined) stopped = { ...stopped, lastLine: state.lastLine }
  return stopped
}

export function makeParser({ format, blank, isOneColumn }: RowFile): RowParser {
  return format === 'csv' ? new CsvRows(blank, isOneColumn) : new JsonlRows()
}

type Damage = Stopped & { readonly kind: 'damaged' }

/** Calls `take` for each line until it says to stop; damage of the file is a value, not a throw. */
async function forEachLine(
  lines: AsyncIterable<readonly Line[]>,
  take: (line: Line) => Promise<boolean>,
): Promise<Damage | undefined> {
  try {
    for await (const some of lines) {
      for (const line of some) if (await take(line)) return undefined
    }
    return undefined
  } catch (error) {
    if (!(error instanceof DamagedFile)) throw error
    return { kind: 'damaged', reason: error.message, lastLine: 0 }
  }
}

type Counts = Pick<LoadReport, 'created' | 'changed' | 'alreadyThere' | 'buffered' | 'rejected'>

function countDone({ created, changed, alreadyThere, buffered, rejected }: Counts): number {
  return created + changed + alreadyThere + buffered + rejected
}

interface Pending<Item> {
  readonly line: number
  readonly item: Item
}

interface BatchSender<Item> {
  /** Resolves when there is room for more. */
  add(pending: Pending<Item>, chars: number): Promise<void>
  /** Resolves when all that was added is answered, or the sender has failed. */
  finish(): Promise<void>
  /** The first failed batch's reason; nothing more is sent after it. */
  failure(): { readonly error: unknown } | undefined
}

function batchSender<Item>(
  options: Pick<LoadOptions, 'batchRows' | 'batchesInFlight'>,
  send: (batch: readonly Pending<Item>[]) => Promise<void>,
): BatchSender<Item> {
  const inFlight = new Set<Promise<void>>()
  let batch: Pending<Item>[] = []
  let batchChars = 0
  let failed: { readonly error: unknown } | undefined

  async function flush(): Promise<void> {
    const sending = batch
    batch = []
    batchChars = 0
    if (sending.length === 0 || failed !== undefined) return
    while (inFlight.size >= options.batchesInFlight) await Promise.race(inFlight)
    const sent = send(sending)
      .catch((error: unknown) => {
        failed ??= { error }
      })
      .finally(() => inFlight.delete(sent))
    inFlight.add(sent)
  }
  return {
    add: async (pending, chars) => {
      batch.push(pending)
      batchChars += chars
      if (batch.length >= options.batchRows || batchChars >= batchCharsMax) await flush()
    },
    finish: async () => {
      await flush()
      await Promise.all(inFlight)
    },
    failure: () => failed,
  }
}
