/** Ordered stores for these tests: simulated and on LevelDB, and a gate that holds, fails or loses writes. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openLevelStore } from '../../src/adapters/level-storage.ts'
import { SimDisk } from '../../sim/world/disk.ts'
import { StoreError } from '../../src/base/errors.ts'
import type { KeyValue, OrderedStore, Put, Range } from '../../src/ports/storage.ts'

/** A store that lasts over restarts. */
export interface Disk {
  /** Opens the store, and closes the one that was open before. */
  open(): Promise<OrderedStore>
  remove(): Promise<void>
}

export function simulatedDisk(): Promise<Disk> {
  const disk = new SimDisk({ schedule: (complete) => setImmediate(complete) })
  let opened: OrderedStore | undefined
  return Promise.resolve({
    open: async () => {
      await opened?.close()
      opened = disk.open()
      return opened
    },
    remove: async () => opened?.close(),
  })
}

export async function levelDisk(): Promise<Disk> {
  const folder = await mkdtemp(join(tmpdir(), 'replica-store-'))
  let opened: OrderedStore | undefined
  return {
    open: async () => {
      await opened?.close()
      opened = await openLevelStore(join(folder, 'store'))
      return opened
    },
    remove: async () => {
      await opened?.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

export const disks: readonly (readonly [string, () => Promise<Disk>])[] = [
  ['the simulated disk', simulatedDisk],
  ['LevelDB', levelDisk],
]

/** Runs of a property on this disk: a real one syncs each batch. */
export function runsOn(disk: string, runs: number): number {
  return disk === 'LevelDB' ? runs / 5 : runs
}

/** Runs `work` on a disk of its own. */
export async function onDisk(
  make: () => Promise<Disk>,
  work: (disk: Disk) => Promise<void>,
): Promise<void> {
  const disk = await make()
  try {
    await work(disk)
  } finally {
    await disk.remove()
  }
}

/** A store whose writes wait while it is held, and may be refused or silently lost. */
export class GatedStore implements OrderedStore {
  readonly #store: OrderedStore
  readonly #waiting: (() => void)[] = []
  #isHeld = false
  mode: 'write' | 'refuse' | 'lose' | 'damaged' = 'write'
  /** Writes begun so far, each with its puts. */
  readonly begun: (readonly Put[])[] = []
  /** Keys looked up so far. */
  readonly looked: Uint8Array[] = []
  /** Values read by key so far. */
  reads = 0
  /** Ranges scanned so far. */
  readonly scanned: Range[] = []
  #onBegun: () => void = () => undefined

  constructor(store: OrderedStore) {
    this.#store = store
  }

  hold(): void {
    this.#isHeld = true
  }

  release(): void {
    this.#isHeld = false
    for (const go of this.#waiting.splice(0)) go()
  }

  /** Resolves when the `count`-th write has begun. */
  async hasBegun(count: number): Promise<void> {
    while (this.begun.length < count) {
      await new Promise<void>((resolve) => {
        this.#onBegun = resolve
      })
    }
  }

  getSync(key: Uint8Array): Uint8Array | undefined {
    this.reads += 1
    this.looked.push(key)
    return this.#store.getSync(key)
  }

  async write(puts: readonly Put[]): Promise<void> {
    this.begun.push(puts)
    this.#onBegun()
    if (this.#isHeld) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    if (this.mode === 'refuse') throw new Error('the disk is gone')
    if (this.mode === 'damaged') throw new StoreError('corrupt', 'bad entry in block')
    if (this.mode === 'write') await this.#store.write(puts)
  }

  scan(range: Range): AsyncIterable<readonly KeyValue[]> {
    this.scanned.push(range)
    return this.#store.scan(range)
  }

  close(): Promise<void> {
    return this.#store.close()
  }
}

/** Flips the lowest bit of byte `at` of a stored value; counted from the end when negative. */
export async function flipBit(store: OrderedStore, key: Uint8Array, at: number): Promise<void> {
  const value = Buffer.from(store.getSync(key) ?? [])
  const index = at < 0 ? value.length + at : at
  value[index] = (value[index] ?? 0) ^ 1
  await store.write([{ key, value }])
}
