/**
 * The room that one answer has. Readers of all its shards take from it while they read: once one cell has
 * found no room, they read nothing more. The room also bounds how many bodies are under way, by the average
 * size of the bodies so far.
 *
 * CELL-6  What an answer unpacks to is bounded.
 */
import { assert } from '../base/assert.ts'
import { answerBytesMax } from '../txn/limits.ts'
import { packedBodyBytesMax } from './body.ts'
import { unpackedBytes } from './body-bytes.ts'
import { bodiesReadAtOnceMax, cellReadWork } from './limits.ts'
import type { StoredCell } from './cell.ts'
import type { Pace } from '../ports/pace.ts'

/** A cell's name, number and time at most: of small cells that is the most of them. */
const besideBodyBytes = 160
/** The size that a body is taken to have as long as none has been read. */
const firstBodyBytes: number = 64 * 1024

assert(packedBodyBytesMax + besideBodyBytes <= answerBytesMax, 'limits: a cell has no room alone')

/** Cells that were read for an answer. */
export interface CellsRead {
  /** How many the reader asked for; 0: the answer was full before. */
  readonly asked: number
  readonly found: readonly StoredCell[]
  /** How many of them, from the first on, have room. */
  readonly fitting: number
}

const nothing: CellsRead = { asked: 0, found: [], fitting: 0 }

export class AnswerRoom {
  #bytesLeft = answerBytesMax
  #isFull = false
  /** Bodies under way, and the count and bytes of those that were read. */
  #reading = 0
  #readCount = 0
  #readBytes = 0
  readonly #waiting: (() => void)[] = []
  readonly #pace: Pace | undefined

  /** `pace`: of the request; what the answer holds counts among what its node holds. */
  constructor(pace?: Pace) {
    this.#pace = pace
  }

  /** Something has found no room. */
  get isFull(): boolean {
    return this.#isFull
  }

  /** For one who reads alone, at one go. */
  share(): AnswerShare {
    return new AnswerShare(this)
  }

  /** For work that may be repeated: when it fails, it gives back the room that it took. */
  async attempt<Value>(work: (share: AnswerShare) => Promise<Value>): Promise<Value> {
    const share = this.share()
    try {
      return await work(share)
    } catch (error) {
      this.#giveBack(share.end())
      throw error
    }
  }

  /** False: fewer bytes than that are left. From then on no reader gets any room. */
  take(bytes: number): boolean {
    if (this.#isFull || bytes > this.#bytesLeft) {
      this.#isFull = true
      return false
    }
    this.#bytesLeft -= bytes
    this.#pace?.take(bytes)
    assert(this.#bytesLeft >= 0, 'CELL-6: an answer unpacks to more than it may')
    return true
  }

  /** Resolves with how many bodies may be read now, at most `wanted`; 0: the answer is full. */
  async begin(wanted: number): Promise<number> {
    while (!this.#isFull) {
      const count = Math.min(wanted, this.#mayBegin())
      this.#reading += count
      if (count > 0) return count
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    }
    return 0
  }

  /** The bodies that were begun are read, or never will be. */
  end(begun: number, read: { readonly count: number; readonly bytes: number }): void {
    this.#reading -= begun
    this.#readCount += read.count
    this.#readBytes += read.bytes
    for (const wake of this.#waiting.splice(0)) wake()
  }

  spend(work: number): Promise<void> | undefined {
    return this.#pace?.spend(work)
  }

  /** As many as should just fill the answer; one in any case, when none is under way. */
  #mayBegin(): number {
    const bytes = this.#readCount === 0 ? firstBodyBytes : this.#readBytes / this.#readCount
    const expected = Math.min(Math.ceil(this.#bytesLeft / bytes), bodiesReadAtOnceMax)
    return Math.max(expected - this.#reading, this.#reading === 0 ? 1 : 0)
  }

  #giveBack(bytes: number): void {
    this.#bytesLeft += bytes
    this.#pace?.take(-bytes)
    assert(this.#bytesLeft <= answerBytesMax, 'CELL-6: more room is given back than was taken')
    if (bytes > 0) this.#isFull = false
  }
}

/** One reader's share of the room. */
export class AnswerShare {
  readonly #room: AnswerRoom
  #bytes = 0
  #isOver = false

  constructor(room: AnswerRoom) {
    this.#room = room
  }

  /** Gives what it has taken. Reads that are still under way take nothing any more. */
  end(): number {
    this.#isOver = true
    return this.#bytes
  }

  /** By what the body unpacks to, wherever that is done. In an empty answer there is room for any cell. */
  take(cell: StoredCell): boolean {
    const bytes = sizeInBytes(cell)
    if (this.#isOver || !this.#room.take(bytes)) return false
    this.#bytes += bytes
    return true
  }

  /** A cell, if there is one; `full`: the answer has no room for it. */
  async readOne(
    work: () => Promise<StoredCell | undefined>,
  ): Promise<StoredCell | undefined | 'full'> {
    const { asked, found, fitting } = await this.read(1, async () => {
      const cell = await work()
      return cell === undefined ? [] : [cell]
    })
    return asked === 0 || fitting < found.length ? 'full' : found[0]
  }

  /** Before a step of reading for the answer. */
  spend(work: number): Promise<void> | undefined {
    return this.#room.spend(work)
  }

  /** Reads `wanted` cells, or fewer where that many might not find room. */
  async read(
    wanted: number,
    work: (count: number) => Promise<readonly StoredCell[]>,
  ): Promise<CellsRead> {
    const asked = this.#isOver ? 0 : await this.#room.begin(wanted)
    if (asked === 0) return nothing
    let found: readonly StoredCell[] = []
    // The read may end in any way, also before its turn: others wait for what it has begun.
    try {
      // One alone is paid for with the read that it belongs to.
      const turn = asked > 1 ? this.#room.spend(asked * cellReadWork) : undefined
      if (turn !== undefined) await turn
      found = await work(asked)
      const over = found.findIndex((cell) => !this.take(cell))
      return { asked, found, fitting: over < 0 ? found.length : over }
    } finally {
      const bytes = found.reduce((sum, cell) => sum + sizeInBytes(cell), 0)
      this.#room.end(asked, { count: found.length, bytes })
    }
  }
}

function sizeInBytes({ body }: StoredCell): number {
  return unpackedBytes(body) + besideBodyBytes
}
