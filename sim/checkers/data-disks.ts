/**
 * The durable content of each node's data disk, kept up to date write by write: per group the applied
 * position, digests of the rows and of the versions before them, a hash of the state record, and the hash of the rows that stands in it.
 */
import { assert } from '../../src/base/assert.ts'
import { crc32, latin1 } from '../../src/base/bytes.ts'
import { unpack } from '../../src/base/pack.ts'
import type { Put } from '../../src/ports/storage.ts'
import { RowsSum, type GroupHash } from '../../src/store/group-hash.ts'
import { decodeStored, decodeVersionKey, type Stored } from '../../src/store/row-format.ts'
import type { ModelRow } from './log-model.ts'
import { PastSum, versionName } from './past-sum.ts'
import { RowSum } from './row-sum.ts'

export interface ChangedGroup {
  readonly group: string
  readonly position: number
  readonly rowsDigest: string
  /** Of what was superseded and may be read at the position's horizon or later. */
  readonly pastDigest: string
  /** Of the state record, when the batch wrote it. */
  readonly stateHash: string | undefined
  /** Of all rows on the disk, as the state record has it, and as a count gives it. */
  readonly toldHash: GroupHash | undefined
  readonly countedHash: GroupHash
  /** A snapshot of a peer took it to this position. */
  readonly isSnapshot: boolean
}

interface GroupOnDisk {
  position: number
  /** Of the last snapshot that was taken in. */
  snapshot: number
  readonly rows: Map<string, ModelRow>
  readonly sum: RowSum
  readonly counted: RowsSum
  told: GroupHash | undefined
  readonly past: PastSum
}

const groupByte = 'g'.charCodeAt(0)
const stateByte = 's'.charCodeAt(0)
const stagingByte = 'j'.charCodeAt(0)
/** The number of the phase in which the rows change (`../../src/store/snapshot-intake.ts`). */
const switchingPhase = 1
/** Stands for the subspace of state records, whose keys have none. */
const stateSubspace = 0
const rowSubspace = 1
const historySubspace = 2

export class DataDisks {
  readonly #groups = new Map<string, Map<string, GroupOnDisk>>()
  /** By node: groups whose rows a snapshot is replacing. The node reads none of them meanwhile. */
  readonly #replaced = new Map<string, Set<string>>()
  readonly #findHorizon: (group: string, position: number) => number

  /** `findHorizon`: what the chosen log says of a group at a position. */
  constructor(findHorizon: (group: string, position: number) => number) {
    this.#findHorizon = findHorizon
  }

  findPosition(node: string, group: string): number {
    return this.#groups.get(node)?.get(group)?.position ?? 0
  }

  /** Whether a snapshot that is whole on the node's disk is replacing the rows of the group: a start goes on with that. */
  isSwitching(node: string, group: string): boolean {
    return this.#replaced.get(node)?.has(group) === true
  }

  /** The node's disk is replaced: only the new disk's records count. */
  replace(node: string, puts: readonly Put[]): void {
    this.#groups.delete(node)
    this.#replaced.delete(node)
    this.onDurable(node, puts)
  }

  /** One batch, whole. Returns the groups it touched, as they stand after it. */
  onDurable(node: string, puts: readonly Put[]): readonly ChangedGroup[] {
    const stateHashes = new Map<string, string | undefined>()
    for (const put of puts) {
      const back = this.#noteStaging(node, put)
      if (back !== undefined && !stateHashes.has(back)) stateHashes.set(back, undefined)
      const parsed = parseGroupKey(put.key)
      if (parsed === undefined) continue
      const { group, subspace, rest } = parsed
      const onDisk = this.#of(node, group)
      if (!stateHashes.has(group)) stateHashes.set(group, undefined)
      if (subspace === stateSubspace) {
        const { stamp, payload, snapshot = 0, hash } = decodePut(put)
        onDisk.told = hash
        onDisk.position = stamp
        onDisk.snapshot = snapshot
        stateHashes.set(group, `${crc32(payload)}.${payload.length}`)
      } else if (subspace === rowSubspace) {
        write(onDisk, rest, put)
      } else if (subspace === historySubspace) {
        writePast(onDisk, rest, put)
      }
    }
    const isWhole = ([group]: readonly [string, unknown]): boolean =>
      this.#replaced.get(node)?.has(group) !== true
    return [...stateHashes].filter(isWhole).map(([group, stateHash]) => {
      const { position, sum, past, snapshot, told: toldHash, counted } = this.#of(node, group)
      past.raise(this.#findHorizon(group, position))
      const digests = { rowsDigest: sum.digest(), pastDigest: past.digest() }
      const isSnapshot = stateHash !== undefined && snapshot === position
      const hashes = { toldHash, countedHash: counted.hash }
      return { group, position, ...digests, ...hashes, stateHash, isSnapshot }
    })
  }

  /**
   * The record of a snapshot that is taken in: from its second phase on the group's rows are of no position.
   * Returns the group whose rows are of a position again.
   */
  #noteStaging(node: string, { key, value }: Put): string | undefined {
    if (key[0] !== stagingByte) return undefined
    const replaced = this.#replaced.get(node) ?? new Set<string>()
    this.#replaced.set(node, replaced)
    const group = groupIn(key, key.length - 2)
    const fields = value === undefined ? [] : unpack(decodePut({ key, value }).payload)
    const isSwitching = Array.isArray(fields) && fields[1] === switchingPhase
    if (!isSwitching) return replaced.delete(group) ? group : undefined
    replaced.add(group)
    return undefined
  }

  #of(node: string, group: string): GroupOnDisk {
    const groups = this.#groups.get(node) ?? new Map<string, GroupOnDisk>()
    this.#groups.set(node, groups)
    const known = groups.get(group)
    if (known !== undefined) return known
    const made = {
      position: 0,
      snapshot: 0,
      rows: new Map<string, ModelRow>(),
      sum: new RowSum(),
      counted: new RowsSum(),
      told: undefined,
      past: new PastSum(),
    }
    groups.set(group, made)
    return made
  }
}

function write({ rows, sum, counted }: GroupOnDisk, key: Uint8Array, put: Put): void {
  const name = latin1(key)
  const before = rows.get(name)
  if (before !== undefined) {
    sum.toggle(key, before.value, before.timestamp, false)
    counted.subtract(key, before.timestamp, before.value)
  }
  rows.delete(name)
  if (put.value === undefined) return
  const { stamp: timestamp, payload: value } = decodePut(put)
  sum.toggle(key, value, timestamp, true)
  counted.add(key, timestamp, value)
  rows.set(name, { value, timestamp })
}

function writePast({ past }: GroupOnDisk, rest: Uint8Array, put: Put): void {
  const { key, start } = decodeVersionKey(rest)
  const name = versionName(latin1(key), start)
  if (put.value === undefined) return past.remove(name)
  const { stamp: end, payload: value } = decodePut(put)
  past.add(name, value, end)
}

function decodePut({ key, value }: Put): Stored {
  const stored = value === undefined ? 'damaged' : decodeStored(key, value)
  assert(typeof stored === 'object', 'data-disks: a durable value does not decode')
  return stored
}

/** The group, the subspace and the key within it; undefined for rows that belong to no group. */
export function parseGroupKey(
  key: Uint8Array,
): { readonly group: string; readonly subspace: number; readonly rest: Uint8Array } | undefined {
  const end = groupEnd(key)
  if (end === undefined) return undefined
  if (key[0] === stateByte) {
    return { group: groupIn(key, end), subspace: stateSubspace, rest: key.subarray(key.length) }
  }
  return { group: groupIn(key, end), subspace: key[end + 2] ?? -1, rest: key.subarray(end + 3) }
}

/** The row's part of the key, behind the group, if the key is a row's. */
export function rowIn(key: Uint8Array): { readonly end: number; readonly row: string } | undefined {
  const end = groupEnd(key)
  if (end === undefined || key[0] !== groupByte || key[end + 2] !== rowSubspace) return undefined
  return { end, row: latin1(key.subarray(end + 3)) }
}

/** Where the group of a key ends; undefined for rows that belong to no group. */
function groupEnd(key: Uint8Array): number | undefined {
  if (key[0] !== groupByte && key[0] !== stateByte) return undefined
  let end = key.indexOf(0, 1)
  // A zero that belongs to the group is followed by this.
  while (end >= 0 && key[end + 1] === 0xff) end = key.indexOf(0, end + 2)
  return end < 0 || end + 1 >= key.length ? undefined : end
}

/** The group of a key, which ends there. */
export function groupIn(key: Uint8Array, end: number): string {
  const text = latin1(key.subarray(1, end))
  return text.includes('\0') ? text.replaceAll('\0\xff', '\0') : text
}
