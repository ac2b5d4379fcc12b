/**
 * Looks each two seconds for the data folder that a node opened. A process goes on writing to removed files,
 * and the next start does not find them: such a node must acknowledge nothing more.
 */
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { JournalKind } from '../adapters/journal-kind.ts'
import { StoreError } from '../base/errors.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import { segmentEnding } from '../ports/segments.ts'

const pauseMs = 2_000

/**
 * A running node has these in its folder. LevelDB holds each LOCK open, so that no other file gets
 * its inode; a folder that is made anew may get that of the old one. Segment files have no LOCK: there
 * a log without any of them was removed.
 */
const parts = ['', 'log', 'data', 'data/LOCK', 'owner.json'] as const
const levelLock = 'log/LOCK'

export interface WatchedFolder {
  /** The node's. */
  readonly folder: string
  readonly logKind: JournalKind
}

interface Place {
  readonly part: string
  readonly device: bigint
  readonly inode: bigint
}

export class FolderWatch {
  readonly #folder: string
  readonly #logKind: JournalKind
  readonly #clock: Clock
  readonly #onLost: (reason: StoreError) => void
  readonly #places: readonly Place[]
  #timer: Timer | undefined
  #isStopped = false

  /** The folder must be open. `onLost` is called once, when it is no longer what it is now. */
  static async start(
    watched: WatchedFolder,
    clock: Clock,
    onLost: (reason: StoreError) => void,
  ): Promise<FolderWatch> {
    const { folder, logKind } = watched
    const all = logKind === 'leveldb' ? [...parts, levelLock] : parts
    const places = await Promise.all(all.map((part) => readPlace(folder, part)))
    return new FolderWatch(watched, clock, onLost, places)
  }

  private constructor(
    { folder, logKind }: WatchedFolder,
    clock: Clock,
    onLost: (reason: StoreError) => void,
    places: readonly Place[],
  ) {
    this.#folder = folder
    this.#logKind = logKind
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
    const found = await Promise.all([
      ...this.#places.map((place) => this.#findProblem(place)),
      this.#findEmptyLog(),
    ])
    if (this.#isStopped) return
    const problem = found.find((one) => one !== undefined)
    if (problem === undefined) return this.#lookLater()
    this.stop()
    const text =
      `${problem} while this node ran: what it writes from now on is lost, so it stops; ` +
      `put back the data folder ${this.#folder} that it had, or see "An old folder" in operating.md`
    this.#onLost(new StoreError('unavailable', text))
  }

  async #findEmptyLog(): Promise<string | undefined> {
    if (this.#logKind === 'leveldb') return undefined
    const log = join(this.#folder, 'log')
    // Where the folder is gone, its place tells; any other failure says nothing about the files.
    const names = await readdir(log).catch(() => undefined)
    if (names === undefined || names.some((name) => name.endsWith(segmentEnding))) return undefined
    return `the files in ${log} were removed`
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
