/**
 * Shards: a datastore has a fixed number of them, each an entity group with a log of its own. All
 * cells of a row are in one shard, chosen by a hash of the row key.
 */
import { assert } from '../base/assert.ts'
import { sha256 } from '../base/bytes.ts'
import type { GroupId } from '../base/ids.ts'
import { shardGroupOf } from './cell-table.ts'

export const shardCount = 4096

export function isShard(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0 && value < shardCount
}

/** A row key's 16 bytes. */
export function rowKeyBytes(rowKey: string): Buffer {
  const bytes = Buffer.from(rowKey.replaceAll('-', ''), 'hex')
  assert(bytes.length === 16, 'cells: a row key was not checked')
  return bytes
}

/** A row key's text, in lower case. */
export function rowKeyText(bytes: Uint8Array): string {
  const hex = Buffer.from(bytes).toString('hex')
  const parts = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20)]
  return [...parts, hex.slice(20)].join('-')
}

/** The first 12 bits of the SHA-256 of the row key's bytes. */
export function shardOf(rowKey: string): number {
  return sha256(rowKeyBytes(rowKey)).readUInt16BE(0) >> 4
}

export function shardGroup(datastore: string, shard: number): GroupId {
  assert(isShard(shard), 'cells: a shard was not checked')
  return shardGroupOf({ datastore, shard })
}
