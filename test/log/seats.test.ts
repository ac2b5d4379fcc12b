/** The seat of a store: an empty folder takes it, and no other one. */
import { expect, test } from 'vitest'
import { clusterId, nodeId, storeId } from '../../src/base/ids.ts'
import { checkSeat } from '../../src/log/log-meta.ts'

const store = {
  ...{ storeId: storeId('00000000-0000-4000-8000-000000000000'), incarnation: 1 },
  ...{ cluster: clusterId('test'), node: nodeId('n1'), seat: 4_097, epoch: 2 },
  ...{ firstFlush: 1, previousCrc: 0, longestLeaseMs: 0 },
}

test('MOVE-7: a folder that has a store refuses the seat of a later one, in words', () => {
  expect(() => checkSeat(store, 8_193)).toThrow(/A seat is for an empty data folder/)
  for (const seat of [undefined, 1, 4_097]) expect(() => checkSeat(store, seat)).not.toThrow()
})
