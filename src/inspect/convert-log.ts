/**
 * Converts the log of a stopped node from one kind of journal to the other. The new log is written beside the old one,
 * read back and compared with it, and only then takes its place (`../adapters/log-switch.ts`). The old log is only read.
 */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { journalKindOf, type JournalKind } from '../adapters/journal-kind.ts'
import { openLevelStore } from '../adapters/level-storage.ts'
import { convertingName, logName, settleSwitch, switchLogs } from '../adapters/log-switch.ts'
import { openSegmentFolder } from '../adapters/segment-folder.ts'
import { syncFolder } from '../adapters/sync-folder.ts'
import { systemRandom } from '../adapters/system-random.ts'
import { equalBytes } from '../base/bytes.ts'
import { StoreError } from '../base/errors.ts'
import { OrderedJournal } from '../journal/ordered-journal.ts'
import { openSegmentJournal } from '../journal/segment-journal.ts'
import type { Journal, JournalFlush, JournalRecord } from '../ports/journal.ts'
import type { LogView } from './segment-view.ts'
import { viewLog } from './stopped-node.ts'

export interface ConvertOptions {
  readonly to: JournalKind
  /** The conversion then ends with `closed`, and the log is as it was. */
  readonly isOver: () => boolean
  /** `bytes`: those that were read so far, in all passes. */
  readonly onProgress: (doing: string, bytes: number) => void
}

export interface Converted {
  /** Flush numbers; 0 and 0 of an empty log. */
  readonly first: number
  readonly last: number
  readonly flushes: number
  readonly records: number
  /** Of flushes. */
  readonly bytes: number
}

/** Flushes of one write, at most, and the bytes after which no more are added to it. */
const flushesAtOnce = 500
const bytesAtOnce: number = 1024 * 1024

/**
 * The caller holds the lock of the data folder. Gives the kind where the log is of the wanted one already, or `empty`.
 * Rejects with `corrupt` where the log is damaged or lacks flushes.
 */
export async function convertLog(
  folder: string,
  options: ConvertOptions,
): Promise<Converted | JournalKind | 'empty'> {
  await settleSwitch(folder)
  const from = await journalKindOf(join(folder, logName))
  if (from === 'empty' || from === options.to) return from
  const made = join(folder, convertingName)
  try {
    const converted = await new Conversion(join(folder, logName), made, options).run()
    await switchLogs(folder)
    return converted
  } catch (error) {
    await rm(made, { recursive: true, force: true })
    throw error
  }
}

class Conversion {
  readonly #from: string
  readonly #made: string
  readonly #options: ConvertOptions
  #bytes = 0

  constructor(from: string, made: string, options: ConvertOptions) {
    this.#from = from
    this.#made = made
    this.#options = options
  }

  async run(): Promise<Converted> {
    const old = await viewLog(this.#from, refuse)
    try {
      await this.#check(old, logName, refuse)
      const converted = await this.#copy(old)
      const view = await viewLog(this.#made, differ)
      try {
        await this.#check(view, convertingName, differ)
        await this.#compare(old, view)
      } finally {
        await view.close()
      }
      return converted
    } finally {
      await old.close()
    }
  }

  async #check(view: LogView, name: string, onDamage: (what: string) => never): Promise<void> {
    const before = this.#bytes
    await view.checkFiles({
      bytesPerSecond: () => Number.POSITIVE_INFINITY,
      isOver: this.#options.isOver,
      onProgress: (read) => {
        this.#bytes = before + read
        this.#options.onProgress(`the files of ${name}/`, this.#bytes)
      },
      onDamage,
    })
  }

  async #copy({ log }: LogView): Promise<Converted> {
    const target = await openNew(this.#made, this.#options.to)
    try {
      const counts = { first: 0, last: 0, flushes: 0, bytes: 0 }
      for await (const flushes of batchesOf(this.#told(log, 'copying'))) {
        counts.first ||= flushes[0]?.number ?? 0
        counts.last = flushes.at(-1)?.number ?? 0
        counts.flushes += flushes.length
        for (const { bytes } of flushes) counts.bytes += bytes.length
        await target.write({ flushes, records: [] })
      }
      const records = await recordsIn(log)
      await target.checkpoint(records)
      return { ...counts, records: records.length }
    } finally {
      await target.close()
      await syncFolder(this.#made)
    }
  }

  async #compare(old: LogView, view: LogView): Promise<void> {
    const made = this.#told(view.log, 'comparing')
    for await (const { number, bytes } of this.#told(old.log, 'comparing')) {
      const next = await made.next()
      const isSame = next.done !== true && next.value.number === number
      if (!isSame || !equalBytes(next.value.bytes, bytes)) differ(`flush ${number} is another one`)
    }
    if ((await made.next()).done !== true) differ('it has more flushes')
    const [before, now] = [await recordsIn(old.log), await recordsIn(view.log)]
    for (const { name, value } of before) {
      const found = now.find((one) => one.name === name)
      if (found === undefined || !equalBytes(found.value, value))
        differ(`record ${name} is another one`)
    }
    if (now.length !== before.length) differ('it has more records')
  }

  /** All flushes, in order and without a gap. */
  async *#told(log: LogView['log'], doing: string): AsyncGenerator<JournalFlush, undefined> {
    let last: number | undefined
    for await (const flushes of log.scan(0)) {
      for (const flush of flushes) {
        if (last !== undefined && flush.number !== last + 1) {
          refuse(`flush ${last + 1} is missing`)
        }
        last = flush.number
        this.#bytes += flush.bytes.length
        yield flush
      }
      if (this.#options.isOver()) throw new StoreError('closed', 'the conversion was ended')
      this.#options.onProgress(doing, this.#bytes)
    }
    return undefined
  }
}

function refuse(what: string): never {
  const message = `log/ is damaged, or incomplete (${what}), and was not converted; run trilithon store verify for all of it, and see "A damaged log" in operating.md`
  throw new StoreError('corrupt', message, { store: 'log' })
}

function differ(what: string): never {
  const message = `the disk gave back another log than the command wrote (${what}); the command removed that one, and the old log is unchanged: check this disk`
  throw new StoreError('corrupt', message, { store: 'log' })
}

async function openNew(path: string, kind: JournalKind): Promise<Journal> {
  if (kind === 'leveldb') return new OrderedJournal(await openLevelStore(path))
  return openSegmentJournal({ folder: await openSegmentFolder(path), random: systemRandom })
}

async function* batchesOf(
  flushes: AsyncIterable<JournalFlush>,
): AsyncGenerator<readonly JournalFlush[], undefined> {
  let [batch, bytes]: [JournalFlush[], number] = [[], 0]
  for await (const flush of flushes) {
    batch.push(flush)
    bytes += flush.bytes.length
    if (batch.length < flushesAtOnce && bytes < bytesAtOnce) continue
    yield batch
    ;[batch, bytes] = [[], 0]
  }
  if (batch.length > 0) yield batch
  return undefined
}

async function recordsIn(log: LogView['log']): Promise<readonly JournalRecord[]> {
  const names = await log.recordNames()
  return names.flatMap((name) => {
    const value = log.record(name)
    return value === undefined ? [] : [{ name, value }]
  })
}
