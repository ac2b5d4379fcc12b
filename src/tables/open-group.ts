/** Transactions and reads in one group. */
import { present } from '../base/assert.ts'
import { checkOptions } from '../base/arguments.ts'
import { asPromise } from '../base/as-promise.ts'
import type { GroupId } from '../base/ids.ts'
import type { Table } from '../../schema/table.ts'
import { transactionTimeoutMs } from '../txn/limits.ts'
import type { GroupPort, ReadFrom } from '../group/group-port.ts'
import type { LockOptions } from '../txn/locks.ts'
import { runRead, type ReadOptions } from '../txn/run-read.ts'
import { runTransaction, type TransactionOptions } from '../txn/run.ts'
import { signalled } from '../txn/signalled.ts'
import { checkOutside } from '../txn/scope.ts'
import type { IndexReport } from '../indexes/report.ts'
import { compareIndexes } from './check-indexes.ts'
import type { GroupContext } from './group-context.ts'
import { Reader, Transaction, type InsertedRow } from './handles.ts'
import { RowReads } from './read-rows.ts'
import { makeGate, type IndexGate } from './index-gate.ts'
import { keyInWords } from './row-key.ts'
import { checkRun } from './given.ts'
import { callRules, readFrom, transactionRules } from './rules.ts'
import type {
  CallOptions,
  GroupTables,
  ReadLevel,
  ReadResult,
  TablesOptions,
  TransactionCallOptions,
  TransactionResult,
} from './tables.ts'
import type { GroupReader, GroupTransaction } from './types.ts'

export type OpenOptions = TablesOptions & Required<Pick<TablesOptions, 'intents'>>

export class OpenGroup<Of extends readonly Table[]> implements GroupTables<Of> {
  #context: GroupContext
  readonly #port: GroupPort
  readonly #options: OpenOptions

  constructor(context: GroupContext, port: GroupPort, options: OpenOptions) {
    this.#context = context
    this.#port = port
    this.#options = options
  }

  get group(): GroupId {
    return this.#context.group
  }

  transaction<Value>(
    run: (tx: GroupTransaction<Of>) => Promise<Value>,
    call: TransactionCallOptions = {},
  ): Promise<TransactionResult<Value>> {
    return asPromise(() => {
      checkRun('db.transaction', run)
      checkOptions('db.transaction', call, transactionRules)
      const { scope, locks } = this.#options
      checkOutside(scope, 'db.transaction')
      if (call.lock === undefined || locks === undefined) return this.#transact(call, run)
      const lock = buildLockOptions(call.lock, call.timeoutMs ?? this.#options.timeoutMs)
      const { signal } = call
      const source = (signal && locks.until?.(signal)) ?? locks
      return signalled(signal, () =>
        source.withLock(this.group, lock, () => this.#transact(call, run)),
      )
    })
  }

  read<Value>(
    level: ReadLevel,
    run: (rows: GroupReader<Of>) => Promise<Value>,
    call: CallOptions = {},
  ): Promise<ReadResult<Value>> {
    return asPromise(() => {
      checkRun('db.read', run)
      checkOptions('db.read', call, callRules)
      checkOutside(this.#options.scope, 'db.read')
      const from = readFrom('db.read', level)
      const gate = this.#gate(from.kind)
      return runRead(this.#port, this.group, from, this.#buildReadOptions(call), (reads) =>
        run(new Reader<Of>(new RowReads(reads.rows, this.#context, gate), reads.turn)),
      )
    })
  }

  async checkIndexes(call: CallOptions = {}): Promise<IndexReport> {
    checkOptions('db.checkIndexes', call, callRules)
    const from = { kind: 'current' } as const
    const { watch } = this.#options
    // One that is not ready lacks entries, or has some of rows that are gone.
    const isCompared = ({ name }: { readonly name: string }): boolean =>
      watch === undefined || watch.findLife(name).state === 'ready'
    await watch?.trusted()
    const read = await runRead(
      this.#port,
      this.group,
      from,
      this.#buildReadOptions(call),
      (reads) => compareIndexes(reads, this.#context, isCompared),
    )
    return read.value
  }

  #gate(from: ReadFrom['kind']): IndexGate | undefined {
    const { watch } = this.#options
    return watch && makeGate(watch, from)
  }

  #buildReadOptions({
    timeoutMs = this.#options.timeoutMs,
    atLeast,
    signal,
  }: CallOptions): ReadOptions {
    const { clock, isBounded } = this.#options
    return { clock, timeoutMs, atLeast, isBounded, signal }
  }

  async #transact<Value>(
    call: TransactionCallOptions,
    run: (tx: GroupTransaction<Of>) => Promise<Value>,
  ): Promise<TransactionResult<Value>> {
    const { scope } = this.#options
    const { group } = this
    const committed = await runTransaction(
      this.#port,
      group,
      this.#buildOptions(call),
      async (raw) => {
        const inserted: InsertedRow[] = []
        // Of a schema that stays there is nothing to wait for.
        const keptUp = this.#keepUp()
        if (keptUp !== undefined) await keptUp
        const rows = new RowReads(raw, this.#context, this.#gate(call.from ?? 'current'))
        const tx = new Transaction<Of>(rows, raw, inserted)
        const value = await (scope === undefined ? run(tx) : scope.inside(() => run(tx)))
        return { value, inserted }
      },
    )
    const { position, timestamp, sequences, runs } = committed
    const { value, inserted } = committed.value
    for (const row of inserted) row.settle(sequences)
    return { value, group, position, timestamp, numbers: listNumbers(inserted), runs }
  }

  /** A write is kept in all indexes that there are by now. */
  #keepUp(): Promise<void> | undefined {
    const { watch } = this.#options
    if (watch === undefined) return undefined
    const take = (): void => {
      if (this.#context.schema === watch.compiled) return
      const { values, root } = this.#context
      const table = present(watch.compiled.tables.get(root.name), 'TAB-6: a table stays')
      this.#context = { schema: watch.compiled, root: table, values, group: this.group }
    }
    const looking = watch.trusted()
    if (looking !== undefined) return looking.then(take)
    take()
    return undefined
  }

  #buildOptions(call: TransactionCallOptions): TransactionOptions {
    const { clock, random, intents, limits, timeoutMs, rerunsMax, isBounded } = this.#options
    const { atLeast, from, intent, signal } = call
    const nameKey = (key: Uint8Array): string => keyInWords(this.#context, key)
    // Spelled out: of all that a transaction makes, spreading objects took the longest.
    return {
      clock,
      random,
      limits,
      intents,
      atLeast,
      from,
      intent,
      nameKey,
      isBounded,
      signal,
      timeoutMs: call.timeoutMs ?? timeoutMs,
      rerunsMax: call.rerunsMax ?? rerunsMax,
    }
  }
}

/** As long as the transaction may take: it is waited for in half of that. */
function buildLockOptions(name: string, holdMs: number = transactionTimeoutMs): LockOptions {
  return { name, holdMs, waitMs: Math.ceil(holdMs / 2) }
}

function listNumbers(inserted: readonly InsertedRow[]): TransactionResult<unknown>['numbers'] {
  return inserted
    .filter(({ isNumbered }) => isNumbered)
    .map(({ table, number }) => ({ table, number }))
}
