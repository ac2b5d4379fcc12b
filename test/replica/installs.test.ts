/** Snapshots of peers take the place of groups: events and reads wait meanwhile, and one that does not fit is passed over. */
import { expect, test } from 'vitest'
import { AssertionError } from '../../src/base/assert.ts'
import { crc32 } from '../../src/base/bytes.ts'
import { nodeId, type GroupId, type Position } from '../../src/base/ids.ts'
import type { SnapshotSink } from '../../src/peers/snapshot-taking.ts'
import type { TraceEvent } from '../../src/ports/trace.ts'
import { Installs } from '../../src/replica/installs.ts'
import type { Applied } from '../../src/replica/replica.ts'
import type { GroupEvent } from '../../src/replication/group.ts'
import type { SnapshotRow } from '../../src/replication/message.ts'
import { emptyState, encodeState, type GroupState } from '../../src/replication/state.ts'
import type { DataStore } from '../../src/store/data-store.ts'
import { RowsSum, type GroupHash } from '../../src/store/group-hash.ts'
import { crcOfRows } from '../../src/store/group-snapshot.ts'
import { a, b, commit, gone, openData, put, stored, takenOf } from '../store/snapshot-kit.ts'
import { SnapshotIntake } from '../../src/store/snapshot-intake.ts'
import { GatedStore, onDisk, simulatedDisk } from '../store/stores.ts'

const peer = nodeId('peer')
const ballot = { epoch: 1, round: 1, node: peer, incarnation: 1 }
const here: Applied = { position: 2, timestamp: 20, horizon: 5 }

function row(key: string, value: string, stamp: number): SnapshotRow {
  return { subspace: 1, key: Buffer.from(key), stamp, payload: Buffer.from(value) }
}

function stateAt(position: Position, changed: Partial<GroupState> = {}): Uint8Array {
  const times = { timestamp: position * 10, horizon: 5, nextLeader: { node: peer, incarnation: 1 } }
  return encodeState({ ...emptyState(), position, ...times, ...changed })
}

function committed(position: Position): GroupEvent {
  const message = { kind: 'committed', group: a, epoch: 1, position, ballot } as const
  return { kind: 'message', from: peer, message }
}

/** Words for an event of a group, such as `committed 3` and `install 9`. */
function describe(event: GroupEvent): string {
  if (event.kind === 'install') {
    return `${event.isRepair === true ? 'repair' : 'install'} ${event.state.position}`
  }
  if (event.kind !== 'message' || !('position' in event.message)) return event.kind
  return `${event.message.kind} ${event.message.position}`
}

/** A node whose group a has position 2 durably, with two rows, on a store that a test may hold. */
class Bench {
  readonly store: GatedStore
  readonly data: DataStore
  readonly installs: Installs
  readonly steps: string[] = []
  readonly marks: string[] = []
  readonly events: TraceEvent[] = []
  readonly installed: (readonly [GroupId, Position])[] = []
  applied = here
  /** The group is put aside, and a snapshot must have this hash; empty: any. */
  rightHash: GroupHash | undefined
  isInMemory = true
  /** Events that have waited for the mended group. */
  waited: readonly GroupEvent[] = []
  onStep: () => void = () => undefined

  constructor(store: GatedStore, data: DataStore, snapshotBatchBytesMax: number) {
    this.store = store
    this.data = data
    this.installs = new Installs({
      trace: { emit: (event) => this.events.push(event), mark: (name) => this.marks.push(name) },
      limits: { snapshotBatchBytesMax },
      data,
      replica: {
        applied: () => this.applied,
        appliedInMemory: () => (this.isInMemory ? this.applied : undefined),
      },
      healing: {
        isAside: () => this.rightHash !== undefined,
        mayTake: (_, __, hash) => this.rightHash === '' || hash === this.rightHash,
        mend: () => {
          this.rightHash = undefined
          return this.waited
        },
      },
      step: (group, event) => {
        if (this.installs.keep(group, event)) return
        this.onStep()
        this.steps.push(describe(event))
      },
      onInstalled: (group, position) => this.installed.push([group, position]),
    })
  }

  find(key: string): string | undefined {
    const found = this.data.get(a, Buffer.from(key))
    return found && Buffer.from(found.value).toString()
  }
}

async function onBench(
  work: (bench: Bench) => Promise<void>,
  snapshotBatchBytesMax = 1024 * 1024,
): Promise<void> {
  await onDisk(simulatedDisk, async (disk) => {
    const store = new GatedStore(await disk.open())
    const data = await openData(store)
    commit(data, a, 1, put('x', 'old'), put('deleted', 'old'))
    commit(data, a, 2, put('x', 'older'))
    await data.drain()
    await work(new Bench(store, data, snapshotBatchBytesMax))
    await data.stop()
  })
}

const rows = [row('x', 'new', 90), row('y', 'new', 80)]

/** All of the snapshot comes; the checksum is right unless it is given. */
async function send(
  sink: SnapshotSink,
  state: Uint8Array,
  { position = 9, crc = crc32(state, crcOfRows(rows, 0)) } = {},
): Promise<void> {
  for (const one of rows) expect(await sink.add([one], new Uint8Array())).toBe(true)
  expect(await sink.add([], state.subarray(0, 3))).toBe(true)
  expect(await sink.add([], state.subarray(3))).toBe(true)
  await sink.finish(position, crc)
}

test.each([
  ['small', 1024 * 1024],
  ['large', 10],
])('SNAP-4: a %s snapshot takes the place of the group, and the core goes on from it', (_, bytes) =>
  onBench(async (bench) => {
    await send(bench.installs.begin(a), stateAt(9))
    expect([bench.find('x'), bench.find('y'), bench.find('deleted')]).toEqual([
      ...['new', 'new', undefined],
    ])
    expect([bench.data.applied(a).position, bench.data.applied(a).snapshot]).toEqual([9, 9])
    expect(bench.data.state(a)).toEqual(Buffer.from(stateAt(9)))
    expect([bench.steps, bench.installed]).toEqual([['install 9'], [[a, 9]]])
    expect(bench.marks).toEqual(['snapshot_installed'])
    const [aside, installed] = ['aside', 'installed'].map((kind) => ({
      kind,
      group: a,
      position: 9,
    }))
    expect(bench.events).toEqual([aside, installed])
    expect(await stored(bench.store, 'i')).toEqual([])
    expect(await stored(bench.store, 'j')).toEqual([])
  }, bytes),
)

test('SNAP-4: a group that is not in memory is read from the store as it is then', () =>
  onBench(async (bench) => {
    bench.isInMemory = false
    await send(bench.installs.begin(a), stateAt(9))
    expect([bench.steps, bench.installed, bench.find('x')]).toEqual([[], [[a, 9]], 'new'])
  }))

test('SNAP-4: events of a group wait while a snapshot takes its place, then follow in their order', () =>
  onBench(async (bench) => {
    const sink = bench.installs.begin(a)
    const before = bench.store.begun.length
    expect(bench.installs.keep(a, committed(3))).toBe(false)
    bench.store.hold()
    const sending = send(sink, stateAt(9))
    await bench.store.hasBegun(before + 1)
    expect(bench.installs.keep(a, committed(10))).toBe(true)
    expect(bench.installs.keep(a, { kind: 'wake' })).toBe(true)
    expect(bench.installs.keep(a, committed(11))).toBe(true)
    expect(bench.installs.keep(b, committed(10))).toBe(false)
    expect([bench.steps, bench.data.openSnapshot(a)]).toEqual([[], undefined])
    bench.store.release()
    await sending
    expect(bench.steps).toEqual(['install 9', 'committed 10', 'wake', 'committed 11'])
    expect(bench.installs.keep(a, committed(12))).toBe(false)
    expect(bench.data.openSnapshot(a)?.position).toBe(9)
  }))

test('SNAP-4: a thousand messages wait, the rest are as if lost; requests of clients are not', () =>
  onBench(async (bench) => {
    const before = bench.store.begun.length
    bench.store.hold()
    const sending = send(bench.installs.begin(a), stateAt(9))
    await bench.store.hasBegun(before + 1)
    for (let position = 1; position <= 1_200; position++)
      bench.installs.keep(a, committed(position))
    bench.installs.keep(a, { kind: 'read', read: 1 })
    bench.store.release()
    await sending
    expect(bench.steps).toHaveLength(1 + 1_000 + 1)
    expect(bench.steps.slice(-2)).toEqual(['committed 1000', 'read'])
    const lost = bench.marks.filter((mark) => mark === 'message_lost_beside_snapshot')
    expect(lost).toHaveLength(200)
  }))

test('SNAP-4: reads of a group wait until the core has taken the snapshot up', () =>
  onBench(async (bench) => {
    const before = bench.store.begun.length
    expect(bench.installs.whenBack(a)).toBeUndefined()
    bench.store.hold()
    const sending = send(bench.installs.begin(a), stateAt(9))
    await bench.store.hasBegun(before + 1)
    const seen: (readonly string[])[] = []
    const reading = bench.installs.whenBack(a)?.then(() => seen.push([...bench.steps]))
    expect(reading).toBeDefined()
    expect(bench.installs.whenBack(b)).toBeUndefined()
    await new Promise((resolve) => setImmediate(resolve))
    expect(seen).toEqual([])
    bench.store.release()
    await sending
    await reading
    expect(seen[0]?.[0]).toBe('install 9')
    expect(bench.installs.whenBack(a)).toBeUndefined()
  }))

test('SNAP-4: entries that are applied and not durable go to the disk before a snapshot takes their place', () =>
  onBench(async (bench) => {
    const before = bench.store.begun.length
    commit(bench.data, a, 3, put('x', 'three'), gone('deleted'))
    bench.applied = { ...here, position: 3, timestamp: 30 }
    expect(bench.data.hasPending(a)).toBe(true)
    await send(bench.installs.begin(a), stateAt(9))
    const states = bench.store.begun
      .slice(before)
      .map((puts) => puts.filter(({ key }) => key[0] === 's'.charCodeAt(0)).length)
    expect(states).toEqual([1, 1])
    expect([bench.find('x'), bench.data.applied(a).position]).toEqual(['new', 9])
  }))

test.each<readonly [what: string, changed: { position?: number; crc?: number }, state: Uint8Array]>(
  [
    ['of which something is missing or changed', { crc: 1 }, stateAt(9)],
    ['whose state record is of another position than its parts', { position: 8 }, stateAt(9)],
    ['whose state record is of no known format', {}, Buffer.from('no state at all')],
    ['of the position that the group has', { position: 2 }, stateAt(2, { timestamp: 90 })],
    ['of an earlier position', { position: 1 }, stateAt(1, { timestamp: 90 })],
    ['whose time is not later', {}, stateAt(9, { timestamp: 20 })],
    ['whose horizon is earlier', {}, stateAt(9, { horizon: 4 })],
  ],
)('SNAP-1: a snapshot is passed over %s', (_, changed, state) =>
  onBench(async (bench) => {
    const before = await stored(bench.store, 'g')
    await send(bench.installs.begin(a), state, changed)
    expect([bench.steps, bench.installed, bench.events]).toEqual([[], [], []])
    expect(bench.marks).not.toContain('snapshot_installed')
    expect(bench.data.applied(a)).toMatchObject({ position: 2, snapshot: 0 })
    expect(await stored(bench.store, 'g')).toEqual(before)
    expect([await stored(bench.store, 'i'), await stored(bench.store, 'j')]).toEqual([[], []])
    expect(bench.installs.keep(a, committed(3))).toBe(false)
  }, 10),
)

test('SNAP-1: a snapshot that entries have overtaken while it came is passed over, and counts as late', () =>
  onBench(async (bench) => {
    const sink = bench.installs.begin(a)
    bench.applied = { ...here, position: 9, timestamp: 90 }
    await send(sink, stateAt(9))
    expect([bench.steps, bench.marks]).toEqual([[], ['snapshot_came_late']])
    const other = bench.installs.begin(a)
    await send(other, stateAt(10, { timestamp: 90 }), { position: 10 })
    expect(bench.marks).toEqual(['snapshot_came_late', 'snapshot_does_not_fit'])
  }))

test('a part is refused that has a row of no known form, or rows behind pieces of the state record', () =>
  onBench(async (bench) => {
    const sink = bench.installs.begin(a)
    const nothing = new Uint8Array()
    expect(
      await sink.add([row('x', 'new', 90), { ...row('y', '', 1), subspace: 3 }], nothing),
    ).toBe(false)
    expect(await sink.add([{ ...row('no version', '', 1), subspace: 2 }], nothing)).toBe(false)
    // The last rows and the first piece may come in one part.
    expect(await sink.add(rows, Buffer.from('sta'))).toBe(true)
    expect(await sink.add([], Buffer.from('te'))).toBe(true)
    expect(await sink.add([row('z', 'new', 1)], nothing)).toBe(false)
    await sink.abandon()
    expect([bench.find('x'), bench.steps]).toEqual(['older', []])
  }))

test('the state record is what came, though the memory of its parts is used again', () =>
  onBench(async (bench) => {
    const state = stateAt(9)
    const sink = bench.installs.begin(a)
    await sink.add(rows, new Uint8Array())
    const memory = Buffer.from(state)
    await sink.add([], memory)
    memory.fill(0)
    await sink.finish(9, crc32(state, crcOfRows(rows, 0)))
    expect(bench.data.state(a)).toEqual(Buffer.from(state))
  }))

test('SNAP-4: reads that wait for a group hear of a node that stops meanwhile', () =>
  onBench(async (bench) => {
    const before = bench.store.begun.length
    bench.store.hold()
    const sending = send(bench.installs.begin(a), stateAt(9))
    await bench.store.hasBegun(before + 1)
    const reading = bench.installs.whenBack(a)
    bench.installs.stop()
    await expect(reading).rejects.toThrow(/stopping; ask another one/)
    const stopping = bench.data.stop()
    bench.store.release()
    await stopping
    // The batch under way has ended: the group is the new one, whole.
    await sending
    expect(bench.data.applied(a).position).toBe(9)
  }))

test('SNAP-3: a large snapshot whose switch the node did not end is ended by its next start, which says so', () =>
  onDisk(simulatedDisk, async (disk) => {
    const store = new GatedStore(await disk.open())
    const first = await openData(store)
    commit(first, a, 1, put('x', 'old'), put('deleted', 'old'))
    await first.drain()
    const intake = new SnapshotIntake(first, a, 10)
    await intake.add(rows)
    const state = stateAt(9)
    const before = store.begun.length
    const switching = intake.switchTo(takenOf({ position: 9, state, rows, crc: 0, parts: [] }))
    await store.hasBegun(before + 2)
    await first.stop()
    await expect(switching).rejects.toThrow(/stopping/)
    const again = new GatedStore(await disk.open())
    const bench = new Bench(again, await openData(again), 10)
    bench.applied = { position: 9, timestamp: 90, horizon: 5 }
    expect(bench.data.applied(a).position).toBe(1)
    await bench.installs.resume()
    expect([bench.data.applied(a).position, bench.find('x'), bench.find('deleted')]).toEqual([
      ...[9, 'new', undefined],
    ])
    expect(bench.marks).toEqual(['snapshot_switch_resumed'])
    expect(bench.events).toEqual([{ kind: 'installed', group: a, position: 9 }])
    // The core has not read the group yet.
    expect(bench.steps).toEqual([])
    expect([await stored(again, 'i'), await stored(again, 'j')]).toEqual([[], []])
  }))

test('SNAP-4: a group is put aside once at a time', () =>
  onBench(async (bench) => {
    const before = bench.store.begun.length
    const [one, other] = [bench.installs.begin(a), bench.installs.begin(a)]
    await other.add(rows, stateAt(9))
    bench.store.hold()
    const sending = send(one, stateAt(9))
    await bench.store.hasBegun(before + 1)
    const crc = crc32(stateAt(9), crcOfRows(rows, 0))
    await expect(other.finish(9, crc)).rejects.toThrow(AssertionError)
    bench.store.release()
    await sending
    expect(bench.steps).toEqual(['install 9'])
  }))

const hashOfRows = ((): GroupHash => {
  const sum = new RowsSum()
  for (const { key, stamp, payload } of rows) sum.add(key, stamp, payload)
  return sum.hash
})()

/** A snapshot of the position that the bench's group has. */
function sendEqual(bench: Bench): Promise<void> {
  const state = stateAt(2, { timestamp: here.timestamp })
  return send(bench.installs.begin(a), state, { position: 2 })
}

test('HEAL-5: a snapshot of the same position takes the place of a group that is aside, and of no other', () =>
  onBench(async (bench) => {
    await sendEqual(bench)
    expect([bench.steps, bench.find('x')]).toEqual([[], 'older'])
    expect(bench.marks).toEqual(['snapshot_came_late'])
    bench.rightHash = hashOfRows
    await sendEqual(bench)
    expect([bench.steps, bench.find('x'), bench.find('y')]).toEqual([['repair 2'], 'new', 'new'])
    expect(bench.data.applied(a).position).toBe(2)
    expect(bench.data.hashes.find(a)).toEqual({ position: 2, hash: hashOfRows })
  }))

test('HEAL-4: the group is aside no more when the snapshot is taken up; then the events follow that waited', () =>
  onBench(async (bench) => {
    bench.rightHash = hashOfRows
    bench.waited = [{ kind: 'wake' }]
    const wasAside: boolean[] = []
    bench.onStep = () => wasAside.push(bench.rightHash !== undefined)
    await sendEqual(bench)
    expect([bench.steps, wasAside]).toEqual([
      ['repair 2', 'wake'],
      [false, false],
    ])
  }))

test('HEAL-5: a snapshot whose rows have another hash than the right one is passed over', () =>
  onBench(async (bench) => {
    bench.rightHash = new RowsSum().hash
    await sendEqual(bench)
    expect([bench.steps, bench.find('x')]).toEqual([[], 'older'])
    expect(bench.marks).toEqual(['snapshot_has_a_wrong_hash'])
  }))

test('HEAL-5: a snapshot of a lower position takes the place of no group, aside or not', () =>
  onBench(async (bench) => {
    bench.rightHash = ''
    await send(bench.installs.begin(a), stateAt(1), { position: 1 })
    expect([bench.steps, bench.find('x')]).toEqual([[], 'older'])
    expect(bench.marks).toEqual(['snapshot_came_late'])
  }))

/** More than one batch deletes. */
const manyRows = 1_100

test('MOVE-13: a group with a batch whose end the node has not heard of is cleared later', () =>
  onBench(async (bench) => {
    commit(bench.data, a, 3, put('x', 'old'))
    await bench.data.drain()
    bench.applied = { position: 3, timestamp: 3, horizon: 0 }
    bench.store.hold()
    commit(bench.data, a, 4, put('x', 'older'))
    expect(await bench.installs.clear(a, 3)).toBe(false)
    bench.store.release()
    expect(bench.find('x')).toBeDefined()
  }))

test('SNAP-4: events that wait while a group is cleared are taken before any that comes later', () =>
  onBench(async (bench) => {
    const many = Array.from({ length: manyRows }, (_, i) => put(`row ${i}`, 'old'))
    commit(bench.data, a, 3, ...many)
    await bench.data.drain()
    bench.applied = { position: 3, timestamp: 3, horizon: 0 }
    bench.store.hold()
    const clearing = bench.installs.clear(a, 3)
    await expect.poll(() => bench.installs.whenBack(a) !== undefined).toBe(true)
    expect(bench.installs.keep(a, committed(10))).toBe(true)
    bench.store.release()
    while (bench.installs.keep(a, { kind: 'wake' })) await new Promise(setImmediate)
    expect(bench.steps.at(0)).toBe('committed 10')
    expect(await clearing).toBe(true)
    expect([bench.find('x'), bench.find('row 7')]).toEqual([undefined, undefined])
  }))
