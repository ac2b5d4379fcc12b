/**
 * The sessions that a group remembers: full of them it still takes what it can, and waits for a while only.
 */
import { expect, test } from 'vitest'
import { CoreCluster } from './core-cluster.ts'

/** A table of two, full from the first position or two on. `soon` is half a second after the start. */
function fullTable(expiresAt?: number, roomWaitMs = 2_000): CoreCluster {
  const cluster = new CoreCluster({ limits: { groupSessionsMax: 2, roomWaitMs } })
  for (const session of ['one', 'two']) {
    cluster.submit(0, {
      ...{ key: session, session, sequence: 1 },
      ...(expiresAt === undefined ? {} : { expiresAt }),
    })
  }
  cluster.settle()
  return cluster
}

const soon = 1_500_000

test('LOG-3: a session that finds no room is refused; those that are remembered go on', () => {
  const cluster = fullTable()
  const strange = cluster.submit(0, { key: 'x', session: 'three' })
  const known = cluster.submit(0, { key: 'y', session: 'one', sequence: 2 })
  cluster.settle()
  expect(cluster.at(0).verdicts.get(strange)).toEqual({ kind: 'overloaded' })
  expect(cluster.at(0).verdicts.get(known)).toMatchObject({ kind: 'committed' })
})

test('LIVE-1: expired sessions make room even if no other client writes to the group', () => {
  const cluster = fullTable(soon)
  cluster.elapse(5_000)
  const requests = [0, 1, 2].map((index) =>
    cluster.submit(index, { key: `k${index}`, session: `new ${index}` }),
  )
  cluster.settle()
  const verdicts = requests.map((request, index) => cluster.at(index).verdicts.get(request))
  expect(verdicts.filter((verdict) => verdict?.kind === 'committed').length).toBe(2)
  expect(cluster.marks).toContain('noop_proposed')
  for (const index of [1, 2]) expect(cluster.at(index).stateBytes).toEqual(cluster.at(0).stateBytes)
})

test('LOG-3: an entry takes no more new sessions than there is room for', () => {
  const cluster = new CoreCluster({ limits: { groupSessionsMax: 2 } })
  cluster.at(0).isHeld = true
  cluster.submit(0, { key: 'a', session: 'one', sequence: 1 })
  const second = cluster.submit(0, { key: 'b', session: 'two', sequence: 1 })
  const third = cluster.submit(0, { key: 'c', session: 'three', sequence: 1 })
  const more = cluster.submit(0, { key: 'd', session: 'two', sequence: 2 })
  cluster.at(0).isHeld = false
  cluster.at(0).flush()
  cluster.settle()
  expect(cluster.at(0).verdicts.get(second)).toMatchObject({ kind: 'committed', position: 2 })
  expect(cluster.at(0).verdicts.get(more)).toMatchObject({ kind: 'committed', position: 2 })
  expect(cluster.at(0).verdicts.get(third)).toEqual({ kind: 'overloaded' })
})

test('LIVE-1: a forwarded transaction waits for room for a bounded time and ends without a verdict', () => {
  const cluster = fullTable()
  const request = cluster.submit(1, { key: 'x', session: 'three', sequence: 1, attempt: 1 })
  cluster.settle()
  expect(cluster.marks).toContain('no_room_at_leader')
  expect(cluster.marks).toContain('session_room_wait_expired')
  expect(cluster.at(1).verdicts.has(request)).toBe(false)
  // Nothing of it is left that could take effect without its caller's knowledge.
  cluster.settle()
  expect(cluster.at(1).rows.has('x')).toBe(false)
  expect(cluster.inFlight).toEqual([])
})

test('LOG-3: a transaction that waited for room takes effect when there is some, once', () => {
  const cluster = fullTable(12_000_000, 60_000)
  const request = cluster.submit(1, { key: 'x', session: 'three', sequence: 1, attempt: 1 })
  cluster.settle()
  expect(cluster.at(1).verdicts.get(request)).toMatchObject({ kind: 'committed', attempt: 1 })
  const again = cluster.submit(2, { key: 'x', session: 'three', sequence: 1, attempt: 2 })
  cluster.settle()
  expect(cluster.at(2).verdicts.get(again)).toEqual(cluster.at(1).verdicts.get(request))
})

test('LOG-3: after the first node dies another gives the first outcome, numbers included', () => {
  const cluster = new CoreCluster()
  const content = { key: 'a', session: 'client', sequence: 4, allocations: [1, 1] }
  cluster.submit(1, { ...content, value: 'first', attempt: 1 })
  const toAsked = cluster.at(1).node
  cluster.deliver(({ to, message }) => to !== toAsked || message.kind === 'accept')
  cluster.at(1).crash()
  const request = cluster.submit(2, { ...content, value: 'second', attempt: 2 })
  cluster.settle()
  expect(cluster.at(2).verdicts.get(request)).toMatchObject({
    ...{ kind: 'committed', attempt: 1, sequences: [1, 2] },
  })
  const known = cluster.at(2).replica.outcome(cluster.group, { session: 'client', sequence: 4 })
  expect(known).toEqual(cluster.at(2).verdicts.get(request))
})

test('waiting transactions are bounded by their bytes, those of their reads included', () => {
  const cluster = new CoreCluster({ limits: { groupQueueBytesMax: 4_000 } })
  cluster.at(0).isHeld = true
  const reads = ['r'.repeat(1_000), 's'.repeat(1_000)]
  const first = cluster.submit(0, { key: 'a', reads, sequence: 1 })
  const range = ['a'.repeat(1_000), 'b'.repeat(1_000)] as const
  const second = cluster.submit(0, { key: 'b', ranges: [range], sequence: 2 })
  const third = cluster.submit(0, { key: 'c', sequence: 3 })
  expect(cluster.at(0).verdicts.get(second)).toEqual({ kind: 'overloaded' })
  cluster.at(0).isHeld = false
  cluster.at(0).flush()
  cluster.settle()
  expect(cluster.at(0).verdicts.get(first)).toMatchObject({ kind: 'committed' })
  expect(cluster.at(0).verdicts.get(third)).toMatchObject({ kind: 'committed' })
  // Alone it may be larger than all that may wait together; settled ones take no room.
  const large = cluster.submit(0, { key: 'd', reads: [...reads, ...reads, ...range], sequence: 4 })
  cluster.settle()
  expect(cluster.at(0).verdicts.get(large)).toMatchObject({ kind: 'committed' })
})
