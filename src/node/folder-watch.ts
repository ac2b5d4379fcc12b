/**
 * Looks each two seconds for the data folder that a node opened. A process goes on writing to removed files,
 * and the next start does not find them: such a node must acknowledge nothing more.
 */
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { StoreError } from '../base/errors.ts'
import type { Clock, Timer } from '../ports/clock.ts'

const pauseMs = 2_000

/**
 * A running node has these in its folder. LevelDB holds each LOCK open, so that no other file gets
 * its inode; a folder that is made anew may get that of the old one.
 */
const parts = ['', 'log', 'log/LOCK', 'data', 'data/LOCK', 'owner.json'] as const

interface Place {
  readonly part: string
  readonly device: bigint
  readonly inode: bigint
}

export class FolderWatch {
  readonly #folder: string
  readonly #clock: Clock
  readonly #onLost: (reason: StoreError) => void
  readonly #places: readonly Place[]
  #timer: Timer | undefined
  #isStopped = false

  /** `folder` must be open. `onLost` is called once, when it is no longer what it is now. */
  static async start(
    folder: string,
    clock: Clock,
    onLost: (reason: StoreError) => void,
  ): Promise<FolderWatch> {
    const places = await Promise.all(parts.map((part) => readPlace(folder, part)))
    return new FolderWatch(folder, clock, onLost, places)
  }

  private constructor(
    folder: string,
    clock: Clock,
    onLost: (reason: StoreError) => void,
    places: readonly Place[],
  ) {
    this.#folder = folder
    this.#clock = clock
    this.#onLost = onLost
    this.#places = places
    this.#lookLater()
  }

  stop(): void {
    this.#isStopped = true
    this.#timer?.cancel()
  }

  #lookLater(): void {
    this.#timer = this.#clock.setTimer(pauseMs, () => void this.#look())
  }

  async #look(): Promise<void> {
    const found = await Promise.all(this.#places.map((place) => this.#findProblem(place)))
    if (this.#isStopped) return
    const problem = found.find((one) => one !== undefined)
    if (problem === undefined) return this.#lookLater()
    this.stop()
    const text =
      `${problem} while this node ran: what it writes from now on is lost, so it stops; ` +
      `put back the data folder ${this.#folder} that it had, or see "An old folder" in operating.md`
    this.#onLost(new StoreError('unavailable', text))
  }

  async #findProblem({ part, device, inode }: Place): Promise<string | undefined> {
    try {
      const now = await readPlace(this.#folder, part)
      if (now.device === device && now.inode === inode) return undefined
      return `${join(this.#folder, part)} was replaced by another one`
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? error.code : undefined
      // Another failure, such as no descriptor left, says nothing about the folder.
      if (code !== 'ENOENT' && code !== 'ENOTDIR') return undefined
      return `${join(this.#folder, part)} was removed`
    }
  }
}

async function readPlace(folder: string, part: string): Promise<Place> {
  const { dev: device, ino: inode } = await stat(join(folder, part), { bigint: true })
  return { part, device, inode }
}
