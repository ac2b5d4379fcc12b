import { expect, test } from 'vitest'
import { rowKey, settled } from '../cells/kit.ts'
import { createCluster } from './cluster.ts'

const base = { rowKey: rowKey(4), column: 'BASE', refKey: 0 }

test('thousands of calls at once wait in the client for their turn, and bodies are bounded in bytes', async () => {
  const cluster = createCluster()
  const { world } = cluster.bench
  const cells = cluster.client().cells('trips')
  const names = Array.from({ length: 5_000 }, (_, refKey) => ({ ...base, refKey }))
  const gets = await settled(world, Promise.all(names.map((name) => cells.get(name))))
  expect(gets.every((cell) => cell === undefined)).toBe(true)
  const few = cluster.client({ putBytesMax: 1_000 }, 'other').cells('trips')
  const body = 'x'.repeat(600)
  const ends = await settled(
    world,
    Promise.allSettled([few.put({ ...base, body }), few.put({ ...base, refKey: 1, body })]),
  )
  expect(ends).toMatchObject([
    { status: 'fulfilled' },
    { reason: { code: 'overloaded', detail: { limit: 'putBytesMax', limitValue: 1_000 } } },
  ])
})
