/**
 * Filling an index from rows that are there, group by group (SPEC.md "The life of an index"). A
 * transaction that has read a row writes its entries: of a local or inline index into the group, of a
 * global one onto the group's worklist, which is the one way there is into such an index.
 */
import { StoreError } from '../base/errors.ts'
import type { GroupId } from '../base/ids.ts'
import { type KeyRange } from '../group/outcome.ts'
import { upkeepBounds } from '../indexes/limits.ts'
import { keyAfter } from '../txn/key-range.ts'
import type { RawTransaction } from '../txn/raw-transaction.ts'
import { runTransaction, type Committed } from '../txn/run.ts'
import type { ScanRange } from '../txn/reads.ts'
import { isGlobal } from './compiled.ts'
import { entryWriter } from './entries.ts'
import { buildAddition } from './global-writes.ts'
import type { GroupContext } from './group-context.ts'
import { changesUnder } from './index-worklist.ts'
import {
  findContext,
  countGroups,
  fittingEntries,
  forEachGroup,
  isOfGlobal,
  rowIn,
  rowRange,
  type FoundRow,
  type Pass,
  type UpkeepParts,
} from './index-parts.ts'
import { untilRelayedFrom } from './index-wait.ts'
import { checkAlone, markFilled, removeInGroup } from './local-upkeep.ts'

export interface Filled {
  readonly groups: number
  readonly rows: number
  /** Entries that no row had, and that are gone now. */
  readonly removed: number
}

/**
 * Writes the entries of all rows; of a local index, takes out what no row has as well. Every writer
 * keeps the index already, or it is not right when this ends. Of a global one, resolves when the
 * entries are relayed.
 */
export async function backfillIndex(parts: UpkeepParts, pass: Pass = {}): Promise<Filled> {
  const { onProgress } = parts
  const total = await countGroups(parts, pass)
  let [groups, rows, removed] = [0, 0, 0]
  const fill = async (group: GroupId): Promise<void> => {
    const filled = await backfillFrom(parts, group)
    rows += filled.rows
    removed += filled.removed
    groups += 1
    onProgress({ phase: 'filling', done: groups, total })
  }
  await forEachGroup(parts, fill, pass)
  if (isOfGlobal(parts)) await untilRelayed(parts, groups)
  return { groups, rows, removed }
}

/** Resolves when the index has the changes that are on worklists now, or their successors. */
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

async function backfillFrom(parts: UpkeepParts, group: GroupId): Promise<Omit<Filled, 'groups'>> {
  const context = findContext(parts, group)
  if (context === undefined) return { rows: 0, removed: 0 }
  const isLocal = !isOfGlobal(parts)
  // First: an entry of no row would be in the way of a row in a unique index.
  const removed = isLocal ? await removeInGroup(parts, context) : 0
  const limit = parts.rowsAtOnce ?? upkeepBounds.rowsAtOnceMax
  let rest: KeyRange | undefined = rowRange
  let rows = 0
  while (rest !== undefined) {
    const { value } = await fillPage(parts, context, rest, limit)
    rows += value.count
    rest = value.next && { gte: value.next, lt: rowRange.lt }
  }
  if (isLocal) await markFilled(parts, group)
  return { rows, removed }
}

interface Page {
  /** Rows of the table. */
  readonly count: number
  /** Where the rest begins; absent when there is none. */
  readonly next: Uint8Array | undefined
  /** That they have. */
  readonly entries: number
}

/** Up to `limit` rows, and fewer where a transaction cannot hold the entries of all. */
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
 * One row whose entries are more than a transaction holds, some at a time. A writer that changes it
 * meanwhile puts its own changes, so that the entries in the end are of the row as it is then.
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
  // An entry that one node alone has accepted comes before this, or not at all: the next run sees it.
  transaction.takePosition()
  let entries = 0
  for (const row of found) entries += await putEntries(transaction, parts, row, some)
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
async function putEntries(
  transaction: RawTransaction,
  parts: UpkeepParts,
  row: FoundRow,
  { at, most }: Some,
): Promise<number> {
  const { table, index } = parts
  const fitting = fittingEntries(parts, row)
  for (const entry of fitting.slice(at, at + most)) {
    if (index.isUnique) await checkAlone(transaction, parts, entry)
    const { key, value } = isGlobal(index) ? buildAddition(table, index, row.values, entry) : entry
    transaction.put(key, value)
  }
  return fitting.length
}
