/** Each request of the client about an index over cells has the time-out of the client. */
import { expect, test } from 'vitest'
import { shardOf } from '../../src/client/row-shard.ts'
import { rowKey, settled } from '../cells/kit.ts'
import { createCluster } from './cluster.ts'

const definition = {
  table: 'by_city',
  datastore: 'trips',
  column_defs: [{ column_key: 'BASE', fields: [{ field: 'city', type: 'string' }] }],
}

test('each call of a build and of a comparison has as long as the client was given', async () => {
  const timeoutMs = 60_000
  const cluster = createCluster()
  const client = cluster.client({ timeoutMs, tryTimeoutMs: timeoutMs })
  const run = <Value>(work: Promise<Value>): Promise<Value> => settled(cluster.bench.world, work)
  const shards = [1, 2, shardOf(rowKey(1))]
  const cells = client.cells('trips')
  await run(cells.indexes.apply(definition))
  await run(cells.indexes.build('by_city', { graceMs: 0, shards }))
  await run(cells.put({ rowKey: rowKey(1), column: 'BASE', refKey: 1, body: { city: 'Oslo' } }))
  await run(cells.indexes.check('by_city', { shards }))
  await run(cells.ttls.set('BASE', '1 hours'))
  const asked = cluster.frames.flatMap(({ from, frame }) =>
    from === 'client' && frame.kind === 'requests' ? frame.requests : [],
  )
  expect(asked.length).toBeGreaterThan(shards.length)
  // Some of the time is gone when a transaction asks for the second time.
  expect(asked.filter((request) => request.timeoutMs < timeoutMs / 2)).toEqual([])
})
