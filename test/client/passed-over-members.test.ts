/** Members that a call would pass over, and values that would do more than they say: refused in words. */
import { expect, test } from 'vitest'
import { limits } from '../../src/limits.ts'
import { groupOfBytes } from '../../src/base/ids.ts'
import type { PurgePageOptions } from '../../src/client/options.ts'
import type { HandleCall } from '../../src/queues/handle-call.ts'
import { unwrapOutcome } from '../../src/base/problem.ts'
import type { Client } from '../../src/client/client.ts'
import { typed } from '../../src/tables/types.ts'
import { settled } from '../cells/kit.ts'
import { createCluster } from './cluster.ts'

const group = groupOfBytes(Buffer.from('g'))
const view = { position: 0, asOf: 0 }
const work = (): Promise<void> => Promise.resolve()
const after = { kind: 'after', shard: 1, addedId: 0 } as const
const since = { kind: 'since', shard: 1, timestamp: 0 } as const

function bench() {
  const cluster = createCluster()
  const client = cluster.client()
  return { client, run: <Value>(wait: Promise<Value>) => settled(cluster.bench.world, wait) }
}

/** The log at the one place. */
async function logOf(client: Client, place: object): Promise<unknown> {
  const [outcome] = await client.cells('d').shardLogs([typed(place)])
  return outcome && unwrapOutcome(outcome)
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
    'a view at milliseconds',
    ({ groups }) => groups.view(group, { kind: 'at', timestamp: 1_795_796_417_499 }, 1_000),
    /^groups.view: timestamp is 1795796417499, which looks like milliseconds; expected a Date, or micro/,
  ],
  [
    'a first read at seconds',
    ({ groups }) =>
      groups.begin(group, { kind: 'at', timestamp: 1_795_796_417 }, { keys: [] }, 1_000),
    /^groups.begin: timestamp is 1795796417, which looks like seconds/,
  ],
  [
    'a view at no moment',
    ({ groups }) => groups.view(group, typed({ kind: 'at' }), 1_000),
    /timestamp is absent; expected a Date/,
  ],
  [
    'a current view with a timestamp',
    ({ groups }) => groups.view(group, typed({ kind: 'current', timestamp: 5 }), 1_000),
    /timestamp goes with the kind 'at', and kind is 'current'/,
  ],
  [
    'a view of another kind',
    ({ groups }) => groups.view(group, typed({ kind: 'newest' }), 1_000),
    /kind is "newest"; expected an object with a kind: 'current'/,
  ],
  [
    'a view with another member',
    ({ groups }) => groups.view(group, typed({ kind: 'at', at: 5 }), 1_000),
    /unknown property "at"/,
  ],
  [
    'a first read with another member',
    ({ groups }) => groups.begin(group, { kind: 'current' }, typed({ keys: [], rows: [] }), 1_000),
    /the first read: unknown member "rows"/,
  ],
  [
    'a read at a view of milliseconds',
    ({ groups }) => groups.get(group, { position: 1, asOf: 1_795_796_417_499 }, [], 1_000),
    /the view: asOf is 1795796417499, which looks like milliseconds/,
  ],
  [
    'a submission whose intent has milliseconds',
    ({ groups }) => {
      const intent = { ...submission.intent, expiresAt: 1_795_796_417_499 }
      return groups.commit({ ...submission, intent, mutations: [] }, 1_000)
    },
    /the intent: expiresAt is 1795796417499; expected microseconds/,
  ],
  [
    'a place after an id with a timestamp',
    (client) => logOf(client, { ...after, timestamp: 1n }),
    /a place of the kind 'after' has no timestamp; expected \{ kind: 'after'/,
  ],
  [
    'a place since a time with an id',
    (client) => logOf(client, { ...since, addedId: 5 }),
    /a place of the kind 'since' has no addedId/,
  ],
  [
    'a place since a time with a position',
    (client) => logOf(client, { ...since, asOf: 5 }),
    /a place of the kind 'since' has no asOf/,
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
