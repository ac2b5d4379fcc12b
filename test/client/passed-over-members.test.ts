/** Members that a call would pass over, and values that would do more than they say: refused in words. */
import { expect, test } from 'vitest'
import { limits } from '../../src/limits.ts'
import { groupOfBytes } from '../../src/base/ids.ts'
import type { PurgePageOptions } from '../../src/client/options.ts'
import type { HandleCall } from '../../src/queues/handle-call.ts'
import { typed } from '../../src/tables/types.ts'
import { settled } from '../cells/kit.ts'
import { createCluster } from './cluster.ts'

const group = groupOfBytes(Buffer.from('g'))
const view = { position: 0, asOf: 0 }
const work = (): Promise<void> => Promise.resolve()

function bench() {
  const cluster = createCluster()
  const client = cluster.client()
  return { client, run: <Value>(wait: Promise<Value>) => settled(cluster.bench.world, wait) }
}

const submission = {
  ...{ group, attempt: 1, readPosition: 0, reads: [], ranges: [], allocations: [] },
  intent: { session: 's', sequence: 1, expiresAt: 1, floor: 0 },
}

test.each<readonly [string, (client: ReturnType<typeof bench>['client']) => unknown, RegExp]>([
  [
    'a range of from and to',
    ({ groups }) => groups.scan(group, view, typed({ from: new Uint8Array() }), 1_000),
    /the range: unknown member "from"/,
  ],
  [
    'a mutation of a kind',
    ({ groups }) => {
      const mutations = [typed<object>({ kind: 'put', key: new Uint8Array([1]) })]
      return groups.commit(typed({ ...submission, mutations }), 1_000)
    },
    /a mutation: unknown member "kind"/,
  ],
  [
    'a submission with read for reads',
    ({ groups }) => groups.commit(typed({ ...submission, mutations: [], read: [] }), 1_000),
    /the submission: unknown member "read".*"reads"/,
  ],
  [
    'a lock without a name',
    ({ groups }) => groups.withLock(group, { name: '', waitMs: 1, holdMs: 1 }, work),
    /the name of a lock is empty/,
  ],
  [
    'a lock with another member',
    ({ groups }) =>
      groups.withLock(group, typed({ name: 'a', waitMs: 1, holdMs: 1, wait: 1 }), work),
    /the lock: unknown member "wait"/,
  ],
  [
    'an intent whose time is milliseconds',
    ({ groups }) =>
      groups.outcome(group, { session: 's', sequence: 1, expiresAt: 1_795_796_417_499 }, 1_000),
    /the intent: expiresAt is 1795796417499; expected microseconds/,
  ],
  [
    'an intent without a session',
    ({ groups }) => groups.outcome(group, { session: '', sequence: 1 }, 1_000),
    /the intent: session is ""; expected a string that is not empty/,
  ],
  [
    'batchs for batch',
    async ({ queues }) =>
      queues.consume(typed<HandleCall>({ queue: 'A.b', handle: work, batchs: 3 })),
    /unknown member "batchs".*"batch"/,
  ],
  [
    'a purge of the column undefined',
    (client) =>
      client.cells('d').purgeShard(1, typed<PurgePageOptions>({ before: 1n, column: undefined })),
    /column is undefined; leave it out for all columns/,
  ],
  [
    'a purge of no shard',
    (client) => client.cells('d').purge({ before: 1n, shards: [] }).next(),
    /shards is a list.*one at least/,
  ],
  [
    'a tail of no shard',
    (client) => client.cells('d').tail({ shards: [] }).next(),
    /shards is a list.*one at least/,
  ],
])('%s is refused', async (_, call, words) => {
  const { client, run } = bench()
  const asked = Promise.resolve().then(() => call(client))
  await expect(run(asked)).rejects.toMatchObject({
    ...{ code: 'invalid', message: expect.stringMatching(words) },
  })
})

test('limits stay as they are', () => {
  expect(Object.isFrozen(limits)).toBe(true)
})
