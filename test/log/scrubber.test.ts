/** The checks of a start before it votes, and the repairs of a scrub after damage that it finds. */
import { OrderedJournal } from '../../src/journal/ordered-journal.ts'
import { expect, test } from 'vitest'
import { SimDisk } from '../../sim/world/disk.ts'
import { groupOfBytes } from '../../src/base/ids.ts'
import { systemClock } from '../../src/adapters/system-clock.ts'
import { silentTrace } from '../../src/ports/trace.ts'
import type { OrderedStore, Put } from '../../src/ports/storage.ts'
import {
  encodeStored,
  groupPrefix,
  positionKey,
  rowStoreKey,
  stagingKey,
  stateKey,
} from '../../src/store/row-format.ts'
import { Scrubber } from '../../src/log/scrubber.ts'
import { HandClock } from '../ports/hand-clock.ts'
import { checkCarried, checkVotes } from '../../src/log/start-check.ts'

const group = groupOfBytes(Buffer.from('g'))
const state = stateKey(groupPrefix(group))
const row = rowStoreKey(group, Buffer.from('x'))
const position = positionKey(group, 3)

async function diskWith(...keys: readonly Uint8Array[]): Promise<[SimDisk, OrderedStore]> {
  const disk = new SimDisk({ schedule: (complete) => complete() })
  const store = disk.open()
  const put = (key: Uint8Array): Put => ({ key, value: encodeStored(key, 1, Buffer.from('v')) })
  await store.write(keys.map(put))
  return [disk, store]
}

/** The report until both stores were read. */
function scrub(store: OrderedStore, log: OrderedStore): Promise<string> {
  return new Promise((resolve) => {
    const scrubber = new Scrubber({
      ...{
        store,
        log: new OrderedJournal(log),
        clock: systemClock,
        trace: { ...silentTrace, mark },
      },
      limits: { scrubBytesPerSecond: 1_000_000, scrubPauseMs: 60_000 },
      foreground: () => 0,
      onLogDamaged: (what) => (said += `log damaged: ${what}, `),
      onFailed: (error) => resolve(`${said}${error instanceof Error ? error.message : ''}`),
    })
    let said = ''
    function mark(name: string): void {
      if (name === 'scrub_done') {
        const { scrubPasses, scrubbedPart, logScrubPasses } = scrubber.figures
        expect(logScrubPasses).toBe(0)
        said += `${scrubPasses} pass, ${scrubbedPart}, `
      }
      if (name !== 'scrub_of_log_done' && name !== 'scrub_cannot_read_log') return
      scrubber.stop()
      const { logScrubPasses, logScrubbedPart } = scrubber.figures
      resolve(`${said}of the log ${logScrubPasses} pass, ${logScrubbedPart}`)
    }
    scrubber.start()
  })
}

test('DISK-14: a state record that is not shown is found before anything is believed', async () => {
  const [disk, store] = await diskWith(state, row, position)
  await checkVotes(store)
  disk.dropKey(state)
  await expect(checkVotes(store)).rejects.toThrow('data store of this node is damaged')
})

test('DISK-14: the check of carried positions covers their rows and no other', async () => {
  const [disk, store] = await diskWith(state, row, position, positionKey(group, 4))
  disk.dropKey(position)
  await checkVotes(store)
  await checkCarried(store, [[group, 4]])
  await expect(checkCarried(store, [[group, 3]])).rejects.toThrow('is damaged')
})

test('DISK-14: rows without a state record are of an earlier version, or it was lost', async () => {
  const [, store] = await diskWith(row)
  await expect(checkVotes(store)).rejects.toThrow('state records are missing')
})

test('DISK-14: rows of the first snapshot that takes a group over have no state record yet', async () => {
  const staging = stagingKey(groupPrefix(group))
  const [disk, store] = await diskWith(row, staging)
  await checkVotes(store)
  disk.dropKey(staging)
  await expect(checkVotes(store)).rejects.toThrow('data store of this node is damaged')
})

test('DISK-15: a scrub reads everything, and ends the node over damage', async () => {
  const [disk, store] = await diskWith(state, row, position)
  const [, log] = await diskWith(row)
  expect(await scrub(store, log)).toBe('1 pass, 1, of the log 1 pass, 1')
  disk.flipBit(row, 3)
  expect(await scrub(store, log)).toMatch(/^The data store of this node is damaged/)
  disk.dropKey(position)
  expect(await scrub(store, log)).toMatch(/^The data store of this node is damaged/)
})

test('DISK-16: the scrub reports a damaged log after it has read the data store, and goes on', async () => {
  const [, store] = await diskWith(state, row, position)
  const [disk, log] = await diskWith(row)
  disk.flipBit(row, 3)
  expect(await scrub(store, log)).toBe(
    '1 pass, 1, log damaged: a block does not match its checksum, of the log 1 pass, 1',
  )
})

test('DISK-16: a log that cannot be read for another reason is no damage, and ends nothing', async () => {
  const [, store] = await diskWith(state, row, position)
  const [, log] = await diskWith(row)
  await log.close()
  expect(await scrub(store, log)).toBe('1 pass, 1, of the log 0 pass, 0')
})

test('DISK-15: a pass that an operator begins joins the one under way, and else begins at once', async () => {
  const [, store] = await diskWith(state, row, position)
  const [, log] = await diskWith(row)
  const clock = new HandClock()
  const scrubber = new Scrubber({
    ...{ store, log: new OrderedJournal(log), clock, trace: silentTrace },
    limits: { scrubBytesPerSecond: 1_000_000_000, scrubPauseMs: 60_000 },
    ...{ foreground: () => 0, onLogDamaged: () => undefined },
    onFailed: (error) => {
      throw new Error('it failed', { cause: error })
    },
  })
  const passes = (): readonly number[] => {
    const { scrubPasses, logScrubPasses } = scrubber.figures
    return [scrubPasses, logScrubPasses]
  }
  scrubber.start()
  expect(scrubber.isUnderWay).toBe(true)
  await scrubber.now()
  expect([scrubber.isUnderWay, passes()]).toEqual([false, [1, 1]])
  await Promise.all([scrubber.now(), scrubber.now()])
  expect(passes()).toEqual([2, 2])
  clock.pass(59_999)
  expect(scrubber.isUnderWay).toBe(false)
  clock.pass(1)
  expect([scrubber.isUnderWay, scrubber.figures.scrubbedPart]).toEqual([true, 0])
  await scrubber.now()
  scrubber.stop()
  await scrubber.now()
  expect(passes()).toEqual([3, 3])
})
