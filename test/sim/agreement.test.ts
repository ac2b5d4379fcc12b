/** A node that tells nothing agrees with no other node. */
import { expect, test } from 'vitest'
import { StoreError } from '../../src/base/errors.ts'
import type { LogPage } from '../../src/client/options.ts'
import { readUntil } from '../../sim/processes/run.ts'

const past = performance.now() - 1
const wanted = { level: 'snapshot', wanted: 0 } as const

test('a node that never answers shows no log, not an empty one', async () => {
  const shardLog = (): Promise<never> => Promise.reject(new StoreError('unavailable', 'not now'))
  expect(await readUntil({ shardLog }, 0, wanted, past)).toBeUndefined()
})

test('a node whose log is empty says so', async () => {
  const shardLog = (shard: number): Promise<LogPage> =>
    Promise.resolve({ shard, items: [], cursor: 0 })
  expect(await readUntil({ shardLog }, 0, wanted, past)).toBe(0)
})
