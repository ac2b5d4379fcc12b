/**
 * The simulated disk: an ordered store with a *durable image* and a pending write, held to the same
 * contract as LevelDB. A process sees its pending write at once, or from some read on; a crash decides
 * whether the disk does. The owner of the disk orders its faults; nothing here draws a number.
 */
import { assert } from '../../src/base/assert.ts'
import { compareText, fromLatin1, latin1 } from '../../src/base/bytes.ts'
import { StoreError } from '../../src/base/errors.ts'
import type {
  CheckPace,
  JournalDamage,
  KeySpan,
  KeyValue,
  OrderedStore,
  Put,
  Range,
} from '../../src/ports/storage.ts'
import { DiskJournal, type JournalRot } from './disk-journal.ts'
import { isWithin, textRange } from './key-ranges.ts'
import { keptPut, shortened, type KeptPut } from './kept-put.ts'
import { OrderedMap, type KeyRange } from './ordered-map.ts'
import { Remains, type Remainder } from './remains.ts'
import type { Work } from './turn-costs.ts'

/** Few, so that much happens between the chunks of a scan. */
const scanChunkRows = 8

/** The fate of the pending write when its process dies. `puts`: this many of its puts survive. */
export type Fate =
  | { readonly kind: 'lost' }
  | { readonly kind: 'kept' }
  /** The front of its last value, in parts per million; the disk knows of no checksum. */
  | { readonly kind: 'cut-short'; readonly kept: number }
  /** A torn batch: real LevelDB never does this, a mode for those who want to see it caught. */
  | { readonly kind: 'torn'; readonly puts: number }

export type WriteFault = 'none' | 'fsync-error' | 'no-space'

/** Damage that a check has reported: when, and the keys that were damaged then. */
export interface ToldDamage {
  readonly atMicros: number
  readonly keys: readonly Uint8Array[]
}

/** An image of a disk, to be put back later: a restored machine, a swapped disk. */
export type DiskImage = ReadonlyMap<string, Uint8Array>

export interface DiskOptions {
  /**
   * Runs `complete` when the disk has done its write: at once or much later, as the owner likes.
   */
  readonly schedule: (complete: () => void) => void
  /**
   * Whether a read sees the pending write that no read has seen yet; from then on all do. Absent: it does.
   */
  readonly showsPending?: () => boolean
  /** Resolves when the next rows of a scan are at hand; undefined: they are. Absent: always. */
  readonly waitToRead?: () => Promise<void> | undefined
  /** Resolves when a check at leisure has read all that it is to read. Absent: at once. */
  readonly waitToScrub?: () => Promise<void> | undefined
  /** The world's time, which `ToldDamage` records. Absent: it records 0. */
  readonly nowMicros?: () => number
  /** Told of what is read and written, as it is given to the process and taken from it. */
  readonly onWork?: (work: Work, count: number, bytes: number) => void
  /**
   * Called for every write that has become durable, in order, with what is on the disk of it.
   * `isWhole`: that is what was written; else a crash cut a value short.
   */
  readonly onDurable?: (puts: readonly Put[], isWhole: boolean) => void
  /** The last batches are kept as a journal, which may rot. */
  readonly keepsJournal?: boolean
  /** Bytes of rows that were overwritten or deleted stay until they are erased. */
  readonly keepsRemains?: boolean
}

interface PendingWrite {
  readonly puts: readonly KeptPut[]
  readonly resolve: () => void
  readonly reject: (error: Error) => void
}

type Doubtful = Pick<PendingWrite, 'puts'>

/** The disk itself, which outlives its processes. That of a log is a `LogDisk`. */
export class SimDisk {
  /** It may show the front of a value. */
  readonly hidesTornWrites = false
  readonly #options: DiskOptions
  readonly #durable = new OrderedMap<Uint8Array>()
  readonly #journal: DiskJournal | undefined
  /** As it was when its journal rotted. */
  #undamaged: DiskImage | undefined
  /** The next write puts the damaged values back. */
  #isMending = false
  #open: OpenDisk | undefined
  #nextFault: WriteFault = 'none'
  /** Keys whose rows the disk hides, or gives damaged, without an error. */
  readonly #hurt = new Set<string>()
  #hurtAtOpen: readonly string[] = []
  /** A check has told its process of damage, and the disk is still the same. */
  hasToldDamage = false
  readonly #remains: Remains
  /** The fault that every write meets. */
  #standingFault: WriteFault = 'none'

  constructor(options: DiskOptions) {
    this.#options = options
    this.#remains = new Remains(options.keepsRemains === true, () => options.nowMicros?.() ?? 0)
    if (options.keepsJournal === true) this.#journal = new DiskJournal(this.#durable)
  }

  /** The store as a process that starts now finds it. */
  open(): OrderedStore {
    assert(this.#open === undefined, 'disk: opened by two processes')
    const damage = this.#journal?.open()
    this.#isMending = damage !== undefined
    this.#open = new OpenDisk(this, damage)
    this.#hurtAtOpen = [...this.#hurt]
    return this.#open
  }

  /** The damage that a check has told the present process of first. */
  get told(): ToldDamage | undefined {
    return this.#open?.told
  }

  toldNow(): ToldDamage {
    return { atMicros: this.#options.nowMicros?.() ?? 0, keys: [...this.#hurt].map(fromLatin1) }
  }

  isHurt(key: Uint8Array): boolean {
    return this.#hurt.has(latin1(key))
  }

  get isOpen(): boolean {
    return this.#open !== undefined
  }

  /** Whether there is a write that a crash could lose: under way, or with a failed fsync. */
  get hasPending(): boolean {
    return this.#inDoubt !== undefined
  }

  get #inDoubt(): Doubtful | undefined {
    return this.#open?.pending ?? this.#open?.doubtful
  }

  /** The process is gone; the pending write meets its fate. Returns whether one was lost. */
  crash(fate: Fate = { kind: 'lost' }): boolean {
    const pending = this.#inDoubt
    this.#open?.die()
    this.#open = undefined
    if (pending === undefined) return false
    if (fate.kind === 'kept') this.#makeDurable(pending.puts)
    if (fate.kind === 'cut-short') this.#makeDurable(shortened(pending.puts, fate.kept), false)
    if (fate.kind === 'torn') this.#makeDurable(pending.puts.slice(0, fate.puts))
    return fate.kind !== 'kept'
  }

  /** The next write meets this. */
  failNextWrite(fault: WriteFault): void {
    this.#nextFault = fault
  }

  /** Every write meets this from now on. */
  failWrites(fault: WriteFault): void {
    this.#standingFault = fault
  }

  /** Flips one bit of a stored value; false when there is no such key or bit. */
  flipBit(key: Uint8Array, bit: number): boolean {
    const name = latin1(key)
    const value = this.#durable.get(name)
    if (value === undefined || bit >= value.length * 8) return false
    const damaged = Buffer.from(value)
    damaged[bit >> 3] = (damaged[bit >> 3] ?? 0) ^ (1 << (bit & 7))
    this.#durable.set(name, damaged)
    this.#hurt.add(name)
    return true
  }

  /** Drops a key silently, as LevelDB drops a damaged piece of its log. `isUnseen`: no check shows it. */
  dropKey(key: Uint8Array, isUnseen = false): boolean {
    if (!isUnseen) this.#hurt.add(latin1(key))
    return this.#durable.delete(latin1(key))
  }

  /** The value under one key stands under another one now; false when either is not there. */
  misdirect(from: Uint8Array, to: Uint8Array): boolean {
    const value = this.#durable.get(latin1(from))
    if (value === undefined || this.#durable.get(latin1(to)) === undefined) return false
    this.#durable.set(latin1(to), value)
    this.#hurt.add(latin1(to))
    return true
  }

  /**
   * Its journal rots, which the next process sees; not while one has it open. False: there is none,
   * or it is rotten.
   */
  rot(rot: JournalRot): boolean {
    assert(this.#open === undefined, 'disk: a process has its journal in memory')
    if (this.#journal?.damage(rot) !== true) return false
    this.#undamaged = this.image()
    return true
  }

  /** As it was when its journal rotted, once; undefined when it did not since. */
  takeUndamaged(): DiskImage | undefined {
    const image = this.#undamaged
    this.#undamaged = undefined
    return image
  }

  image(): DiskImage {
    return new Map(this.#durable.entries())
  }

  /** Rows that were overwritten or deleted, and have bytes here. */
  get remains(): readonly Remainder[] {
    return this.#remains.all
  }

  /** Resolves when no bytes are left of rows of the spans that were gone at the call. */
  erase(spans: readonly KeySpan[] | 'all'): Promise<void> {
    return this.#remains.erase(spans, () => this.waitToRead())
  }

  /** The disk of another time or another machine. Only while no process has it open. */
  restore(image: DiskImage): void {
    assert(this.#open === undefined, 'disk: exchanged under a living process')
    this.#durable.clear()
    this.#journal?.clear()
    this.#undamaged = undefined
    this.#hurt.clear()
    this.#remains.clear()
    this.hasToldDamage = false
    for (const [key, value] of image) this.#durable.set(key, value)
  }

  wipe(): void {
    this.restore(new Map())
  }

  get size(): number {
    return this.#durable.size
  }

  durableValue(key: string): Uint8Array | undefined {
    return this.#durable.get(key)
  }

  durableKeys(range: Range): string[] {
    return this.durableKeysIn(textRange(range))
  }

  durableKeysIn(range: KeyRange): string[] {
    return this.#durable.keysIn(range)
  }

  /** Whether none of these keys was damaged when the present process opened the disk. */
  wasSoundAtOpen(spans: readonly KeySpan[]): boolean {
    const ranges = spans.map((span) => textRange(span))
    return !this.#hurtAtOpen.some((name) => ranges.some((one) => isWithin(name, one)))
  }

  /** How many keys there are in the spans; undefined: one of them is hurt. */
  soundKeys(spans: readonly KeySpan[] | 'all'): number | undefined {
    if (spans === 'all') return this.#hurt.size > 0 ? undefined : this.size
    const ranges = spans.map((span) => textRange(span))
    if ([...this.#hurt].some((name) => ranges.some((one) => isWithin(name, one)))) return undefined
    return ranges.reduce((sum, one) => sum + this.durableKeysIn(one).length, 0)
  }

  showsPending(): boolean {
    return this.#options.showsPending?.() ?? true
  }

  /** Resolves when the next rows of a scan are at hand; undefined: they are. */
  waitToRead(): Promise<void> | undefined {
    return this.#options.waitToRead?.()
  }

  waitToScrub(): Promise<void> | undefined {
    return this.#options.waitToScrub?.()
  }

  onWork(work: Work, count: number, bytes: number): void {
    this.#options.onWork?.(work, count, bytes)
  }

  begin(pending: PendingWrite, store: OpenDisk): void {
    const fault = this.#nextFault === 'none' ? this.#standingFault : this.#nextFault
    this.#nextFault = 'none'
    this.#options.schedule(() => {
      if (store.pending !== pending) return
      store.pending = undefined
      if (fault !== 'none') return store.refuse(pending, fault)
      this.#makeDurable(pending.puts)
      pending.resolve()
    })
  }

  close(store: OpenDisk): void {
    if (this.#open === store) this.#open = undefined
  }

  #makeDurable(puts: readonly KeptPut[], isWhole = true): void {
    // A value that is put back was durable once.
    const isOld = this.#isMending
    this.#isMending = false
    this.#journal?.add(puts)
    for (const { name, value } of puts) {
      this.#hurt.delete(name)
      if (this.#durable.get(name) !== undefined) this.#remains.note(name)
      if (value === undefined) this.#durable.delete(name)
      else this.#durable.set(name, value)
    }
    if (!isOld) this.#options.onDurable?.(puts, isWhole)
  }
}

function writeFault(fault: Exclude<WriteFault, 'none'>): StoreError {
  const text = fault === 'no-space' ? 'no space is left on the disk' : 'fsync failed'
  return new StoreError('unavailable', `a write to the store failed: ${text}`)
}

/** One process's view: the durable image under its own pending write. */
class OpenDisk implements OrderedStore {
  pending: PendingWrite | undefined
  /** A write whose fsync failed: its process must not count on it, the disk may have it yet. */
  doubtful: Doubtful | undefined
  told: ToldDamage | undefined
  readonly damage: JournalDamage | undefined
  readonly #disk: SimDisk
  /** The pending write by key; undefined stands for deleted. */
  #overlay = new Map<string, Uint8Array | undefined>()
  /** A read has seen the pending write. */
  #isShown = false
  /** No write is taken any more. */
  #fence: StoreError | undefined
  /** Nothing is answered any more. */
  #gone: StoreError | undefined
  #settled: Promise<unknown> = Promise.resolve()

  constructor(disk: SimDisk, damage: JournalDamage | undefined) {
    this.#disk = disk
    this.damage = damage
  }

  getSync(key: Uint8Array): Uint8Array | undefined {
    if (this.#gone !== undefined) throw this.#gone
    this.#look()
    const value = this.#readValue(latin1(key))
    this.#disk.onWork('get', 1, value?.length ?? 0)
    return value
  }

  #look(): void {
    if (this.pending !== undefined && !this.#isShown) this.#isShown = this.#disk.showsPending()
  }

  get #isSeen(): boolean {
    return this.pending !== undefined && this.#isShown
  }

  /** In memory of its own, as LevelDB gives it: what a reader does to it stays with the reader. */
  #readValue(name: string): Uint8Array | undefined {
    const isPending = this.#isSeen && this.#overlay.has(name)
    const value = isPending ? this.#overlay.get(name) : this.#disk.durableValue(name)
    return value && Buffer.from(value)
  }

  write(puts: readonly Put[]): Promise<void> {
    assert(this.pending === undefined, 'DISK: one write at a time')
    if (this.#fence !== undefined) return Promise.reject(this.#fence)
    const kept = puts.map(keptPut)
    this.#disk.onWork('put', puts.length, sizeInBytes(puts))
    this.#overlay = new Map()
    this.#isShown = false
    for (const { name, value } of kept) this.#overlay.set(name, value)
    const written = new Promise<void>((resolve, reject) => {
      this.pending = { puts: kept, resolve, reject }
      this.#disk.begin(this.pending, this)
    })
    // The writer gets the failure; a caller that closes the store only waits.
    this.#settled = written.catch(() => undefined)
    return written
  }

  scan(range: Range): AsyncIterable<readonly KeyValue[]> {
    return this.#give(this.#gone === undefined ? this.#snapshot(range) : [])
  }

  async *#give(rows: readonly KeyValue[]): AsyncIterable<readonly KeyValue[]> {
    if (this.#gone !== undefined) throw this.#gone
    for (let at = 0; at < rows.length; at += scanChunkRows) {
      await this.#disk.waitToRead()
      if (this.#gone !== undefined) throw this.#gone
      const chunk = rows.slice(at, at + scanChunkRows)
      this.#disk.onWork('chunk', 1, 0)
      this.#disk.onWork('row', chunk.length, sizeInBytes(chunk))
      yield chunk
    }
  }

  #snapshot(range: Range): KeyValue[] {
    this.#look()
    return this.#namesIn(textRange(range)).map((name) => {
      return { key: fromLatin1(name), value: this.#readValue(name) ?? new Uint8Array() }
    })
  }

  #namesIn(range: KeyRange): string[] {
    const unwritten = this.#isSeen ? this.#overlayIn(range) : []
    if (unwritten.length === 0) return this.#disk.durableKeysIn(range)
    const { limit = Infinity } = range
    // Of those on the disk, no more go than are unwritten.
    const all = new Set(this.#disk.durableKeysIn({ ...range, limit: limit + unwritten.length }))
    for (const name of unwritten) {
      if (this.#overlay.get(name) === undefined) all.delete(name)
      else all.add(name)
    }
    const sorted = [...all].sort(compareText)
    if (range.reverse === true) sorted.reverse()
    return sorted.slice(0, limit)
  }

  #overlayIn(range: KeyRange): string[] {
    const names: string[] = []
    for (const name of this.#overlay.keys()) if (isWithin(name, range)) names.push(name)
    return names
  }

  async sizeOf(span: KeySpan): Promise<number> {
    if (this.#gone !== undefined) throw this.#gone
    const names = this.#disk.durableKeysIn(textRange(span))
    return names.reduce((sum, name) => sum + (this.#disk.durableValue(name)?.length ?? 0), 0)
  }

  /** Like a reader of the files: what became damaged behind it, the next check finds. */
  async check(spans: readonly KeySpan[] | 'all', pace?: CheckPace): Promise<void> {
    await (pace === undefined ? this.#disk.waitToRead() : this.#disk.waitToScrub())
    if (this.#gone !== undefined || pace?.isOver() === true) {
      throw this.#gone ?? new StoreError('closed', 'nobody waits for this check any more')
    }
    const keys = this.#disk.soundKeys(spans)
    if (keys === undefined) {
      this.#disk.hasToldDamage = true
      this.told ??= this.#disk.toldNow()
      const what = 'a block does not match its checksum'
      if (pace?.onDamage === undefined) throw new StoreError('corrupt', what)
      pace.onDamage(what)
    }
    pace?.onProgress(keys ?? this.#disk.size, 1)
  }

  async erase(spans: readonly KeySpan[] | 'all'): Promise<undefined> {
    if (this.#gone !== undefined) throw this.#gone
    await this.#disk.erase(spans)
    if (this.#gone !== undefined) throw this.#gone
  }

  async close(): Promise<void> {
    this.#end('the store is closed')
    if (this.pending !== undefined) await this.#settled
    this.#disk.close(this)
  }

  /** The process is gone: nothing of it is answered any more. */
  die(): void {
    this.pending = undefined
    this.#end('the process of this store is gone')
  }

  refuse(pending: PendingWrite, fault: Exclude<WriteFault, 'none'>): void {
    if (fault === 'fsync-error') this.doubtful = pending
    this.#fence ??= writeFault(fault)
    pending.reject(this.#fence)
  }

  #end(reason: string): void {
    this.#gone ??= new StoreError('closed', reason)
    this.#fence ??= this.#gone
  }
}

function sizeInBytes(rows: readonly Put[]): number {
  let bytes = 0
  for (const { key, value } of rows) bytes += key.length + (value?.length ?? 0)
  return bytes
}
