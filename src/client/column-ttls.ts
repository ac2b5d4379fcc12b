/** The TTLs of a datastore's columns, as programs set them. */
import { checkOptions } from '../base/arguments.ts'
import { toStoreError } from '../base/problem.ts'
import {
  checkTtl,
  clearColumnTtl,
  readColumnTtls,
  setColumnTtl,
  type ColumnTtl,
} from '../cells/column-ttl.ts'
import { nameProblem } from '../cells/cell.ts'
import type { CellService, SpreadIndexes } from '../cells/operation.ts'
import type { Ttl } from '../../schema/ttl.ts'
import type { Tables } from '../tables/tables.ts'
import { checkSignal } from '../txn/signalled.ts'
import { notAnAnswer } from './call.ts'
import { checkDatastore } from './cell-indexes.ts'
import type { WriteOptions } from './options.ts'
import { writeRules } from './rules.ts'

export interface ColumnTtlsParts {
  readonly service: CellService
  readonly tables: Tables
  readonly timeoutMs: number
}

export class ColumnTtls {
  readonly datastore: string
  readonly #parts: ColumnTtlsParts

  constructor(parts: ColumnTtlsParts, datastore: string) {
    this.#parts = parts
    this.datastore = datastore
  }

  /** Of the columns that have one, in the order of their names. */
  async list(options: WriteOptions = {}): Promise<readonly ColumnTtl[]> {
    checkDatastore(this.datastore)
    checkOptions('cells.ttls.list', options, writeRules)
    return readColumnTtls(this.#parts.tables, this.datastore, options)
  }

  /**
   * Cells that are put to the column from now on expire this time after they were added: `'30 days'`, from 1 second
   * to 36500 days. Each node goes by it within 10 seconds. Cells that are there keep what they have.
   */
  async set(column: string, ttl: Ttl, options: WriteOptions = {}): Promise<void> {
    this.#check('cells.ttls.set', column, options)
    const seconds = checkTtl(ttl)
    await setColumnTtl(this.#parts.tables, this.datastore, { column, ttl: seconds }, options)
    await this.#spread(options)
  }

  /** Cells that are put from now on stay. Rejects with `not-found` when the column has no TTL. */
  async clear(column: string, options: WriteOptions = {}): Promise<void> {
    this.#check('cells.ttls.clear', column, options)
    await clearColumnTtl(this.#parts.tables, this.datastore, column, options)
    await this.#spread(options)
  }

  #check(call: string, column: string, options: WriteOptions): void {
    checkDatastore(this.datastore)
    checkOptions(call, options, writeRules)
    const wrong = nameProblem({ column })
    if (wrong !== undefined) throw toStoreError(wrong)
  }

  /** Every replica set hears of it. A call that was interrupted goes on when it is sent again. */
  async #spread({ timeoutMs = this.#parts.timeoutMs, signal }: WriteOptions): Promise<void> {
    const { datastore } = this
    const operation: SpreadIndexes = { kind: 'spread-indexes', datastore }
    const { answer } = await this.#parts.service.execute(operation, { timeoutMs, signal })
    if (answer.kind === 'problem') throw toStoreError(answer.problem)
    if (answer.kind !== operation.kind) throw toStoreError(notAnAnswer)
    checkSignal(signal)
  }
}
