/**
 * The memory that guards who may vote: with which store each peer votes, how far its log and its incarnation
 * had come. It stands in `log/`, beside the flushes, and is written along with them: a reset of `data/` loses
 * nothing of it, and a commit pays no write of its own for it. `../peers/admission.ts` says which peers it
 * lets in.
 */
import { assert } from '../base/assert.ts'
import type { NodeId } from '../base/ids.ts'
import { decodeRemembered, encodeRemembered, type RememberedStore } from '../base/remembered.ts'
import type { JournalRecord } from '../ports/journal.ts'
import { firstEpochs, isFirst, packEpochs, readEpochs, type OwnEpochs } from './own-epochs.ts'
import { openFields, sealRecord } from './sealed-record.ts'

export const memoryName = 'peers'

const firstFormat = 'peers 1'
/** Opens with the node's part in the epochs. */
const epochsFormat = 'peers 2'

export type Remembered = RememberedStore

/** Takes the place of a record that may be older than the one which is lost: it reads as damaged. */
export function encodeLostMemory(): Uint8Array {
  return sealRecord('lost', [])
}

export function encodeMemory(
  list: readonly Remembered[],
  epochs: OwnEpochs = firstEpochs,
): Uint8Array {
  const rows = list.map(encodeRemembered)
  if (isFirst(epochs)) return sealRecord(firstFormat, rows)
  return sealRecord(epochsFormat, [packEpochs(epochs), ...rows])
}

/** Undefined for bytes that are not such a record, whole. */
export function decodeMemory(bytes: Uint8Array): readonly Remembered[] | undefined {
  const rows = openFields(bytes, firstFormat) ?? openFields(bytes, epochsFormat)?.slice(1)
  return rows && decodeRemembered(rows)
}

/** The same of the node's part in the epochs. */
export function decodeEpochs(bytes: Uint8Array): OwnEpochs | undefined {
  if (openFields(bytes, firstFormat) !== undefined) return firstEpochs
  return readEpochs(openFields(bytes, epochsFormat)?.[0])
}

interface Waiter {
  /** Of the state that is to be durable. */
  readonly change: number
  readonly after: () => void
}

/** As much of it as is written at a time. */
interface Written {
  readonly known: ReadonlyMap<NodeId, Remembered>
  readonly epochs: OwnEpochs
}

export class PeerMemory {
  #known: ReadonlyMap<NodeId, Remembered>
  #epochs: OwnEpochs
  /** The same, durably. */
  #kept: Written
  #isWhole: boolean
  #changes = 0
  #changesTaken = 0
  #changesKept = 0
  #taken: Written | undefined
  #waiters: Waiter[] = []

  /** Undefined: this log had such a record, and has it no longer, or comes from before there was one. */
  constructor(kept: readonly Remembered[] | undefined, epochs: OwnEpochs = firstEpochs) {
    this.#known = new Map(kept?.map((one) => [one.node, one]))
    this.#epochs = epochs
    this.#kept = { known: this.#known, epochs }
    this.#isWhole = kept !== undefined
  }

  /** This node's part in the epochs. */
  get epochs(): OwnEpochs {
    return this.#epochs
  }

  /** The same, durably. */
  get keptEpochs(): OwnEpochs {
    return this.#kept.epochs
  }

  /** `whenKept` tells of the time when it is durable. */
  setEpochs(epochs: OwnEpochs): void {
    assert(
      epochs.epoch >= this.#epochs.epoch,
      'MOVE-2: a node goes back to an epoch that it has sealed',
    )
    this.#epochs = epochs
    this.#changes += 1
  }

  /** From now on another store of that node votes. */
  exchange(next: Remembered): void {
    assert(
      this.#known.get(next.node)?.storeId !== next.storeId,
      'MOVE-6: a store takes its own place',
    )
    this.#known = new Map(this.#known).set(next.node, next)
    this.#changes += 1
  }

  /** Whether this node can tell a store that must not vote. */
  get isWhole(): boolean {
    return this.#isWhole
  }

  /** There is news that is not durable. */
  get isUnsaved(): boolean {
    return this.#changes > this.#changesKept
  }

  /** The memory that may be told to others: it is still true after a crash. */
  get kept(): readonly Remembered[] {
    return [...this.#kept.known.values()]
  }

  of(node: NodeId): Remembered | undefined {
    return this.#known.get(node)
  }

  /** Takes the news up, as far as it is any: a number never falls, and a known store is not exchanged. */
  learn(news: Remembered): void {
    const known = this.#known.get(news.node)
    if (known !== undefined && known.storeId !== news.storeId) return
    const durableFlush = Math.max(news.durableFlush, known?.durableFlush ?? 0)
    const incarnation = Math.max(news.incarnation, known?.incarnation ?? 0)
    const run = known === undefined || news.incarnation > known.incarnation ? news.run : known.run
    if (known?.durableFlush === durableFlush && known.incarnation === incarnation) return
    const next = { ...news, durableFlush, incarnation, run }
    this.#known = new Map(this.#known).set(news.node, next)
    this.#changes += 1
  }

  /** The memory is whole again: as many nodes as it takes have told what they know, or it was all kept elsewhere. */
  restore(told: number, needed: number): void {
    assert(
      told >= needed,
      'LOG-11: a memory of peers is taken for whole before a majority has told it',
    )
    this.#isWhole = true
    this.#changes += 1
  }

  /** Has it written once more, as if there were news: the copy in the log may be damaged. */
  renew(): void {
    if (this.#isWhole) this.#changes += 1
  }

  /**
   * The record that is to go along with a write, if there is news. Of a memory that is not whole nothing is
   * kept.
   */
  take(): JournalRecord | undefined {
    if (!this.#isWhole || !this.isUnsaved) return undefined
    this.#changesTaken = this.#changes
    this.#taken = { known: this.#known, epochs: this.#epochs }
    return { name: memoryName, value: encodeMemory([...this.#known.values()], this.#epochs) }
  }

  /** The write that took the last news along is durable. */
  onWritten(): void {
    if (this.#taken === undefined) return
    this.#kept = this.#taken
    this.#taken = undefined
    this.#changesKept = this.#changesTaken
    const done = this.#waiters.filter(({ change }) => change <= this.#changesKept)
    this.#waiters = this.#waiters.filter(({ change }) => change > this.#changesKept)
    for (const { after } of done) after()
  }

  /** Calls `after` when all that is known now is durable: at once, if it is. */
  whenKept(after: () => void): void {
    if (!this.isUnsaved) return after()
    this.#waiters.push({ change: this.#changes, after })
  }
}
