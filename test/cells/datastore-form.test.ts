/** The form of a datastore, as its name says it. */
import { expect, test } from 'vitest'
import {
  isBaseName,
  isShardCount,
  nameDatastore,
  placeOfDatastore,
  readForm,
  shardCountOf,
} from '../../src/cells/datastore-form.ts'
import { isDatastore } from '../../src/cells/cell.ts'
import { shardOfGroup, shardsPrefix } from '../../src/cells/cell-table.ts'
import { allShardsOf, isShardOf, shardGroup, shardOf } from '../../src/cells/shard.ts'
import { placeOf } from '../../src/base/placed-group.ts'
import { placementOver } from '../../src/placement/placement.ts'
import { nodeId } from '../../src/base/ids.ts'
import { rowKey } from './kit.ts'

const eu = { kind: 'region', name: 'eu' } as const
const forms = [
  ['trips', { base: 'trips', shards: 4096 }],
  ['trips.64', { base: 'trips', shards: 64 }],
  ['trips.1', { base: 'trips', shards: 1 }],
  ['a_1.2048', { base: 'a_1', shards: 2048 }],
  ['trips.64.region-eu', { base: 'trips', shards: 64, place: eu }],
  ['trips.4096.region-eu', { base: 'trips', shards: 4096, place: eu }],
  ['t.8.set-us-west-2', { base: 't', shards: 8, place: { kind: 'set', name: 'us-west-2' } }],
] as const

test.each(forms)('CELL-9: %s says one form, and the form has one name', (name, form) => {
  expect(readForm(name)).toEqual(form)
  expect(nameDatastore(form)).toBe(name)
  expect(isDatastore(name)).toBe(true)
  expect(shardCountOf(name)).toBe(form.shards)
  expect(placeOfDatastore(name)).toEqual('place' in form ? form.place : undefined)
})

test('CELL-9: a text that is another spelling of a form, or says none, names no datastore', () => {
  const bad = [
    ...['', '.', '.64', 'trips.', 'trips.4096', 'trips.064', 'trips.0', 'trips.3', 'trips.8192'],
    ...['trips.+8', 'trips.8.', 'trips.1e1', 'trips. 8', 'trips.64.64', 'trips.region-eu'],
    ...['trips.64.region-', 'trips.64.zone-eu', 'trips.64.region-EU', 'trips.64.region-eu.x'],
    ...['Trips.64', 'trips-64', '1trips.64', `${'a'.repeat(62)}.64`],
  ]
  expect(bad.filter(isDatastore)).toEqual([])
  expect(['trips', 'trips.64', 7, undefined].map(isBaseName)).toEqual([true, false, false, false])
  expect([1, 2, 4096, 0, 3, 8192, 1.5, '64'].map(isShardCount)).toEqual([
    ...[true, true, true, false, false, false, false, false],
  ])
})

test('CELL-9: a row is in one of the shards of its datastore, by the first bits of one hash', () => {
  const rows = Array.from({ length: 300 }, (_, k) => rowKey(k + 1))
  for (const shards of [1, 2, 64, 2048]) {
    const datastore = `trips.${shards}`
    const found = rows.map((row) => shardOf(datastore, row))
    expect(found).toEqual(rows.map((row) => Math.floor((shardOf('trips', row) * shards) / 4096)))
    expect(found.every((shard) => isShardOf(datastore, shard))).toBe(true)
    expect(allShardsOf(datastore)).toEqual(Array.from({ length: shards }, (_, shard) => shard))
    expect([-1, shards, 0.5, '0'].some((shard) => isShardOf(datastore, shard))).toBe(false)
  }
  expect(new Set(rows.map((row) => shardOf('trips.64', row))).size).toBeGreaterThan(50)
})

test('CELL-9: the group of a shard begins with the place of its datastore, and says which shard it is', () => {
  const names = [
    'trips',
    'trips.64',
    'trips.64.region-eu',
    'trips.4096.region-eu',
    'trips.64.set-a',
  ]
  const groups = names.flatMap((name) => [shardGroup(name, 0), shardGroup(name, 7)])
  expect(new Set(groups).size).toBe(groups.length)
  for (const name of names) {
    const group = shardGroup(name, 7)
    expect(shardOfGroup(group)).toEqual({ datastore: name, shard: 7 })
    expect(placeOf(group)).toEqual(placeOfDatastore(name))
    expect(groups.filter((one) => one.startsWith(shardsPrefix(name)))).toHaveLength(2)
  }
})

test('MOVE-8: all shards of a datastore with a place are in the sets of that place', () => {
  const nodes = ['a', 'b', 'c'].map((id) => [nodeId(id)])
  const sites = [
    { name: 'west', region: 'us' },
    { name: 'north', region: 'eu' },
    { name: 'south', region: 'eu' },
  ]
  const placement = placementOver(nodes, [], sites)
  const setsOf = (datastore: string): readonly number[] => {
    const shards = allShardsOf(datastore).map((shard) => shardGroup(datastore, shard))
    expect(shards.every((group) => placement.refusalOf(group) === undefined)).toBe(true)
    return [...new Set(shards.map(placement.setOf))].sort((a, b) => a - b)
  }
  expect(setsOf('trips')).toEqual([0, 1, 2])
  expect(setsOf('trips.64')).toEqual([0, 1, 2])
  expect(setsOf('trips.64.region-eu')).toEqual([1, 2])
  expect(setsOf('trips.64.set-south')).toEqual([2])
  expect(placement.setsAlong(shardGroup('trips.64.region-eu', 3))).toEqual([1, 2])
  expect(placement.refusalOf(shardGroup('trips.64.region-asia', 0))).toMatch('no replica set')
})
