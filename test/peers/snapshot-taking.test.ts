/** How a node takes snapshots of groups from peers: parts get lost, peers refuse, are slow, or go. */
import { expect, test } from 'vitest'
import type { GroupId, NodeId, Position } from '../../src/base/ids.ts'
import { SnapshotTaking, type SnapshotSink } from '../../src/peers/snapshot-taking.ts'
import type { Message, SnapshotPart, SnapshotRow } from '../../src/replication/message.ts'
import { HandClock } from '../ports/hand-clock.ts'
import { group } from '../log/log-fixture.ts'
import { a, b, c, other, peer, row, settled } from './snapshot-kit.ts'

/** A node asks again for a part after ten times this. */
const phaseTimeoutMs = 100

class FakeSink implements SnapshotSink {
  readonly rows: SnapshotRow[] = []
  readonly calls: string[] = []
  isWell = true
  failure: Error | undefined
  /** Set: `add` and `finish` wait for `release`. */
  isHeld = false
  /** Cleared: the group is further than what came. */
  isTaken = true
  #waiting: (() => void)[] = []

  async add(rows: readonly SnapshotRow[], state: Uint8Array): Promise<boolean> {
    this.rows.push(...rows)
    this.calls.push(`add ${rows.length} ${Buffer.from(state).toString()}`.trim())
    await this.#turn()
    return this.isWell
  }

  async finish(position: Position, crc: number): Promise<boolean> {
    this.calls.push(`finish ${position} ${crc}`)
    await this.#turn()
    return this.isTaken
  }

  async abandon(): Promise<void> {
    this.calls.push('abandon')
    await this.#turn()
  }

  async #turn(): Promise<void> {
    if (this.isHeld) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    if (this.failure !== undefined) throw this.failure
  }

  release(): Promise<void> {
    this.isHeld = false
    for (const go of this.#waiting.splice(0)) go()
    return settled()
  }
}

class Bench {
  readonly clock = new HandClock()
  readonly sent: (Message & { readonly to: NodeId })[] = []
  readonly sinks: FakeSink[] = []
  readonly groups: GroupId[] = []
  readonly failures: unknown[] = []
  readonly marks: string[] = []
  readonly applied = new Map<GroupId, Position>()
  readonly awaited = new Set<GroupId>()
  readonly taking: SnapshotTaking
  #drawn = 0

  constructor(snapshotsMax = 64) {
    this.taking = new SnapshotTaking({
      clock: this.clock,
      trace: { emit: () => undefined, mark: (name) => this.marks.push(name) },
      limits: { snapshotsMax, phaseTimeoutMs },
      drawNumber: () => (this.#drawn += 1),
      send: (to, message) => this.sent.push({ ...message, to }),
      above: (of) => this.applied.get(of) ?? 0,
      isAwaited: (of) => this.awaited.has(of),
      begin: (of) => {
        const sink = new FakeSink()
        this.sinks.push(sink)
        this.groups.push(of)
        return sink
      },
      onFailed: (error) => this.failures.push(error),
    })
  }

  offer(of = a, from = peer, position = 50): void {
    this.taking.offer(of, { from, epoch: 1, position })
  }

  async part(part: number, changed: Partial<SnapshotPart> = {}, from = peer): Promise<void> {
    const whole = { kind: 'snapshot-part', group: a, epoch: 1, transfer: 1 } as const
    const content = { position: 50, rows: [row(`${part}`)], state: new Uint8Array() }
    this.taking.onPart(from, { ...whole, ...content, part, ...changed })
    await settled()
  }

  async refuse(transfer: number, from = peer): Promise<void> {
    this.taking.onRefused(from, { kind: 'snapshot-refused', group: a, epoch: 1, transfer })
    await settled()
  }

  /** Time passes, and the node looks after what it takes. */
  async pass(ms: number): Promise<void> {
    this.clock.pass(ms)
    this.taking.go()
    await settled()
  }

  /** The requests since the last call: `transfer/part of peer`. */
  asked(): readonly string[] {
    return this.sent.splice(0).map((message) => {
      if (message.kind !== 'snapshot-request') return message.kind
      return `${message.transfer}/${message.part} of ${message.to}`
    })
  }
}

test('a node asks for a snapshot part by part, and ends it with the position and the checksum of the parts', async () => {
  const bench = new Bench()
  bench.applied.set(a, 3)
  bench.offer()
  expect(bench.sent.splice(0)).toEqual([
    ...[{ kind: 'snapshot-request', group: a, epoch: 1, transfer: 1, part: 0, above: 3, to: peer }],
  ])
  await bench.part(0, { position: 52 })
  expect(bench.asked()).toEqual(['1/1 of peer'])
  await bench.part(1, { position: 52, rows: [], state: Buffer.from('sta') })
  expect(bench.asked()).toEqual(['1/2 of peer'])
  expect(bench.taking.figures).toEqual({ groups: 0, open: 1, waiting: 0 })
  await bench.part(2, { position: 52, rows: [], state: Buffer.from('te'), crc: 99 })
  expect(bench.sinks[0]?.calls).toEqual(['add 1', 'add 0 sta', 'add 0 te', 'finish 52 99'])
  expect([bench.asked(), bench.failures]).toEqual([[], []])
  expect(bench.taking.figures).toEqual({ groups: 1, open: 0, waiting: 0 })
})

test('LIVE-6: a group that a client waits for does not wait behind snapshots of others', () => {
  const bench = new Bench(1)
  bench.offer(a)
  bench.offer(b)
  expect(bench.groups).toEqual([a])
  bench.awaited.add(c)
  bench.offer(c)
  expect(bench.groups).toEqual([a, c])
  expect(bench.taking.figures).toEqual({ groups: 0, open: 2, waiting: 1 })
})

test('a snapshot that entries have overtaken is not counted, and ends all the same', async () => {
  const bench = new Bench()
  bench.offer()
  const [sink] = bench.sinks
  if (sink === undefined) throw new Error('a snapshot has begun')
  sink.isTaken = false
  await bench.part(0, { position: 52, crc: 99 })
  expect(sink.calls).toEqual(['add 1', 'finish 52 99'])
  expect(bench.taking.figures).toEqual({ groups: 0, open: 0, waiting: 0 })
})

test('a node asks four times for a part that does not come, then gives the snapshot up', async () => {
  const bench = new Bench()
  bench.offer()
  bench.asked()
  await bench.pass(10 * phaseTimeoutMs - 1)
  expect(bench.asked()).toEqual([])
  await bench.pass(1)
  expect(bench.asked()).toEqual(['1/0 of peer'])
  await bench.pass(10 * phaseTimeoutMs)
  await bench.pass(10 * phaseTimeoutMs)
  expect(bench.asked()).toEqual(['1/0 of peer', '1/0 of peer'])
  expect([bench.sinks[0]?.calls, bench.taking.figures.open]).toEqual([[], 1])
  await bench.pass(10 * phaseTimeoutMs)
  expect([bench.sinks[0]?.calls, bench.taking.figures.open]).toEqual([['abandon'], 0])
  expect([bench.asked(), bench.marks]).toEqual([[], ['snapshot_not_taken']])
  // A part that comes then is of no snapshot.
  await bench.part(0)
  expect(bench.sinks[0]?.rows).toEqual([])
  // The group asks anew, under another number.
  bench.offer()
  expect(bench.asked()).toEqual(['2/0 of peer'])
})

test('each part has four tries of its own', async () => {
  const bench = new Bench()
  bench.offer()
  for (let part = 0; part < 3; part++) {
    for (let again = 0; again < 3; again++) await bench.pass(10 * phaseTimeoutMs)
    await bench.part(part)
  }
  expect(bench.sinks[0]?.calls).toEqual(['add 1', 'add 1', 'add 1'])
  expect(bench.asked().slice(-1)).toEqual(['1/3 of peer'])
})

test('a part that comes twice, early, from another peer or of another snapshot is passed over', async () => {
  const bench = new Bench()
  bench.offer()
  await bench.part(0)
  await bench.part(0)
  await bench.part(2)
  await bench.part(1, {}, other)
  await bench.part(1, { transfer: 2 })
  await bench.part(1, { group: b })
  expect(bench.sinks[0]?.rows).toEqual([row('0')])
  await bench.part(1)
  expect(bench.sinks[0]?.rows).toEqual([row('0'), row('1')])
})

test('a part that comes while the one before is put down is passed over', async () => {
  const bench = new Bench()
  bench.offer()
  const [sink] = bench.sinks
  if (sink !== undefined) sink.isHeld = true
  await bench.part(0)
  await bench.part(0)
  bench.asked()
  // Nor does the node ask for anything meanwhile, however long it takes.
  await bench.pass(60_000)
  expect([bench.asked(), sink?.calls]).toEqual([[], ['add 1']])
  await sink?.release()
  expect(bench.asked()).toEqual(['1/1 of peer'])
})

test('SNAP-2: a snapshot of which a part is of another position is given up', async () => {
  const bench = new Bench()
  bench.offer()
  await bench.part(0)
  await bench.part(1, { position: 51 })
  expect(bench.sinks[0]?.calls).toEqual(['add 1', 'abandon'])
  expect(bench.taking.figures).toEqual({ groups: 0, open: 0, waiting: 0 })
})

test('a snapshot with a row that no store has is given up', async () => {
  const bench = new Bench()
  bench.offer()
  const [sink] = bench.sinks
  if (sink !== undefined) sink.isWell = false
  await bench.part(0, { crc: 99 })
  expect(sink?.calls).toEqual(['add 1', 'abandon'])
  expect(bench.taking.figures).toEqual({ groups: 0, open: 0, waiting: 0 })
})

test('a snapshot that the peer refuses is given up, and a refusal of another one is passed over', async () => {
  const bench = new Bench()
  bench.offer()
  await bench.refuse(2)
  await bench.refuse(1, other)
  expect(bench.sinks[0]?.calls).toEqual([])
  await bench.refuse(1)
  expect([bench.sinks[0]?.calls, bench.taking.figures.open]).toEqual([['abandon'], 0])
})

test('what a peer that is gone was to send is given up, and its offers are forgotten', async () => {
  const bench = new Bench(2)
  bench.offer(a, peer)
  bench.offer(b, other)
  bench.offer(c, peer)
  expect(bench.taking.figures).toEqual({ groups: 0, open: 2, waiting: 1 })
  bench.taking.forget(peer)
  await settled()
  expect(bench.sinks.map(({ calls }) => calls)).toEqual([['abandon'], []])
  expect(bench.taking.figures).toEqual({ groups: 0, open: 1, waiting: 0 })
})

test('a part that is being put down ends by itself when its peer is gone', async () => {
  const bench = new Bench()
  bench.offer()
  const [sink] = bench.sinks
  if (sink !== undefined) sink.isHeld = true
  await bench.part(0, { crc: 99 })
  bench.taking.forget(peer)
  await sink?.release()
  expect(sink?.calls).toEqual(['add 1', 'finish 50 99'])
  expect(bench.taking.figures.groups).toBe(1)
})

test('snapshots beyond the limit wait, and the next begins when one has ended', async () => {
  const bench = new Bench(1)
  bench.offer(a)
  bench.offer(b)
  bench.offer(c)
  expect(bench.asked()).toEqual(['1/0 of peer'])
  // Meanwhile entries have brought one of them there.
  bench.applied.set(b, 50)
  await bench.part(0, { crc: 99 })
  expect(bench.groups).toEqual([a, c])
  expect(bench.asked()).toEqual(['2/0 of peer'])
  expect(bench.taking.figures).toEqual({ groups: 1, open: 1, waiting: 0 })
})

test('an offer of a group that is being taken changes nothing, and one that waits is replaced', async () => {
  const bench = new Bench(1)
  bench.offer(a, peer)
  bench.offer(a, other)
  bench.offer(b, peer)
  bench.offer(b, other)
  expect(bench.taking.figures).toEqual({ groups: 0, open: 1, waiting: 1 })
  bench.taking.forget(peer)
  await settled()
  expect(bench.asked()).toEqual(['1/0 of peer', '2/0 of other'])
  expect(bench.groups).toEqual([a, b])
})

test('SNAP-3: a group begins with its next snapshot once nothing is left of the one that it gave up', async () => {
  const bench = new Bench()
  bench.offer(a)
  const [sink] = bench.sinks
  if (sink === undefined) expect.fail('a snapshot has begun')
  sink.isHeld = true
  bench.taking.forget(peer)
  bench.taking.forget(peer)
  // Parts of both would lie under the same keys, and those of the old one are going.
  bench.offer(a)
  bench.taking.go()
  await settled()
  expect([sink.calls, bench.asked()]).toEqual([['abandon'], ['1/0 of peer']])
  await sink.release()
  bench.offer(a)
  expect(bench.asked()).toEqual(['2/0 of peer'])
})

test('a group waits for the snapshot that is on its way, or waits for its turn, and for no other', async () => {
  const bench = new Bench(1)
  bench.offer(a)
  bench.offer(b)
  expect([a, b, c].map((one) => bench.taking.patienceMs(one))).toEqual([
    ...[phaseTimeoutMs, phaseTimeoutMs, 0],
  ])
  await bench.part(0, { crc: 99 })
  expect(bench.taking.patienceMs(a)).toBe(0)
})

test('there is room for sixteen offers for each snapshot that may come at once', () => {
  const bench = new Bench(2)
  const room: boolean[] = []
  for (let i = 0; i < 2 + 32; i++) {
    bench.offer(group(`${i}`))
    room.push(bench.taking.hasRoom)
  }
  expect(room.filter(Boolean)).toHaveLength(2 + 31)
  expect([room.at(-2), room.at(-1)]).toEqual([true, false])
})

test('the node hears of a store that fails, and takes nothing up once it stops', async () => {
  const bench = new Bench()
  bench.offer()
  const [sink] = bench.sinks
  const failure = new Error('the disk is gone')
  if (sink !== undefined) sink.failure = failure
  await bench.part(0)
  expect(bench.failures).toEqual([failure])
  const stopped = new Bench()
  stopped.offer()
  stopped.asked()
  const [other] = stopped.sinks
  if (other !== undefined) other.isHeld = true
  await stopped.part(0)
  stopped.taking.stop()
  await other?.release()
  stopped.offer(b)
  await stopped.pass(60_000)
  expect([stopped.asked(), other?.calls]).toEqual([[], ['add 1']])
})
