/**
 * Building a global index on rows that are there, comparing it with them, and making it right again
 * (SPEC.md "Global indexes"). All of it changes an index in the one way there is: by putting entries on
 * the worklist of the group of their row, in a transaction that has read the row.
 */
import { mapConcurrently } from '../base/concurrency.ts'
import { StoreError } from '../base/errors.ts'
import { groupOfBytes, type GroupId, type Timestamp } from '../base/ids.ts'
import { listedGroupsMax } from '../base/limits.ts'
import { type KeyRange } from '../group/outcome.ts'
import { keyAfter, prefixRange } from '../txn/key-range.ts'
import type { GroupPort } from '../group/group-port.ts'
import type { RawTransaction } from '../txn/raw-transaction.ts'
import { runTransaction, type Committed, type TransactionOptions } from '../txn/run.ts'
import type { ScanRange, StoredRow } from '../txn/reads.ts'
import { schemaGraceMs, upkeepBounds } from './limits.ts'
import type { CompiledGlobal, CompiledSchema, CompiledTable } from './compiled.ts'
import { entriesOf, entryWriter, type Entry } from './entries.ts'
import { fitsIndex, madeOf } from './global-writes.ts'
import { rootOfGroup, type GroupContext } from './group-context.ts'
import { changesUnder } from './index-worklist.ts'
import type { MisfitRows } from './index-misfits.ts'
import { waitForGrace } from './index-grace.ts'
import { untilRelayedFrom } from './index-wait.ts'
import { decodeRowKey, keyInWords, rowSpace } from './row-key.ts'
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
  /** Throws when the index is not wanted any more; asked now and then during long work. */
  checkWanted?(): Promise<void>
  /** Called after each step. */
  onProgress(progress: Progress): void
  /** Rows with values that are too long for the index. */
  readonly misfits: MisfitRows
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
 * entries of all rows on worklists. Resolves when they are relayed. What is of no row stays.
 */
export async function buildIndex(
  parts: UpkeepParts,
  declaredAt: Timestamp | undefined,
  graceMs: number = schemaGraceMs,
): Promise<{ readonly groups: number; readonly rows: number }> {
  const { onProgress, options } = parts
  const { clock, signal } = options
  if (declaredAt !== undefined)
    await waitForGrace({ clock, onProgress, signal }, declaredAt, graceMs)
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

/** Resolves when what is on worklists now is in the index, or what took its place there. */
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
  { table, schema, list, checkWanted }: UpkeepParts,
  work: (group: GroupId) => Promise<void>,
): Promise<void> {
  const root = schema.tables.get(table.root)
  if (root === undefined) return
  const prefix = groupOfBytes(root.groupPrefix)
  for (let after: GroupId | undefined; ;) {
    await checkWanted?.()
    const names = await list(prefix, after, listedGroupsMax)
    await mapConcurrently(names, upkeepBounds.groupsAtOnceMax, work)
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

/** Puts the entries of all of the group's rows on its worklist; resolves with how many rows. */
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
  /** That they have. */
  readonly entries: number
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
    if (!isTooLarge(error)) throw error
    if (limit === 1) return await fillRow(parts, context, from)
    return await fillPage(parts, context, from, Math.floor(limit / 2))
  }
}

function isTooLarge(error: unknown): boolean {
  return error instanceof StoreError && error.code === 'too-large'
}

/**
 * One row whose entries are more than a transaction holds, some at a time. Whoever changes it meanwhile puts
 * what changes itself, so that what is there in the end is of the row as it is then.
 */
async function fillRow(
  parts: UpkeepParts,
  context: GroupContext,
  from: KeyRange,
): Promise<Committed<Page>> {
  let most: number = upkeepBounds.entriesAtOnceMax
  for (let at = 0; ;) {
    const some = { at, most }
    try {
      const done = await runTransaction(parts.port, context.group, parts.options, (transaction) =>
        putPage(parts, context, transaction, { ...from, limit: 1 }, some),
      )
      at += most
      if (at >= done.value.entries) return done
    } catch (error) {
      if (!isTooLarge(error) || most === 1) throw error
      most = Math.floor(most / 2)
    }
  }
}

async function putPage(
  parts: UpkeepParts,
  context: GroupContext,
  transaction: RawTransaction,
  range: ScanRange,
  some: Some = allEntries,
): Promise<Page> {
  const { table } = parts
  const page = await transaction.scan(range)
  const found = page.rows.flatMap((stored) => rowIn(table, context, stored) ?? [])
  // What one node alone has accepted comes before this, or not at all: it is seen on the next run.
  transaction.takePosition()
  let entries = 0
  for (const row of found) entries += putEntries(transaction, parts, row, some)
  const last = page.rows.at(-1)?.key
  const next = page.isWhole || last === undefined ? undefined : keyAfter(last)
  return { next, count: found.length, entries }
}

/** Of each row's entries those from `at` on, `most` of them. */
interface Some {
  readonly at: number
  readonly most: number
}

const allEntries: Some = { at: 0, most: Number.POSITIVE_INFINITY }

/** How many the row has. */
function putEntries(
  transaction: RawTransaction,
  parts: UpkeepParts,
  row: FoundRow,
  { at, most }: Some,
): number {
  const { table, index } = parts
  const fitting = fittingEntries(parts, row)
  for (const entry of fitting.slice(at, at + most)) {
    const { key, value } = madeOf(table, index, row.values, entry)
    transaction.put(key, value)
  }
  return fitting.length
}

/** The entries that the row has in the index; what is too long for it is told. */
export function fittingEntries(parts: UpkeepParts, row: FoundRow): readonly Entry[] {
  const { table, index, misfits } = parts
  const all = [...entriesOf(table, index, row.values).values()]
  const fitting = all.filter(fitsIndex)
  if (fitting.length < all.length) misfits.add(row, () => wordsOf(parts, row))
  return fitting
}

/** The row's key, for people. */
function wordsOf(parts: UpkeepParts, { group, key }: FoundRow): string {
  const context = contextOf(parts, group)
  return context === undefined ? '' : keyInWords(context, key)
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
