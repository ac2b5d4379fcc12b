/**
 * The check of the data store that a start makes before it believes anything there: whatever a vote may rest
 * on, and none of the rows. A store may show an older record, or none, without a word; a checksum of the
 * record itself says nothing then.
 *
 * DISK-14  No vote rests on a record of the data store that was not checked together with what says
 *          where it is: state records, the mark, what is carried over and what the fold goes on from
 *          before the first vote. At other applied positions there is no vote (PAX-8).
 */
import { StoreError } from '../base/errors.ts'
import type { GroupId, Position } from '../base/ids.ts'
import type { Journal } from '../ports/journal.ts'
import type { KeySpan, OrderedStore } from '../ports/storage.ts'
import { corruptData } from '../store/damage.ts'
import { decodeFlush, type RecordHeader } from './flush.ts'
import { scanFlushes } from './journal-reads.ts'
import { scanRows } from '../store/read-store.ts'
import { allGroups, allStates, positionKey, votingSpans } from '../store/row-format.ts'
import type { Carried, SettledPositions } from './settled.ts'

/** Before the store is read. */
export async function checkVotes(store: OrderedStore): Promise<void> {
  await checked(store.check?.(votingSpans))
  if ((await hasAny(store, allGroups)) && !(await hasAny(store, allStates))) {
    throw corruptData('its state records are missing, or where an earlier version had them')
  }
}

/** Before the log is taken up: the promises of these positions stand in their rows alone. */
export async function checkCarried(
  store: OrderedStore,
  carried: readonly Carried[],
): Promise<void> {
  if (carried.length === 0) return
  await checked(store.check?.(carried.map(([group, position]) => toKeySpan(group, position))))
}

/**
 * Before the log is folded: its records of applied positions go on from their rows, and are written over
 * them. Where a row is hidden, its promise would be lost, and no scrub would find that.
 */
export async function checkFolded(
  store: OrderedStore,
  log: Journal,
  settled: Pick<SettledPositions, 'mark' | 'applied'>,
): Promise<void> {
  const mark = settled.mark()
  if (mark === undefined || store.check === undefined) return
  const folded = new Map<GroupId, Folded>()
  for await (const flushes of scanFlushes(log, mark.number + 1)) {
    // The fold refuses what has no header.
    for (const { bytes } of flushes) widen(folded, decodeFlush(bytes)?.records ?? [], settled)
  }
  const spans = [...folded].flatMap(([group, { from, to }]) =>
    from > to ? [] : [{ gte: positionKey(group, from), lt: positionKey(group, to + 1) }],
  )
  await checked(store.check(spans))
}

/** Applied positions of a group that the log tells more of: from the first to the last. */
interface Folded {
  readonly applied: Position
  from: Position
  to: Position
}

function widen(
  folded: Map<GroupId, Folded>,
  records: readonly RecordHeader[],
  settled: Pick<SettledPositions, 'applied'>,
): void {
  for (const { group, position } of records) {
    let found = folded.get(group)
    if (found === undefined) {
      found = { applied: settled.applied(group), from: Number.POSITIVE_INFINITY, to: 0 }
      folded.set(group, found)
    }
    if (position > found.applied) continue
    found.from = Math.min(found.from, position)
    found.to = Math.max(found.to, position)
  }
}

function toKeySpan(...carried: Carried): KeySpan {
  const gte = positionKey(...carried)
  return { gte, lt: Buffer.concat([gte, Uint8Array.of(0)]) }
}

/** Damage that the store finds, as damage of the data store. */
export async function checked(check: Promise<void> | undefined): Promise<void> {
  try {
    await check
  } catch (error) {
    const isDamage = error instanceof StoreError && error.code === 'corrupt'
    throw isDamage ? corruptData('a part of it is not what was written', error) : error
  }
}

async function hasAny(store: OrderedStore, span: KeySpan): Promise<boolean> {
  for await (const rows of scanRows(store, { ...span, limit: 1 }, corruptData)) {
    if (rows.length > 0) return true
  }
  return false
}
