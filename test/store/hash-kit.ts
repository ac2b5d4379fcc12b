/** Hashes of groups as state records tell them, and as a count of all rows on the disk gives them. */
import { createHash } from 'node:crypto'
import type { GroupId } from '../../src/base/ids.ts'
import type { OrderedStore } from '../../src/ports/storage.ts'
import {
  afterRows,
  decodeStored,
  encodeState,
  groupPrefix,
  rowsPrefix,
  stateKey,
  type Stored,
} from '../../src/store/row-format.ts'

const modulus = 2n ** 128n

/** The hash of one row by its definition. */
export function rowHash(key: Uint8Array, timestamp: number, value: Uint8Array): bigint {
  const head = Buffer.alloc(12)
  head.writeUInt32BE(key.length)
  head.writeBigUInt64BE(BigInt(timestamp), 4)
  const bytes = createHash('sha1').update(head).update(key).update(value).digest()
  return (bytes.readBigUInt64BE(0) << 64n) + bytes.readBigUInt64BE(8)
}

export function textOf(hash: bigint): string {
  return (((hash % modulus) + modulus) % modulus).toString(16).padStart(32, '0')
}

function storedAt(key: Uint8Array, value: Uint8Array): Stored {
  const stored = decodeStored(key, value)
  if (typeof stored !== 'object') throw new Error(`a row is ${stored}`)
  return stored
}

/** Over all newest rows on the disk, as 32 hexadecimal digits. */
export async function recounted(store: OrderedStore, group: GroupId): Promise<string> {
  const prefix = groupPrefix(group)
  const span = { gte: rowsPrefix(prefix), lt: afterRows(prefix) }
  let sum = 0n
  for await (const rows of store.scan(span)) {
    for (const { key, value } of rows) {
      const { stamp, payload } = storedAt(key, value)
      sum += rowHash(key.subarray(span.gte.length), stamp, payload)
    }
  }
  return textOf(sum)
}

/** As the state record has it; `unknown`: it has none. */
export function told(store: OrderedStore, group: GroupId): string {
  const { hash } = recordOf(store, group)
  return hash === undefined ? 'unknown' : Buffer.from(hash, 'latin1').toString('hex')
}

export function recordOf(store: OrderedStore, group: GroupId): Stored {
  const key = stateKey(groupPrefix(group))
  return storedAt(key, store.getSync(key) ?? new Uint8Array())
}

/** The state record becomes one of an earlier build, without a hash. */
export async function forgetHash(store: OrderedStore, group: GroupId): Promise<void> {
  const key = stateKey(groupPrefix(group))
  const { stamp, flush = 0, snapshot = 0, payload } = recordOf(store, group)
  await store.write([{ key, value: encodeState(key, stamp, { flush, snapshot }, payload) }])
}
