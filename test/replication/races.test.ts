/** Directed tests of the protocol's races, on the pure core. Titles carry the rules of SPEC.md. */
import { expect, test } from 'vitest'
import { decodeState } from '../../src/replication/state.ts'
import { groupOfBytes } from '../../src/base/ids.ts'
import { noRoom } from '../../src/txn/no-room.ts'
import { CoreCluster, type InFlight } from './core-cluster.ts'

const between =
  (cluster: CoreCluster, ...indexes: number[]) =>
  ({ from, to }: InFlight): boolean => {
    const names = indexes.map((index) => cluster.at(index).node)
    return names.includes(from) && names.includes(to)
  }

function rowsOf(cluster: CoreCluster, index: number): Record<string, string> {
  const rows: Record<string, string> = {}
  for (const [key, value] of cluster.at(index).rows) rows[key] = Buffer.from(value).toString()
  return rows
}

test('LOG-4: a write at the first leader takes one round trip and reaches every replica', () => {
  const cluster = new CoreCluster()
  const request = cluster.submit(0, { key: 'a' })
  expect(cluster.inFlight.map((one) => one.message.kind)).toEqual(['accept', 'accept'])
  cluster.deliver()
  expect(cluster.at(0).verdicts.get(request)).toMatchObject({ kind: 'committed', position: 1 })
  for (const index of [0, 1, 2]) expect(rowsOf(cluster, index)).toEqual({ a: 'v' })
})

test('LOG-4: a write at another node is forwarded, and answered there once applied there', () => {
  const cluster = new CoreCluster()
  const request = cluster.submit(1, { key: 'a' })
  cluster.deliver()
  expect(cluster.at(1).verdicts.get(request)).toMatchObject({ kind: 'committed', position: 1 })
  expect(rowsOf(cluster, 1)).toEqual({ a: 'v' })
})

test('LOG-4: a node that forwarded a write, and has accepted its entry, asks for nothing', () => {
  const cluster = new CoreCluster()
  const request = cluster.submit(1, { key: 'a' })
  const sent: string[] = []
  cluster.deliver(({ message }) => sent.push(message.kind) > 0)
  expect(cluster.at(1).verdicts.get(request)).toMatchObject({ kind: 'committed', position: 1 })
  expect(sent.toSorted()).toEqual([
    ...['accept', 'accept', 'accepted', 'accepted'],
    ...['committed', 'committed', 'forward', 'forward-reply'],
  ])
})

test('PAX-4: nothing leaves an acceptor before its disk has what the answer says', () => {
  const cluster = new CoreCluster()
  cluster.at(1).isHeld = true
  cluster.at(2).isHeld = true
  const request = cluster.submit(0, { key: 'a' })
  cluster.deliver()
  expect(cluster.at(0).verdicts.has(request)).toBe(false)
  cluster.at(1).flush()
  cluster.deliver()
  expect(cluster.at(0).verdicts.get(request)).toMatchObject({ kind: 'committed' })
})

test('PAX-6: at position 1 the leader sends a value only after it is on its disk', () => {
  const cluster = new CoreCluster()
  cluster.at(0).isHeld = true
  cluster.submit(0, { key: 'a' })
  cluster.elapse(5_000)
  expect(cluster.inFlight).toEqual([])
  cluster.at(0).flush()
  expect(cluster.inFlight.map((one) => one.message.kind)).toEqual(['accept', 'accept'])
})

test('PAX-6: a leader that restarted prepares instead of using ballot zero again', () => {
  const cluster = new CoreCluster()
  cluster.submit(0, { key: 'a' })
  cluster.deliver()
  cluster.at(0).crash()
  const request = cluster.submit(0, { key: 'b', readPosition: 1 })
  expect(cluster.inFlight.every((one) => one.message.kind === 'prepare')).toBe(true)
  cluster.settle()
  expect(cluster.at(0).verdicts.get(request)).toMatchObject({ kind: 'committed', position: 2 })
})

test('PAX-5: a value that may have been chosen is adopted, not replaced', () => {
  const cluster = new CoreCluster()
  cluster.submit(0, { key: 'a' })
  // Nodes 0 and 1 accept; no other node learns of it, and node 0 is gone.
  const toOne = cluster.hold(({ to }) => to === cluster.at(2).node)
  cluster.deliver(({ message }) => message.kind === 'accept')
  expect(toOne.length).toBe(1)
  const request = cluster.submit(2, { key: 'b' })
  cluster.at(2).replica.suspect(cluster.at(0).node, true)
  cluster.at(2).step({ kind: 'suspect', peer: cluster.at(0).node })
  cluster.settle(between(cluster, 1, 2))
  expect(cluster.marks).toContain("adopted another's value")
  expect(rowsOf(cluster, 2)).toEqual({ a: 'v', b: 'v' })
  expect(cluster.at(2).verdicts.get(request)).toMatchObject({ kind: 'committed', position: 2 })
})

test('PAX-1: duelling proposers decide one value at each position, and both get through', () => {
  const cluster = new CoreCluster()
  for (const node of cluster.nodes) {
    for (const other of cluster.nodes) {
      if (other !== node) node.replica.suspect(other.node, true)
    }
  }
  const requests = [0, 1, 2].map((index) => cluster.submit(index, { key: `k${index}` }))
  cluster.settle()
  for (const [index, request] of requests.entries()) {
    expect(cluster.at(index).verdicts.get(request)).toMatchObject({ kind: 'committed' })
    expect(rowsOf(cluster, index)).toEqual({ k0: 'v', k1: 'v', k2: 'v' })
  }
  const chosen = cluster.events.filter((event) => event.kind === 'chosen')
  const valueAt = new Map<unknown, string>()
  for (const { position, value } of chosen) {
    const text = Buffer.from(value instanceof Uint8Array ? value : []).toString('hex')
    expect(valueAt.get(position) ?? text).toBe(text)
    valueAt.set(position, text)
  }
})

test('LOG-3: a retry through another node gets the first outcome and takes no effect', () => {
  const cluster = new CoreCluster()
  cluster.submit(0, { key: 'a', value: 'first', sequence: 7, attempt: 1 })
  cluster.deliver()
  const request = cluster.submit(1, { key: 'a', value: 'second', sequence: 7, attempt: 2 })
  cluster.deliver()
  expect(cluster.at(1).verdicts.get(request)).toMatchObject({ kind: 'committed', attempt: 1 })
  expect(rowsOf(cluster, 2)).toEqual({ a: 'first' })
})

test('LOG-3: one intent at two proposers is in effect once, and both callers hear so', () => {
  const cluster = new CoreCluster()
  const first = cluster.submit(0, { key: 'a', sequence: 7, attempt: 1 })
  const others = cluster.hold(() => true)
  cluster.at(1).replica.suspect(cluster.at(0).node, true)
  const second = cluster.submit(1, { key: 'a', sequence: 7, attempt: 1 })
  cluster.redeliver(others)
  cluster.settle()
  for (const [index, request] of [first, second].entries()) {
    expect(cluster.at(index).verdicts.get(request)).toMatchObject({ kind: 'committed' })
  }
  expect(cluster.at(0).stateBytes).toEqual(cluster.at(1).stateBytes)
})

test('LOG-1: a replica that missed a position fetches it before it applies the next', () => {
  const cluster = new CoreCluster()
  const lost = (one: InFlight): boolean => one.to !== cluster.at(2).node
  cluster.submit(0, { key: 'a' })
  cluster.deliver(lost)
  cluster.submit(0, { key: 'b', readPosition: 1 })
  cluster.deliver()
  expect(rowsOf(cluster, 2)).toEqual({ a: 'v', b: 'v' })
  expect(cluster.marks).toContain('caught_up_from_peer')
})

test('LOG-1: a notice names the ballot, and a replica never takes its own value for another', () => {
  const cluster = new CoreCluster()
  // Node 0 proposes at ballot zero and reaches only itself; 1 and 2 decide something else.
  cluster.submit(0, { key: 'zero' })
  cluster.hold(() => true)
  for (const index of [1, 2]) cluster.at(index).replica.suspect(cluster.at(0).node, true)
  cluster.submit(1, { key: 'one' })
  cluster.deliver(between(cluster, 1, 2))
  expect(rowsOf(cluster, 1)).toEqual({ one: 'v' })
  cluster.settle()
  expect(rowsOf(cluster, 0)).toEqual({ one: 'v', zero: 'v' })
  expect(cluster.at(0).stateBytes).toEqual(cluster.at(2).stateBytes)
})

test('LOG-5: an accepted position whose proposer is gone is finished, not skipped', () => {
  const cluster = new CoreCluster()
  cluster.submit(0, { key: 'a' })
  const held = cluster.hold(({ to }) => to === cluster.at(2).node)
  cluster.deliver(({ message }) => message.kind === 'accept')
  expect(held.length).toBe(1)
  // Only node 1 has accepted, besides the dead leader. Sweeping ends it.
  cluster.settle(between(cluster, 1, 2))
  expect(rowsOf(cluster, 1)).toEqual({ a: 'v' })
  expect(rowsOf(cluster, 2)).toEqual({ a: 'v' })
})

test('LOG-5: a position that only a lost proposer touched is closed by a no-op', () => {
  const cluster = new CoreCluster()
  cluster.submit(0, { key: 'a' })
  cluster.hold(() => true)
  cluster.at(1).step({ kind: 'exists', position: 1, informer: cluster.at(0).node })
  cluster.settle(between(cluster, 1, 2))
  expect(cluster.marks).toContain('noop_proposed')
  expect(cluster.at(1).replica.applied(cluster.group).position).toBe(1)
  // The old leader comes back: its transaction moves on to the next position (promotion).
  cluster.settle()
  expect(rowsOf(cluster, 0)).toEqual({ a: 'v' })
  expect(rowsOf(cluster, 2)).toEqual({ a: 'v' })
})

test('LOG-2: a read that meets an undecided value finishes it before it shows anything', () => {
  const cluster = new CoreCluster()
  cluster.submit(0, { key: 'a' })
  cluster.deliver(({ message, to }) => message.kind === 'accept' && to === cluster.at(1).node)
  cluster.at(2).step({ kind: 'read', read: 1 })
  cluster.settle(between(cluster, 1, 2))
  expect(cluster.at(2).served.get(1)).toBeGreaterThanOrEqual(1)
  expect(rowsOf(cluster, 2)).toEqual({ a: 'v' })
  expect(cluster.at(1).stateBytes).toEqual(cluster.at(2).stateBytes)
})

test('a read sees what was acknowledged before it began, at a replica that heard nothing', () => {
  const cluster = new CoreCluster()
  cluster.submit(0, { key: 'a' })
  cluster.deliver(({ to }) => to !== cluster.at(2).node)
  cluster.at(2).step({ kind: 'read', read: 1 })
  cluster.settle()
  expect(cluster.at(2).served.get(1)).toBe(1)
  expect(rowsOf(cluster, 2)).toEqual({ a: 'v' })
})

test('MVCC-2: timestamps rise although the next proposer has a slower clock', () => {
  const cluster = new CoreCluster()
  cluster.now = 10_000
  cluster.submit(0, { key: 'a' })
  cluster.deliver()
  cluster.wallStepMs = -10_000
  const request = cluster.submit(0, { key: 'b', readPosition: 1 })
  cluster.deliver()
  const verdict = cluster.at(0).verdicts.get(request)
  expect(verdict).toMatchObject({ kind: 'committed', timestamp: 11_000_001 })
})

test('disjoint transactions share an entry; one that read what another writes waits its turn', () => {
  const cluster = new CoreCluster()
  cluster.at(0).isHeld = true
  cluster.submit(0, { key: 'first' })
  const requests = [
    cluster.submit(0, { key: 'a' }),
    cluster.submit(0, { key: 'b' }),
    cluster.submit(0, { key: 'c', reads: ['a'] }),
  ]
  cluster.at(0).isHeld = false
  cluster.at(0).flush()
  cluster.deliver()
  const kinds = requests.map((request) => cluster.at(0).verdicts.get(request))
  expect(kinds[0]).toMatchObject({ kind: 'committed', position: 2 })
  expect(kinds[1]).toMatchObject({ kind: 'committed', position: 2 })
  expect(kinds[2]).toMatchObject({ kind: 'conflict', position: 2 })
})

test('an intent past its expiry is recorded as expired and writes nothing', () => {
  const cluster = new CoreCluster()
  const request = cluster.submit(0, { key: 'a', expiresAt: 5 })
  cluster.deliver()
  expect(cluster.at(0).verdicts.get(request)).toEqual({ kind: 'expired' })
  expect(rowsOf(cluster, 0)).toEqual({})
})

test('sequence numbers are dense and filled in when applied, in key and value', () => {
  const cluster = new CoreCluster()
  const slots = [
    { allocation: 0, at: 'key', offset: 1 },
    { allocation: 0, at: 'value', offset: 0 },
  ] as const
  const requests = [1, 2, 3].map(() =>
    cluster.submit(0, {
      key: '',
      allocations: [0],
      mutations: [{ key: Buffer.alloc(9, 'k'), value: Buffer.alloc(8), slots }],
    }),
  )
  cluster.deliver()
  const drawn = requests.map((request) => cluster.at(0).verdicts.get(request))
  expect(drawn.map((one) => one?.kind === 'committed' && one.sequences)).toEqual([[1], [2], [3]])
  expect(cluster.at(1).rows.size).toBe(3)
})

test('LOG-4: two nodes that take each other for the leader do not pass a write to and fro', () => {
  const cluster = new CoreCluster()
  cluster.submit(1, { key: 'a' })
  cluster.deliver()
  cluster.at(1).replica.suspect(cluster.at(0).node, true)
  cluster.submit(1, { key: 'b', readPosition: 1 })
  // Node 1 prepares, and its entry names it as leader; node 0 hears of nothing.
  cluster.settle(between(cluster, 1, 2))
  cluster.at(1).replica.suspect(cluster.at(0).node, false)
  const request = cluster.submit(0, { key: 'c', readPosition: 1 })
  cluster.deliver()
  cluster.settle()
  expect(cluster.at(0).verdicts.get(request)).toMatchObject({ kind: 'committed' })
  for (const index of [0, 1, 2]) expect(rowsOf(cluster, index)).toEqual({ a: 'v', b: 'v', c: 'v' })
})

test('LOG-3: an intent that its client calls settled in the same entry does not get into it', () => {
  const cluster = new CoreCluster()
  cluster.at(0).isHeld = true
  cluster.submit(0, { key: 'first' })
  const settling = cluster.submit(0, { key: 'b', sequence: 9, floor: 9 })
  const settled = cluster.submit(0, { key: 'a', sequence: 5 })
  cluster.at(0).isHeld = false
  cluster.at(0).flush()
  cluster.deliver()
  expect(cluster.at(0).verdicts.get(settling)).toMatchObject({ kind: 'committed' })
  expect(cluster.at(0).verdicts.get(settled)).toEqual({ kind: 'expired' })
  expect(rowsOf(cluster, 1)).toEqual({ first: 'v', b: 'v' })
})

test('LIVE-5: duelling proposers end their duel on a network far slower than their limits expect', () => {
  const latencyMs = 300
  const limits = { phaseTimeoutMs: 20, backoffMs: 1, backoffMaxMs: 40, sweepMs: 20, settleMs: 5 }
  const cluster = new CoreCluster({ limits })
  for (const node of cluster.nodes) {
    for (const other of cluster.nodes) {
      if (other !== node) node.replica.suspect(other.node, true)
    }
  }
  const requests = [0, 1, 2].map((index) => cluster.submit(index, { key: `k${index}` }))
  const isDone = (): boolean =>
    requests.every((request, index) => cluster.at(index).verdicts.has(request))
  const slow: { readonly atMs: number; readonly held: readonly InFlight[] }[] = []
  while (!isDone() && cluster.now < 60_000) {
    slow.push({ atMs: cluster.now + latencyMs, held: cluster.hold(() => true) })
    while ((slow[0]?.atMs ?? Infinity) <= cluster.now) {
      const due = slow.shift()
      for (const { from, to, message } of due?.held ?? []) {
        cluster.nodes.find(({ node }) => node === to)?.take(from, message)
      }
    }
    cluster.elapse(5)
  }
  expect(isDone()).toBe(true)
  expect(cluster.now).toBeLessThan(20_000)
})

test('LOG-4: a leader without room is not believed while another copy of the write is on its way', () => {
  const cluster = new CoreCluster()
  cluster.at(0).hasRoom = false
  const request = cluster.submit(1, { key: 'a' })
  const [copy] = cluster.inFlight
  cluster.deliver()
  expect(cluster.marks).toContain('no_room_at_leader')
  expect(cluster.at(1).verdicts.has(request)).toBe(false)
  cluster.at(0).hasRoom = true
  if (copy !== undefined) cluster.inFlight.push(copy)
  cluster.deliver()
  expect(cluster.at(1).verdicts.get(request)).toMatchObject({ kind: 'committed', position: 1 })
})

test('a write is refused for want of room where it has not left its node, by the node and not by its group', () => {
  const cluster = new CoreCluster()
  cluster.at(0).hasRoom = false
  const request = cluster.submit(0, { key: 'a' })
  const overloaded = { kind: 'overloaded', isOfNode: true } as const
  expect(cluster.at(0).verdicts.get(request)).toEqual(overloaded)
  const group = groupOfBytes(Buffer.from('load'))
  expect(noRoom(group, overloaded).detail).toEqual({})
  expect(noRoom(group, {}).detail).toEqual({ group })
  expect(cluster.inFlight).toEqual([])
})

test('LOG-3: a proposer that remembers too little does not speak for a copy that another one has', () => {
  const cluster = new CoreCluster()
  cluster.submit(0, { key: 'a' })
  cluster.settle()
  const read = { key: 'x', reads: ['z'], readPosition: 0, session: 'x', sequence: 1 }
  const request = cluster.submit(1, read)
  const first = cluster.hold(({ message }) => message.kind === 'forward')
  // Node 2 takes the next position, and then has forgotten what was written before.
  cluster.at(2).replica.suspect(cluster.at(0).node, true)
  cluster.submit(2, { key: 'b' })
  cluster.deliver()
  cluster.at(2).crash()
  cluster.settle()
  expect(cluster.marks).toContain('read_position_below_window')
  cluster.redeliver(first)
  cluster.settle()
  expect(cluster.at(1).verdicts.get(request)?.kind).not.toBe('conflict')
})

test('LOG-3: a node that takes a transaction back and remembers too little reports no conflict', () => {
  const limits = { validationWindow: 1, validationWindowMax: 1 }
  const cluster = new CoreCluster({ limits })
  for (const key of ['a', 'b', 'c']) {
    cluster.submit(0, { key })
    cluster.settle()
  }
  const read = { key: 'x', reads: ['z'], readPosition: 0, session: 'x', sequence: 1 }
  const request = cluster.submit(1, read)
  cluster.hold(({ message }) => message.kind === 'forward')
  cluster.at(1).replica.suspect(cluster.at(0).node, true)
  cluster.at(1).step({ kind: 'suspect', peer: cluster.at(0).node })
  cluster.settle()
  expect(cluster.marks).toContain('conflict')
  expect(cluster.at(1).verdicts.has(request)).toBe(false)
  // The caller of one that never left its node learns of the conflict.
  const own = cluster.submit(1, { ...read, session: 'y' })
  cluster.settle()
  expect(cluster.at(1).verdicts.get(own)).toMatchObject({ kind: 'conflict' })
})

/** Submits `count` writes at a node, one after another. */
function writeAt(cluster: CoreCluster, index: number, count: number, name: string): void {
  for (let nth = 0; nth < count; nth++) {
    cluster.submit(index, { key: `${name}${nth}` })
    cluster.settle(undefined, 2)
  }
}

function leaderOf(cluster: CoreCluster): string | undefined {
  const { stateBytes } = cluster.at(0)
  return stateBytes && decodeState(stateBytes)?.nextLeader?.node
}

test('LOG-4: leadership goes to where more than half of the last 32 transactions came in', () => {
  const cluster = new CoreCluster()
  const [home, away] = [cluster.at(0).node, cluster.at(1).node]
  writeAt(cluster, 0, 4, 'a')
  writeAt(cluster, 1, 16, 'b')
  expect(leaderOf(cluster)).toBe(home)
  writeAt(cluster, 1, 2, 'c')
  expect(leaderOf(cluster)).toBe(away)
  // One round trip, by ballot zero, and nothing is forwarded.
  const request = cluster.submit(1, { key: 'd' })
  expect(cluster.inFlight.map(({ message }) => message.kind)).toEqual(['accept', 'accept'])
  cluster.settle()
  expect(cluster.at(1).verdicts.get(request)).toMatchObject({ kind: 'committed' })
})

test('LOG-4: two nodes that write as much pass leadership on once in 17 transactions at most', () => {
  const cluster = new CoreCluster()
  let moves = 0
  let before: string | undefined = cluster.at(0).node
  const writes = 120
  for (let nth = 0; nth < writes; nth++) {
    writeAt(cluster, 1 + (nth % 2), 1, `k${nth} `)
    if (leaderOf(cluster) !== before) moves += 1
    before = leaderOf(cluster)
  }
  expect(moves).toBeLessThanOrEqual(writes / 17)
})

test('PAX-6: a named leader that has restarted since prepares', () => {
  const cluster = new CoreCluster()
  writeAt(cluster, 1, 18, 'a')
  expect(leaderOf(cluster)).toBe(cluster.at(1).node)
  cluster.at(1).crash()
  cluster.submit(1, { key: 'b' })
  expect(cluster.inFlight.map(({ message }) => message.kind)).toEqual(['prepare', 'prepare'])
  cluster.settle()
  for (const index of [0, 1, 2]) expect(rowsOf(cluster, index)).toMatchObject({ b: 'v' })
})

test('LOG-4: a writer that is suspected is not named the leader', () => {
  const cluster = new CoreCluster()
  writeAt(cluster, 1, 14, 'a')
  cluster.at(0).replica.suspect(cluster.at(1).node, true)
  writeAt(cluster, 1, 6, 'b')
  expect(leaderOf(cluster)).toBe(cluster.at(0).node)
})

test('LOG-3: an attempt that waits beside one which is refused is judged by what it has read itself', () => {
  const cluster = new CoreCluster()
  cluster.submit(0, { key: 'k' })
  cluster.settle()
  // Nothing more is proposed before the disk is done.
  cluster.at(0).isHeld = true
  cluster.submit(0, { key: 'other' })
  const intent = { session: 'x', sequence: 1, reads: ['k'] }
  const stale = cluster.submit(0, { key: 'a', ...intent, attempt: 1, readPosition: 0 })
  const fresh = cluster.submit(1, { key: 'b', ...intent, attempt: 2, readPosition: 1 })
  cluster.deliver()
  expect(cluster.marks).toContain('attempt_waits_for_rival')
  cluster.at(0).isHeld = false
  cluster.at(0).flush()
  cluster.settle()
  expect(cluster.at(0).verdicts.get(stale)).toMatchObject({ kind: 'conflict', position: 1 })
  expect(cluster.at(1).verdicts.get(fresh)).toMatchObject({ kind: 'committed', attempt: 2 })
  expect(rowsOf(cluster, 2)).toEqual({ k: 'v', other: 'v', b: 'v' })
})

test('LOG-3: every caller of an intent learns which attempt took effect', () => {
  const cluster = new CoreCluster()
  cluster.at(0).isHeld = true
  cluster.submit(0, { key: 'other' })
  const intent = { session: 'x', sequence: 1 }
  const requests = [1, 2, 3, 4, 5].map((attempt) =>
    cluster.submit(0, { key: `a${attempt}`, ...intent, attempt }),
  )
  expect(cluster.marks).toContain('no_room_for_attempt')
  cluster.at(0).isHeld = false
  cluster.at(0).flush()
  cluster.settle()
  const verdicts = requests.map((request) => cluster.at(0).verdicts.get(request))
  for (const verdict of verdicts.slice(0, 4)) expect(verdict).toMatchObject({ attempt: 1 })
  expect(verdicts[4]).toBeUndefined()
  // The caller of one that was forgotten and is sent again gets its outcome as well.
  const again = cluster.submit(0, { key: 'a5', ...intent, attempt: 5 })
  expect(cluster.at(0).verdicts.get(again)).toMatchObject({ kind: 'committed', attempt: 1 })
})
