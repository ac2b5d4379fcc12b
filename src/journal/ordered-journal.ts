/**
 * A journal in an ordered store: LevelDB, or the simulator's disk. A flush is a value under an ascending key:
 * LevelDB's cost is by key, not by byte, and ascending keys cost half of random ones. Records stand under their
 * names.
 *
 * Flushes that are given up leave along with later writes, some with each: their deletion alone is worth no
 * sync. A crash brings none back that was deleted, and the owner gives up the others again.
 */
import { asBuffer, readCount, writeCount } from '../base/bytes.ts'
import { StoreError } from '../base/errors.ts'
import type {
  Journal,
  JournalFlush,
  JournalRecord,
  JournalWrite,
  LostWrites,
} from '../ports/journal.ts'
import type {
  CheckPace,
  JournalDamage,
  KeyValue,
  OrderedStore,
  Put,
  Range,
} from '../ports/storage.ts'

const flushPrefix = 'f'.charCodeAt(0)
const flushKeyBytes = 9
/** Flushes that one write deletes: few, so that no commit waits for them. */
const dropsPerWrite = 32
/** The same where they are to be erased: else they would outlast the time that erasing has. */
const erasedPerWrite = 4_096

/** The key of a flush. Keys of flushes ascend with their numbers. */
export function flushKey(number: number): Buffer {
  const key = Buffer.allocUnsafe(flushKeyBytes)
  key[0] = flushPrefix
  writeCount(key, number, 1)
  return key
}

/** The number in a flush's key; undefined for any other key. */
export function numberOfKey(key: Uint8Array): number | undefined {
  const isFlush = key.length === flushKeyBytes && key[0] === flushPrefix
  return isFlush ? readCount(asBuffer(key), 1) : undefined
}

/** The keys of all flushes from `number` on. */
export function flushesFrom(number: number): { readonly gte: Uint8Array; readonly lt: Uint8Array } {
  return { gte: flushKey(number), lt: Buffer.from([flushPrefix + 1]) }
}

/** The key of a record. */
export function recordKey(name: string): Buffer {
  return Buffer.from(name)
}

export class OrderedJournal implements Journal {
  readonly lost: LostWrites | undefined
  readonly #store: OrderedStore
  /** Flushes from `#dropFrom` on, below `#dropTo`, are to be deleted. */
  #dropFrom = 0
  #dropTo = 0
  #isErasing = false

  constructor(store: OrderedStore) {
    this.#store = store
    this.lost = store.damage && lostWrites(store, store.damage)
  }

  record(name: string): Uint8Array | undefined {
    return this.#store.getSync(recordKey(name))
  }

  async recordNames(): Promise<readonly string[]> {
    const names: string[] = []
    const { gte, lt } = flushesFrom(0)
    for (const range of [{ lt: gte }, { gte: lt }]) {
      for await (const rows of this.#store.scan(range)) {
        names.push(...rows.map(({ key }) => asBuffer(key).toString()))
      }
    }
    return names
  }

  read(number: number): Uint8Array | undefined {
    return this.#store.getSync(flushKey(number))
  }

  scan(number: number): AsyncIterable<readonly JournalFlush[]> {
    return new FlushScan(this.#store.scan(flushesFrom(number)))
  }

  async last(): Promise<number> {
    return (await this.#end({ ...flushesFrom(0), reverse: true })) ?? 0
  }

  async #end(range: Range): Promise<number | undefined> {
    for await (const rows of this.#store.scan({ ...range, limit: 1 }))
      return asFlush(rows[0])?.number
    return undefined
  }

  append(flush: JournalFlush, records: readonly JournalRecord[] = []): Promise<void> {
    return this.write({ flushes: [flush], records })
  }

  checkpoint(records: readonly JournalRecord[]): Promise<void> {
    return this.write({ flushes: [], records })
  }

  write(write: JournalWrite): Promise<void> {
    return this.#store.write([...this.#drops(), ...toPuts(write)])
  }

  async drop(first: number): Promise<void> {
    const isFirst = this.#dropTo === 0
    this.#dropTo = Math.max(this.#dropTo, first)
    if (!isFirst) return
    const oldest = await this.#end(flushesFrom(0))
    this.#dropFrom = oldest ?? this.#dropTo
  }

  async sizeOf(first: number, last: number): Promise<number> {
    const span = { gte: flushKey(first), lt: flushKey(last + 1) }
    if (this.#store.sizeOf !== undefined) return this.#store.sizeOf(span)
    let bytes = 0
    for await (const rows of this.#store.scan(span)) {
      for (const { value } of rows) bytes += value.length
    }
    return bytes
  }

  /** Deletions that go along with writes come first; what they leave in LevelDB's files goes then. */
  async erased(): Promise<boolean> {
    this.#isErasing = this.#dropFrom < this.#dropTo
    if (this.#isErasing) return false
    if (this.#store.erase === undefined) return true
    const { gte } = flushesFrom(0)
    return (await this.#store.erase([{ gte, lt: flushKey(this.#dropTo) }])) === undefined
  }

  #drops(): readonly Put[] {
    if (this.#dropFrom === 0) return []
    const puts: Put[] = []
    const dropsMax = this.#isErasing ? erasedPerWrite : dropsPerWrite
    while (this.#dropFrom < this.#dropTo && puts.length < dropsMax) {
      puts.push({ key: flushKey(this.#dropFrom) })
      this.#dropFrom += 1
    }
    return puts
  }

  async check(pace?: CheckPace): Promise<void> {
    await this.#store.check?.('all', pace)
  }

  close(): Promise<void> {
    return this.#store.close()
  }
}

function toPuts({ flushes, records }: JournalWrite): readonly Put[] {
  return [
    ...records.map(({ name, value }) => ({ key: recordKey(name), value })),
    ...flushes.map(({ number, bytes }) => ({ key: flushKey(number), value: bytes })),
  ]
}

function lostWrites(store: OrderedStore, { what, batches, done }: JournalDamage): LostWrites {
  return {
    what,
    writes: batches.flatMap(pickValues),
    async putBack(found) {
      await store.write(toPuts(found))
      await done()
    },
  }
}

/** The values of a write. It deletes flushes that were given up; any other deletion is none of this journal's. */
function pickValues(puts: readonly Put[] | undefined): (readonly Uint8Array[] | undefined)[] {
  if (puts === undefined) return [undefined]
  const values = puts.flatMap(({ value }) => (value === undefined ? [] : [value]))
  const isKnown = ({ key, value }: Put): boolean =>
    value !== undefined || numberOfKey(key) !== undefined
  return puts.every(isKnown) ? [values] : [values, undefined]
}

function asFlush(row: KeyValue | undefined): JournalFlush | undefined {
  if (row === undefined) return undefined
  const number = numberOfKey(row.key)
  if (number === undefined)
    throw new StoreError('corrupt', 'a key among the flushes is of no flush')
  return { number, bytes: row.value }
}

/** An object and not a generator: a generator adds its turns to each chunk. */
class FlushScan implements AsyncIterableIterator<readonly JournalFlush[]> {
  readonly #rows: AsyncIterator<readonly KeyValue[]>

  constructor(rows: AsyncIterable<readonly KeyValue[]>) {
    this.#rows = rows[Symbol.asyncIterator]()
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<readonly JournalFlush[], undefined>> {
    const { done, value } = await this.#rows.next()
    if (done === true) return { done: true, value: undefined }
    return { done: false, value: value.flatMap((row) => asFlush(row) ?? []) }
  }

  async return(): Promise<IteratorResult<readonly JournalFlush[], undefined>> {
    await this.#rows.return?.()
    return { done: true, value: undefined }
  }
}
