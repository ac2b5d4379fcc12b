/**
 * Shards: a datastore has a fixed number of them, each an entity group with a log of its own. All
 * cells of a row are in one shard, chosen by a hash of the row key.
 *
 * CELL-9  The shard of a row is a function of the datastore's name and of the row key.
 */
import { assert } from '../base/assert.ts'
import { sha256Start } from '../base/bytes.ts'
import type { GroupId } from '../base/ids.ts'
import { uuidBytes, writeUuid } from '../base/uuid.ts'
import type { ShardName } from './cell.ts'
import { findShardGroup } from './cell-table.ts'
import { shardCountMax, shardCountOf } from './datastore-form.ts'

const mostShards: readonly number[] = Array.from({ length: shardCountMax }, (_, shard) => shard)

/** The numbers of all shards of a datastore, rising. */
export function allShardsOf(datastore: string): readonly number[] {
  return mostShards.slice(0, shardCountOf(datastore))
}

/** Whether some datastore has such a shard. */
export function isShard(value: unknown): boolean {
  return isBelow(value, shardCountMax)
}

/** Whether this datastore has it. */
export function isShardOf(datastore: string, value: unknown): boolean {
  return isBelow(value, shardCountOf(datastore))
}

function isBelow(value: unknown, count: number): boolean {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value < count
}

/** `shards are numbered from 0 to 63`. */
export function shardWords(datastore: string): string {
  return `shards are numbered from 0 to ${shardCountOf(datastore) - 1}`
}

/** A row key's 16 bytes. */
export function rowKeyBytes(rowKey: string): Uint8Array {
  const bytes = Buffer.allocUnsafe(uuidBytes)
  writeUuid(bytes, rowKey, 0)
  return bytes
}

/** Of the row key that is hashed. */
const hashed = Buffer.alloc(uuidBytes)

const startBits = 16

/** The first bits of the SHA-256 of the row key's bytes: 12 of them where there are 4,096 shards, 6 where there are 64. */
export function shardOf(datastore: string, rowKey: string): number {
  writeUuid(hashed, rowKey, 0)
  return (sha256Start(hashed) * shardCountOf(datastore)) >> startBits
}

/** Datastores whose shards' values are kept; with one more, all are made anew. */
const datastoresKeptMax = 8

/** A value for each shard, made when it is first asked for, and kept: every call asks for some. */
export class ByShard<Value> {
  readonly #make: (of: ShardName) => Value
  readonly #kept = new Map<string, Value[]>()

  constructor(make: (of: ShardName) => Value) {
    this.#make = make
  }

  get(datastore: string, shard: number): Value {
    assert(isShard(shard), 'cells: a shard was not checked')
    const values = this.#kept.get(datastore) ?? this.#keep(datastore)
    values[shard] ??= this.#make({ datastore, shard })
    return values[shard]
  }

  #keep(datastore: string): Value[] {
    if (this.#kept.size >= datastoresKeptMax) this.#kept.clear()
    const values: Value[] = []
    this.#kept.set(datastore, values)
    return values
  }
}

const groups = new ByShard<GroupId>(findShardGroup)

export function shardGroup(datastore: string, shard: number): GroupId {
  return groups.get(datastore, shard)
}
