/**
 * The check of the data store that a start makes before it believes anything there: whatever a vote may rest
 * on, and none of the rows. A store may show an older record, or none, without a word; a checksum of the
 * record itself says nothing then.
 *
 * DISK-14  No vote rests on a record of the data store that was not checked together with what says
 *          where it is: state records, the mark, and what earlier builds carried in rows. At applied
 *          positions there is no vote (PAX-8).
 */
import { StoreError } from '../base/errors.ts'
import type { KeySpan, OrderedStore } from '../ports/storage.ts'
import { corruptData } from '../store/damage.ts'
import { scanRows } from '../store/read-store.ts'
import { allGroups, allStagings, allStates, positionKey, votingSpans } from '../store/row-format.ts'
import type { Carried } from './settled.ts'

/** Before the store is read. */
export async function checkVotes(store: OrderedStore): Promise<void> {
  await checked(store.check?.(votingSpans))
  // A snapshot brings the rows of a group before its state record; it may be the first one here.
  const isExplained = (await hasAny(store, allStates)) || (await hasAny(store, allStagings))
  if (!isExplained && (await hasAny(store, allGroups))) {
    throw corruptData('its state records are missing, or where an earlier version had them')
  }
}

/** Before the log is taken up: earlier builds kept the promises of these positions in their rows alone. */
export async function checkCarried(
  store: OrderedStore,
  carried: readonly Carried[],
): Promise<void> {
  if (carried.length === 0) return
  await checked(store.check?.(carried.map(([group, position]) => toKeySpan(group, position))))
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
