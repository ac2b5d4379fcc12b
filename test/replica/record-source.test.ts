/** The answers of the stores about a position whose record has left memory. */
import { expect, test } from 'vitest'
import { systemClock } from '../../src/adapters/system-clock.ts'
import { defaultLimits } from '../../src/base/limits.ts'
import { silentTrace } from '../../src/ports/trace.ts'
import { DataStore } from '../../src/store/data-store.ts'
import { StoredRecords } from '../../src/replica/record-source.ts'
import {
  accept,
  ballot,
  chosen,
  durable,
  FakeData,
  group,
  openLog,
  promise,
} from '../log/log-fixture.ts'
import { disks, onDisk } from '../store/stores.ts'

const name = group('a')
const options = { clock: systemClock, trace: silentTrace, limits: defaultLimits }

test('LIVE-6: records read ahead equal a load, until a write comes', () =>
  onDisk(disks[0]?.[1] ?? (() => Promise.reject(new Error('no disk'))), (ofLog) =>
    onDisk(disks[0]?.[1] ?? (() => Promise.reject(new Error('no disk'))), async (ofData) => {
      const log = await openLog(await ofLog.open())
      // Behind a hole, at 1.
      await durable(log, accept('a', 2, 0, 'two'), chosen('a', 2, 0), accept('a', 3, 0, 'three'))
      const source = new StoredRecords(log, await DataStore.open(await ofData.open(), options))
      const plain = source.load(name)
      expect([...plain.records.keys()]).toEqual([2, 3])
      const pieces = [...source.readAhead(name)].length
      expect(pieces).toBe(2)
      const ahead = source.load(name)
      expect(ahead).toEqual(plain)
      for (const _ of source.readAhead(name));
      await durable(log, promise('a', 3, 9))
      const { records } = source.load(name)
      expect(records.get(3)).toMatchObject({ acceptor: { promised: ballot(9) } })
    }),
  ))

test('LOG-6: a group whose state record is not shown any more is damaged, and not new', () =>
  onDisk(disks[0]?.[1] ?? (() => Promise.reject(new Error('no disk'))), (ofLog) =>
    onDisk(disks[0]?.[1] ?? (() => Promise.reject(new Error('no disk'))), async (ofData) => {
      const fake = new FakeData()
      const log = await openLog(await ofLog.open(), {}, fake)
      await durable(log, accept('a', 1, 0, 'one'), chosen('a', 1, 0))
      await fake.batch(log, ['a', 1])
      // As LevelDB shows it where a bit of its key has turned over: not at all.
      const source = new StoredRecords(log, await DataStore.open(await ofData.open(), options))
      expect(() => source.load(name)).toThrow('a state record is missing')
      expect(source.load(group('new')).state.position).toBe(0)
    }),
  ))

test('LOG-6: a look at a group whose snapshot is on its way to the disk finds no damage', () =>
  onDisk(disks[0]?.[1] ?? (() => Promise.reject(new Error('no disk'))), (ofLog) =>
    onDisk(disks[0]?.[1] ?? (() => Promise.reject(new Error('no disk'))), async (ofData) => {
      const log = await openLog(await ofLog.open())
      const data = await DataStore.open(await ofData.open(), options)
      const source = new StoredRecords(log, data)
      const state = Buffer.from('as the snapshot has it')
      const installed = {
        group: name,
        position: 8,
        state,
        topics: new Set<string>(),
        hash: undefined,
      }
      const isHere = data.install({ ...installed, horizonBefore: 0, horizon: 0 }, [])
      // The batch is put together, and not durable.
      log.onBatch([{ group: name, position: 8, isSnapshot: true }])
      expect(source.load(name).state.position).toBe(0)
      await isHere
    }),
  ))
