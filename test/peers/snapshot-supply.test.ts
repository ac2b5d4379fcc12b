/** How a node sends snapshots of groups to peers that ask for their parts. */
import { expect, test } from 'vitest'
import type { GroupId, NodeId, Position } from '../../src/base/ids.ts'
import { defaultLimits, type Limits } from '../../src/base/limits.ts'
import { SnapshotSupply, type ReadSnapshot } from '../../src/peers/snapshot-supply.ts'
import type { Message, SnapshotRequest } from '../../src/replication/message.ts'
import { HandClock } from '../ports/hand-clock.ts'
import { a, b, other, peer, row, settled } from './snapshot-kit.ts'

/** Three parts: 11 bytes, 101 bytes, and 5 bytes with the checksum 99. */
const parts = [
  { rows: [row('x', 10)], state: new Uint8Array(), crc: undefined },
  { rows: [row('y', 100)], state: new Uint8Array(), crc: undefined },
  { rows: [], state: Buffer.from('state'), crc: 99 },
]

class FakeSnapshot implements ReadSnapshot {
  readonly position: Position = 50
  reads = 0
  closes = 0
  failure: Error | undefined
  isDamaged = false

  async next(): ReturnType<ReadSnapshot['next']> {
    await Promise.resolve()
    if (this.failure !== undefined) throw this.failure
    const part = parts[this.reads]
    this.reads += 1
    if (part === undefined) throw new Error('read beyond its end')
    return part.crc === undefined ? part : { ...part, isDamaged: this.isDamaged }
  }

  close(): Promise<void> {
    this.closes += 1
    return Promise.resolve()
  }
}

class Bench {
  readonly damaged: GroupId[] = []
  readonly clock = new HandClock()
  readonly sent: (Message & { readonly to: NodeId })[] = []
  readonly opened: FakeSnapshot[] = []
  readonly failures: unknown[] = []
  readonly marks: string[] = []
  hasNone = false
  readonly supply: SnapshotSupply

  constructor(changed: Partial<Limits> = {}) {
    this.supply = new SnapshotSupply({
      clock: this.clock,
      trace: { emit: () => undefined, mark: (name) => this.marks.push(name) },
      limits: { ...defaultLimits, ...changed },
      open: () => {
        if (this.hasNone) return undefined
        const snapshot = new FakeSnapshot()
        this.opened.push(snapshot)
        return snapshot
      },
      send: (to, message) => this.sent.push({ ...message, to }),
      onDamaged: (group) => this.damaged.push(group),
      onFailed: (error) => this.failures.push(error),
    })
  }

  /** Asks, and lets the part be read and sent, as far as its time has come. */
  async ask(part: number, changed: Partial<SnapshotRequest> = {}, from = peer): Promise<void> {
    const asked = {
      kind: 'snapshot-request',
      group: a,
      epoch: 1,
      transfer: 7,
      part,
      above: 3,
    } as const
    this.supply.ask(from, { ...asked, ...changed })
    await settled()
    this.clock.pass(0)
  }

  /** The messages since the last call: `transfer/part to peer`, `transfer refused to peer`. */
  words(): readonly string[] {
    return this.sent.splice(0).map((message) => {
      if (message.kind === 'snapshot-refused') return `${message.transfer} refused to ${message.to}`
      if (message.kind !== 'snapshot-part') return message.kind
      return `${message.transfer}/${message.part} to ${message.to}`
    })
  }
}

test('a snapshot is sent part by part as the peer asks, and let go when its last part was sent', async () => {
  const bench = new Bench()
  await bench.ask(0)
  const common = { kind: 'snapshot-part', group: a, epoch: 1, transfer: 7, position: 50, to: peer }
  expect(bench.sent.splice(0)).toEqual([
    { ...common, part: 0, rows: parts[0]?.rows, state: new Uint8Array() },
  ])
  bench.clock.pass(1_000)
  expect(bench.sent).toEqual([])
  await bench.ask(1)
  bench.clock.pass(1)
  expect(bench.sent.splice(0)).toEqual([
    { ...common, part: 1, rows: parts[1]?.rows, state: new Uint8Array() },
  ])
  expect(bench.supply.figures).toEqual({ groups: 0, bytes: 112, open: 1 })
  await bench.ask(2)
  bench.clock.pass(1)
  expect(bench.sent.splice(0)).toEqual([
    { ...common, part: 2, rows: [], state: Buffer.from('state'), crc: 99 },
  ])
  expect(bench.supply.figures).toEqual({ groups: 1, bytes: 117, open: 0 })
  expect([bench.opened.length, bench.opened[0]?.closes]).toEqual([1, 1])
})

test('HASH-1: a snapshot whose rows are not those that the state record counts is refused at its end', async () => {
  const bench = new Bench()
  await bench.ask(0)
  const [snapshot] = bench.opened
  if (snapshot === undefined) throw new Error('no snapshot was opened')
  snapshot.isDamaged = true
  bench.clock.pass(1_000)
  await bench.ask(1)
  bench.clock.pass(1_000)
  await bench.ask(2)
  bench.clock.pass(1_000)
  expect(bench.words()).toEqual(['7/0 to peer', '7/1 to peer', '7 refused to peer'])
  expect(bench.marks).toEqual(['snapshot_begun', 'snapshot_differs_from_hash', 'snapshot_refused'])
  expect([bench.supply.figures.open, bench.supply.figures.groups, snapshot.closes]).toEqual([
    0, 0, 1,
  ])
  expect(bench.failures).toEqual([])
  expect(bench.damaged).toEqual([a])
})

test('a part that was lost on the way is sent again as it was, and not read again', async () => {
  const bench = new Bench()
  await bench.ask(0)
  const [first] = bench.sent.splice(0)
  await bench.ask(0)
  expect(bench.sent.splice(0)).toEqual([first])
  expect([bench.opened.length, bench.opened[0]?.reads]).toEqual([1, 1])
  bench.clock.pass(1_000)
  await bench.ask(1)
  await bench.ask(1)
  expect(bench.words()).toEqual(['7/1 to peer', '7/1 to peer'])
  expect(bench.opened[0]?.reads).toBe(2)
})

test('a peer that asks again while a part is read or waits for its time gets it once', async () => {
  const bench = new Bench({ snapshotBytesPerSecond: 100 })
  await bench.ask(0)
  expect(bench.words()).toEqual(['7/0 to peer'])
  await bench.ask(1)
  await bench.ask(1)
  // 11 bytes take 110 ms.
  bench.clock.pass(105)
  await bench.ask(1)
  expect(bench.words()).toEqual([])
  bench.clock.pass(10)
  expect(bench.words()).toEqual(['7/1 to peer'])
  expect(bench.opened[0]?.reads).toBe(2)
})

test('groups beyond the limit of a second wait', async () => {
  const bench = new Bench({ snapshotGroupsPerSecond: 10 })
  for (let transfer = 1; transfer <= 3; transfer++) await bench.ask(0, { transfer })
  expect(bench.words()).toEqual(['1/0 to peer'])
  bench.clock.pass(101)
  expect(bench.words()).toEqual(['2/0 to peer'])
  bench.clock.pass(101)
  expect(bench.words()).toEqual(['3/0 to peer'])
})

test('a peer that asks for another part than the next or the last is refused, and asks anew', async () => {
  const bench = new Bench()
  await bench.ask(0)
  bench.words()
  await bench.ask(2)
  expect(bench.words()).toEqual(['7 refused to peer'])
  expect([bench.opened[0]?.closes, bench.supply.figures.open]).toEqual([1, 0])
  // Nothing is known of it any more.
  await bench.ask(1)
  expect(bench.words()).toEqual(['7 refused to peer'])
  await bench.ask(0, { transfer: 8 })
  bench.clock.pass(1)
  expect(bench.words()).toEqual(['8/0 to peer'])
})

test('a peer is refused where there is no snapshot, and where there is none beyond what it has', async () => {
  const bench = new Bench()
  bench.hasNone = true
  await bench.ask(0)
  expect(bench.sent.splice(0)).toEqual([
    { kind: 'snapshot-refused', group: a, epoch: 1, transfer: 7, to: peer },
  ])
  bench.hasNone = false
  await bench.ask(0, { above: 50 })
  expect(bench.words()).toEqual(['7 refused to peer'])
  expect(bench.opened.map(({ closes }) => closes)).toEqual([1])
  await bench.ask(0, { above: 49 })
  expect(bench.words()).toEqual(['7/0 to peer'])
})

test('each peer gets twice as many snapshots at once as the limit says: clients may wait for half of them', async () => {
  const bench = new Bench({ snapshotsMax: 1 })
  for (let transfer = 1; transfer <= 3; transfer++) await bench.ask(0, { transfer, group: b })
  await bench.ask(0, { transfer: 1 }, other)
  bench.clock.pass(1_000)
  expect([...bench.words()].sort()).toEqual([
    ...['1/0 to other', '1/0 to peer', '2/0 to peer', '3 refused to peer'],
  ])
  expect(bench.supply.figures.open).toBe(3)
})

test('a snapshot is given up when the peer has asked for no part for too long', async () => {
  const bench = new Bench({ snapshotPinMs: 5_000 })
  await bench.ask(0)
  bench.clock.pass(4_000)
  bench.supply.look()
  await bench.ask(1)
  bench.clock.pass(0)
  bench.words()
  bench.clock.pass(4_999)
  bench.supply.look()
  expect([bench.opened[0]?.closes, bench.supply.figures.open]).toEqual([0, 1])
  bench.clock.pass(1)
  bench.supply.look()
  expect([bench.opened[0]?.closes, bench.supply.figures.open]).toEqual([1, 0])
  expect(bench.marks).toContain('snapshot_given_up')
  await bench.ask(1)
  expect(bench.words()).toEqual(['7 refused to peer'])
})

test('what a peer that is gone asked for is let go, that of others is not', async () => {
  const bench = new Bench()
  await bench.ask(0)
  await bench.ask(0, {}, other)
  bench.clock.pass(1)
  bench.words()
  bench.supply.forget(peer)
  expect(bench.opened.map(({ closes }) => closes)).toEqual([1, 0])
  bench.clock.pass(1_000)
  await bench.ask(1, {}, other)
  expect(bench.words()).toEqual(['7/1 to other'])
})

test('nothing is sent of what was let go while it was read, or waited for its time', async () => {
  const bench = new Bench({ snapshotBytesPerSecond: 10 })
  await bench.ask(0)
  bench.words()
  await bench.ask(1)
  bench.supply.stop()
  bench.clock.pass(60_000)
  expect(bench.words()).toEqual([])
  const reading = bench.ask(0, { transfer: 8 })
  bench.supply.stop()
  await reading
  bench.clock.pass(60_000)
  expect(bench.words()).toEqual([])
  expect(bench.opened.map(({ closes }) => closes)).toEqual([1, 1])
  expect(bench.failures).toEqual([])
})

test('a snapshot that cannot be read is let go, and the node hears of it', async () => {
  const bench = new Bench()
  await bench.ask(0)
  bench.words()
  const [snapshot] = bench.opened
  const failure = new Error('the disk is gone')
  if (snapshot !== undefined) snapshot.failure = failure
  bench.clock.pass(1_000)
  await bench.ask(1)
  expect([bench.words(), bench.failures]).toEqual([[], [failure]])
  expect([snapshot?.closes, bench.supply.figures.open]).toEqual([1, 0])
})
