/**
 * The parts that the upkeep of an index of tables works on: the index, the groups that may have rows of its
 * table, and a row with its entries.
 */
import { mapConcurrently } from '../base/concurrency.ts'
import { groupOfBytes, type GroupId } from '../base/ids.ts'
import { listedGroupsMax } from '../base/limits.ts'
import type { GroupPort } from '../group/group-port.ts'
import { type KeyRange } from '../group/outcome.ts'
import { upkeepBounds } from '../indexes/limits.ts'
import type { MisfitRows } from '../indexes/misfits.ts'
import type { Progress } from '../indexes/report.ts'
import { prefixRange } from '../txn/key-range.ts'
import type { StoredRow } from '../txn/reads.ts'
import type { TransactionOptions } from '../txn/run.ts'
import {
  isGlobal,
  type CompiledGlobal,
  type CompiledIndex,
  type CompiledSchema,
  type CompiledTable,
} from './compiled.ts'
import { buildEntries, type Entry } from './entries.ts'
import { fitsIndex } from './global-writes.ts'
import { rootOfGroup, type GroupContext } from './group-context.ts'
import type { Values } from './row-check.ts'
import { decodeRowKey, keyInWords, rowSpace } from './row-key.ts'
import { decodeRow } from './row-value.ts'

export interface UpkeepParts {
  readonly port: GroupPort
  readonly schema: CompiledSchema
  readonly table: CompiledTable
  readonly index: CompiledIndex
  readonly options: TransactionOptions
  /** Rows or entries that one step looks at; absent: as many as is usual. */
  readonly rowsAtOnce?: number | undefined
  /** Names of groups that begin so, behind `after`. */
  list(prefix: GroupId, after: GroupId | undefined, limit: number): Promise<readonly GroupId[]>
  /** Throws when the index is not wanted any more; asked now and then during long work. */
  checkWanted?(): Promise<void>
  /** Called after each step. */
  onProgress(progress: Progress): void
  /** Rows with values that are too long for the index. */
  readonly misfits: MisfitRows
}

export type GlobalUpkeep = UpkeepParts & { readonly index: CompiledGlobal }

export function isOfGlobal(parts: UpkeepParts): parts is GlobalUpkeep {
  return isGlobal(parts.index)
}

/** Where a pass over the groups begins, and a callback that hears how far it has come. */
export interface Pass {
  /** Behind this group. */
  readonly after?: GroupId | undefined
  /** All groups up to this one are done. */
  onDone?(to: GroupId): Promise<void>
}

/** All rows of a group, of whatever table. */
export const rowRange: KeyRange = prefixRange(Uint8Array.of(rowSpace))

/** A row of the index's table, with its place. */
export interface FoundRow {
  readonly group: GroupId
  readonly values: Values
  readonly key: Uint8Array
}

/** Groups that may have rows of the table. */
export async function forEachGroup(
  { table, schema, list, checkWanted }: UpkeepParts,
  work: (group: GroupId) => Promise<void>,
  { after: from, onDone }: Pass = {},
): Promise<void> {
  const root = schema.tables.get(table.root)
  if (root === undefined) return
  const prefix = groupOfBytes(root.groupPrefix)
  for (let after = from; ;) {
    await checkWanted?.()
    const names = await list(prefix, after, listedGroupsMax)
    await mapConcurrently(names, upkeepBounds.groupsAtOnceMax, work)
    after = names.at(-1)
    if (after === undefined || names.length < listedGroupsMax) return
    await onDone?.(after)
  }
}

export async function countGroups(parts: UpkeepParts, { after }: Pass = {}): Promise<number> {
  let count = 0
  const add = async (): Promise<void> => {
    count += 1
    if (count % listedGroupsMax === 0) parts.onProgress({ phase: 'counting', done: count })
  }
  await forEachGroup(parts, add, { after })
  return count
}

/** The entries that the row has in the index; a value that is too long for it goes to `misfits`. */
export function fittingEntries(parts: UpkeepParts, row: FoundRow): readonly Entry[] {
  const { table, index, misfits } = parts
  const all = [...buildEntries(table, index, row.values).values()]
  const fitting = all.filter((entry) => fitsIndex(index, entry))
  if (fitting.length < all.length) misfits.add(row, () => describeRow(parts, row))
  return fitting
}

/** The row's key, for people. */
function describeRow(parts: UpkeepParts, { group, key }: FoundRow): string {
  const context = findContext(parts, group)
  return context === undefined ? '' : keyInWords(context, key)
}

export function findContext({ schema }: UpkeepParts, group: GroupId): GroupContext | undefined {
  const found = rootOfGroup(schema, group)
  return found && { schema, root: found.root, values: found.values, group }
}

/** The row, if it is one of the table. */
export function rowIn(
  table: CompiledTable,
  context: GroupContext,
  stored: StoredRow,
): FoundRow | undefined {
  const found = decodeRowKey(context, stored.key)
  if (found?.table !== table) return undefined
  const values = decodeRow(table, found.values, stored.value)
  return { group: context.group, values, key: stored.key }
}
