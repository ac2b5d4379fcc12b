/**
 * Legal holds: notes in a group's own rows, so that a hold and what it forbids are put in order by the group's log.
 * A transaction that takes a row away reads the notes that concern the row.
 *
 *   04 ('hold', 'group')            all rows of tables
 *   04 ('hold', 'table', NAME)      those of a table
 *   04 ('hold', 'cells')            all cells of a shard
 *   04 ('hold', 'cells', ROW KEY)   those of a row key
 *
 * HOLD-1  Nothing that is held is deleted, purged, or removed for its age.
 */
import { decodeTuple } from '../base/tuple.ts'
import { StoreError } from '../base/errors.ts'
import type { GroupId, Timestamp } from '../base/ids.ts'
import type { GroupPort } from '../group/group-port.ts'
import { noteKey } from '../group/purge-note.ts'
import { prefixRange } from '../txn/key-range.ts'
import type { StoredRow } from '../txn/reads.ts'
import { runRead, type ReadOptions } from '../txn/run-read.ts'
import { runTransaction, type TransactionOptions } from '../txn/run.ts'

/** Of all rows of a group, or of a table there; of all cells of a shard, or of a row key. */
export type HoldScope =
  readonly ['group'] | readonly ['table', string] | readonly ['cells'] | readonly ['cells', string]

export interface Hold {
  readonly scope: HoldScope
  readonly reason: string
  /** Of the transaction that set it. */
  readonly since: Timestamp
}

export const holdReasonCharsMax = 500

export function holdKey(scope: HoldScope): Uint8Array {
  return noteKey(['hold', ...scope])
}

/** Throws `invalid`, with the hold in words, where one of these notes is there. `what`: that which is to go. */
export function refuseHeld(what: string, notes: readonly (StoredRow | undefined)[]): void {
  const held = notes.find((note) => note !== undefined)
  if (held === undefined) return
  const reason = textOf(held)
  const message = `${what} is held (${reason}), and nothing of it is deleted, purged or removed for its age; trilithon hold list shows the hold, trilithon hold clear lifts it`
  throw new StoreError('invalid', message)
}

/** Set again, it has the new reason. */
export async function setHold(
  port: GroupPort,
  group: GroupId,
  { scope, reason }: Pick<Hold, 'scope' | 'reason'>,
  options: TransactionOptions,
): Promise<void> {
  const isWord = typeof reason === 'string' && reason.trim() !== ''
  if (!isWord || reason.length > holdReasonCharsMax) {
    const message = `a hold has a reason of 1 to ${holdReasonCharsMax} characters, such as the name of a case`
    throw new StoreError('invalid', message)
  }
  await runTransaction(port, group, options, async (transaction) => {
    transaction.put(holdKey(scope), Buffer.from(reason))
  })
}

/** Resolves with whether there was one. */
export async function clearHold(
  port: GroupPort,
  group: GroupId,
  scope: HoldScope,
  options: TransactionOptions,
): Promise<boolean> {
  const { value } = await runTransaction(port, group, options, async (transaction) => {
    const there = await transaction.get(holdKey(scope))
    if (there === undefined) return false
    transaction.delete(holdKey(scope))
    return true
  })
  return value
}

export async function listHolds(
  port: GroupPort,
  group: GroupId,
  options: ReadOptions,
): Promise<readonly Hold[]> {
  const range = prefixRange(noteKey(['hold']))
  const { value } = await runRead(port, group, { kind: 'current' }, options, (reads) =>
    reads.scan(range),
  )
  return value.rows.flatMap((row) => readHold(row) ?? [])
}

function readHold({ key, value, timestamp = 0 }: StoredRow): Hold | undefined {
  const [, kind, name] = decodeTuple(key.subarray(1)) ?? []
  const scope = readScope(kind, name)
  return scope && { scope, reason: textOf({ value }), since: timestamp }
}

function textOf({ value }: Pick<StoredRow, 'value'>): string {
  return Buffer.from(value).toString()
}

function readScope(kind: unknown, name: unknown): HoldScope | undefined {
  if (kind === 'group') return ['group']
  if (kind === 'table' && typeof name === 'string') return ['table', name]
  if (kind !== 'cells') return undefined
  return typeof name === 'string' ? ['cells', name] : ['cells']
}
