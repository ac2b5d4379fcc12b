/**
 * Legal holds: rows of the group that they are about, so that a hold and what it forbids are put in order by the
 * group's log. A transaction that takes a row away reads the holds that concern the row. They are on the group's
 * worklist, so that each node lists the groups that have some (`hold-count.ts`).
 *
 *   ff 'hold' ('group')            all rows of tables
 *   ff 'hold' ('table', NAME)      those of a table
 *   ff 'hold' ('cells')            all cells of a shard
 *   ff 'hold' ('cells', ROW KEY)   those of a row key
 *
 * HOLD-1  Nothing that is held is deleted, purged, or removed for its age.
 */
import { StoreError } from '../base/errors.ts'
import { decodeTuple, encodeTuple } from '../base/tuple.ts'
import type { GroupId, Timestamp } from '../base/ids.ts'
import type { GroupPort } from '../group/group-port.ts'
import { worklistPrefix } from '../group/worklist-key.ts'
import type { KeyRange } from '../group/outcome.ts'
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

export const holdTopic = 'hold'
const holdPrefix = worklistPrefix(holdTopic)
/** The holds of a group. */
export const holdRange: KeyRange = prefixRange(holdPrefix)

export function holdKey(scope: HoldScope): Uint8Array {
  return Buffer.concat([holdPrefix, encodeTuple([...scope])])
}

/**
 * Throws `invalid`, with the hold in words, where one of these rows is there. `what` names the thing that is to go,
 * `nameHeld` the thing that a hold is of.
 */
export function refuseHeld(
  what: string,
  holds: readonly (StoredRow | undefined)[],
  nameHeld: (scope: HoldScope) => string,
): void {
  const row = holds.find((one) => one !== undefined)
  const hold = row && readHold(row)
  if (hold === undefined) return
  const held = nameHeld(hold.scope)
  const message = `${what} stays: ${held} is held (${hold.reason}), and nothing of it is deleted, purged or removed for its age; trilithon hold list shows the hold, trilithon hold clear lifts it`
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
  const { value } = await runRead(port, group, { kind: 'current' }, options, (reads) =>
    reads.scan(holdRange),
  )
  return value.rows.flatMap((row) => readHold(row) ?? [])
}

function readHold({ key, value, timestamp = 0 }: StoredRow): Hold | undefined {
  const [kind, name] = decodeTuple(key.subarray(holdPrefix.length)) ?? []
  const scope = readScope(kind, name)
  return scope && { scope, reason: Buffer.from(value).toString(), since: timestamp }
}

function readScope(kind: unknown, name: unknown): HoldScope | undefined {
  if (kind === 'group') return ['group']
  if (kind === 'table' && typeof name === 'string') return ['table', name]
  if (kind !== 'cells') return undefined
  return typeof name === 'string' ? ['cells', name] : ['cells']
}
