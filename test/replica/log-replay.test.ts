/** A start whose data store is made anew: the log is taken up in parts, and nothing of it is forgotten. */
import { OrderedJournal } from '../../src/journal/ordered-journal.ts'
import { expect, test, vi } from 'vitest'
import { systemClock } from '../../src/adapters/system-clock.ts'
import { systemRandom } from '../../src/adapters/system-random.ts'
import { clusterId, nodeId } from '../../src/base/ids.ts'
import { defaultLimits, type Limits } from '../../src/base/limits.ts'
import { staticPlacement } from '../../src/placement/placement.ts'
import { silentTrace, type Trace } from '../../src/ports/trace.ts'
import type { OrderedStore } from '../../src/ports/storage.ts'
import { Driver } from '../../src/replica/driver.ts'
import { encodeEntry } from '../../src/replication/entry.ts'
import type { GroupMessage, Message } from '../../src/replication/message.ts'
import { group } from '../log/log-fixture.ts'
import { disks, GatedStore, onDisk } from '../store/stores.ts'
import { ToldTransport } from './told-transport.ts'

const [node, other] = [nodeId('n1'), nodeId('n2')]
const placement = staticPlacement([node, other, nodeId('n3')])
const ballot = { epoch: 1, round: 1, node: other, incarnation: 1 }
const higher = { ...ballot, round: 9 }
const envelope = { group: group('g'), epoch: 1 }
const count = 40

function value(position: number): Uint8Array {
  return encodeEntry({
    ...{ position, timestamp: position, horizon: 0, transactions: [] },
    nextLeader: { node: other, incarnation: 1 },
  })
}

const chosen = Array.from({ length: count }, (_, n) => n + 1).map((position) => ({
  ...{ position, ballot, value: value(position) },
}))

/** Starts, and takes down what is applied between two batches of the data store. */
async function start(
  log: OrderedStore,
  data: OrderedStore,
  limits: Partial<Limits>,
): Promise<{
  driver: Driver
  peers: ToldTransport
  batches: readonly number[]
  gate: GatedStore
}> {
  const batches: number[] = []
  const gate = new GatedStore(data)
  const trace: Trace = {
    ...silentTrace,
    emit: ({ kind }) => {
      const at = gate.begun.length
      if (kind === 'apply') batches[at] = (batches[at] ?? 0) + 1
    },
  }
  const peers = new ToldTransport()
  const ports = {
    clock: systemClock,
    random: systemRandom,
    trace,
    log: new OrderedJournal(log),
    data: gate,
    peers,
  }
  const options = { node, cluster: clusterId('test'), placement }
  const driver = await Driver.open(ports, { ...options, limits: { ...defaultLimits, ...limits } })
  await driver.start()
  return { driver, peers, batches, gate }
}

const bounds: readonly (readonly [string, Partial<Limits>, number])[] = [
  ['by count', { catchUpEntriesMax: 5 }, 5],
  ['by bytes', { catchUpBytesMax: 3 * value(1).length }, 3],
  ['one by one', { catchUpEntriesMax: 1, catchUpBytesMax: 1 }, 1],
  ['in one, where that is little', {}, count],
]

test.each(bounds)('LOG-7 PAX-2: a long log is taken up in parts: %s', (_, limits, most) =>
  onDisk(disks[0]?.[1] ?? (() => Promise.reject(new Error('no disk'))), (log) =>
    onDisk(disks[0]?.[1] ?? (() => Promise.reject(new Error('no disk'))), async (data) => {
      const first = await start(await log.open(), await data.open(), {})
      const tell = (peers: ToldTransport, ...messages: readonly GroupMessage[]): void =>
        peers.tell(other, { durableFlush: 1, messages })
      const entries = { kind: 'entries', ...envelope, from: 1, entries: chosen } as const
      const open = { ...envelope, ballot, position: count + 1, value: value(count + 1) }
      const promised = { ...envelope, ballot: higher, position: count + 2 }
      first.peers.link(other)
      tell(first.peers, { ...entries, committed: count }, { kind: 'accept', ...open })
      tell(first.peers, { kind: 'prepare', ...promised })
      await vi.waitFor(() => expect(first.driver.positionHere(group('g'))).toBe(count), 5_000)
      await first.driver.stop()

      await onDisk(disks[0]?.[1] ?? (() => Promise.reject(new Error('no disk'))), async (anew) => {
        const { driver, peers, batches } = await start(await log.open(), await anew.open(), limits)
        try {
          expect(driver.positionHere(group('g'))).toBe(count)
          expect(Math.max(...batches.filter((applied) => applied > 0))).toBe(most)
          // A position above, which is not chosen, still has its votes.
          peers.link(other)
          tell(peers, { kind: 'prepare', ...envelope, position: count + 1, ballot: higher })
          tell(peers, { kind: 'prepare', ...promised, ballot })
          const answers = [
            { kind: 'promised', position: count + 1, accepted: { ballot, value: open.value } },
            { kind: 'refused', position: count + 2, promised: higher },
          ]
          const isAnswer = ({ kind }: Message): boolean => ['promised', 'refused'].includes(kind)
          await vi.waitFor(() => expect(peers.sent.filter(isAnswer)).toMatchObject(answers), 10_000)
        } finally {
          await driver.stop()
        }
      })
    }),
  ),
)

test('LOG-7: nothing is carried over while a log is taken up in parts: it would be all that is left, each time', () =>
  onDisk(disks[0]?.[1] ?? (() => Promise.reject(new Error('no disk'))), (log) =>
    onDisk(disks[0]?.[1] ?? (() => Promise.reject(new Error('no disk'))), async (data) => {
      const first = await start(await log.open(), await data.open(), {})
      first.peers.link(other)
      for (const entry of chosen) {
        const { position } = entry
        const one = { ...envelope, from: position, entries: [entry], committed: position }
        first.peers.tell(other, { durableFlush: 1, messages: [{ kind: 'entries', ...one }] })
        await new Promise((resolve) => setTimeout(resolve, 2))
      }
      await first.driver.stop()
      await onDisk(disks[0]?.[1] ?? (() => Promise.reject(new Error('no disk'))), async (anew) => {
        const limits = { catchUpEntriesMax: 5, carryAfterFlushes: 1 }
        const { driver, gate } = await start(await log.open(), await anew.open(), limits)
        try {
          expect(driver.positionHere(group('g'))).toBe(count)
          const keys = gate.begun.flat().map(({ key }) => Buffer.from(key).toString('latin1'))
          expect(keys.filter((key) => key === 'mlog/carried')).toEqual([])
          expect(keys.filter((key) => key.startsWith('mat/')).length).toBeLessThanOrEqual(count)
        } finally {
          await driver.stop()
        }
      })
    }),
  ))
