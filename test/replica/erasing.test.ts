/** A node alone erases what was deleted: history, log and rounds, also over a restart. */
import { createServer } from 'node:http'
import { expect, test } from 'vitest'
import { systemClock } from '../../src/adapters/system-clock.ts'
import { systemRandom } from '../../src/adapters/system-random.ts'
import { WsPeerTransport } from '../../src/adapters/ws-peers.ts'
import { clusterId, groupOfBytes, nodeId } from '../../src/base/ids.ts'
import { defaultLimits, type Limits } from '../../src/base/limits.ts'
import { OrderedJournal } from '../../src/journal/ordered-journal.ts'
import { staticPlacement } from '../../src/placement/placement.ts'
import { silentTrace } from '../../src/ports/trace.ts'
import type { KeySpan, OrderedStore } from '../../src/ports/storage.ts'
import { Driver } from '../../src/replica/driver.ts'
import type { Submission } from '../../src/group/replica-port.ts'
import type { PeerFrame } from '../../src/replication/message.ts'
import { decodePeerFrame, encodePeerFrame } from '../../src/wire/peer/peer-codec.ts'
import { disks, onDisk, simulatedDisk } from '../store/stores.ts'

const node = nodeId('n1')
const cluster = clusterId('test')
const group = groupOfBytes(Buffer.from('g'))
const key = Buffer.from('k')
const secret = Buffer.from('f3a9c61be04d7a5832c0de91b75f64aa')
const soon = { historyMs: 5, eraseWithinMs: 40, digestMs: 50, applierDelayMs: 0 }
const roundsMax = 2_000

function submission(sequence: number, value: Uint8Array | undefined): Submission {
  const expiresAt = systemClock.wallMicros() + 60_000_000
  return {
    ...{ group, attempt: 1, readPosition: 0, reads: [], ranges: [], allocations: [] },
    intent: { session: 's', sequence, floor: 1, expiresAt },
    mutations: [{ key, value }],
  }
}

interface Opened {
  readonly driver: Driver
  readonly log: OrderedStore
  readonly data: OrderedStore
  /** Spans of each call. */
  readonly erased: (readonly KeySpan[] | 'all')[]
}

async function open(
  log: OrderedStore,
  data: OrderedStore,
  limits: Partial<Limits> = soon,
): Promise<Opened> {
  const erased: Opened['erased'] = []
  const { erase } = data
  data.erase = (spans) => {
    erased.push(spans)
    return erase?.call(data, spans) ?? Promise.resolve(undefined)
  }
  const peers = new WsPeerTransport<PeerFrame>({
    ...{ node, cluster, peers: [], server: createServer(), secret: '', queueBytesMax: 1_000 },
    ...{ clock: systemClock, random: systemRandom, log: () => undefined },
    codec: { encode: encodePeerFrame, decode: decodePeerFrame },
  })
  const ports = { clock: systemClock, random: systemRandom, trace: silentTrace, peers }
  const driver = await Driver.open(
    { ...ports, log: new OrderedJournal(log), data },
    { node, cluster, placement: staticPlacement([node]), limits: { ...defaultLimits, ...limits } },
  )
  await driver.start()
  return { driver, log, data, erased }
}

async function until(is: () => boolean): Promise<void> {
  for (let rounds = 0; !is() && rounds < roundsMax; rounds++) {
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  expect(is()).toBe(true)
}

/** The keys of rows that have the text. */
async function keysWith(store: OrderedStore, text: Buffer): Promise<readonly string[]> {
  const found: string[] = []
  for await (const rows of store.scan({})) {
    for (const row of rows) if (Buffer.from(row.value).includes(text)) found.push(String(row.key))
  }
  return found
}

test.each(disks)(
  'ERASE-1: a row of a group that takes no more writes leaves history and log: on %s',
  async (_, makeDisk) => {
    await onDisk(makeDisk, (logDisk) =>
      onDisk(makeDisk, async (dataDisk) => {
        const { driver, log, data, erased } = await open(
          await logDisk.open(),
          await dataDisk.open(),
        )
        try {
          await driver.submit(submission(1, secret), 1_000)
          await driver.drain()
          expect(await keysWith(data, secret)).toHaveLength(1)
          await driver.submit(submission(2, undefined), 1_000)
          await driver.drain()
          expect(driver.status().erase).toMatchObject({ requests: [{ round: 1, groups: 1 }] })
          await until(() => driver.status().erase.done === 1)
          expect(await keysWith(data, secret)).toEqual([])
          expect(await keysWith(log, secret)).toEqual([])
          expect(erased.flat()).toContainEqual(expect.objectContaining({ lt: expect.anything() }))
          expect(driver.status().erase.requests).toEqual([])
          const { position } = await driver.read(group, 'snapshot', 1_000)
          expect(position, 'two positions were taken at most').toBeLessThanOrEqual(4)
        } finally {
          await driver.stop()
        }
      }),
    )
  },
)

test.each(disks)(
  'ERASE-2: a deletion of the run before is erased after a start: on %s',
  async (_, makeDisk) => {
    await onDisk(makeDisk, (logDisk) =>
      onDisk(makeDisk, async (dataDisk) => {
        const slow = { ...soon, eraseWithinMs: 10 ** 9 }
        const first = await open(await logDisk.open(), await dataDisk.open(), slow)
        await first.driver.submit(submission(1, secret), 1_000)
        await first.driver.drain()
        await first.driver.submit(submission(2, undefined), 1_000)
        await first.driver.drain()
        await first.driver.stop()
        const { driver, log, data } = await open(await logDisk.open(), await dataDisk.open())
        try {
          expect(driver.status().erase.requests).toMatchObject([{ round: 1, groups: 1 }])
          await until(() => driver.status().erase.done === 1)
          expect(await keysWith(data, secret)).toEqual([])
          expect(await keysWith(log, secret)).toEqual([])
        } finally {
          await driver.stop()
        }
      }),
    )
  },
)

test('ERASE-2: a deletion that no batch has taken counts as one of the next round', async () => {
  await onDisk(simulatedDisk, (logDisk) =>
    onDisk(simulatedDisk, async (dataDisk) => {
      const waiting = { ...soon, checkpointMs: 60_000 }
      const { driver } = await open(await logDisk.open(), await dataDisk.open(), waiting)
      try {
        await driver.submit(submission(1, secret), 1_000)
        expect(driver.status().erase.requests).toEqual([])
        await driver.submit(submission(2, undefined), 1_000)
        const next = { round: 1, stage: 'gathering', groups: 1 }
        const why = [expect.stringContaining('checkpoint_ms')]
        expect(driver.status().erase.requests).toMatchObject([{ ...next, why }])
        await driver.drain()
        expect(driver.status().erase.requests).toMatchObject([next])
        await until(() => driver.status().erase.done === 1)
        expect(driver.status().erase.requests).toEqual([])
      } finally {
        await driver.stop()
      }
    }),
  )
})

test.each(disks)(
  'ERASE-3: where nothing is deleted nothing is compacted, and no group takes a position: on %s',
  async (_, makeDisk) => {
    await onDisk(makeDisk, (logDisk) =>
      onDisk(makeDisk, async (dataDisk) => {
        const { driver, erased } = await open(await logDisk.open(), await dataDisk.open())
        try {
          for (const sequence of [1, 2, 3]) await driver.submit(submission(sequence, secret), 1_000)
          await driver.drain()
          const { durableFlush } = driver.status()
          await new Promise((resolve) => setTimeout(resolve, 800))
          expect((await driver.read(group, 'snapshot', 1_000)).position).toBe(3)
          expect(driver.status()).toMatchObject({ durableFlush, erase: { requests: [], done: 0 } })
          expect(erased).toEqual([])
        } finally {
          await driver.stop()
        }
      }),
    )
  },
)
