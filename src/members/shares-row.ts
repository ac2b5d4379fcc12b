/**
 * The row of a set's own group that says which buckets the set has given to others, and got from them (`../placement/shares.ts`). It
 * stands beside the row of the voters, so one entry can end an epoch and close buckets.
 *
 * A bucket goes *leaving* → *closed* (with the entry that begins an epoch) → *settled* (with the lists of a majority) → *gone* in the set that gives it away,
 * and is *here* in the other set between *settled* and *gone*.
 */
import { assert } from '../base/assert.ts'
import { packBits, readBits } from '../base/bits.ts'
import { StoreError } from '../base/errors.ts'
import { bucketCount } from '../base/limits.ts'
import { bytesOfGroup, groupOfBytes, isNodeId, type GroupId, type NodeId } from '../base/ids.ts'
import { pack, unpack, type Packable } from '../base/pack.ts'
import { isPlaceName } from '../base/placed-group.ts'
import { encodeTuple } from '../base/tuple.ts'
import { computeMajority } from '../placement/placement.ts'
import type { Share, SharePhase, SharesRow } from '../placement/shares.ts'

/** Relative to the set's own group. */
export const sharesKey: Uint8Array = encodeTuple(['shares'])

const rowFormat = 1
const phases: readonly string[] = [
  ...(['leaving', 'closed', 'settled', 'gone', 'here'] as const),
] satisfies SharePhase[]

/** Buckets that one set gives to another. */
export interface Gift {
  readonly set: string
  readonly buckets: readonly number[]
}

/** Whether there is something to go on with in the set that has the row. */
export function isGoing({ phase }: Share): boolean {
  return phase === 'leaving' || phase === 'closed' || phase === 'settled'
}

/**
 * The buckets are to leave. Throws `invalid` where another such change is under way, and for a bucket that the set does not have.
 * `isOfName`: whether the set has the bucket by the configuration.
 */
export function beginLeaving(
  row: SharesRow,
  { set, buckets }: Gift,
  isOfName: (bucket: number) => boolean,
): SharesRow {
  const going = row.find(isGoing)
  if (going !== undefined) {
    const why = `Buckets of this replica set are on their way to ${going.set} (${going.phase}).`
    throw new StoreError('invalid', `${why} Wait until they are there.`)
  }
  let term = 0
  for (const bucket of buckets) {
    const share = row.find((one) => one.buckets.includes(bucket))
    const has = share === undefined ? isOfName(bucket) : share.phase === 'here'
    if (!has) throw new StoreError('invalid', `This replica set does not have bucket ${bucket}.`)
    term = Math.max(term, share?.term ?? 0)
  }
  const leaving = { phase: 'leaving', set, term: term + 1, buckets, epoch: 0, began: [] } as const
  return [...without(row, buckets), leaving]
}

/** The buckets stay. Throws `invalid` where they can only go. */
export function giveUpLeaving(row: SharesRow): SharesRow {
  const going = row.find(isGoing)
  if (going?.phase === 'leaving')
    return replace(row, 'leaving', (one) => ({ ...one, phase: 'here' }))
  const why = going === undefined ? 'No buckets of this replica set are on their way.' : closedText
  throw new StoreError('invalid', why)
}

/** No group begins in the buckets from that epoch on, which begins with the same entry. */
export function close(row: SharesRow, epoch: number): SharesRow {
  return replace(row, 'leaving', (share) => ({ ...share, phase: 'closed', epoch }))
}

/** The list of one node that is past the gate of the epoch. */
export interface BegunList {
  readonly node: NodeId
  /** The epoch that closed the buckets. */
  readonly epoch: number
  /** The groups that may have begun before, and have no entry that the node durably holds as chosen. */
  readonly began: readonly GroupId[]
}

/**
 * The groups that may have begun before: those on the lists of a majority of the voters, which settle the buckets. The same row where
 * the node has told its list, or no bucket is closed with that epoch.
 */
export function settle(
  row: SharesRow,
  { node, epoch, began: listed }: BegunList,
  voters: readonly NodeId[],
): SharesRow {
  const closed = row.find(({ phase }) => phase === 'closed')
  if (closed === undefined || closed.epoch !== epoch) return row
  const { told: before = [], ...share } = closed
  if (before.includes(node)) return row
  const told = [...before, node]
  const began = [...new Set([...share.began, ...listed])]
  const count = voters.filter((voter) => told.includes(voter)).length
  const isSettled = count >= computeMajority(voters)
  return replace(row, 'closed', () => {
    return isSettled ? { ...share, phase: 'settled', began } : { ...share, began, told }
  })
}

/** The other set has them. */
export function finish(row: SharesRow): SharesRow {
  return replace(row, 'settled', (share) => ({ ...share, phase: 'gone' }))
}

/**
 * The buckets have come from another set. The same row where they had before: a node of the other set that was slow may ask again,
 * when they have gone on since.
 */
export function receive(row: SharesRow, { set, buckets }: Gift, term: number): SharesRow {
  const isKnown = row.some((share) => {
    return share.term >= term && share.buckets.some((bucket) => buckets.includes(bucket))
  })
  if (isKnown) return row
  const here = { phase: 'here', set, term, buckets, epoch: 0, began: [] } as const
  return [...without(row, buckets), here]
}

function replace(row: SharesRow, phase: SharePhase, next: (share: Share) => Share): SharesRow {
  assert(
    row.some((one) => one.phase === phase),
    `MOVE-14: no buckets are ${phase}`,
  )
  return row.map((one) => (one.phase === phase ? next(one) : one))
}

function without(row: SharesRow, buckets: readonly number[]): SharesRow {
  const gone = new Set(buckets)
  return row
    .map((share) => ({ ...share, buckets: share.buckets.filter((one) => !gone.has(one)) }))
    .filter((share) => share.buckets.length > 0)
}

const closedText =
  'The buckets are closed in this replica set: they can only go on to the other one, and do so by themselves.'

export function encodeShares(row: SharesRow): Uint8Array {
  return pack([
    rowFormat,
    ...row.map(({ phase, set, term, buckets, epoch, began, told = [] }): Packable => {
      return [
        phase,
        set,
        term,
        packBits(buckets, bucketCount),
        epoch,
        began.map(bytesOfGroup),
        [...told],
      ]
    }),
  ])
}

/** Undefined for bytes that are not such a row. */
export function decodeShares(bytes: Uint8Array): SharesRow | undefined {
  const fields = unpack(bytes)
  if (!Array.isArray(fields)) return undefined
  const [format, ...packed]: unknown[] = fields
  if (format !== rowFormat) return undefined
  const row: Share[] = []
  const seen = new Set<number>()
  for (const one of packed) {
    const share = readShare(one)
    if (share === undefined || share.buckets.some((bucket) => seen.has(bucket))) return undefined
    for (const bucket of share.buckets) seen.add(bucket)
    row.push(share)
  }
  return row
}

function readShare(packed: unknown): Share | undefined {
  if (!Array.isArray(packed)) return undefined
  const [phase, set, term, bits, epoch, names, tellers]: unknown[] = packed
  if (!isPhase(phase) || typeof set !== 'string' || !isPlaceName(set)) return undefined
  if (!isCount(term) || !isCount(epoch) || !(bits instanceof Uint8Array)) return undefined
  const buckets = readBits(bits, bucketCount)
  const began = readGroups(names)
  const told = readNodes(tellers)
  if (buckets === undefined || buckets.length === 0 || began === undefined || told === undefined)
    return undefined
  const share = { phase, set, term, buckets, epoch, began }
  return told.length === 0 ? share : { ...share, told }
}

function readGroups(names: unknown): readonly GroupId[] | undefined {
  if (!Array.isArray(names)) return undefined
  const groups = names.flatMap((name: unknown) => {
    return name instanceof Uint8Array && name.length > 0 ? [groupOfBytes(name)] : []
  })
  return groups.length === names.length ? groups : undefined
}

function readNodes(names: unknown): readonly NodeId[] | undefined {
  if (!Array.isArray(names)) return undefined
  const nodes = names.flatMap((name: unknown) => {
    return typeof name === 'string' && isNodeId(name) ? [name] : []
  })
  return nodes.length === names.length ? nodes : undefined
}

function isPhase(value: unknown): value is SharePhase {
  return typeof value === 'string' && phases.includes(value)
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}
