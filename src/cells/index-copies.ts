/**
 * The definitions of a datastore's indexes lie in one group, and on every other replica set in a copy
 * of it: a put asks the copy of its shard's set, so that it needs no other set than its own. A copy is
 * of a version, and takes later ones only.
 *
 * IDX-8  A set never goes back to older definitions, and what a build or a drop waits for begins when
 *        every set has them.
 */
import { assert, AssertionError } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import type { GroupId } from '../base/ids.ts'
import type { Clock } from '../ports/clock.ts'
import type { Tables } from '../tables/tables.ts'
import { remainingOrTimeout } from '../time/moments.ts'
import { findDatastoreGroup } from './cell-table.ts'
import {
  datastoreKey,
  putDefinitions,
  scanDefinitions,
  type DefinitionRows,
} from './definition-table.ts'

export interface ReplicaSets {
  readonly count: number
  /** That of this node. */
  readonly own: number
  setOf(group: GroupId): number
}

export const oneSet: ReplicaSets = { count: 1, own: 0, setOf: () => 0 }

/** Each salt hits the set wanted with a chance of one in the number of sets. */
const saltMax = 10_000

/** The name under which a set has the definitions; in one of the sets, that of the datastore itself. */
export function copyName(datastore: string, set: number, { setOf }: ReplicaSets): string {
  if (setOf(findDatastoreGroup(datastore)) === set) return datastore
  for (let salt = 1; salt <= saltMax; salt++) {
    // No name of a datastore has such a sign.
    const name = `${datastore}@${salt}`
    if (setOf(findDatastoreGroup(name)) === set) return name
  }
  throw new AssertionError('IDX-8: some salt puts a copy on each set')
}

export interface SpreadParts {
  readonly tables: Tables
  readonly clock: Clock
  readonly sets: ReplicaSets
  readonly deadlineMs: number
}

/** Resolves when every set has the definitions as they are now, or later ones, and that is noted. */
export async function spreadDefinitions(parts: SpreadParts, datastore: string): Promise<void> {
  const { tables, sets } = parts
  const { value: own } = await tables.read(
    datastoreKey(datastore),
    'current',
    (rows) => scanDefinitions(rows, datastore),
    { timeoutMs: left(parts) },
  )
  const all = Array.from({ length: sets.count }, (_, set) => copyName(datastore, set, sets))
  const others = all.filter((name) => name !== datastore)
  await Promise.all(others.map((name) => copyTo(parts, name, own).catch(notYetKnown)))
  if (own.rows.some(isNews(own.version))) await noteSpread(parts, datastore, own.version)
}

async function copyTo(parts: SpreadParts, name: string, own: DefinitionRows): Promise<void> {
  const options = { timeoutMs: left(parts) }
  await parts.tables.transaction(
    datastoreKey(name),
    async (tx) => {
      const there = await scanDefinitions(tx, name)
      if (there.version < own.version) await putDefinitions(tx, name, own)
    },
    options,
  )
}

function notYetKnown(error: unknown): never {
  if (!(error instanceof StoreError)) throw error
  const message = `what was changed is not known to every replica set yet, and nothing is built or cleared before; send it again when they all answer (${error.message})`
  throw new StoreError(error.code, message, error.detail)
}

/** Every set has this version now, be it of a declaration or of a drop; of later ones nothing is known. */
async function noteSpread(parts: SpreadParts, datastore: string, version: number): Promise<void> {
  const now = parts.clock.wallMicros()
  await parts.tables.transaction(
    datastoreKey(datastore),
    async (tx) => {
      const own = await scanDefinitions(tx, datastore)
      assert(own.version >= version, 'IDX-8: definitions have only later versions')
      const isKnownNow = isNews(version)
      if (!own.rows.some(isKnownNow)) return
      const rows = own.rows.map((row) =>
        isKnownNow(row) ? { ...row, is_known: true, declared_at: now } : row,
      )
      await putDefinitions(tx, datastore, { ...own, rows })
    },
    { timeoutMs: left(parts) },
  )
}

function isNews(version: number): (row: DefinitionRows['rows'][number]) => boolean {
  return (row) => row.is_known !== true && (row.version ?? 0) <= version
}

/** For one call of these parts, in milliseconds; throws `unavailable` when their time is over. */
export function left({ clock, deadlineMs }: SpreadParts): number {
  return remainingOrTimeout(clock, deadlineMs)
}
