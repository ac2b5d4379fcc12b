/** The records of a log that tell of epochs and seats; those of before are as they were. */
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { clusterId, groupOfBytes, nodeId, storeId } from '../../src/base/ids.ts'
import { pack, unpack } from '../../src/base/pack.ts'
import { OrderedJournal, recordKey } from '../../src/journal/ordered-journal.ts'
import { decodeMeta, metaCopyName, metaName, metaRecords } from '../../src/log/log-meta.ts'
import type { LogStore } from '../../src/log/log-store.ts'
import {
  firstEpochs,
  lostEpochs,
  packEpochs,
  readEpochs,
  type OwnEpochs,
} from '../../src/log/own-epochs.ts'
import { decodeEpochs, decodeMemory, encodeMemory, memoryName } from '../../src/log/peer-memory.ts'
import { openRecord, sealRecord } from '../../src/log/sealed-record.ts'
import { SettledRows } from '../../src/log/settled.ts'
import type { OrderedStore } from '../../src/ports/storage.ts'
import { disks, flipBit, onDisk, simulatedDisk } from '../store/stores.ts'
import { accept, durable, FakeData, openLog } from './log-fixture.ts'

const one = { node: nodeId('n2'), storeId: 'of n2', durableFlush: 12, incarnation: 3, run: 9 }
const meta = {
  ...{ storeId: storeId('00000000-0000-4000-8000-000000000001'), incarnation: 4 },
  ...{ cluster: clusterId('test'), node: nodeId('node-1'), seat: 0 },
  ...{ firstFlush: 1, previousCrc: 0, longestLeaseMs: 1_000, epoch: 1 },
}

function hexOf(bytes: Uint8Array | undefined): string {
  return Buffer.from(bytes ?? []).toString('hex')
}

test('before the first change the records of a log are byte for byte those of earlier builds', () => {
  expect(hexOf(encodeMemory([one]))).toBe('51e27dfd92a77065657273203195a26e32a56f66206e320c0309')
  expect(hexOf(encodeMemory([], firstEpochs))).toBe('2d37803f91a770656572732031')
  const cut = { ...meta, firstFlush: 7, previousCrc: 99 }
  const id = 'd92430303030303030302d303030302d343030302d383030302d303030303030303030303031'
  expect([meta, cut].map((each) => hexOf(metaRecords(each)[0].value))).toEqual([
    `dac3e2e89803${id}04a474657374a66e6f64652d310100cd03e8`,
    `374470999804${id}04a474657374a66e6f64652d310763cd03e8`,
  ])
})

test('records of earlier builds are of the first epoch, and of a node without a seat', () => {
  const old = Buffer.from('51e27dfd92a77065657273203195a26e32a56f66206e320c0309', 'hex')
  expect([decodeMemory(old), decodeEpochs(old)]).toEqual([[one], firstEpochs])
  const { storeId: id, incarnation, cluster, node } = meta
  for (const [format, ...place] of [
    [2, 1, 0],
    [3, 1, 0, 1_000],
    [4, 7, 99, 1_000],
  ] as const) {
    const read = decodeMeta(sealRecord(format, [id, incarnation, cluster, node, ...place]))
    expect(read, `format ${format}`).toMatchObject({ seat: 0, epoch: 1, firstFlush: place[0] })
  }
})

test.each([
  ['a seat', { seat: 4_100 }],
  ['a later epoch', { epoch: 2 }],
  ['both, and flushes that are given up', { seat: 4_100, epoch: 3, firstFlush: 7, previousCrc: 9 }],
])('MOVE-2: an identity with %s is of a format that earlier builds refuse', (_, change) => {
  const [record, copy] = metaRecords({ ...meta, ...change })
  expect(openRecord(record.value)?.[0]).toBe(5)
  expect([record.name, copy.name, copy.value]).toEqual([metaName, metaCopyName, record.value])
  expect(decodeMeta(record.value)).toEqual({ ...meta, ...change })
})

const count = fc.integer({ min: 0, max: 2 ** 40 })
const groups = fc.array(
  fc.uint8Array({ minLength: 1, maxLength: 20 }).map((bytes) => groupOfBytes(bytes)),
  { maxLength: 5 },
)
const parts: fc.Arbitrary<OwnEpochs> = fc
  .record({
    ...{ epoch: count, gated: count, soundFor: count, isMember: fc.boolean() },
    isDoubted: fc.boolean(),
    ...{ blocked: groups, unsound: groups },
  })
  .map((own) => ({ ...own, epoch: own.epoch + own.gated + 2 }))

test('MOVE-2: a part in the epochs is the same after it was written, and so are the peers beside it', () => {
  fc.assert(
    fc.property(parts, fc.nat(3), (own, peers) => {
      const list = Array.from({ length: peers }, (_, n) => ({ ...one, node: nodeId(`n${n}`) }))
      const bytes = encodeMemory(list, own)
      expect(openRecord(bytes)?.[0]).toBe('peers 2')
      expect([decodeEpochs(bytes), decodeMemory(bytes)]).toEqual([own, list])
    }),
  )
})

test('MOVE-2: bytes of a damaged part are none', () => {
  const bytes = Buffer.from(encodeMemory([one], { ...firstEpochs, epoch: 2 }))
  for (let at = 0; at < bytes.length; at++) {
    const damaged = Buffer.from(bytes)
    damaged[at] = (damaged[at] ?? 0) ^ 4
    expect([decodeEpochs(damaged), decodeMemory(damaged)], `byte ${at}`).toEqual([
      undefined,
      undefined,
    ])
  }
})

const whole = [2, 1, 0, true, false, [], [], [], []]
test.each([
  ['no list', 5],
  ['epoch 0', [0, 0, 0, true, false, [], [], [], []]],
  ['a gate that no epoch has', [2, 3, 0, true, false, [], [], [], []]],
  ['no word on the vote', [2, 1, 0, null, false, [], [], [], []]],
  ['a part of a seal', [2, 1, -1, true, false, [], [], [], []]],
  ['no blocked groups', [2, 1, 0, true, false, null, [], [], []]],
  ['a group without a name', [2, 1, 0, true, false, [Buffer.alloc(0)], [], [], []]],
  ['no voters', [2, 1, 0, true, false, [], [], null, []]],
  ['a voter before that is no node', [2, 1, 0, true, false, [], [], [], ['A']]],
  ['an unsound group that is text', [2, 1, 0, true, false, [], ['g'], [], []]],
])('MOVE-2: fields with %s are no part in the epochs', (_, fields) => {
  expect(readEpochs(whole)).toMatchObject({ epoch: 2, gated: 1 })
  expect(readEpochs(fields)).toBe(undefined)
})

test('the part in the epochs is packed in this order', () => {
  const own = {
    ...firstEpochs,
    epoch: 3,
    gated: 2,
    soundFor: 1,
    blocked: [groupOfBytes(Buffer.from('g'))],
    voters: [nodeId('n1'), nodeId('n2')],
    before: [nodeId('n1')],
  }
  const groups = [[Buffer.from('g')], []]
  expect(pack(packEpochs(own))).toEqual(
    pack([3, 2, 1, true, false, ...groups, ['n1', 'n2'], ['n1']]),
  )
  expect(readEpochs(unpack(pack(packEpochs(own))))).toEqual(own)
})

/** The node's part becomes durable. */
function enter(log: LogStore, own: OwnEpochs): Promise<void> {
  log.memory.setEpochs(own)
  return new Promise((resolve) => {
    log.memory.whenKept(resolve)
    log.remember()
  })
}

function epochOnDisk(store: OrderedStore): readonly number[] {
  const journal = new OrderedJournal(store)
  return [metaName, metaCopyName].map((name) => {
    return decodeMeta(journal.record(name) ?? new Uint8Array()).epoch
  })
}

describe.each(disks)('on %s', (_, disk) => {
  test('MOVE-6: an empty folder with a seat has that as its first incarnation, no vote, and is unrestored', () =>
    onDisk(disk, async (on) => {
      const data = new FakeData()
      const log = await openLog(await on.open(), { seat: 4_100 }, data)
      expect(log.identity).toMatchObject({ seat: 4_100, incarnation: 4_100 })
      expect([log.memory.epochs, log.memory.isWhole]).toEqual([lostEpochs(4_100, 1), false])
      expect(new SettledRows(data).isRestored()).toBe(false)
      await durable(log, accept('a', 1, 0, 'one'))
      // The seat is the folder's by now, whether or not a start names it.
      for (const [turn, seat] of [4_100, undefined, 5].entries()) {
        const again = await openLog(await on.open(), seat === undefined ? {} : { seat }, data)
        expect(again.identity).toMatchObject({
          ...{ seat: 4_100, incarnation: 4_101 + turn, storeId: log.identity.storeId },
        })
        expect(again.memory.epochs).toEqual(lostEpochs(4_100, 1))
      }
    }))

  test('MOVE-6: a folder that is not empty takes no seat', () =>
    onDisk(disk, async (on) => {
      await openLog(await on.open())
      const store = await on.open()
      await expect(openLog(store, { seat: 4_100 })).rejects.toThrow(
        'A seat is for an empty data folder',
      )
    }))

  test('MOVE-2: the part in an epoch, and the epoch in the identity, are durable at once', () =>
    onDisk(disk, async (on) => {
      const store = await on.open()
      const log = await openLog(store)
      const sealed = { ...firstEpochs, epoch: 2, soundFor: 2 }
      await enter(log, sealed)
      expect(epochOnDisk(store)).toEqual([2, 2])
      const again = await openLog(await on.open())
      expect([again.memory.epochs, again.memory.isWhole]).toEqual([sealed, true])
      await enter(again, { ...sealed, gated: 2 })
      const last = await openLog(await on.open())
      expect([last.memory.epochs.gated, last.identity.incarnation]).toEqual([2, 3])
    }))
})

/** A log that was in epoch 3 behind its gate, whose memory of it is then damaged. */
async function withoutMemory(
  seat: number | undefined,
  check: (log: LogStore) => Promise<void> | void,
): Promise<void> {
  await onDisk(simulatedDisk, async (on) => {
    const before = await openLog(await on.open(), seat === undefined ? {} : { seat })
    if (!before.memory.isWhole) before.memory.restore(2, 2)
    await enter(before, { ...firstEpochs, epoch: 3, gated: 3, soundFor: 3 })
    await durable(before, accept('a', 1, 0, 'one'))
    const store = await on.open()
    await flipBit(store, recordKey(memoryName), 9)
    await check(await openLog(store))
  })
}

test('MOVE-2: a node that lost its memory in a later epoch is before the gate of that epoch', () =>
  withoutMemory(undefined, ({ memory }) => {
    expect(memory.isWhole).toBe(false)
    expect(memory.epochs).toEqual(lostEpochs(0, 3))
    expect(memory.epochs).toMatchObject({ gated: 0, isMember: true, isDoubted: true })
  }))

test('MOVE-6: a store with a seat that lost its memory has no vote before the row says so', () =>
  withoutMemory(4_100, ({ memory }) => {
    expect(memory.epochs).toEqual(lostEpochs(4_100, 3))
    expect(memory.epochs).toMatchObject({ gated: 0, isMember: false, isDoubted: true })
  }))

test('MOVE-2: a part that is taken up anew is durable only once the memory of peers is whole', () =>
  withoutMemory(undefined, async (log) => {
    const { memory } = log
    memory.setEpochs({ ...memory.epochs, gated: 3 })
    let kept = 0
    memory.whenKept(() => (kept += 1))
    log.remember()
    await durable(log, accept('a', 2, 0, 'two'))
    expect(kept).toBe(0)
    memory.restore(2, 2)
    log.remember()
    await durable(log, accept('a', 3, 0, 'three'))
    expect([kept, memory.keptEpochs.gated]).toEqual([1, 3])
  }))

test('MOVE-2: a node that lost its memory in the first epoch has no vote before others tell the epoch', () =>
  onDisk(simulatedDisk, async (on) => {
    await durable(await openLog(await on.open()), accept('a', 1, 0, 'one'))
    const store = await on.open()
    await flipBit(store, recordKey(memoryName), 9)
    const { memory } = await openLog(store)
    expect([memory.isWhole, memory.epochs]).toEqual([false, lostEpochs(0, 1)])
    expect(memory.epochs).toMatchObject({ gated: 0, isDoubted: true })
  }))
