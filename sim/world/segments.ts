/**
 * A simulated folder of segment files: its durable bytes, and the calls under way. A crash decides for each of
 * these what the disk has of it: nothing, all, the front of a write, or some of its sectors. Names that a rename
 * was to change are the old or the new ones, and a file that was being made may be short.
 */
import { assert, present } from '../../src/base/assert.ts'
import { StoreError } from '../../src/base/errors.ts'
import type { SegmentEntry, SegmentFile, SegmentFolder } from '../../src/ports/segments.ts'
import type { WriteFault } from './disk.ts'
import type { Work } from './turn-costs.ts'

/** The unit that a disk writes whole or not at all. */
export const sectorBytes = 512

/** The fate of the calls that are under way when the process dies. */
export type SegmentFate =
  | { readonly kind: 'lost' }
  | { readonly kind: 'kept' }
  /** The front of a write, in parts per million of its bytes. */
  | { readonly kind: 'torn'; readonly kept: number }
  /** Sectors of a write, the first by the lowest bit, over and over. */
  | { readonly kind: 'sectors'; readonly bits: number }

/** Files by name, to be put back later. */
export type SegmentImage = ReadonlyMap<string, Uint8Array>

export interface Content {
  bytes: Buffer
  /** Offsets of sectors that the disk cannot give back. */
  readonly unreadable: Set<number>
}

interface Call {
  /** All of it becomes durable. */
  keep(): void
  /** A crash leaves the part of it that the fate names. */
  meet(fate: SegmentFate): void
}

export interface SegmentDiskOptions {
  /** Runs `complete` when the disk has done a call: at once or later, as the owner likes. */
  readonly schedule: (complete: () => void) => void
  /** Resolves when the bytes of a read are at hand; undefined: they are. Absent: always. */
  readonly waitToRead?: () => Promise<void> | undefined
  /** Resolves `ms` milliseconds later. Absent: at once. */
  readonly pause?: (ms: number) => Promise<void>
  /** Told of the bytes that are read and written. */
  readonly onWork?: (work: Work, count: number, bytes: number) => void
  /** Called when a write has come to the disk, or a crash has decided what did of it. */
  readonly onWritten?: (name: string, offset: number) => void
  /** The file of the one name has the other durably. */
  readonly onMoved?: (from: string, to: string) => void
}

/** The disk, which outlives its processes. */
export class SimSegments {
  readonly #options: SegmentDiskOptions
  readonly #files = new Map<string, Content>()
  readonly #calls = new Set<Call>()
  #folder: OpenFolder | undefined
  #nextFault: WriteFault = 'none'
  /** Every write meets it. */
  #standingFault: WriteFault = 'none'

  constructor(options: SegmentDiskOptions) {
    this.#options = options
  }

  /** The folder as a process that starts now finds it. */
  open(): SegmentFolder {
    this.#folder?.die()
    this.#calls.clear()
    this.#folder = new OpenFolder(this)
    return this.#folder
  }

  /** The process is gone, and each call under way meets the fate. Returns how many there were. */
  crash(fate: SegmentFate): number {
    this.#folder?.die()
    this.#folder = undefined
    const calls = [...this.#calls]
    this.#calls.clear()
    for (const call of calls) call.meet(fate)
    return calls.length
  }

  get names(): readonly string[] {
    return [...this.#files.keys()].toSorted()
  }

  /** The durable bytes of a file. */
  bytesOf(name: string): Buffer {
    return present(this.#files.get(name), 'sim: there is such a file').bytes
  }

  contentOf(name: string): Content | undefined {
    return this.#files.get(name)
  }

  /** The next write fails; whether the disk has it shows after a crash. */
  refuseNextWrite(): void {
    this.#nextFault = 'fsync-error'
  }

  failNextWrite(fault: WriteFault): void {
    this.#nextFault = fault
  }

  /** All of them meet it from now on. */
  failWrites(fault: WriteFault): void {
    this.#standingFault = fault
  }

  /** Whether there are calls that a crash could lose: under way, or with a failed sync. */
  get hasPending(): boolean {
    return this.#calls.size > 0
  }

  onWork(work: Work, count: number, bytes: number): void {
    this.#options.onWork?.(work, count, bytes)
  }

  onWritten(name: string, offset: number): void {
    this.#options.onWritten?.(name, offset)
  }

  async pause(ms: number): Promise<void> {
    await this.#options.pause?.(ms)
  }

  flipBit(name: string, bit: number): void {
    const bytes = this.bytesOf(name)
    bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) ^ (1 << (bit & 7))
  }

  /** The disk gives the sector at `offset` back no more. */
  spoilSector(name: string, offset: number): void {
    const { unreadable } = present(this.#files.get(name), 'sim: there is such a file')
    unreadable.add(offset - (offset % sectorBytes))
  }

  cutShort(name: string, length: number): void {
    const content = present(this.#files.get(name), 'sim: there is such a file')
    content.bytes = content.bytes.subarray(0, length)
  }

  removeFile(name: string): void {
    this.#files.delete(name)
  }

  image(): SegmentImage {
    return new Map([...this.#files].map(([name, { bytes }]) => [name, Uint8Array.from(bytes)]))
  }

  /** The folder of another time. */
  restore(image: SegmentImage): void {
    this.#files.clear()
    for (const [name, bytes] of image) this.addFile(name, Buffer.from(bytes))
  }

  addFile(name: string, bytes: Buffer): void {
    this.#files.set(name, { bytes, unreadable: new Set() })
  }

  moveFile(from: string, to: string): void {
    const content = present(this.#files.get(from), 'sim: there is such a file')
    this.#files.delete(from)
    this.#files.set(to, content)
    this.#options.onMoved?.(from, to)
  }

  waitToRead(): Promise<void> | undefined {
    return this.#options.waitToRead?.()
  }

  #takeFault(): WriteFault {
    const fault = this.#nextFault === 'none' ? this.#standingFault : this.#nextFault
    this.#nextFault = 'none'
    return fault
  }

  /** Resolves when the call is durable. */
  run(folder: OpenFolder, call: Call, isWrite = false): Promise<void> {
    folder.checkAlive()
    const fault = isWrite ? this.#takeFault() : 'none'
    this.#calls.add(call)
    return new Promise((resolve, reject) => {
      this.#options.schedule(() => {
        if (!this.#calls.has(call)) return
        if (fault === 'no-space') this.#calls.delete(call)
        if (fault !== 'none') {
          reject(new StoreError('unavailable', `a write to the journal failed: ${fault}`))
          return
        }
        this.#calls.delete(call)
        call.keep()
        resolve()
      })
    })
  }
}

class OpenFolder implements SegmentFolder {
  readonly path = 'simulated'
  readonly #disk: SimSegments
  #isDead = false

  constructor(disk: SimSegments) {
    this.#disk = disk
  }

  die(): void {
    this.#isDead = true
  }

  checkAlive(): void {
    if (this.#isDead) throw new StoreError('closed', 'the process is gone')
  }

  async list(): Promise<readonly SegmentEntry[]> {
    return this.#disk.names.map((name) => ({ name, isFile: true }))
  }

  async create(name: string, length: number): Promise<SegmentFile> {
    assert(this.#disk.contentOf(name) === undefined, 'sim: a file is made twice')
    const make = (bytes: number): void => this.#disk.addFile(name, Buffer.alloc(bytes))
    await this.#disk.run(this, {
      keep: () => make(length),
      meet(fate) {
        if (fate.kind === 'kept') make(length)
        if (fate.kind === 'torn') make(Math.floor((length * fate.kept) / 1_000_000))
      },
    })
    return this.open(name)
  }

  async open(name: string): Promise<SegmentFile> {
    this.checkAlive()
    const content = this.#disk.contentOf(name)
    if (content === undefined) throw new StoreError('unavailable', `${name} is not there`)
    return new OpenFile(this.#disk, this, name, content)
  }

  async rename(file: SegmentFile, name: string): Promise<SegmentFile> {
    assert(file instanceof OpenFile, 'sim: a file of this disk is renamed')
    const keep = (): void => this.#disk.moveFile(file.name, name)
    await this.#disk.run(this, {
      keep,
      meet: (fate) => {
        if (fate.kind === 'kept' || (fate.kind === 'sectors' && fate.bits % 2 === 1)) keep()
      },
    })
    file.name = name
    return file
  }

  remove(name: string): Promise<void> {
    const keep = (): void => this.#disk.removeFile(name)
    return this.#disk.run(this, {
      keep,
      meet: (fate) => (fate.kind === 'kept' ? keep() : undefined),
    })
  }

  async pause(ms: number): Promise<void> {
    this.checkAlive()
    await this.#disk.pause(ms)
  }
}

class OpenFile implements SegmentFile {
  name: string
  readonly #disk: SimSegments
  readonly #folder: OpenFolder
  readonly #content: Content
  #isClosed = false

  constructor(disk: SimSegments, folder: OpenFolder, name: string, content: Content) {
    this.#disk = disk
    this.#folder = folder
    this.name = name
    this.#content = content
  }

  get length(): number {
    return this.#content.bytes.length
  }

  readSync(offset: number, length: number): Uint8Array {
    this.#checkOpen()
    const { bytes, unreadable } = this.#content
    const end = Math.min(offset + length, bytes.length)
    for (const sector of unreadable) {
      if (sector < end && sector + sectorBytes > offset) {
        throw new StoreError('corrupt', `cannot read ${this.name} at byte ${sector}`)
      }
    }
    this.#disk.onWork('get', 1, Math.max(0, end - offset))
    return Uint8Array.from(bytes.subarray(offset, end))
  }

  async read(offset: number, length: number): Promise<Uint8Array> {
    await this.#disk.waitToRead()
    return this.readSync(offset, length)
  }

  write(parts: readonly Uint8Array[], offset: number): Promise<void> {
    this.#checkOpen()
    const written = Buffer.concat(parts)
    assert(offset + written.length <= this.length, 'sim: a write goes beyond its file')
    const put = (from: number, to: number): void => {
      written.copy(this.#content.bytes, offset + from, from, to)
    }
    const keep = (): void => {
      put(0, written.length)
      this.#disk.onWritten(this.name, offset)
    }
    const meet = (fate: SegmentFate): void => {
      meetPart(fate)
      this.#disk.onWritten(this.name, offset)
    }
    const meetPart = (fate: SegmentFate): void => {
      if (fate.kind === 'kept') put(0, written.length)
      if (fate.kind === 'torn') put(0, Math.floor((written.length * fate.kept) / 1_000_000))
      if (fate.kind !== 'sectors') return
      let from = 0
      for (let sector = 0; from < written.length; sector++) {
        const to = Math.min(written.length, from + sectorBytes - ((offset + from) % sectorBytes))
        if (((fate.bits >> (sector % 30)) & 1) === 1) put(from, to)
        from = to
      }
    }
    this.#disk.onWork('put', 1, written.length)
    return this.#disk.run(this.#folder, { keep, meet }, true)
  }

  async close(): Promise<void> {
    this.#isClosed = true
  }

  #checkOpen(): void {
    this.#folder.checkAlive()
    if (this.#isClosed) throw new StoreError('closed', 'the journal is closed')
  }
}
