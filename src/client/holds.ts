/** Legal holds, as programs set them: of a group of tables, of a table there, of cells. */
import { checkOptions } from '../base/arguments.ts'
import { mapConcurrently } from '../base/concurrency.ts'
import { StoreError } from '../base/errors.ts'
import { toStoreError } from '../base/problem.ts'
import type { GroupId } from '../base/ids.ts'
import { nameProblem } from '../cells/cell.ts'
import { allShardsOf, shardGroup, shardOf } from '../cells/shard.ts'
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import type { GroupPort } from '../group/group-port.ts'
import { clearHold, listHolds, setHold, type Hold, type HoldScope } from '../tables/holds.ts'
import type { RootKey } from '../tables/tables.ts'
import type { TransactionOptions } from '../txn/run.ts'
import type { IntentSource } from '../txn/session.ts'
import { checkSignal } from '../txn/signalled.ts'
import { checkDatastore } from './cell-indexes.ts'
import type { Groups } from './groups.ts'
import { listShards } from './listed-shards.ts'
import type { WriteOptions } from './options.ts'
import { writeRules } from './rules.ts'

/** All rows of a group, or those of one of its tables; all cells of a datastore, or those of a row key. */
export type HoldTarget =
  | {
      readonly db: HeldTables
      readonly key: RootKey
      readonly table?: { readonly name: string }
    }
  | { readonly datastore: string; readonly rowKey?: string }

/** The tables of a schema (`client.tables`). */
export interface HeldTables {
  group(key: RootKey): GroupId
  read(
    key: RootKey,
    level: 'snapshot',
    run: (rows: PlainRows) => Promise<unknown>,
    options?: WriteOptions,
  ): Promise<unknown>
}

interface PlainRows {
  scan(table: { readonly name: string }, query: object, options: object): Promise<unknown>
}

export interface HoldsParts {
  readonly groups: GroupPort & Pick<Groups, 'list'>
  readonly clock: Clock
  readonly random: Random
  readonly intents: IntentSource
  readonly timeoutMs: number
}

/** Shards of a datastore in one turn. */
const shardsAtOnce = 64

export class Holds {
  readonly #parts: HoldsParts

  constructor(parts: HoldsParts) {
    this.#parts = parts
  }

  /** From now on nothing of the target is deleted, purged or removed for its age. Set again, it has the new reason. */
  async set(target: HoldTarget, reason: string, options: WriteOptions = {}): Promise<void> {
    checkOptions('client.holds.set', options, writeRules)
    const { groups, scope } = place(target)
    if ('db' in target && target.table !== undefined) await checkTable(target.db, target, options)
    await this.#each(groups, options, (group) =>
      setHold(this.#parts.groups, group, { scope, reason }, this.#options(options)),
    )
  }

  /** Resolves with whether there was a hold of the target. */
  async clear(target: HoldTarget, options: WriteOptions = {}): Promise<boolean> {
    checkOptions('client.holds.clear', options, writeRules)
    const { groups, scope } = place(target)
    const found = await this.#each(groups, options, (group) =>
      clearHold(this.#parts.groups, group, scope, this.#options(options)),
    )
    return found.includes(true)
  }

  /** All holds of the target's group, or of the shards of a datastore, those of parts of it among them. */
  async list(target: HoldTarget, options: WriteOptions = {}): Promise<readonly Hold[]> {
    checkOptions('client.holds.list', options, writeRules)
    const { clock } = this.#parts
    const { timeoutMs = this.#parts.timeoutMs } = options
    const found = await this.#each(
      await this.#written(target, timeoutMs, options),
      options,
      (group) => listHolds(this.#parts.groups, group, { clock, timeoutMs }),
    )
    // A datastore that is held is so in each of its shards.
    const known = new Map(found.flat().map((hold) => [hold.scope.join('/'), hold]))
    return [...known.values()]
  }

  /** The groups of the target that may have a hold: a hold that was set is a commit, and a current read shows it. */
  async #written(
    target: HoldTarget,
    timeoutMs: number,
    { signal }: WriteOptions,
  ): Promise<readonly GroupId[]> {
    const { groups } = place(target)
    if (!('datastore' in target) || target.rowKey !== undefined) return groups
    const { datastore } = target
    const call = signal === undefined ? {} : { signal }
    const shards = await listShards(this.#parts.groups, datastore, timeoutMs, call)
    return shards.map((shard) => shardGroup(datastore, shard))
  }

  #each<Value>(
    groups: readonly GroupId[],
    { signal }: WriteOptions,
    work: (group: GroupId) => Promise<Value>,
  ): Promise<readonly Value[]> {
    return mapConcurrently(groups, shardsAtOnce, (group) => {
      checkSignal(signal)
      return work(group)
    })
  }

  #options({ timeoutMs = this.#parts.timeoutMs }: WriteOptions): TransactionOptions {
    const { clock, random, intents } = this.#parts
    return { clock, random, intents, timeoutMs }
  }
}

/** A hold of a table that the schema does not have would hold nothing. */
async function checkTable(
  db: HeldTables,
  { key, table }: { readonly key: RootKey; readonly table?: { readonly name: string } },
  options: WriteOptions,
): Promise<void> {
  if (table === undefined) return
  await db.read(key, 'snapshot', (rows) => rows.scan(table, {}, { limit: 1 }), options)
}

function place(target: HoldTarget): {
  readonly groups: readonly GroupId[]
  readonly scope: HoldScope
} {
  if ('datastore' in target) {
    const { datastore, rowKey } = target
    checkDatastore(datastore)
    if (rowKey === undefined) {
      return {
        groups: allShardsOf(datastore).map((shard) => shardGroup(datastore, shard)),
        scope: ['cells'],
      }
    }
    const wrong = nameProblem({ rowKey })
    if (wrong !== undefined) throw toStoreError(wrong)
    const groups = [shardGroup(datastore, shardOf(datastore, rowKey))]
    return { groups, scope: ['cells', rowKey.toLowerCase()] }
  }
  const { db, key, table } = target
  if (table !== undefined && typeof table.name !== 'string') {
    throw new StoreError('invalid', 'client.holds: table is a table of the schema, or left out')
  }
  return { groups: [db.group(key)], scope: table === undefined ? ['group'] : ['table', table.name] }
}
