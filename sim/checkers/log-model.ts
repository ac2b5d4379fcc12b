/**
 * What each group's chosen log means, worked out a second time and without the code under test:
 * rows, counters, and which intents took effect. Fed with chosen entries; runs ahead of no hole.
 */
import { crc32, latin1 } from '../../src/base/bytes.ts'
import { decodeEntry, type Entry } from '../../src/replication/entry.ts'
import type { Mutation, Transaction } from '../../src/replication/transaction.ts'
import type { PositionView } from './position-book.ts'
import type { Referee } from './referee.ts'

export interface ModelRow {
  readonly value: Uint8Array
  readonly timestamp: number
}

/** An order-free digest of rows: equal sets of rows have equal sums. */
export class RowSum {
  #xor = 0
  #sum = 0

  toggle(key: Uint8Array, value: Uint8Array, timestamp: number, isAdded: boolean): void {
    const stamp = (timestamp % 2 ** 32) ^ Math.floor(timestamp / 2 ** 32)
    const hash = Math.imul(crc32(value, crc32(key)) ^ stamp, 0x9e3779b1) >>> 0
    this.#xor = (this.#xor ^ hash) >>> 0
    this.#sum = (this.#sum + (isAdded ? hash : -hash)) % 2 ** 32
  }

  digest(): string {
    return `${this.#xor.toString(16)}.${((this.#sum + 2 ** 32) % 2 ** 32).toString(16)}`
  }
}

export interface GroupModel {
  readonly group: string
  position: number
  timestamp: number
  /** Newest rows by key, as latin1 text. */
  readonly rows: Map<string, ModelRow>
  readonly sum: RowSum
  /** `sum` after each position; index 0 is the empty group. */
  readonly digests: string[]
  readonly counters: Map<number, number>
  /** Where each intent took effect. */
  readonly effects: Map<string, number>
}

export interface LogModelParts {
  readonly referee: Referee
}

export class LogModel {
  readonly #groups = new Map<string, GroupModel>()
  readonly #chosen = new Map<string, Map<number, Uint8Array>>()
  readonly #parts: LogModelParts
  #commits = 0
  #leaderChanges = 0
  readonly #lastLeader = new Map<string, string>()
  #leader: string | undefined

  constructor(parts: LogModelParts) {
    this.#parts = parts
  }

  /** Transactions that took effect. */
  get commits(): number {
    return this.#commits
  }

  /** Who leads the group whose entry was chosen last. */
  get leader(): string | undefined {
    return this.#leader
  }

  get leaderChanges(): number {
    return this.#leaderChanges
  }

  of(group: string): GroupModel {
    let model = this.#groups.get(group)
    if (model === undefined) {
      model = {
        ...{ group, position: 0, timestamp: 0, sum: new RowSum() },
        ...{ rows: new Map<string, ModelRow>(), counters: new Map<number, number>() },
        ...{ digests: [new RowSum().digest()], effects: new Map<string, number>() },
      }
      this.#groups.set(group, model)
    }
    return model
  }

  onChosen(view: PositionView): void {
    const { group, position, chosen } = view
    if (chosen === undefined) return
    let values = this.#chosen.get(group)
    if (values === undefined) {
      values = new Map<number, Uint8Array>()
      this.#chosen.set(group, values)
    }
    values.set(position, chosen.value)
    const model = this.of(group)
    for (;;) {
      const value = values.get(model.position + 1)
      if (value === undefined) return
      values.delete(model.position + 1)
      this.#apply(model, value)
    }
  }

  #apply(model: GroupModel, value: Uint8Array): void {
    const { referee } = this.#parts
    const entry = decodeEntry(value)
    model.position += 1
    const where = (): Readonly<Record<string, unknown>> => ({
      group: Buffer.from(model.group, 'latin1').toString('hex'),
      position: model.position,
    })
    referee.check(entry !== undefined, 'LOG-1', 'A chosen value is no entry.', where)
    if (entry !== undefined) {
      referee.check(
        entry.timestamp > model.timestamp,
        'MVCC-2',
        'The timestamp of a chosen entry does not rise.',
        where,
      )
      referee.check(
        entry.position === model.position,
        'LOG-1',
        'A chosen entry was made for another position.',
        where,
      )
      this.#applyEntry(model, entry)
    }
    model.digests.push(model.sum.digest())
  }

  #applyEntry(model: GroupModel, entry: Entry): void {
    model.timestamp = entry.timestamp
    const leader = `${entry.nextLeader.node}.${entry.nextLeader.incarnation}`
    const before = this.#lastLeader.get(model.group)
    if (before !== undefined && before !== leader) this.#leaderChanges += 1
    this.#lastLeader.set(model.group, leader)
    this.#leader = leader
    for (const transaction of entry.transactions) this.#applyTransaction(model, entry, transaction)
  }

  #applyTransaction(model: GroupModel, entry: Entry, transaction: Transaction): void {
    if (entry.timestamp > transaction.expiresAt) return
    const intent = `${transaction.session}/${transaction.sequence}`
    this.#parts.referee.check(
      !model.effects.has(intent),
      'LOG-3',
      'A transaction took effect twice.',
      () => ({ intent, first: model.effects.get(intent), second: model.position }),
    )
    model.effects.set(intent, model.position)
    this.#commits += 1
    const numbers = transaction.allocations.map((counter) => {
      const drawn = (model.counters.get(counter) ?? 0) + 1
      model.counters.set(counter, drawn)
      return drawn
    })
    for (const mutation of transaction.mutations) this.#write(model, entry, mutation, numbers)
  }

  #write(model: GroupModel, entry: Entry, mutation: Mutation, numbers: readonly number[]): void {
    const key = Buffer.from(mutation.key)
    const value = mutation.value === undefined ? undefined : Buffer.from(mutation.value)
    for (const slot of mutation.slots ?? []) {
      const target = slot.at === 'key' ? key : value
      target?.writeBigUInt64BE(BigInt(numbers[slot.allocation] ?? 0), slot.offset)
    }
    const name = latin1(key)
    const before = model.rows.get(name)
    const { timestamp } = entry
    const row = value === undefined ? undefined : { value, timestamp }
    if (before !== undefined) model.sum.toggle(key, before.value, before.timestamp, false)
    if (row === undefined) {
      model.rows.delete(name)
      return
    }
    model.sum.toggle(key, row.value, row.timestamp, true)
    model.rows.set(name, row)
  }
}
