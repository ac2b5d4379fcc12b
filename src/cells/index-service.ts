/**
 * The indexes over cells as a node has them: which ones a put keeps, which one a query asks, and
 * dropping one.
 *
 * IDX-8  What it goes by it has from its own replica set.
 */
import { assert } from '../base/assert.ts'
import type { StoreError } from '../base/errors.ts'
import type { GroupId } from '../base/ids.ts'
import type { Clock } from '../ports/clock.ts'
import { isAsked, notAsked } from '../indexes/state.ts'
import type { Tables } from '../tables/tables.ts'
import { findDatastoreGroup } from './cell-table.ts'
import { shardCountOf } from './datastore-form.ts'
import { copyName, oneSet, spreadDefinitions, type ReplicaSets } from './index-copies.ts'
import { isOverColumn, type NumberedIndex } from './index-definition.ts'
import { dropIndex, type DropProgress } from './index-drop.ts'
import {
  damagedIndex,
  indexNamed,
  KeptIndexes,
  type Definitions,
  type KnownIndex,
} from './index-registry.ts'
import type { DropIndex } from './operation.ts'

export interface IndexServiceParts {
  /** Of definitions. */
  readonly tables: Tables
  /** Of the cells of a datastore, and of entries of its indexes. */
  tablesOf(datastore: string): Tables
  readonly clock: Clock
  /** How long a node trusts the definitions that it has read. */
  readonly trustMs: number
  readonly sets?: ReplicaSets | undefined
  /** Of an index whose stored definition cannot be read. */
  readonly noteDamaged?: (error: StoreError) => void
  /** Names of groups of all sets that begin so, behind `after`. */
  list(
    prefix: GroupId,
    after: GroupId | undefined,
    limit: number,
    timeoutMs: number,
  ): Promise<readonly GroupId[]>
}

/** The rules for a write of cells of a column. */
export interface ColumnRules {
  /** Those that it has to keep. */
  readonly indexes: readonly NumberedIndex[]
  /** Seconds that a cell which is put lives; absent: it stays. */
  readonly ttl: number | undefined
}

export class IndexService {
  readonly #parts: IndexServiceParts
  readonly #sets: ReplicaSets
  readonly #kept: KeptIndexes

  constructor(parts: IndexServiceParts) {
    const { sets = oneSet } = parts
    this.#parts = parts
    this.#sets = sets
    const nameCopy = (datastore: string): string => {
      const name = copyName(datastore, sets.own, sets)
      const isOwn = sets.setOf(findDatastoreGroup(name)) === sets.own
      assert(isOwn, 'IDX-8: a node goes by the definitions that its own set has')
      return name
    }
    this.#kept = new KeptIndexes({ nameCopy, ...parts })
  }

  /** The rules for a write of a cell; of any column, when none is named. */
  over(datastore: string, column?: string): ColumnRules | Promise<ColumnRules> {
    const known = this.#kept.of(datastore)
    if (known instanceof Promise) return known.then((found) => rulesOf(found, column))
    return rulesOf(known, column)
  }

  async toAsk(datastore: string, name: string): Promise<KnownIndex> {
    const kept = await this.#kept.of(datastore)
    const found = kept.indexes.find(({ definition }) => definition.name === name)
    if (found !== undefined && isAsked(found.state) && !found.isDamaged) return found
    const { indexes } = await this.#kept.now(datastore)
    const now = indexNamed(indexes, datastore, name)
    if (now.isDamaged && now.state !== 'dropping') throw damagedIndex(now.definition)
    if (isAsked(now.state)) return now
    throw notAsked({ name, flags: `--datastore ${datastore}` }, now.state)
  }

  async spread(datastore: string, deadlineMs: number): Promise<void> {
    await spreadDefinitions({ ...this.#parts, sets: this.#sets, deadlineMs }, datastore)
    this.#kept.forget(datastore)
  }

  async drop(operation: DropIndex, deadlineMs: number): Promise<DropProgress> {
    const { datastore } = operation
    const tables = this.#parts.tablesOf(datastore)
    const parts = { ...this.#parts, tables, sets: this.#sets, deadlineMs }
    const progress = await dropIndex(parts, { ...operation, shardCount: shardCountOf(datastore) })
    this.#kept.forget(datastore)
    return progress
  }
}

function rulesOf({ indexes, ttls }: Definitions, column: string | undefined): ColumnRules {
  const kept = keptOver(indexes, column)
  return { indexes: kept, ttl: column === undefined ? undefined : ttls.get(column) }
}

function keptOver(
  indexes: readonly KnownIndex[],
  column: string | undefined,
): readonly NumberedIndex[] {
  return indexes.flatMap(({ definition, state, isDamaged }) => {
    const isOver = !isDamaged && (column === undefined || isOverColumn(definition, column))
    assert(!isOver || definition.fields.length > 0, 'IDX-11: a damaged index is kept by nobody')
    return isOver && state !== 'dropping' ? [definition] : []
  })
}
