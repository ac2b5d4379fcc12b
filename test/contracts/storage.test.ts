/** The storage contract, on LevelDB and on the simulated disk. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SimDisk } from '../../sim/world/disk.ts'
import { openLevelStore } from '../../src/adapters/level-storage.ts'
import { storageContract, type StorePlace } from './storage.ts'

async function levelPlace(): Promise<StorePlace> {
  const folder = await mkdtemp(join(tmpdir(), 'trilithon-store-'))
  return {
    open: () => openLevelStore(join(folder, 'store')),
    remove: () => rm(folder, { recursive: true, force: true }),
  }
}

function simulatedPlace(): Promise<StorePlace> {
  const disk = new SimDisk({ schedule: (complete) => setImmediate(complete) })
  return Promise.resolve({
    open: () => Promise.resolve(disk.open()),
    remove: () => Promise.resolve(),
  })
}

storageContract('LevelDB', levelPlace)
storageContract('LevelDB, switching tables all the time', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'trilithon-store-'))
  return {
    open: () => openLevelStore(join(folder, 'store'), { writeBufferBytes: 64 * 1024 }),
    remove: () => rm(folder, { recursive: true, force: true }),
  }
})
storageContract('the simulated disk', simulatedPlace)
