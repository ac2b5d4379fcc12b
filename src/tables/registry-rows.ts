/** The rows of the group of a schema: its current version, each that ever was, and which of its indexes are being built. */
import { StoreError } from '../base/errors.ts'
import { groupOfBytes, type GroupId, type Timestamp } from '../base/ids.ts'
import { pack, unpack } from '../base/pack.ts'
import { encodeTuple } from '../base/tuple.ts'
import type { RawTransaction } from '../txn/raw-transaction.ts'
import { decodeVersion } from '../../schema/version-json.ts'
import type { SchemaVersion } from '../../schema/version.ts'
import { assert } from '../base/assert.ts'

export const currentKey: Uint8Array = encodeTuple(['current'])
export const buildingKey: Uint8Array = encodeTuple(['building'])

export function versionKey(version: number): Uint8Array {
  return encodeTuple(['version', version])
}

export function registryGroup(name: string): GroupId {
  return groupOfBytes(encodeTuple(['schemas', name]))
}

export function buildingIn(bytes: Uint8Array | undefined): ReadonlyMap<string, Timestamp> {
  if (bytes === undefined) return new Map()
  const fields = unpack(bytes)
  const pairs = Array.isArray(fields) ? fields : []
  return new Map(
    pairs.flatMap((pair: unknown) => {
      const [index, since]: unknown[] = Array.isArray(pair) ? pair : []
      return typeof index === 'string' && typeof since === 'number' ? [[index, since]] : []
    }),
  )
}

export function putBuilding(
  transaction: RawTransaction,
  building: ReadonlyMap<string, Timestamp>,
): void {
  transaction.put(buildingKey, pack([...building].map(([index, since]) => [index, since])))
}

export function putVersion(
  transaction: RawTransaction,
  before: SchemaVersion | undefined,
  version: SchemaVersion,
): void {
  assert(version.version === (before?.version ?? 0) + 1, 'TAB-6: versions follow one another')
  const bytes = Buffer.from(JSON.stringify(version))
  transaction.put(currentKey, bytes)
  transaction.put(versionKey(version.version), bytes)
}

/** Undefined: the row holds no version of this schema. */
export function readVersion(name: string, bytes: Uint8Array): SchemaVersion | undefined {
  const version = decodeVersion(Buffer.from(bytes).toString('utf8'))
  return version?.schema.name === name ? version : undefined
}

export function versionOf(name: string, bytes: Uint8Array): SchemaVersion {
  const version = readVersion(name, bytes)
  if (version !== undefined) return version
  throw new StoreError('corrupt', `what the cluster has as schema ${name} is none`)
}
