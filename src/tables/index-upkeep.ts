/**
 * Building a global index on rows that are there, comparing it with them, and making it right again
 * (SPEC.md "Global indexes"). All of it changes an index in the one way there is: by putting entries on
 * the agenda of the group of their row, in a transaction that has read the row.
 */
import { StoreError } from '../base/errors.ts'
import { groupOfBytes, type GroupId, type Timestamp } from '../base/ids.ts'
import { listedGroupsMax } from '../base/limits.ts'
import { keyAfter, prefixRange, type KeyRange } from '../txn/key-range.ts'
import type { GroupPort } from '../txn/group-port.ts'
import type { RawTransaction } from '../txn/raw-transaction.ts'
import { runTransaction, type Committed, type TransactionOptions } from '../txn/run.ts'
import type { ScanRange, StoredRow } from '../txn/reads.ts'
import { schemaGraceMs, upkeepBounds } from './bounds.ts'
import type { CompiledGlobal, CompiledSchema, CompiledTable } from './compiled.ts'
import { entriesOf, entryWriter } from './entries.ts'
import { madeOf } from './global-writes.ts'
import { rootOfGroup, type GroupContext } from './group-context.ts'
import { changesUnder } from './index-agenda.ts'
import { waitForGrace } from './index-grace.ts'
import { untilRelayedFrom } from './index-wait.ts'
import { decodeRowKey, rowSpace } from './row-key.ts'
import type { Values } from './row-check.ts'
import { decodeRow } from './row-value.ts'

export interface UpkeepParts {
  readonly port: GroupPort
  readonly schema: CompiledSchema
  readonly table: CompiledTable
  readonly index: CompiledGlobal
  readonly options: TransactionOptions
  /** Rows or entries that one step looks at; absent: as many as is usual. */
  readonly rowsAtOnce?: number | undefined
  /** Names of groups that begin so, behind `after`. */
  list(prefix: GroupId, after: GroupId | undefined, limit: number): Promise<readonly GroupId[]>
  /** Called after each step. */
  onProgress(progress: Progress): void
}

export interface Progress {
  readonly phase: 'waiting' | 'counting' | 'filling' | 'relaying' | 'comparing' | 'clearing'
  readonly done: number
  /** Absent while it is not known. */
  readonly total?: number
}

/** All rows of a group, of whatever table. */
export const rowRange: KeyRange = prefixRange(Uint8Array.of(rowSpace))

/** A row of the index's table, with its place. */
export interface FoundRow {
  readonly group: GroupId
  readonly values: Values
  readonly key: Uint8Array
}

/**
 * Waits until nobody writes who does not keep the index (`declaredAt` and the grace), and puts the
 * entries of all rows on agendas. Resolves when they are relayed. What is of no row stays.
 */
export async function buildIndex(
  parts: UpkeepParts,
  declaredAt: Timestamp | undefined,
  graceMs: number = schemaGraceMs,
): Promise<{ readonly groups: number; readonly rows: number }> {
  const { onProgress, options } = parts
  const { clock } = options
  if (declaredAt !== undefined) await waitForGrace({ clock, onProgress }, declaredAt, graceMs)
  const total = await countGroups(parts)
  let [groups, rows] = [0, 0]
  await forEachGroup(parts, async (group) => {
    const filled = await fillFrom(parts, group)
    rows += filled
    groups += 1
    onProgress({ phase: 'filling', done: groups, total })
  })
  await untilRelayed(parts, groups)
  return { groups, rows }
}

/** Resolves when what is on agendas now is in the index, or what took its place there. */
export async function untilRelayed(parts: UpkeepParts, total: number): Promise<void> {
  const { port, index, options } = parts
  const changes = changesUnder(entryWriter(index).bytes)
  let relayed = 0
  await forEachGroup(parts, async (group) => {
    await untilRelayedFrom(port, group, changes, options)
    relayed += 1
    parts.onProgress({ phase: 'relaying', done: relayed, total })
  })
}

/** Groups that may have rows of the table. */
export async function forEachGroup(
  { table, schema, list }: UpkeepParts,
  work: (group: GroupId) => Promise<void>,
): Promise<void> {
  const root = schema.tables.get(table.root)
  if (root === undefined) return
  const prefix = groupOfBytes(root.groupPrefix)
  for (let after: GroupId | undefined; ;) {
    const names = await list(prefix, after, listedGroupsMax)
    for (let at = 0; at < names.length; at += upkeepBounds.groupsAtOnceMax) {
      await Promise.all(names.slice(at, at + upkeepBounds.groupsAtOnceMax).map(work))
    }
    after = names.at(-1)
    if (after === undefined || names.length < listedGroupsMax) return
  }
}

export async function countGroups(parts: UpkeepParts): Promise<number> {
  let count = 0
  await forEachGroup(parts, async () => {
    count += 1
    if (count % listedGroupsMax === 0) parts.onProgress({ phase: 'counting', done: count })
  })
  return count
}

/** Puts the entries of all of the group's rows on its agenda; resolves with how many rows. */
async function fillFrom(parts: UpkeepParts, group: GroupId): Promise<number> {
  const context = contextOf(parts, group)
  if (context === undefined) return 0
  const limit = parts.rowsAtOnce ?? upkeepBounds.rowsAtOnceMax
  let rest: KeyRange | undefined = rowRange
  let rows = 0
  while (rest !== undefined) {
    const { value } = await fillPage(parts, context, rest, limit)
    rows += value.count
    rest = value.next && { gte: value.next, lt: rowRange.lt }
  }
  return rows
}

interface Page {
  /** Rows of the table. */
  readonly count: number
  /** Where the rest begins; absent when there is none. */
  readonly next: Uint8Array | undefined
}

/** Up to `limit` rows, and fewer where a transaction cannot hold the entries of so many. */
async function fillPage(
  parts: UpkeepParts,
  context: GroupContext,
  from: KeyRange,
  limit: number,
): Promise<Committed<Page>> {
  try {
    return await runTransaction(parts.port, context.group, parts.options, (transaction) =>
      putPage(parts, context, transaction, { ...from, limit }),
    )
  } catch (error) {
    const isTooLarge = error instanceof StoreError && error.code === 'too-large'
    if (!isTooLarge || limit === 1) throw error
    return await fillPage(parts, context, from, Math.floor(limit / 2))
  }
}

async function putPage(
  { table, index }: UpkeepParts,
  context: GroupContext,
  transaction: RawTransaction,
  range: ScanRange,
): Promise<Page> {
  const page = await transaction.scan(range)
  const found = page.rows.flatMap((stored) => rowIn(table, context, stored) ?? [])
  // What one node alone has accepted comes before this, or not at all: it is seen on the next run.
  transaction.takePosition()
  for (const { values } of found) putEntries(transaction, table, index, values)
  const last = page.rows.at(-1)?.key
  const next = page.isWhole || last === undefined ? undefined : keyAfter(last)
  return { next, count: found.length }
}

function putEntries(
  transaction: RawTransaction,
  table: CompiledTable,
  index: CompiledGlobal,
  values: Values,
): void {
  for (const entry of entriesOf(table, index, values).values()) {
    const { key, value } = madeOf(table, index, values, entry)
    transaction.put(key, value)
  }
}

export function contextOf({ schema }: UpkeepParts, group: GroupId): GroupContext | undefined {
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
