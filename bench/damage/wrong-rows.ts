/**
 * Puts a wrong value in the place of a row in the data store of a stopped node. Every checksum fits it, as where a program
 * has written it so: no read can tell.
 */
import { join } from 'node:path'
import { asBuffer } from '../../src/base/bytes.ts'
import type { GroupId } from '../../src/base/ids.ts'
import { openLevelStore } from '../../src/adapters/level-storage.ts'
import { shardGroup } from '../../src/cells/shard.ts'
import { shardOf } from '../../src/client/row-shard.ts'
import { RowsSum } from '../../src/store/group-hash.ts'
import {
  afterRows,
  decodeStored,
  encodeState,
  encodeStored,
  groupPrefix,
  rowsPrefix,
  stateKey,
} from '../../src/store/row-format.ts'
import { BenchError } from '../common.ts'
import { datastore, type KeptRow } from './checked-load.ts'

/**
 * `row`: the hash of the group's rows is left as it was, and a count of the rows finds it. `record`: the hash fits the
 * wrong row, and only the other nodes tell.
 */
export type Planted = 'row' | 'record'

type Store = Awaited<ReturnType<typeof openLevelStore>>

interface FoundRow {
  readonly key: Uint8Array
  readonly stamp: number
  readonly payload: Uint8Array
  /** Where the value begins in the payload. */
  readonly at: number
}

export function groupOf({ rowKey }: KeptRow): GroupId {
  return shardGroup(datastore, shardOf(rowKey))
}

/** `folder`: of the node, which does not run. */
export async function plantWrongRow(folder: string, row: KeptRow, planted: Planted): Promise<void> {
  const store = await openLevelStore(join(folder, 'data'), { compresses: false })
  try {
    const prefix = groupPrefix(groupOf(row))
    const found = await findRow(store, prefix, row)
    const wrong = Buffer.from(found.payload)
    wrong[found.at] = (wrong[found.at] ?? 0) ^ 1
    const puts = [{ key: found.key, value: encodeStored(found.key, found.stamp, wrong) }]
    if (planted === 'record') puts.push(fittingRecord(store, prefix, found, wrong))
    await store.write(puts)
  } finally {
    await store.close()
  }
}

async function findRow(store: Store, prefix: Buffer, { rowKey, pad }: KeptRow): Promise<FoundRow> {
  for await (const rows of store.scan({ gte: rowsPrefix(prefix), lt: afterRows(prefix) })) {
    for (const { key, value } of rows) {
      const stored = decodeStored(key, value)
      if (typeof stored === 'string') continue
      const at = asBuffer(stored.payload).indexOf(pad, 0, 'latin1')
      if (at >= 0) return { key, stamp: stored.stamp, payload: stored.payload, at }
    }
  }
  throw new BenchError(`row ${rowKey} is not in the data store yet: give --before more seconds`)
}

/** The group's state record with the hash that its rows have with the wrong one. */
function fittingRecord(
  store: Store,
  prefix: Buffer,
  row: FoundRow,
  wrong: Uint8Array,
): { readonly key: Buffer; readonly value: Buffer } {
  const key = stateKey(prefix)
  const value = store.getSync(key)
  const record = value === undefined ? 'damaged' : decodeStored(key, value)
  if (typeof record === 'string' || record.hash === undefined) {
    throw new BenchError('the group of the row has no hash of its rows')
  }
  const own = row.key.subarray(rowsPrefix(prefix).length)
  const sum = new RowsSum(record.hash)
  sum.subtract(own, row.stamp, row.payload)
  sum.add(own, row.stamp, wrong)
  const { stamp, flush = 0, snapshot = 0, payload } = record
  return { key, value: encodeState(key, stamp, { flush, snapshot }, payload, sum.hash) }
}
