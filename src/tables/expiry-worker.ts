/**
 * Removes rows that have expired, at each node for the groups that it serves (`worklist/worklist-worker.ts`). Reads
 * do not see such a row any more, so it does not matter when it goes: the worker looks through a group when the
 * first of its rows falls due, and not more often than every few seconds.
 *
 * TTL-2  A row is removed by a transaction that has read it, at a view by whose timestamp it had expired. So no
 *        clock decides, and a row that is written anew meanwhile has the transaction run again, and stays.
 *
 * The clock of this node tells when to look. Where the group's log has seen no entry since a row fell due, the
 * worker has it take a position first: entries have later timestamps, and then reads do not see the row either.
 */
import { StoreError } from '../base/errors.ts'
import type { GroupId, Timestamp } from '../base/ids.ts'
import type { GroupPort } from '../group/group-port.ts'
import { isAtEnd, type LocalReplica } from '../group/replica-port.ts'
import { schemaTrustMs } from '../indexes/limits.ts'
import { Trusted } from '../indexes/trusted.ts'
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import { keyAfter } from '../txn/key-range.ts'
import { LocalGroups } from '../txn/local-groups.ts'
import type { RawTransaction } from '../txn/raw-transaction.ts'
import { runTransaction, type TransactionOptions } from '../txn/run.ts'
import { Sessions } from '../txn/session.ts'
import {
  WorklistWorker,
  worklistBounds,
  type Served,
  type WorklistBounds,
} from '../worklist/worklist-worker.ts'
import { compileSchema } from './compile.ts'
import type { CompiledSchema } from './compiled.ts'
import { expiresAt, expiryNote, expiryTopic, isGone, type KeyedRow } from './expiry.ts'
import { rootOfGroup, schemaOfGroup, type GroupContext } from './group-context.ts'
import { IndexLag } from './index-lag.ts'
import { rowRange } from './index-parts.ts'
import { expiryBounds, relayPageBytesMax } from './limits.ts'
import { readSchema } from './registry.ts'
import { decodeRowKey } from './row-key.ts'
import { SweepTimes } from './sweep-times.ts'
import { RowWrites } from './write-rows.ts'

export interface ExpiryWorkerParts {
  readonly replica: LocalReplica
  /** All that may hold a schema; the groups of this node, when it is absent. */
  readonly groups?: GroupPort
  readonly clock: Clock
  readonly random: Random
  /** How long the worker goes by a schema that it has read; as usual when absent. */
  readonly schemaTrustMs?: number | undefined
  readonly bounds?: WorklistBounds | undefined
  /** Between two looks through a group, in milliseconds; as usual when absent. */
  readonly sweepMs?: number | undefined
  /** Told of each failure. */
  readonly onFailed?: (error: unknown) => void
}

export interface ExpiryFigures {
  /** Expired rows that this node has removed since it began. */
  readonly removed: number
  /** Expired rows that stay, since rows that restrict are below them or too many go along. */
  readonly heldBack: number
  /** How long ago the oldest row expired that was left at the last look at its group, in milliseconds; 0: none was. */
  readonly oldestDueMs: number
  /** Of the newest ones that went: the time from the moment at which they expired, in milliseconds. */
  readonly lagP50Ms?: number
  readonly lagP99Ms?: number
  readonly lagMaxMs?: number
  /** Groups that wait to be looked through, or are. */
  readonly busyGroups: number
  readonly failures: number
}

/** An expired row. */
interface Due extends KeyedRow {
  readonly moment: Timestamp
}

export class ExpiryWorker {
  readonly #parts: ExpiryWorkerParts
  readonly #worker: WorklistWorker
  readonly #groups: GroupPort
  readonly #schemas = new Map<string, Trusted<CompiledSchema | undefined>>()
  readonly #times: SweepTimes
  readonly #lag = new IndexLag()
  #sessions: Sessions | undefined
  #heldBack = 0
  #failures = 0

  constructor(parts: ExpiryWorkerParts) {
    this.#parts = parts
    const { replica, clock, random } = parts
    this.#groups = parts.groups ?? new LocalGroups(replica)
    const { sweepMs = expiryBounds.sweepMs } = parts
    this.#times = new SweepTimes(clock, { ...expiryBounds, sweepMs })
    this.#worker = new WorklistWorker({
      topic: expiryTopic,
      worklist: replica.worklist,
      clock,
      random,
      bounds: parts.bounds ?? worklistBounds,
      serve: (group) => this.#serve(group),
      onFailed: (_group, error) => {
        this.#failures += 1
        parts.onFailed?.(error)
      },
    })
  }

  start(): void {
    this.#worker.start()
  }

  /** Begins nothing more; resolves when the work under way has ended. */
  stop(): Promise<void> {
    return this.#worker.stop()
  }

  get figures(): ExpiryFigures {
    const { relayed: removed, ...lag } = this.#lag.figures
    const { busyGroups } = this.#worker
    const oldestDueMs = this.#times.oldestDueMs()
    const heldBack = this.#heldBack
    return { removed, heldBack, oldestDueMs, ...lag, busyGroups, failures: this.#failures }
  }

  async #serve(group: GroupId): Promise<Served> {
    const { replica, clock } = this.#parts
    const { position, timestamp } = await replica.read(group, 'snapshot', expiryBounds.callMs)
    // The log may be ahead of this clock.
    const now = Math.max(clock.wallMicros(), timestamp)
    const note = replica.get(group, expiryNote)
    const schema = schemaOfGroup(group)
    if (note === undefined || schema === undefined) {
      this.#times.forget(group)
      return { kind: 'empty', position }
    }
    const waitMs = this.#times.waitMs(group, note.timestamp)
    if (waitMs > 0) return { kind: 'later', delayMs: waitMs, position }
    const putOffMs = this.#times.putOff(group, note.timestamp, now)
    if (putOffMs !== undefined) return { kind: 'later', delayMs: putOffMs, position }
    const next = await this.#sweep(schema, group, now)
    if (next === undefined && (await this.#takeOff(group, note.timestamp))) {
      this.#times.forget(group)
      return { kind: 'again' }
    }
    const delayMs = this.#times.note(group, note.timestamp, next ?? now, now)
    return { kind: 'later', delayMs, position }
  }

  /** Removes what is due; resolves with the moment at which the next row is, and without when no row expires. */
  async #sweep(name: string, group: GroupId, now: Timestamp): Promise<Timestamp | undefined> {
    const { replica } = this.#parts
    const context = await this.#context(name, group)
    if (context === undefined) return undefined
    let next: Timestamp | undefined
    const see = (moment: Timestamp): void => {
      next = Math.min(moment, next ?? moment)
    }
    let { gte } = rowRange
    for (;;) {
      const { rowsAtOnce: limit } = expiryBounds
      const asked = { gte, lt: rowRange.lt, limit, bytesMax: relayPageBytesMax }
      const page = await replica.scan(group, asked)
      const due: Due[] = []
      for (const stored of page) {
        const found = decodeRowKey(context, stored.key)
        const row = found && { ...found, stored }
        const moment = row && expiresAt(row)
        if (row === undefined || moment === undefined) continue
        if (moment <= now) due.push({ ...row, moment })
        else see(moment)
      }
      if (due.length > 0 && !(await this.#remove(name, group, due))) {
        see(Math.min(...due.map(({ moment }) => moment)))
      }
      const last = page.at(-1)
      if (last === undefined || isAtEnd(page, asked)) return next
      gte = keyAfter(last.key)
    }
  }

  /** Whether all of them are gone. */
  async #remove(name: string, group: GroupId, due: readonly Due[]): Promise<boolean> {
    let removed = await this.#removeSome(name, group, due)
    // The log stood still since they expired; by its next entry they have.
    if (removed === 'not-yet') removed = await this.#removeSome(name, group, due)
    if (removed === 'not-yet') return false
    const now = this.#parts.clock.wallMicros()
    for (const { moment } of removed.gone) this.#lag.add(moment, now)
    this.#heldBack += removed.held
    return removed.held === 0
  }

  async #removeSome(
    name: string,
    group: GroupId,
    due: readonly Due[],
  ): Promise<Removed | 'not-yet'> {
    try {
      const done = await runTransaction(
        this.#groups,
        group,
        this.#options(),
        async (transaction) => {
          // The indexes that there are by now.
          const context = await this.#context(name, group)
          return context === undefined ? nothing : removeDue(transaction, context, due)
        },
      )
      return done.value
    } catch (error) {
      if (!(error instanceof StoreError) || error.code !== 'too-large') throw error
      if (due.length === 1) return { gone: [], held: 1 }
      const half = Math.ceil(due.length / 2)
      const first = await this.#removeSome(name, group, due.slice(0, half))
      const second = await this.#removeSome(name, group, due.slice(half))
      if (first === 'not-yet' || second === 'not-yet') return 'not-yet'
      return { gone: [...first.gone, ...second.gone], held: first.held + second.held }
    }
  }

  /** The group has no row that expires: resolves with whether that still holds. */
  async #takeOff(group: GroupId, noteAt: Timestamp): Promise<boolean> {
    const { value } = await runTransaction(
      this.#groups,
      group,
      this.#options(),
      async (transaction) => {
        const note = await transaction.get(expiryNote)
        if (note?.timestamp !== noteAt) return false
        transaction.delete(expiryNote)
        return true
      },
    )
    return value
  }

  async #context(name: string, group: GroupId): Promise<GroupContext | undefined> {
    const known = this.#schemas.get(name) ?? this.#watch(name)
    const schema = await known.fresh()
    const found = schema && rootOfGroup(schema, group)
    return schema && found && { schema, ...found, group }
  }

  #watch(name: string): Trusted<CompiledSchema | undefined> {
    const { clock, schemaTrustMs: trustMs = schemaTrustMs } = this.#parts
    const look = async (): Promise<CompiledSchema | undefined> => {
      const version = await readSchema(this.#groups, name, {
        clock,
        timeoutMs: expiryBounds.callMs,
      })
      return version && compileSchema(version)
    }
    const watched = new Trusted({ clock, trustMs, look })
    this.#schemas.set(name, watched)
    return watched
  }

  #options(): TransactionOptions {
    const { clock, random } = this.#parts
    this.#sessions ??= new Sessions(clock, random)
    return { clock, random, intents: this.#sessions, timeoutMs: expiryBounds.callMs }
  }
}

interface Removed {
  readonly gone: readonly Due[]
  /** How many are not removed for now. */
  readonly held: number
}

const nothing: Removed = { gone: [], held: 0 }

/** Of these rows those that have expired at the transaction's view, with what goes along. */
async function removeDue(
  transaction: RawTransaction,
  context: GroupContext,
  due: readonly Due[],
): Promise<Removed | 'not-yet'> {
  const { asOf = 0 } = await transaction.view()
  if (due.every(({ moment }) => moment > asOf)) {
    transaction.takePosition()
    return 'not-yet'
  }
  const writes = new RowWrites(transaction, context)
  const rows = await transaction.getMany(due.map(({ stored }) => stored.key))
  const gone: Due[] = []
  let held = 0
  for (const [place, one] of due.entries()) {
    const stored = rows[place]
    // Written anew since, or gone.
    if (stored === undefined || !isGone({ ...one, stored }, asOf)) continue
    try {
      await writes.deleteAt(one.table, stored.key, one.values)
      gone.push(one)
    } catch (error) {
      if (!(error instanceof StoreError) || error.code !== 'invalid') throw error
      held += 1
    }
  }
  return { gone, held }
}
