/** How far a check of a stopped node has come, and where its caller may end it. */
import { StoreError } from '../base/errors.ts'
import type { CheckPace } from '../ports/storage.ts'
import { tellDamage, type Findings, type StoreName } from './finding.ts'

/** The part of a store that the check reads, the share of the work that is done, 0 to 1, and the bytes read for it. */
export type OnProgress = (doing: string, part: number, bytes: number) => void

export interface WorkOptions {
  readonly onProgress: OnProgress
  /** The check then ends with `closed`. */
  readonly isOver: () => boolean
}

/** How far the check has come: each store is read twice, its files and what they hold. */
export class VerifyWork {
  readonly #options: WorkOptions
  readonly #total: number
  readonly #findings: Findings
  /** Of the steps that are over. */
  #done = 0
  #bytes = 0

  constructor(options: WorkOptions, findings: Findings, fileBytes: number) {
    this.#options = options
    this.#findings = findings
    this.#total = Math.max(1, 2 * fileBytes)
  }

  async filesOf(
    store: StoreName,
    bytes: number,
    check: (pace: CheckPace) => Promise<void>,
  ): Promise<void> {
    const before = this.#bytes
    await check({
      bytesPerSecond: () => Number.POSITIVE_INFINITY,
      isOver: this.#options.isOver,
      onProgress: (read) => {
        this.#bytes = before + read
        this.#tell(`files of ${store}/`, Math.min(read, bytes))
      },
      onDamage: (what) => tellDamage(this.#findings, store, what),
    })
    this.#done += bytes
  }

  /** To be called with the bytes of each flush or chunk of rows: files hold them compressed, or with others. */
  contentsOf(store: StoreName, fileBytes: number): (bytes: number) => void {
    const before = this.#done
    this.#done += fileBytes
    let read = 0
    return (bytes) => {
      if (this.#options.isOver()) throw new StoreError('closed', 'the check was ended')
      read += bytes
      this.#bytes += bytes
      const part = before + Math.min(read, fileBytes)
      this.#options.onProgress(`${store}/`, part / this.#total, this.#bytes)
    }
  }

  #tell(doing: string, within: number): void {
    this.#options.onProgress(doing, (this.#done + within) / this.#total, this.#bytes)
  }
}
