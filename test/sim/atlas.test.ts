/**
 * The atlas: the stores that a fault may damage, so that all data that the run relies on stays
 * recoverable.
 */
import { flushKey, recordKey } from '../../src/journal/ordered-journal.ts'
import { expect, test } from 'vitest'
import { present } from '../../src/base/assert.ts'
import { StoreError } from '../../src/base/errors.ts'
import { latin1 } from '../../src/base/bytes.ts'
import { clusterId, nodeId, storeId } from '../../src/base/ids.ts'
import { encodeFlush } from '../../src/log/flush.ts'
import { metaRecords } from '../../src/log/log-meta.ts'
import { firstEpochs, type OwnEpochs } from '../../src/log/own-epochs.ts'
import { encodeMemory, memoryName } from '../../src/log/peer-memory.ts'
import { Atlas, findLastFlush } from '../../sim/faults/atlas.ts'
import { SimDisk, type DiskImage } from '../../sim/world/disk.ts'

interface SimDisks {
  readonly log: SimDisk
  readonly data: SimDisk
}

function disksOf(count: number): Map<string, SimDisks> {
  const disk = (): SimDisk => new SimDisk({ schedule: (complete) => complete() })
  const names = Array.from({ length: count }, (_, i) => `n${i + 1}`)
  return new Map(names.map((name) => [name, { log: disk(), data: disk() }]))
}

const nothing = { records: [], groupNumbers: [], previous: [] }

/** Lets a log disk remember a peer. */
async function remember(
  disks: SimDisks | undefined,
  peer: string,
  flush: number,
  storeId = 'store',
  epochs: OwnEpochs = firstEpochs,
): Promise<void> {
  const one = { node: nodeId(peer), storeId, durableFlush: flush, incarnation: 1, run: 1 }
  const store = disks?.log.open()
  await store?.write([{ key: recordKey(memoryName), value: encodeMemory([one], epochs) }])
  await store?.close()
}

function logImage(flushes: number): DiskImage {
  const image = new Map<string, Uint8Array>()
  for (let number = 1; number <= flushes; number++) {
    const { bytes } = encodeFlush({ number, incarnation: 1, previousCrc: 0 }, nothing)
    image.set(latin1(flushKey(number)), bytes)
  }
  return image
}

/** The record by which a log is that of a store of n1. */
function identityImage(store = ''): DiskImage {
  const identity = { storeId: storeId(store), cluster: clusterId('test'), node: nodeId('n1') }
  const [{ name, value }] = metaRecords({
    ...{ ...identity, incarnation: 1, seat: 0 },
    ...{ firstFlush: 1, previousCrc: 0, longestLeaseMs: 0, epoch: 1 },
  })
  return new Map([[latin1(recordKey(name)), present(value, 'a record')]])
}

test('at most a minority of the logs is ever damaged', () => {
  const three = new Atlas(disksOf(3))
  expect(three.hurtLog('n2')).toBe(true)
  expect(three.hurtLog('n2'), 'the same one again').toBe(true)
  expect(three.hurtLog('n1')).toBe(false)
  expect([three.isSound('n1'), three.isSound('n2')]).toEqual([true, false])
  const five = new Atlas(disksOf(5))
  expect(['n1', 'n2', 'n3'].map((node) => five.hurtLog(node))).toEqual([true, true, false])
})

test('a damaged log is damaged again only while the others are a majority that votes', async () => {
  const disks = disksOf(3)
  const atlas = new Atlas(disks)
  for (const keeper of ['n2', 'n3']) await remember(disks.get(keeper), 'n1', 9)
  expect(atlas.hurtLog('n1')).toBe(true)
  const later = { ...firstEpochs, epoch: 2, gated: 2 }
  await remember(disks.get('n3'), 'n1', 9, 'store', later)
  expect(atlas.isSettled('n2'), 'n2 has yet to hear of the epoch').toBe(false)
  expect(atlas.hurtLog('n1')).toBe(false)
  expect(atlas.forgetLog('n1', logImage(0)), 'n1 would vote no more').toBe(false)
  await remember(disks.get('n2'), 'n1', 9, 'store', { ...later, gated: 1 })
  expect(atlas.hurtLog('n1'), 'n2 is at the gate').toBe(false)
  await remember(disks.get('n2'), 'n1', 9, 'store', later)
  expect(atlas.hurtLog('n1')).toBe(true)
})

test('a log goes back only when all others durably remember how far it was', async () => {
  const disks = disksOf(3)
  const atlas = new Atlas(disks)
  await remember(disks.get('n2'), 'n1', 8)
  expect(atlas.forgetLog('n1', logImage(5)), 'n3 does not know').toBe(false)
  await remember(disks.get('n3'), 'n1', 5)
  expect(atlas.forgetLog('n1', logImage(5)), 'n3 knows of no more than that').toBe(false)
  await remember(disks.get('n3'), 'n1', 6)
  expect(atlas.isForgetful('n1')).toBe(false)
  expect(atlas.forgetLog('n1', logImage(5))).toBe(true)
  expect(atlas.isForgetful('n1')).toBe(true)
})

test('a store that was replaced comes back only when all others durably know the one in its place', async () => {
  const disks = disksOf(3)
  const atlas = new Atlas(disks)
  const log = present(disks.get('n1'), 'three nodes').log
  const [first, second] = ['1', '2'].map((digit) => `00000000-0000-4000-8000-00000000000${digit}`)
  const old = new Map([...logImage(50), ...identityImage(first)])
  log.restore(old)
  for (const keeper of ['n2', 'n3']) await remember(disks.get(keeper), 'n1', 60, first)
  expect(atlas.loseStore('n1')).toBe(true)
  log.restore(identityImage(second))
  atlas.endReplacing('n1')
  expect(atlas.forgetLog('n1', logImage(0)), 'they know the lost store').toBe(false)
  await remember(disks.get('n2'), 'n1', 3, second)
  expect(atlas.forgetLog('n1', old), 'n3 would let it in').toBe(false)
  await remember(disks.get('n3'), 'n1', 3, second)
  expect(atlas.forgetLog('n1', old)).toBe(true)
})

test('LOG-10: a data disk that is lost takes nothing with it of what its node remembers of old logs', async () => {
  const disks = disksOf(3)
  const atlas = new Atlas(disks)
  for (const keeper of ['n2', 'n3']) await remember(disks.get(keeper), 'n1', 9)
  expect(atlas.hurtData('n2')).toBe(true)
  expect(atlas.forgetLog('n1', logImage(0))).toBe(true)
  expect(atlas.hurtData('n3')).toBe(true)
  expect(atlas.hurtLog('n2'), 'who remembers keeps its log').toBe(false)
  expect(atlas.swap(['n1', 'n2'])).toBe(false)
})

test('LOG-10: in the end a node has noted how far the logs of its peers are', async () => {
  const disks = disksOf(2)
  const atlas = new Atlas(disks)
  disks.get('n1')?.log.restore(logImage(5))
  await remember(disks.get('n2'), 'n1', 4)
  expect(atlas.notesLacking(['n1', 'n2'])).toEqual(["n2 has noted flush 4 of n1's 5"])
  await remember(disks.get('n2'), 'n1', 5)
  expect(atlas.notesLacking(['n1', 'n2'])).toEqual([])
})

test('a node ends by itself for a reason that was dealt to it, or the run fails', () => {
  const atlas = new Atlas(disksOf(3))
  const log = new StoreError('corrupt', 'damaged', { store: 'log' })
  const data = new StoreError('corrupt', 'damaged', { store: 'data' })
  const refused = new StoreError('unavailable', 'no space')
  const foreign = new StoreError('invalid', 'belongs to n2')
  for (const error of [log, data, refused, foreign, new Error('a bug')]) {
    expect(atlas.classifyError('n1', error)).toBe('unexpected')
  }
  atlas.hurtLog('n1')
  atlas.hurtData('n1')
  atlas.refuse('n1')
  expect(atlas.classifyError('n1', log)).toBe('retire')
  expect(atlas.classifyError('n1', data)).toBe('reset-data')
  expect(atlas.classifyError('n1', refused)).toBe('start-again')
  atlas.mendData('n1')
  expect(atlas.classifyError('n1', data), 'it was made anew').toBe('unexpected')
  expect(atlas.swap(['n1', 'n3']), 'damage must not change places').toBe(false)
  expect(atlas.swap(['n2', 'n3'])).toBe(true)
  expect(atlas.classifyError('n2', foreign)).toBe('wait')
  expect(atlas.hurtLog('n1'), 'not while disks are exchanged').toBe(false)
  atlas.swapBack()
  expect(atlas.classifyError('n2', foreign)).toBe('unexpected')
})

test('the end of a log is its last flush', () => {
  expect(findLastFlush(logImage(7))).toBe(7)
  expect(findLastFlush(new Map())).toBe(0)
})

test('MOVE-6: while a store is replaced, no other one of its set is lost or damaged', () => {
  const atlas = new Atlas(disksOf(3))
  expect(atlas.loseStore('n2')).toBe(true)
  expect(atlas.isSettled('n2'), 'an empty disk has no vote').toBe(false)
  expect([atlas.loseStore('n1'), atlas.hurtLog('n1'), atlas.hurtLog('n2')]).toEqual([
    false,
    false,
    false,
  ])
  atlas.endReplacing('n2')
  expect(atlas.hurtLog('n1')).toBe(true)
  expect(atlas.loseStore('n3'), 'one log is damaged').toBe(false)
  expect(atlas.loseStore('n1'), 'the damaged one').toBe(true)
  expect(atlas.isHurt('n1')).toBe(false)
})
