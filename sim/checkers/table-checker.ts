/**
 * Answers to sessions of tables, against a model that replays their transactions in the order of
 * the log. A session reports the steps and answers of a transaction's run before it commits; the
 * run in the log is known by the text of its mark, which every transaction that writes has in a
 * row.
 *
 * TXN-1, TXN-2  What a transaction read, of keys and of ranges, is what was there just before it.
 * TXN-4         All of a run's writes take effect, or none.
 * TXN-5         Once, and as in the answer: position, time, run and numbers.
 * LEASE-3, -4   Current reads show what was acknowledged or shown before; sessions never go back.
 * MVCC-1, IDX-1 Reads show the state at one moment, and indexes what the rows say.
 * TTL-1         They show a row that expires iff it had not at their own timestamp.
 * TTL-2         Such a row is removed when it had expired, and never before.
 * HOLD-1        No row goes that is held at that place of the log, and a hold alone refuses that.
 * PURGE-1       A node that has applied a purge answers no read of a moment before.
 * IDX-14        An index that came when there were rows does so too, or is not asked.
 */
import { latin1 } from '../../src/base/bytes.ts'
import type { GroupId, Timestamp } from '../../src/base/ids.ts'
import { rowSpace } from '../../src/tables/row-key.ts'
import type { TransactionResult } from '../../src/tables/tables.ts'
import type { Coverage } from '../coverage.ts'
import { heldResult, isRead, type TableRun, type TableStep } from '../workloads/table-step.ts'
import type { ModelEffect } from './log-model.ts'
import type { Referee } from './referee.ts'
import {
  isHeld,
  laterLocal,
  listHolds,
  modelHold,
  modelRead,
  modelRemoval,
  modelStep,
  resultText,
  type ModelStep,
  type TableState,
} from './table-model.ts'

interface Effect extends Pick<ModelEffect, 'position' | 'timestamp'> {
  readonly run: number
  readonly numbers: ModelStep['numbers']
}

interface Operation {
  readonly store: string
  readonly runs: Map<number, TableRun>
  effect: Effect | undefined
  isRefused: boolean
}

interface Moment {
  readonly timestamp: Timestamp
  readonly state: TableState
}

interface Store {
  /** One for each transaction; of one entry, the last one holds. */
  readonly moments: Moment[]
  /** The newest acknowledged or shown timestamp: current reads that begin later show it. */
  toldAt: Timestamp
  /** When rows were purged last; 0: never. */
  purgedAt: Timestamp
}

/** A read as it was made. */
export interface TableReading {
  readonly client: string
  readonly store: string
  readonly run: TableRun
  readonly asOf: Timestamp
  readonly level: 'current' | 'snapshot' | 'at'
  /** Nothing older may be shown, and nothing newer. */
  readonly atLeast: Timestamp
  readonly atMost: Timestamp
}

/** The rule that a read breaks when it is as of the wrong moment. */
const placeRules: Readonly<Record<TableReading['level'], readonly [string, string]>> = {
  current: ['LEASE-3', 'A current read of rows does not show what was told before it began.'],
  snapshot: ['LEASE-4', 'A session was shown older rows than it has seen.'],
  at: ['MVCC-1', 'A read of the past is of another moment than it asked for.'],
}

const nothing: TableState = new Map()

/** The text in a row by which the log is known to hold this run. */
export function formatMark(operation: string, run: number): string {
  return `<<${operation}#${run}>>`
}

/** The key of a hold: texts of a tuple end with 00 01, and each begins with its kind. */
// eslint-disable-next-line no-control-regex
const holdText = /^\u00ff.hold\u0000\u0001.(?:table\u0000\u0001.)?([A-Za-z]+)\u0000\u0001$/
const mark = /<<([a-z0-9.-]+)#(\d+)>>/

export class TableChecker {
  readonly #referee: Referee
  readonly #coverage: Coverage
  readonly #stores = new Map<string, Store>()
  readonly #storeByGroup = new Map<string, string>()
  readonly #operations = new Map<string, Operation>()

  constructor(referee: Referee, coverage: Coverage) {
    this.#referee = referee
    this.#coverage = coverage
  }

  /** This group is that store: all that its log holds from now on is judged. */
  onGroup(group: GroupId, store: string): void {
    this.#storeByGroup.set(group, store)
  }

  /** The newest acknowledged or shown timestamp of the store. */
  toldAt(store: string): Timestamp {
    return this.#store(store).toldAt
  }

  /** The tables of the store that are held now, and `group` for all of it. */
  listHeld(store: string): readonly string[] {
    return listHolds(this.stateAt(store, Number.MAX_SAFE_INTEGER))
  }

  /** When rows of the store were purged last, if a session knows of it; 0: never. */
  purgedAt(store: string): Timestamp {
    const { purgedAt, toldAt } = this.#store(store)
    return purgedAt <= toldAt ? purgedAt : 0
  }

  /** A session asks a node that has applied the purge for a moment before; `isShown`: the node has answered. */
  onPastAsked(client: string, store: string, isShown: boolean): void {
    this.#coverage.count('tables: asked for a moment before a purge')
    const sentence = 'A read of a moment before a purge was answered.'
    this.#check(!isShown, 'PURGE-1', sentence, { client, store })
  }

  /** When each transaction of the store took effect. */
  listMoments(store: string): readonly Timestamp[] {
    return this.#store(store).moments.map(({ timestamp }) => timestamp)
  }

  /** The states of the store from a moment on, one after another. */
  statesSince(store: string, at: Timestamp): readonly TableState[] {
    const { moments } = this.#store(store)
    const later = moments.filter(({ timestamp }) => timestamp > at).map(({ state }) => state)
    return [this.stateAt(store, at), ...later]
  }

  stateAt(store: string, at: Timestamp): TableState {
    const { moments } = this.#store(store)
    return moments.findLast(({ timestamp }) => timestamp <= at)?.state ?? nothing
  }

  /** A run of the operation was made, and may be committed. */
  onRun(operation: string, store: string, number: number, run: TableRun): void {
    const known = this.#operations.get(operation)
    const one = known ?? { store, runs: new Map(), effect: undefined, isRefused: false }
    this.#operations.set(operation, one)
    one.runs.set(number, run)
  }

  onEffect({ group, position, timestamp, transaction }: ModelEffect): void {
    const store = this.#storeByGroup.get(group)
    if (store === undefined) return
    for (const { key, value } of transaction.mutations) {
      const of = heldBy(key)
      if (of !== undefined) this.#onHold(store, timestamp, of, value !== undefined)
    }
    if (transaction.mutations.every(isOfIndex)) return
    const texts = transaction.mutations.map(({ value }) =>
      mark.exec(latin1(value ?? new Uint8Array())),
    )
    const [, name, number] = texts.find((found) => found !== null) ?? []
    const offers = removedOffers(transaction)
    if (name === undefined && offers.length > 0) return this.#onRemoval(store, timestamp, offers)
    const operation = this.#operations.get(name ?? '')
    const run = operation?.runs.get(Number(number))
    const where = { store, position, operation: name, run: number }
    const isKnown = operation?.store === store && run !== undefined
    this.#check(isKnown, 'TXN-4', 'The log holds a transaction that no session made.', where)
    if (operation === undefined || run === undefined) return
    const { effect, isRefused } = operation
    this.#check(effect === undefined, 'TXN-5', 'A transaction of tables took effect twice.', where)
    this.#check(!isRefused, 'TXN-5', 'A refused transaction of tables took effect.', where)
    const { state, numbers } = this.#replay(store, run, timestamp, where)
    if (run.steps.some((step, i) => step.kind === 'purge' && run.results[i] === 'done')) {
      this.#store(store).purgedAt = timestamp
    }
    operation.effect = { position, timestamp, run: Number(number), numbers }
    this.#store(store).moments.push({ timestamp, state })
  }

  /**
   * All steps of the run on the rows before it: each answer must equal the model's.
   */
  #replay(store: string, run: TableRun, at: Timestamp, where: object): Omit<ModelStep, 'result'> {
    let state = this.#store(store).moments.at(-1)?.state ?? nothing
    const numbers: ModelStep['numbers'][number][] = []
    for (const [index, step] of run.steps.entries()) {
      const moments = { asOf: run.asOf ?? 0, at }
      const made = modelStep(state, step, run.version, run.declared, moments)
      this.#compare(step, made.result, run.results[index], ruleOfStep(step, run, index), where)
      state = made.state
      numbers.push(...made.numbers)
    }
    return { state, numbers }
  }

  onCommitted(
    client: string,
    operation: string,
    told: Omit<TransactionResult<number>, 'group'>,
    atLeast: Timestamp,
  ): void {
    const one = this.#operations.get(operation)
    const effect = one?.effect
    const { position, timestamp, value, numbers } = told
    const said = { position, timestamp, run: value, numbers }
    const isTrue = effect !== undefined && describeResult(effect) === describeResult(said)
    const sentence = 'What a caller was told of its transaction is not what the log says.'
    this.#check(isTrue, 'TXN-5', sentence, { client, operation, said, effect })
    if (one === undefined || timestamp === undefined) return
    const isLater = timestamp > atLeast
    const before = 'A transaction stands before what was acknowledged when it began.'
    this.#check(isLater, 'TXN-1', before, { client, operation, timestamp, atLeast })
    this.#tell(one.store, timestamp)
  }

  /** The answer was that the operation has no effect. */
  onRefused(client: string, operation: string, code: string): void {
    const one = this.#operations.get(operation)
    if (one === undefined) return
    one.isRefused = true
    const sentence = 'A transaction that took effect was refused.'
    this.#check(one.effect === undefined, 'TXN-5', sentence, { client, operation, code })
  }

  onRead({ client, store, run, asOf, level, atLeast, atMost }: TableReading): void {
    const where = { client, store, level, asOf }
    const [rule, sentence] = placeRules[level]
    const isAtPlace = asOf >= atLeast && asOf <= atMost
    this.#check(isAtPlace, rule, sentence, { ...where, atLeast, atMost })
    if (level !== 'at') this.#tell(store, asOf)
    const state = this.stateAt(store, asOf)
    for (const [index, result] of run.results.entries()) {
      const step = run.steps[index]
      if (step === undefined || !isRead(step)) continue
      const broken = level === 'at' ? 'MVCC-1' : 'LEASE-4'
      this.#compare(
        step,
        modelRead(state, step, run.version, asOf),
        result,
        indexRule(step) ?? broken,
        where,
      )
    }
  }

  #onHold(store: string, timestamp: Timestamp, of: string, isSet: boolean): void {
    const before = this.#store(store).moments.at(-1)?.state ?? nothing
    this.#coverage.count(isSet ? 'tables: hold set' : 'tables: hold lifted')
    this.#store(store).moments.push({ timestamp, state: modelHold(before, of, isSet) })
  }

  #onRemoval(store: string, timestamp: Timestamp, offers: readonly string[]): void {
    const before = this.#store(store).moments.at(-1)?.state ?? nothing
    const { state, hadExpired } = modelRemoval(before, offers, timestamp)
    const sentence = 'A row was removed that had not expired.'
    this.#check(hadExpired, 'TTL-2', sentence, { store, timestamp, offers })
    const held = 'A row was removed for its age that is held.'
    this.#check(!isHeld(before, 'Offer'), 'HOLD-1', held, { store, timestamp, offers })
    this.#coverage.count('tables: expired rows removed')
    this.#store(store).moments.push({ timestamp, state })
  }

  /** A comparison of all entries with all rows, made by the code itself: a second opinion. */
  onIndexesChecked(node: string, store: string, faults: readonly unknown[]): void {
    const sentence = 'Entries of an index are not those of the rows.'
    this.#check(faults.length === 0, 'IDX-1', sentence, { node, store, faults: faults.slice(0, 5) })
  }

  #compare(step: TableStep, expected: unknown, told: unknown, rule: string, where: object): void {
    const [right, seen] = [resultText(step, expected), resultText(step, told)]
    this.#coverage.count(`tables: ${step.kind}${expected === heldResult ? ' of a held row' : ''}`)
    const sentence = `A ${step.kind} of rows was told something else than the log says.`
    this.#check(right === seen, rule, sentence, { ...where, step, expected: right, told: seen })
  }

  #tell(store: string, at: Timestamp): void {
    const one = this.#store(store)
    one.toldAt = Math.max(one.toldAt, at)
  }

  #store(name: string): Store {
    const known = this.#stores.get(name) ?? { moments: [], toldAt: 0, purgedAt: 0 }
    this.#stores.set(name, known)
    return known
  }

  #check(holds: boolean, rule: string, sentence: string, detail: object): void {
    this.#referee.check(holds, rule, sentence, () => ({ ...detail }))
  }
}

/**
 * Of no session, which writes a row: a relay takes changes of entries off worklists, or a build puts them
 * there, or puts entries of a local index into the group.
 */
function isOfIndex({ key }: { readonly key: Uint8Array }): boolean {
  return key[0] !== rowSpace
}

/** The table, or the group, that a hold is of, by its key. */
function heldBy(key: Uint8Array): string | undefined {
  return holdText.exec(latin1(key))?.[1]
}

/** Rows that expire and that are taken away, by the names in their keys. */
function removedOffers({ mutations }: ModelEffect['transaction']): readonly string[] {
  const rows = mutations.filter(({ key, value }) => key[0] === rowSpace && value === undefined)
  return rows.flatMap(({ key }) => /offer-[a-z]/.exec(latin1(key))?.[0] ?? [])
}

/** The rule for the entries that a read of an index gave; none for another step. */
function indexRule(step: TableStep): string | undefined {
  if ('table' in step && step.table === 'Offer') return 'TTL-1'
  if (step.kind !== 'index') return undefined
  return step.index === laterLocal ? 'IDX-14' : 'IDX-1'
}

/** Keys that were there are TXN-1, ranges and absent ones TXN-2. */
function ruleOfStep(step: TableStep, { results }: TableRun, index: number): string {
  if (step.kind === 'delete' || step.kind === 'purge') return 'HOLD-1'
  if ('table' in step && step.table === 'Offer') return 'TTL-1'
  if (step.kind === 'index' && step.index === laterLocal) return 'IDX-14'
  if (step.kind === 'scan' || step.kind === 'tree' || step.kind === 'index') return 'TXN-2'
  const result = results[index]
  const isAbsent = step.kind === 'get' && Array.isArray(result) && result.includes(undefined)
  return isAbsent ? 'TXN-2' : 'TXN-1'
}

function describeResult(
  told: Omit<Effect, 'timestamp'> & { readonly timestamp: Timestamp | undefined },
): string {
  const drawn = told.numbers.map(({ table, number }) => `${table} ${number}`)
  return `${told.position} ${told.timestamp} ${told.run} ${drawn.join()}`
}
