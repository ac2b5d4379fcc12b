/** The end of a node whose own step fails, on real stores and a real (if lonely) transport. */
import { OrderedJournal } from '../../src/journal/ordered-journal.ts'
import { flushesFrom } from '../../src/journal/ordered-journal.ts'
import { createServer } from 'node:http'
import { expect, test, vi } from 'vitest'
import { systemClock } from '../../src/adapters/system-clock.ts'
import { systemRandom } from '../../src/adapters/system-random.ts'
import { WsPeerTransport } from '../../src/adapters/ws-peers.ts'
import { assert, AssertionError, present } from '../../src/base/assert.ts'
import { clusterId, groupOfBytes, nodeId } from '../../src/base/ids.ts'
import { defaultLimits } from '../../src/base/limits.ts'
import { placementOver, staticPlacement } from '../../src/placement/placement.ts'
import { silentTrace, type Trace } from '../../src/ports/trace.ts'
import { Driver } from '../../src/replica/driver.ts'
import type { Submission } from '../../src/group/replica-port.ts'
import { groupPrefix, markerKey, stateKey } from '../../src/store/row-format.ts'
import type { PeerFrame } from '../../src/replication/message.ts'
import { decodePeerFrame, encodePeerFrame } from '../../src/wire/peer/peer-codec.ts'
import { disks, GatedStore, onDisk } from '../store/stores.ts'
import { ToldTransport } from './told-transport.ts'

const node = nodeId('n1')
const cluster = clusterId('test')
const group = groupOfBytes(Buffer.from('g'))

/** Trips an assertion inside the step that applies the first entry. */
const tripping: Trace = {
  emit: (event) => assert(event.kind !== 'apply', 'LOG-1: planted'),
  mark: () => undefined,
}

function submission(sequence: number): Submission {
  const expiresAt = systemClock.wallMicros() + 60_000_000
  const intent = { session: 's', sequence, floor: 1, expiresAt }
  const mutations = [{ key: Buffer.from('k'), value: Buffer.from('v') }]
  return {
    group,
    intent,
    attempt: 1,
    readPosition: 0,
    reads: [],
    ranges: [],
    allocations: [],
    mutations,
  }
}

function lonelyTransport(): WsPeerTransport<PeerFrame> {
  return new WsPeerTransport<PeerFrame>({
    ...{ node, cluster, peers: [], server: createServer(), secret: '', queueBytesMax: 1_000 },
    ...{ clock: systemClock, random: systemRandom, log: () => undefined },
    codec: { encode: encodePeerFrame, decode: decodePeerFrame },
  })
}

test.each(disks)(
  'OWN-2: a step that trips an assertion ends the node: on %s',
  async (_, makeDisk) => {
    await onDisk(makeDisk, (log) =>
      onDisk(makeDisk, async (data) => {
        const ports = { clock: systemClock, random: systemRandom, trace: tripping }
        const stores = { log: new OrderedJournal(await log.open()), data: await data.open() }
        const placement = staticPlacement([node])
        const driver = await Driver.open(
          { ...ports, ...stores, peers: lonelyTransport() },
          { node, cluster, placement, limits: defaultLimits },
        )
        const failed = new Promise<Error>((resolve) => (driver.onFailure = resolve))
        await driver.start()
        try {
          expect(await driver.read(group, 'snapshot', 1_000)).toEqual({ position: 0, timestamp: 0 })
          const outcome = driver.submit(submission(1), 300)
          expect(await failed).toBeInstanceOf(AssertionError)
          expect(await outcome).toEqual({ kind: 'unknown' })
          expect(driver.status().failure).toBe('LOG-1: planted')
          expect(await driver.submit(submission(2), 1_000)).toEqual({ kind: 'unknown' })
          await expect(driver.read(group, 'snapshot', 1_000)).rejects.toThrow('stopping')
        } finally {
          await driver.stop()
        }
      }),
    )
  },
)

test.each(disks)(
  'LEASE-1: rows at once, under a lease or of a point that is applied here: on %s',
  async (_, makeDisk) => {
    await onDisk(makeDisk, (log) =>
      onDisk(makeDisk, async (data) => {
        const ports = { clock: systemClock, random: systemRandom, trace: silentTrace }
        const stores = { log: new OrderedJournal(await log.open()), data: await data.open() }
        const driver = await Driver.open(
          { ...ports, ...stores, peers: lonelyTransport() },
          { node, cluster, placement: staticPlacement([node]), limits: defaultLimits },
        )
        await driver.start()
        const key = Buffer.from('k')
        try {
          const outcome = await driver.submit(submission(1), 1_000)
          if (outcome.kind !== 'committed') throw new Error(outcome.kind)
          const { position, timestamp } = outcome
          const point = { position, timestamp }
          // No read has registered the group yet: a node must ask its peers before it serves the
          // newest state.
          expect(driver.rowsNow(group, 'current', 0, [key])).toBeUndefined()
          expect(driver.rowsNow(group, 'snapshot', 2, [key])).toBeUndefined()
          expect(driver.rowsNow(group, timestamp - 1, 0, [key])).toBeUndefined()
          expect(driver.rowsNow(group, timestamp, 0, [])).toEqual({ point, rows: [] })
          await driver.read(group, 'current', 1_000)
          for (const from of ['current', 'snapshot', timestamp] as const) {
            const found = driver.rowsNow(group, from, 1, [key, Buffer.from('none')])
            expect(found).toMatchObject({ point, rows: [{ key, timestamp }, undefined] })
          }
        } finally {
          await driver.stop()
        }
        expect(driver.rowsNow(group, 'snapshot', 0, [key])).toBeUndefined()
      }),
    )
  },
)

test.each(disks)(
  'MVCC-1: reads at timestamps, through a node alone: on %s',
  async (_, makeDisk) => {
    await onDisk(makeDisk, (log) =>
      onDisk(makeDisk, async (data) => {
        const ports = { clock: systemClock, random: systemRandom, trace: silentTrace }
        const stores = { log: new OrderedJournal(await log.open()), data: await data.open() }
        // A state is gone with the second write after it, but for who reads it.
        const limits = { ...defaultLimits, historyMs: 1 }
        const driver = await Driver.open(
          { ...ports, ...stores, peers: lonelyTransport() },
          { node, cluster, placement: staticPlacement([node]), limits },
        )
        await driver.start()
        try {
          const times: number[] = []
          for (let sequence = 1; sequence <= 3; sequence++) {
            const outcome = await driver.submit(submission(sequence), 1_000)
            if (outcome.kind !== 'committed') throw new Error(outcome.kind)
            times.push(outcome.timestamp)
            // Open from here on, so that what comes later does not take it away.
            if (sequence === 1) await driver.readAt(group, outcome.timestamp, 1_000)
            await driver.drain()
            await until(systemClock.wallMicros() + 2_000)
          }
          const [first = 0, second = 0, third = 0] = times
          const key = Buffer.from('k')
          const rows = await driver.getAt(group, [key, Buffer.from('none')], first)
          expect(rows.map((row) => row?.timestamp)).toEqual([first, undefined])
          expect((await driver.scan(group, {}, third)).map((row) => row.timestamp)).toEqual([third])
          // Superseded by the last write only now.
          expect(await driver.readAt(group, second, 1_000)).toMatchObject({ timestamp: second })
          // Below the horizon, and no reader has it open: before the first entry, between two.
          for (const gone of [0, first + 1, second - 1]) {
            await expect(driver.readAt(group, gone, 1_000)).rejects.toMatchObject({
              code: 'snapshot-too-old',
              message: expect.stringMatching(/ the one at \d+$/),
            })
          }
          expect(await driver.readAt(group, third + 10 ** 9, 1_000)).toEqual({
            ...{ position: 3, timestamp: third },
          })
          await expect(driver.getAt(group, [key], third + 1)).rejects.toMatchObject({
            code: 'unavailable',
          })
          await expect(driver.scan(group, {}, 0.5)).rejects.toMatchObject({ code: 'invalid' })
        } finally {
          await driver.stop()
        }
      }),
    )
  },
)

/** The clock of this test is the machine's: its turns are waited for, not a length of time. */
async function until(wallMicros: number): Promise<void> {
  while (systemClock.wallMicros() < wallMicros) {
    await new Promise((resolve) => setImmediate(resolve))
  }
}

test.each(disks)(
  'LOG-7: a start reads what came after the last batch: on %s',
  async (_, makeDisk) => {
    await onDisk(makeDisk, (log) =>
      onDisk(makeDisk, async (data) => {
        const limits = { ...defaultLimits, applierDelayMs: 0, checkpointMs: 0 }
        const open = async (): Promise<{ driver: Driver; gate: GatedStore }> => {
          const gate = new GatedStore(await log.open())
          const stores = { log: new OrderedJournal(gate), data: await data.open() }
          const ports = { clock: systemClock, random: systemRandom, trace: silentTrace }
          const options = { node, cluster, placement: staticPlacement([node]), limits }
          const peers = lonelyTransport()
          const driver = await Driver.open({ ...ports, ...stores, peers }, options)
          await driver.start()
          return { driver, gate }
        }
        const first = await open()
        for (let sequence = 1; sequence <= 20; sequence++) {
          expect(await first.driver.submit(submission(sequence), 1_000)).toMatchObject({
            position: sequence,
          })
        }
        await first.driver.drain()
        const { durableFlush, settledFlush } = first.driver.status()
        expect(settledFlush).toBeGreaterThan(durableFlush - 5)
        await first.driver.stop()

        const again = await open()
        const unsettled = flushesFrom(settledFlush + 1)
        expect(again.gate.scanned).toEqual([unsettled])
        expect((await again.driver.read(group, 'current', 1_000)).position).toBe(20)
        expect((await again.driver.submit(submission(21), 1_000)).kind).toBe('committed')
        await again.driver.drain()
        await again.driver.stop()
      }),
    )
  },
)

test.each(disks)(
  'a transaction is passed on to a leader that is linked, and proposed here until it is: on %s',
  async (_, makeDisk) => {
    await onDisk(makeDisk, (log) =>
      onDisk(makeDisk, async (data) => {
        const peers = new ToldTransport()
        const other = nodeId('n2')
        const placement = staticPlacement([node, other])
        const names = Array.from({ length: 20 }, (_one, n) => groupOfBytes(Buffer.from(`g${n}`)))
        const led = names.filter((name) => placement.replicasOf(name).firstFull === other)
        const marks: string[] = []
        const trace = { ...silentTrace, mark: (name: string) => void marks.push(name) }
        const ports = { clock: systemClock, random: systemRandom, trace, peers }
        const driver = await Driver.open(
          { ...ports, log: new OrderedJournal(await log.open()), data: await data.open() },
          { node, cluster, placement, limits: defaultLimits },
        )
        await driver.start()
        const doneFor = async (sequence: number): Promise<readonly string[]> => {
          marks.length = 0
          const of = present(led[sequence], 'a group that n2 leads')
          await driver.submit({ ...submission(sequence), group: of }, 50)
          return marks.filter((name) => ['forwarded', 'prepare'].includes(name))
        }
        try {
          expect(await doneFor(1)).toEqual(['prepare'])
          await peers.join(other)
          expect(await doneFor(2)).toEqual(['forwarded'])
        } finally {
          await driver.stop()
        }
      }),
    )
  },
)

test.each(disks)('damage found while the node is idle ends it, too: on %s', async (_, makeDisk) => {
  await onDisk(makeDisk, (log) =>
    onDisk(makeDisk, async (data) => {
      const peers = new ToldTransport()
      const ports = { clock: systemClock, random: systemRandom, trace: silentTrace, peers }
      const store = await data.open()
      const limits = { ...defaultLimits, digestMs: 20 }
      const placement = staticPlacement([node, nodeId('n2'), nodeId('n3')])
      const driver = await Driver.open(
        { ...ports, log: new OrderedJournal(await log.open()), data: store },
        { node, cluster, placement, limits },
      )
      const failed = new Promise<Error>((resolve) => (driver.onFailure = resolve))
      await driver.start()
      try {
        peers.link('n2')
        // The positions that it names are on their way here, and each round of digests looks for them again.
        const groups = [[group, 3]] as const
        const digest = { kind: 'digest', after: 0, through: 7, isWhole: true, groups } as const
        const asked = 1
        peers.tell('n2', { durableFlush: 7, messages: [{ ...digest, asked }] })
        expect(driver.status().failure).toBeUndefined()
        await store.write([{ key: stateKey(groupPrefix(group)), value: Buffer.from('rotten') }])
        expect((await failed).message).toContain('data store of this node is damaged')
      } finally {
        await driver.stop()
      }
    }),
  )
})

test.each(disks)(
  'OWN-1: a bug that a message of a peer meets outside of any step ends the message alone: on %s',
  async (_, makeDisk) => {
    await onDisk(makeDisk, (log) =>
      onDisk(makeDisk, async (data) => {
        const peers = new ToldTransport()
        let isBroken = false
        const clock = {
          ...systemClock,
          wallMicros: () => {
            assert(!isBroken, 'planted: the clock')
            return systemClock.wallMicros()
          },
        }
        const ports = { clock, random: systemRandom, trace: silentTrace, peers }
        const placement = staticPlacement([node, nodeId('n2'), nodeId('n3')])
        const driver = await Driver.open(
          { ...ports, log: new OrderedJournal(await log.open()), data: await data.open() },
          { node, cluster, placement, limits: defaultLimits },
        )
        const bugs: unknown[] = []
        driver.onBug = (error) => void bugs.push(error)
        await driver.start()
        try {
          await peers.join(nodeId('n2'))
          isBroken = true
          const wall = systemClock.wallMicros()
          peers.tell('n2', {
            durableFlush: 0,
            messages: [{ kind: 'clock', wall, asked: 1, answers: 0 }],
          })
          isBroken = false
          expect(bugs).toEqual([new AssertionError('planted: the clock')])
          expect(driver.status().failure).toBeUndefined()
        } finally {
          isBroken = false
          await driver.stop()
        }
      }),
    )
  },
)

test('MOVE-10: a node asks a peer of its set for a group that the peer has, though its name puts it in another set', () =>
  onDisk(disks[0]?.[1] ?? (() => Promise.reject(new Error('no disk'))), (log) =>
    onDisk(disks[0]?.[1] ?? (() => Promise.reject(new Error('no disk'))), async (data) => {
      const peers = new ToldTransport()
      const ports = { clock: systemClock, random: systemRandom, trace: silentTrace, peers }
      const placement = placementOver([
        [node, nodeId('n2')],
        [nodeId('n3'), nodeId('n4')],
      ])
      const names = Array.from({ length: 20 }, (_, n) => groupOfBytes(Buffer.from(`g${n}`)))
      const driver = await Driver.open(
        { ...ports, log: new OrderedJournal(await log.open()), data: await data.open() },
        { node, cluster, placement, limits: defaultLimits },
      )
      await driver.start()
      try {
        peers.link('n2')
        // Some of them have been moved.
        const groups = names.map((name) => [name, 1] as const)
        const about = { after: 0, through: 7, isWhole: true, asked: 1 }
        const digest = { kind: 'digest', ...about, groups } as const
        peers.tell('n2', { durableFlush: 7, messages: [digest] })
        const own = names.filter((name) => placement.setOf(name) === 0)
        const fetched = (): ReadonlySet<string> =>
          new Set(peers.sent.flatMap((one) => (one.kind === 'fetch' ? [one.group] : [])))
        await vi.waitFor(() => expect(fetched()).toEqual(new Set(names)), { timeout: 5_000 })
        expect(driver.status().failure).toBeUndefined()
        expect(own.length).toBeLessThan(names.length)
      } finally {
        await driver.stop()
      }
    }),
  ))

test('a folder of another node is refused before its data is looked at', () =>
  onDisk(disks[0]?.[1] ?? (() => Promise.reject(new Error('no disk'))), (log) =>
    onDisk(disks[0]?.[1] ?? (() => Promise.reject(new Error('no disk'))), async (data) => {
      const open = async (name: string): Promise<Driver> => {
        const stores = { log: new OrderedJournal(await log.open()), data: await data.open() }
        const ports = { clock: systemClock, random: systemRandom, trace: silentTrace, ...stores }
        const own = nodeId(name)
        const options = { node: own, cluster, placement: staticPlacement([own]) }
        return Driver.open(
          { ...ports, peers: lonelyTransport() },
          { ...options, limits: defaultLimits },
        )
      }
      await (await open('n1')).stop()
      await (await data.open()).write([{ key: markerKey(1), value: Buffer.from('damaged') }])
      await expect(open('n2')).rejects.toMatchObject({ code: 'invalid' })
      await expect(open('n1')).rejects.toMatchObject({ code: 'corrupt', detail: { store: 'data' } })
    }),
  ))
