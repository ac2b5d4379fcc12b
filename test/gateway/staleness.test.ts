/** Reads over HTTP with a bound of staleness. */
import { expect, test } from 'vitest'
import { shardOf } from '../../src/cells/shard.ts'
import { datastore, rowKey, settled } from '../cells/kit.ts'
import { createGatewayBench } from './kit.ts'

const row = rowKey(1)
const shard = shardOf(datastore, row)
const path = `/cells/${row}/BASE/7`

test.each(['', 'read=snapshot&'])(
  '%smax_staleness_ms is answered at once where the replica has all of that, and else currently',
  async (level) => {
    const { ask, bench, replica } = createGatewayBench()
    const other = bench.node('n2').store
    await ask('PUT', path, { json: 1 })
    replica.isBehind = true
    const items = [{ rowKey: row, column: 'BASE', refKey: 8, body: Buffer.from([2]) }]
    const put = other.execute({ kind: 'put', datastore, items }, { timeoutMs: 1_000 })
    await settled(bench.world, put)
    replica.ageMs = 499
    const before = replica.currentReads
    const latest = `/cells/${row}/BASE?${level}max_staleness_ms=`
    expect(await ask('GET', `${latest}500`)).toMatchObject({ body: { refKey: 7 } })
    expect(replica.currentReads).toBe(before)
    const places = `/shards/${shard}/cells?${level}max_staleness_ms=`
    expect(await ask('GET', `${places}500`)).toMatchObject({ body: { items: [{ refKey: 7 }] } })
    const headers = { 'trilithon-position': `trips/${shard}/2` }
    expect(await ask('GET', `${latest}498`)).toMatchObject({ body: { refKey: 8 } })
    expect(replica.currentReads).toBe(before + 1)
    expect(await ask('GET', `${latest}500`, { headers })).toMatchObject({ body: { refKey: 8 } })
  },
)
