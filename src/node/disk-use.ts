/**
 * How much of the disk each store of a node takes: the sum of the lengths of its files, read from the file
 * system now and then. No caller waits for a reading: each gets the last result.
 *
 * A store may have a hundred thousand files. They are looked at a few at a time, so that no turn is
 * long, and the pause grows with the time that it took: one part in a hundred of a node's life.
 */
import { opendir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock, Timer } from '../ports/clock.ts'

const storeNames = ['log', 'data'] as const
/** Between two measurements, and how many times what the last one took. */
const pauseMsMin = 10_000
const pauseFactor = 100
/** Files that are looked at together. */
const filesAtOnce = 32

/** Bytes of `log/` and `data/`. */
export interface DiskUse {
  readonly logBytes: number
  readonly dataBytes: number
}

export class DiskWatch {
  readonly #folder: string
  readonly #clock: Clock
  #use: DiskUse | undefined
  #timer: Timer | undefined
  #isStopped = false

  /** `folder`: the node's, with both stores in it. Measures at once, and from then on. */
  constructor(folder: string, clock: Clock) {
    this.#folder = folder
    this.#clock = clock
    void this.#measure()
  }

  /** As it was found last; undefined before that. */
  get use(): DiskUse | undefined {
    return this.#use
  }

  stop(): void {
    this.#isStopped = true
    this.#timer?.cancel()
  }

  async #measure(): Promise<void> {
    const began = this.#clock.monotonicMs()
    const found = await this.#look()
    if (this.#isStopped) return
    this.#use = found ?? this.#use
    const pauseMs = Math.max(pauseMsMin, pauseFactor * (this.#clock.monotonicMs() - began))
    this.#timer = this.#clock.setTimer(pauseMs, () => void this.#measure())
  }

  async #look(): Promise<DiskUse | undefined> {
    try {
      const [logBytes = 0, dataBytes = 0] = await Promise.all(
        storeNames.map((name) => countBytes(join(this.#folder, name))),
      )
      return { logBytes, dataBytes }
    } catch {
      // No file may be opened just now, or a folder is being put aside: the next look says more.
      return undefined
    }
  }
}

/** Of the files in a folder, and in those within it. `isWithin`: it is one of those. */
async function countBytes(folder: string, isWithin = false): Promise<number> {
  let bytes = 0
  let names: string[] = []
  const add = async (): Promise<void> => {
    const sizes = names.map((name) => readSize(join(folder, name), isWithin))
    for (const size of await Promise.all(sizes)) bytes += size
    names = []
  }
  for await (const entry of await opendir(folder, { bufferSize: filesAtOnce })) {
    names.push(entry.name)
    if (names.length === filesAtOnce) await add()
  }
  await add()
  return bytes
}

async function readSize(path: string, isWithin: boolean): Promise<number> {
  try {
    const found = await stat(path)
    if (found.isDirectory()) return await countBytes(path, true)
    // A second name of a table (`../adapters/level-kept.ts`) takes room once the store has removed the first one.
    return isWithin && found.nlink > 1 ? 0 : found.size
  } catch (error) {
    // The store has removed it since it was listed.
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return 0
    throw error
  }
}
