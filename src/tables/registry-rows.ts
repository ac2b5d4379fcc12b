/** The rows of the group of a schema: its current version, and each that ever was. Those of its indexes are in `index-life.ts`. */
import { StoreError } from '../base/errors.ts'
import { groupOfBytes, type GroupId } from '../base/ids.ts'
import { encodeTuple } from '../base/tuple.ts'
import type { RawTransaction } from '../txn/raw-transaction.ts'
import { decodeVersion } from '../../schema/version-json.ts'
import type { SchemaVersion } from '../../schema/version.ts'
import { assert } from '../base/assert.ts'

export const currentKey: Uint8Array = encodeTuple(['current'])

export function versionKey(version: number): Uint8Array {
  return encodeTuple(['version', version])
}

export function registryGroup(name: string): GroupId {
  return groupOfBytes(encodeTuple(['schemas', name]))
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

export function requireVersion(name: string, bytes: Uint8Array): SchemaVersion {
  const version = readVersion(name, bytes)
  if (version !== undefined) return version
  throw new StoreError('corrupt', `what the cluster has as schema ${name} is none`)
}
