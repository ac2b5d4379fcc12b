/** One group that everybody writes to, in a simulated cluster; and what it tells of its intents. */
import { expect, test } from 'vitest'
import { present } from '../../src/base/assert.ts'
import { groupOfBytes } from '../../src/base/ids.ts'
import type { Limits } from '../../src/base/limits.ts'
import type { LocalReplica, Outcome, Submission } from '../../src/group/replica-port.ts'
import { epochMicros } from '../../sim/world/clock.ts'
import type { SimCluster } from '../../sim/cluster/comparison.ts'
import { SeededRandom } from '../../sim/world/random.ts'
import { makeCluster, nobody } from '../../sim/run-setup.ts'
import { calmOptions } from '../../sim/scenarios/scenario-calm.ts'

const second = 1_000_000
const group = groupOfBytes(Buffer.from('hot'))
const timeoutMs = 10_000
const expiresAt = epochMicros + 3_600 * second

async function startedCluster(limits: Partial<Limits> = {}): Promise<SimCluster> {
  const calm = calmOptions(1)
  const options = { ...calm, limits: { ...calm.limits, ...limits } }
  const cluster = makeCluster({ options, faults: [] }, {}, nobody)
  cluster.start()
  expect(await cluster.world.run(() => cluster.programs.length === 3, 10 * second)).toBe('done')
  return cluster
}

function replicaAt(cluster: SimCluster, index: number): LocalReplica {
  return present(cluster.programs[index % 3], 'a node is down').replica
}

/** Lets the world go on until the work is done. */
async function within<T>({ world }: SimCluster, work: Promise<T>): Promise<T> {
  let isDone = false
  const end = (): void => {
    isDone = true
  }
  work.then(end, end)
  expect(await world.run(() => isDone, world.nowMicros + 600 * second)).toBe('done')
  return work
}

function writeOf(session: string, key: string, more: Partial<Submission> = {}): Submission {
  return {
    ...{ group, intent: { session, sequence: 1, floor: 1, expiresAt }, attempt: 1 },
    ...{ readPosition: 0, reads: [], ranges: [], allocations: [] },
    mutations: [{ key: Buffer.from(key), value: Buffer.from(session) }],
    ...more,
  }
}

/** Reads its own row, thinks, and writes it: in a session of its own each time. */
async function write(cluster: SimCluster, writer: number, round: number): Promise<Outcome> {
  const { world } = cluster
  const random = new SeededRandom(`${writer}/${round}`)
  await world.sleep(random.int(1, second))
  const replica = replicaAt(cluster, writer + round)
  const name = `row ${writer}`
  const point = await replica.read(group, 'current', timeoutMs)
  const row = replica.get(group, Buffer.from(name))
  const before = row && Buffer.from(row.value).toString()
  expect(before).toBe(round === 0 ? undefined : `${writer}/${round - 1}`)
  await world.sleep(random.int(1, second))
  const { position: readPosition } = point
  const reads = [Buffer.from(name)]
  return replica.submit(writeOf(`${writer}/${round}`, name, { readPosition, reads }), timeoutMs)
}

async function writeAll(cluster: SimCluster, rounds: number): Promise<ReadonlyMap<string, number>> {
  const counts = new Map<string, number>()
  const writer = async (number: number): Promise<void> => {
    for (let round = 0; round < rounds; round++) {
      const { kind } = await write(cluster, number, round)
      counts.set(kind, (counts.get(kind) ?? 0) + 1)
    }
  }
  await within(cluster, Promise.all(Array.from({ length: 1_000 }, (_, number) => writer(number))))
  return counts
}

test('TXN-1: a thousand writers of a group, each of a row of its own, commit at their first try', async () => {
  const cluster = await startedCluster()
  const counts = await writeAll(cluster, 3)
  expect(Object.fromEntries(counts)).toEqual({ committed: 3_000 })
  const { position } = await within(
    cluster,
    replicaAt(cluster, 0).read(group, 'current', timeoutMs),
  )
  // They shared entries, and there were more of these than a window without regard to age holds.
  expect(position).toBeGreaterThan(64)
  expect(position).toBeLessThan(3_000)
})

test('LOG-3: a client of any node learns the outcome of an intent', async () => {
  const cluster = await startedCluster()
  const [n1, n2] = [replicaAt(cluster, 0), replicaAt(cluster, 1)]
  const numbered = { allocations: [7, 7] }
  const first = await within(cluster, n1.submit(writeOf('s', 'a', numbered), timeoutMs))
  expect(first).toMatchObject({ kind: 'committed', sequences: [1, 2] })
  const ask = (session: string, sequence: number, until?: number) =>
    within(
      cluster,
      n2.outcome(
        group,
        { session, sequence, ...(until === undefined ? {} : { expiresAt: until }) },
        timeoutMs,
      ),
    )
  expect(await ask('s', 1)).toEqual(first)
  // Sent again through another node, with another content: the first outcome, its numbers included.
  const again = writeOf('s', 'b', { ...numbered, attempt: 2 })
  expect(await within(cluster, n2.submit(again, timeoutMs))).toEqual(first)
  expect(await ask('s', 2, expiresAt)).toMatchObject({ kind: 'none', position: 1 })
  expect(await ask('s', 2)).toMatchObject({ kind: 'forgotten', position: 1 })
  expect(await ask('stranger', 1)).toMatchObject({ kind: 'forgotten', position: 1 })
  expect(await ask('stranger', 1, expiresAt)).toMatchObject({ kind: 'none', position: 1 })
  expect(await ask('stranger', 1, epochMicros)).toMatchObject({ kind: 'forgotten' })
  const intent = { session: 's', sequence: 5, floor: 5, expiresAt }
  const fifth = await within(cluster, n1.submit(writeOf('s', 'c', { intent }), timeoutMs))
  expect(await ask('s', 1, expiresAt)).toMatchObject({ kind: 'forgotten', position: 2 })
  // It goes into an entry, whose timestamp is a later one.
  const moment = fifth.kind === 'committed' ? fifth.timestamp : 0
  const late = { session: 's', sequence: 6, floor: 5, expiresAt: moment }
  await within(cluster, n1.submit(writeOf('s', 'd', { intent: late }), timeoutMs))
  expect(await ask('s', 6)).toEqual({ kind: 'expired' })
})

test('a submission beyond its bounds is refused where it enters, and one at them is taken', async () => {
  const cluster = await startedCluster({ transactionReadsMax: 3 })
  const n1 = replicaAt(cluster, 0)
  const key = Buffer.from('k')
  const range = { gte: key, lt: Buffer.from('l') }
  const submit = (session: string, more: Partial<Submission>) =>
    within(cluster, n1.submit(writeOf(session, 'x', more), timeoutMs))
  const refused = { code: 'too-large' }
  await expect(submit('a', { reads: [key, key], ranges: [range, range] })).rejects.toMatchObject(
    refused,
  )
  await expect(submit('b', { reads: [Buffer.alloc(1_025)] })).rejects.toMatchObject(refused)
  await expect(
    submit('c', { ranges: [{ gte: key, lt: Buffer.alloc(1_026) }] }),
  ).rejects.toMatchObject(refused)
  const value = Buffer.alloc(4 * 1024 * 1024)
  await expect(submit('d', { mutations: [{ key, value }] })).rejects.toMatchObject(refused)
  await expect(submit('e'.repeat(257), {})).rejects.toMatchObject(refused)
  expect(await submit('f', { reads: [key, key], ranges: [range] })).toMatchObject({
    kind: 'committed',
    position: 1,
  })
})
