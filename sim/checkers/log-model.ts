/**
 * The meaning of each group's chosen log, worked out a second time and without the code under test: rows in
 * all their versions, counters, and which intents took effect. Fed with chosen entries; runs ahead of no
 * hole.
 */
import { fromLatin1, latin1 } from '../../src/base/bytes.ts'
import { decodeEntry, type Entry } from '../../src/replication/entry.ts'
import type { Mutation, Transaction } from '../../src/group/transaction.ts'
import { PastSum, versionName } from './past-sum.ts'
import type { PositionView } from './position-book.ts'
import type { Referee } from './referee.ts'
import { RowSum } from './row-sum.ts'

export interface ModelRow {
  readonly value: Uint8Array
  readonly timestamp: number
}

/** A row at a moment. */
export interface PastRow extends ModelRow {
  readonly key: Uint8Array
}

/** From when on a row was so; without a value: gone. */
interface Version {
  readonly value: Uint8Array | undefined
  readonly timestamp: number
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
  /** All versions by key, in the order of their times. */
  readonly versions: Map<string, Version[]>
  /** Of those superseded that may still be read; and its digest after each position. */
  readonly past: PastSum
  readonly pastDigests: string[]
  /** After each position. */
  readonly timestamps: number[]
  readonly horizons: number[]
  readonly counters: Map<number, number>
  /** Where each intent took effect. */
  readonly effects: Map<string, number>
}

export interface LogModelParts {
  readonly referee: Referee
}

/** A transaction that took effect, and where. */
export interface ModelEffect {
  readonly group: string
  readonly position: number
  readonly timestamp: number
  readonly transaction: Transaction
}

/** The log of a group has come so far: by any entry, one without transactions included. */
export type ModelMoment = Pick<ModelEffect, 'group' | 'position' | 'timestamp'>

/** A row as an entry of the log leaves it. */
export interface RowWrite {
  readonly group: string
  /** As latin1. */
  readonly key: string
  /** Absent: deleted. */
  readonly value: Uint8Array | undefined
  readonly timestamp: number
}

export class LogModel {
  /** Called with each row written, in the order of its group's log. */
  onWrite: (write: RowWrite) => void = () => undefined
  /** Called with each transaction that takes effect, in the order of its group's log. */
  onEffect: (effect: ModelEffect) => void = () => undefined
  /** Called with each entry, behind the effects of its transactions. */
  onMoment: (moment: ModelMoment) => void = () => undefined
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

  /** The leader of the group whose entry was chosen last. */
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
        group,
        position: 0,
        timestamp: 0,
        sum: new RowSum(),
        rows: new Map<string, ModelRow>(),
        counters: new Map<number, number>(),
        digests: [new RowSum().digest()],
        effects: new Map<string, number>(),
        versions: new Map<string, Version[]>(),
        past: new PastSum(),
        pastDigests: [new PastSum().digest()],
        timestamps: [0],
        horizons: [0],
      }
      this.#groups.set(group, model)
    }
    return model
  }

  /** The rows of a group as of a timestamp, in the order of their keys. */
  rowsAt(group: string, at: number): readonly PastRow[] {
    const rows: PastRow[] = []
    const { versions } = this.of(group)
    for (const name of [...versions.keys()].sort()) {
      const seen = versions.get(name)?.findLast(({ timestamp }) => timestamp <= at)
      if (seen?.value === undefined) continue
      rows.push({ key: fromLatin1(name), value: seen.value, timestamp: seen.timestamp })
    }
    return rows
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
    model.past.raise(entry === undefined ? 0 : entry.horizon)
    model.digests.push(model.sum.digest())
    model.pastDigests.push(model.past.digest())
    model.timestamps.push(model.timestamp)
    model.horizons.push(Math.max(model.horizons.at(-1) ?? 0, entry?.horizon ?? 0))
  }

  #applyEntry(model: GroupModel, entry: Entry): void {
    model.timestamp = entry.timestamp
    const leader = `${entry.nextLeader.node}.${entry.nextLeader.incarnation}`
    const before = this.#lastLeader.get(model.group)
    if (before !== undefined && before !== leader) this.#leaderChanges += 1
    this.#lastLeader.set(model.group, leader)
    this.#leader = leader
    for (const transaction of entry.transactions) this.#applyTransaction(model, entry, transaction)
    const { group, position, timestamp } = model
    this.onMoment({ group, position, timestamp })
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
    const { group, position, timestamp } = model
    this.onEffect({ group, position, timestamp, transaction })
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
    this.onWrite({ group: model.group, key: name, value, timestamp })
    const row = value === undefined ? undefined : { value, timestamp }
    if (before !== undefined) model.sum.toggle(key, before.value, before.timestamp, false)
    if (before !== undefined && before.timestamp < timestamp) {
      model.past.add(versionName(name, before.timestamp), before.value, timestamp)
    }
    const versions = model.versions.get(name) ?? []
    model.versions.set(name, versions)
    // Of two values that an entry writes to one key, the later one counts.
    if (versions.at(-1)?.timestamp === timestamp) versions.pop()
    versions.push({ value, timestamp })
    if (row === undefined) {
      model.rows.delete(name)
      return
    }
    model.sum.toggle(key, row.value, row.timestamp, true)
    model.rows.set(name, row)
  }
}
