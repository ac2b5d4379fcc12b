/** A node of three that gets more than it can do at once: it holds and sends a bounded amount. */
import { OrderedJournal } from '../../src/journal/ordered-journal.ts'
import { expect, test, vi } from 'vitest'
import { systemClock } from '../../src/adapters/system-clock.ts'
import { systemRandom } from '../../src/adapters/system-random.ts'
import { present } from '../../src/base/assert.ts'
import { clusterId, groupOfBytes, nodeId, type GroupId, type NodeId } from '../../src/base/ids.ts'
import { defaultLimits, frameBytesMax, type Limits } from '../../src/base/limits.ts'
import { staticPlacement } from '../../src/placement/placement.ts'
import { silentTrace } from '../../src/ports/trace.ts'
import type { OrderedStore } from '../../src/ports/storage.ts'
import { Driver } from '../../src/replica/driver.ts'
import type { Outcome } from '../../src/group/replica-port.ts'
import { encodeEntry } from '../../src/replication/entry.ts'
import type { Entries, Fetch, Message } from '../../src/replication/message.ts'
import { encodeTransaction } from '../../src/group/transaction.ts'
import { disks, GatedStore, onDisk } from '../store/stores.ts'
import { ToldTransport } from './told-transport.ts'

const [node, other, third] = [nodeId('n1'), nodeId('n2'), nodeId('n3')]
const cluster = clusterId('test')
const placement = staticPlacement([node, other, third])
const ballot = { epoch: 1, round: 1, node: other, incarnation: 1 }

interface Stores {
  readonly log: OrderedStore
  readonly data: OrderedStore
}

async function withNode(
  limits: Partial<Limits>,
  work: (driver: Driver, peers: ToldTransport) => Promise<void>,
  onStores: (stores: Stores) => Stores = (stores) => stores,
): Promise<void> {
  const [, makeDisk] = disks[0] ?? []
  if (makeDisk === undefined) throw new Error('no disk')
  await onDisk(makeDisk, (log) =>
    onDisk(makeDisk, async (data) => {
      const peers = new ToldTransport()
      const ports = { clock: systemClock, random: systemRandom, trace: silentTrace, peers }
      const stores = onStores({ log: await log.open(), data: await data.open() })
      const options = { node, cluster, placement, limits: { ...defaultLimits, ...limits } }
      const driver = await Driver.open(
        { ...ports, ...stores, log: new OrderedJournal(stores.log) },
        options,
      )
      await driver.start()
      try {
        await work(driver, peers)
      } finally {
        await driver.stop()
      }
    }),
  )
}

function groupCalled(name: string): GroupId {
  return groupOfBytes(Buffer.from(name))
}

/** An entry of a group, with a row of the given number of bytes. */
function entry(position: number, bytes: number): Uint8Array {
  const transaction = encodeTransaction({
    ...{ session: 's', sequence: position, attempt: 1, floor: 1 },
    ...{ expiresAt: 2 ** 50, allocations: [] },
    mutations: [{ key: Buffer.from('k'), value: Buffer.alloc(bytes) }],
  })
  return encodeEntry({
    ...{ position, timestamp: position, horizon: 0 },
    nextLeader: { node: other, incarnation: 1 },
    transactions: [transaction],
  })
}

function isEntries(message: Message): message is Entries {
  return message.kind === 'entries'
}

test('LIVE-6: a peer that asks for all at once is given a slice a turn', () =>
  withNode({}, async (driver, peers) => {
    const names = Array.from({ length: 20 }, (_, n) => groupCalled(`g${n}`))
    const value = entry(1, 1024 * 1024)
    await peers.join(other)
    for (const group of names) {
      const entries = [{ position: 1, ballot, value }]
      const message = { kind: 'entries', group, epoch: 1, from: 1, entries, committed: 1 } as const
      peers.tell(other, { durableFlush: 1, messages: [message] })
    }
    const taken = (): number => names.filter((one) => driver.positionHere(one) === 1).length
    await vi.waitFor(() => expect(taken()).toBe(names.length), { timeout: 5_000, interval: 1 })
    await driver.drain()
    const lacking = new Set(names)
    for (let turn = 1; lacking.size > 0; turn++) {
      peers.sent.length = 0
      const messages = [...lacking].map((group): Fetch => ({
        kind: 'fetch',
        group,
        epoch: 1,
        from: 1,
        through: 1,
        isAwaited: false,
      }))
      peers.tell(other, { durableFlush: 1, messages })
      await new Promise((resolve) => setTimeout(resolve, 10))
      const supplied = peers.sent.filter(isEntries)
      for (const frame of peers.frames) {
        expect(frame.filter(isEntries).length * value.length).toBeLessThan(frameBytesMax / 4)
      }
      for (const { group, entries } of supplied) {
        expect(entries.map((one) => one.position)).toEqual([1])
        lacking.delete(group)
      }
      expect(turn).toBeLessThan(200)
    }
  }))

/** Steps that leave nothing behind: at each, a few groups may leave memory. */
async function untilInMemory(driver: Driver, groupsMax: number): Promise<void> {
  for (let n = 0; driver.status().groupsInMemory > groupsMax; n++) {
    if (n === 2_000) throw new Error(`${driver.status().groupsInMemory} groups in memory`)
    await driver.read(groupCalled(`look ${n}`), 'snapshot', 1_000)
    await new Promise((resolve) => setImmediate(resolve))
  }
}

test('LIVE-5: without a majority, reads that were given up leave no group in memory', () =>
  withNode({ groupsInMemoryMax: 10, leaseIdleMs: 50 }, async (driver, peers) => {
    const reads = Array.from({ length: 100 }, (_, n) =>
      driver.read(groupCalled(`g${n}`), 'current', 50).catch((error: unknown) => error),
    )
    for (const error of await Promise.all(reads))
      expect(error).toMatchObject({ code: 'unavailable' })
    await new Promise((resolve) => setTimeout(resolve, 200))
    await untilInMemory(driver, 20)
    expect(driver.status().leasedGroups).toBe(0)
    // Nor are they asked for any more.
    peers.sent.length = 0
    await new Promise((resolve) => setTimeout(resolve, 1_200))
    expect(peers.sent.filter(({ kind }) => kind === 'query')).toEqual([])
  }))

function submit(driver: Driver, group: GroupId, sequence: number): Promise<Outcome> {
  const expiresAt = systemClock.wallMicros() + 60_000_000
  const intent = { session: 's', sequence, floor: 1, expiresAt }
  const mutations = [{ key: Buffer.from('k'), value: Buffer.from('v') }]
  const read = { readPosition: 0, reads: [], ranges: [], allocations: [] }
  return driver.submit({ group, intent, attempt: sequence, ...read, mutations }, 50)
}

test('LIVE-5: without a majority, writes that were given up do not fill the memory', () =>
  withNode({ groupsInMemoryMax: 10, nodeQueueMax: 50, leaseGroupsMax: 1 }, async (driver) => {
    const outcomes = new Set<string>()
    for (let round = 0; round < 5; round++) {
      const writes = Array.from({ length: 30 }, (_, n) =>
        submit(driver, groupCalled(`g${round} ${n}`), 1),
      )
      for (const { kind } of await Promise.all(writes)) outcomes.add(kind)
    }
    // Of a hundred and fifty groups as many are in memory as there may be, and a few whose callers asked in
    // vain.
    expect(driver.status().groupsInMemory).toBeLessThanOrEqual(10 + 50 + 1 + 20)
    expect(outcomes).toEqual(new Set(['unknown', 'overloaded']))
  }))

test('LIVE-5: an abandoned transaction takes no room, unless a copy may take effect', () =>
  withNode({ groupQueueMax: 3 }, async (driver, peers) => {
    const names = Array.from({ length: 20 }, (_, n) => groupCalled(`g${n}`))
    const ledBy = (leader: NodeId): GroupId =>
      present(
        names.find((group) => placement.replicasOf(group).firstFull === leader),
        'such a group',
      )
    const [led, others] = [ledBy(node), ledBy(third)]
    await peers.join(other)
    const kinds = async (group: GroupId, ...sequences: number[]): Promise<readonly string[]> => {
      const outcomes = await Promise.all(sequences.map((one) => submit(driver, group, one)))
      return outcomes.map(({ kind }) => kind)
    }
    const none = ['unknown', 'unknown', 'unknown', 'overloaded']
    const first = kinds(led, 1)
    // The node proposes together what comes in one turn; the others come while the position is
    // open.
    await new Promise((resolve) => setImmediate(resolve))
    expect([...(await kinds(led, 2, 3, 4)), ...(await first)]).toEqual([
      ...['unknown', 'unknown', 'overloaded'],
      'unknown',
    ])
    // The first one is proposed, and may be chosen yet: it keeps its place, and is not refused again.
    expect(await kinds(led, 5, 6, 7, 1)).toEqual(['unknown', 'unknown', 'overloaded', 'unknown'])
    // Here nothing could be proposed: the leader is gone, and no majority answers.
    expect(await kinds(others, 1, 2, 3, 4)).toEqual(none)
    expect(await kinds(others, 5, 6, 7, 8)).toEqual(none)
  }))

test('a node whose disk lags takes no more than its bound, and the rest later', () => {
  const gates: GatedStore[] = []
  const gated = ({ log, data }: Stores): Stores => {
    const gate = new GatedStore(log)
    gates.push(gate)
    return { log: gate, data }
  }
  return withNode(
    { logQueueBytesMax: 1024 * 1024 },
    async (driver, peers) => {
      const gate = present(gates[0], 'a gate')
      const value = entry(1, 100 * 1024)
      const accepts = Array.from({ length: 100 }, (_, n) => {
        const group = groupCalled(`g${n}`)
        return { kind: 'accept', group, epoch: 1, position: 1, ballot, value } as const
      })
      const accepted = (): readonly Message[] =>
        peers.sent.filter(({ kind }) => kind === 'accepted')
      await peers.join(other)
      gate.hold()
      peers.tell(other, { durableFlush: 1, messages: accepts })
      await new Promise((resolve) => setTimeout(resolve, 20))
      const meanwhile = [accepted().length, (await submit(driver, groupCalled('g'), 1)).kind]
      gate.release()
      expect(meanwhile).toEqual([0, 'overloaded'])
      await new Promise((resolve) => setTimeout(resolve, 100))
      // It took that much and no more: a follower has twice the bound.
      expect(accepted().length * value.length).toBeGreaterThan(1024 * 1024)
      expect(accepted().length * value.length).toBeLessThan(3 * 1024 * 1024)
      for (let turn = 0; accepted().length < accepts.length; turn++) {
        const answered = new Set(accepted().flatMap((one) => ('group' in one ? [one.group] : [])))
        const messages = accepts.filter(({ group }) => !answered.has(group))
        peers.tell(other, { durableFlush: 1, messages })
        await new Promise((resolve) => setTimeout(resolve, 100))
        expect(turn).toBeLessThan(10)
      }
    },
    gated,
  )
})
