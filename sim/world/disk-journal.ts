/**
 * The journal of a simulated disk: its last batches, as LevelDB has them in a file of its own until
 * it opens the folder anew. The process that wrote the journal does not see damage in it. The next
 * process opens a store without the damaged batch and some behind it, and is given the parts of
 * these that are still sound.
 */
import { present } from '../../src/base/assert.ts'
import type { JournalDamage, Put } from '../../src/ports/storage.ts'
import type { OrderedMap } from './ordered-map.ts'

/** Where, and how badly. */
export interface JournalRot {
  /** Of the batches, in parts per million. */
  readonly place: number
  /** Of a value in the batch. */
  readonly bit: number
  /** Sound batches behind it that are passed over with it. */
  readonly passedOver: number
  /** Nothing of the batch can be made out. */
  readonly isIllegible?: true | undefined
}

/** A put, and the value it replaced. */
interface Change {
  readonly name: string
  readonly put: Put
  readonly before: Uint8Array | undefined
}

type Batch = readonly Change[]

const million = 1_000_000
/** Older ones are in a table. */
const batchesMax = 64

export class DiskJournal {
  readonly #rows: OrderedMap<Uint8Array>
  #batches: Batch[] = []
  #rot: JournalRot | undefined
  #damage: readonly (readonly Put[] | undefined)[] | undefined

  constructor(rows: OrderedMap<Uint8Array>) {
    this.#rows = rows
  }

  /** Before the puts become rows. */
  add(puts: readonly (Put & { readonly name: string })[]): void {
    this.#batches.push(
      puts.map((put) => ({ name: put.name, put, before: this.#rows.get(put.name) })),
    )
    if (this.#batches.length > batchesMax) this.#batches.shift()
  }

  /** Other rows are there now. */
  clear(): void {
    this.#batches = []
    this.#rot = undefined
    this.#damage = undefined
  }

  /** False when there is nothing to rot, or something does already. */
  damage(rot: JournalRot): boolean {
    if (this.#batches.length === 0 || this.#rot !== undefined || this.isTold) return false
    this.#rot = rot
    return true
  }

  /**
   * Whether the process that opened this journal knows of its damage, and has not yet written the
   * rest back.
   */
  get isTold(): boolean {
    return this.#damage !== undefined
  }

  /** Writes the sound part of the journal into a table. */
  open(): JournalDamage | undefined {
    const rot = this.#rot
    if (rot !== undefined) this.#passOver(rot)
    this.#batches = []
    this.#rot = undefined
    const batches = this.#damage
    if (batches === undefined) return undefined
    const done = async (): Promise<void> => {
      this.#damage = undefined
    }
    return { what: 'the journal does not match its checksums', batches, done }
  }

  #passOver(rot: JournalRot): void {
    const last = this.#batches.length - 1
    const from = Math.min(last, Math.floor((this.#batches.length * rot.place) / million))
    const through = from + rot.passedOver
    for (const change of this.#batches.flat().reverse()) this.#set(change.name, change.before)
    for (const [at, batch] of this.#batches.entries()) {
      if (at >= from && at <= through) continue
      for (const { name, put } of batch) this.#set(name, put.value)
    }
    this.#damage = this.#batches.map((batch, at) => {
      const puts = batch.map(({ put }) => put)
      return at === from ? rotten(puts, rot) : puts
    })
  }

  #set(name: string, value: Uint8Array | undefined): void {
    if (value === undefined) this.#rows.delete(name)
    else this.#rows.set(name, value)
  }
}

function rotten(
  puts: readonly Put[],
  { bit, isIllegible }: JournalRot,
): readonly Put[] | undefined {
  if (isIllegible === true) return undefined
  const index = bit % puts.length
  const { key, value } = present(puts[index], 'disk: a batch of puts')
  if (value === undefined || value.length === 0) return undefined
  const damaged = Buffer.from(value)
  const at = Math.floor(bit / puts.length) % (8 * value.length)
  damaged[at >> 3] = (damaged[at >> 3] ?? 0) ^ (1 << (at & 7))
  return puts.map((put, i) => (i === index ? { key, value: damaged } : put))
}
