/**
 * The load of `bench scale`: commits and current reads of random rows of random groups, at one site
 * after another, a slice of seconds each.
 *
 * Of all groups, most of which a node of many has not in memory; and of as many as the smallest site
 * has, all of which were read just before. The former is what users see who all come once; the latter
 * leaves the size alone, with as much to be kept in memory everywhere.
 */
import { runLoops } from '../load.ts'
import { forEachBelow, openClient } from '../common.ts'
import { Accounts } from './accounts.ts'
import type { Site } from './site.ts'

export const works = ['commits', 'reads', 'commitsOfSome', 'readsOfSome'] as const
export type Work = (typeof works)[number]

export interface SliceOptions {
  readonly clients: number
  readonly seconds: number
  readonly signal: AbortSignal
}

/** One kind of work at one site in one round. */
export interface Slice {
  readonly round: number
  readonly groups: number
  readonly work: Work
  readonly operations: number
  readonly failures: number
  /** Over the time until everything was where it stays. */
  readonly perSecond: number
  /** Microseconds of the node's processor time for an operation, what follows upon it included. */
  readonly cpuMicros: number
  readonly p50Ms: number
  readonly p99Ms: number
}

/** A client at a site that has been started. */
export class Worker {
  readonly site: Site
  readonly #accounts: Accounts
  /** How many groups, evenly spread, the client works on where it is some of them. */
  readonly #some: number
  readonly #close: () => Promise<void>

  private constructor(site: Site, some: number, accounts: Accounts, close: () => Promise<void>) {
    this.site = site
    this.#some = some
    this.#accounts = accounts
    this.#close = close
  }

  static async open(site: Site, some: number, signal: AbortSignal): Promise<Worker> {
    const client = await openClient([site.url], signal)
    const close = (): Promise<void> => client.close()
    try {
      return new Worker(site, some, await Accounts.open(client), close)
    } catch (error) {
      await close()
      throw error
    }
  }

  close(): Promise<void> {
    return this.#close()
  }

  /** Runs one slice, and waits for what follows upon it. */
  async slice(work: Work, options: SliceOptions): Promise<Omit<Slice, 'round'>> {
    if (work.endsWith('OfSome')) await this.#readSome(options)
    const { site } = this
    const before = await site.cpu()
    const result = await this.load(work, options)
    const drainSeconds = await site.settled()
    const { operations, failures, elapsedMs, p50Ms, p99Ms } = result
    return {
      ...{ groups: site.groups, work, operations, failures, p50Ms, p99Ms },
      perSecond: operations / (elapsedMs / 1000 + drainSeconds),
      cpuMicros: (((await site.cpu()) - before) / operations) * 1e6,
    }
  }

  /** The load alone. */
  load(work: Work, { clients, seconds, signal }: SliceOptions): ReturnType<typeof runLoops> {
    const draw = work.endsWith('OfSome') ? () => this.#oneOfSome() : () => this.#oneOfAll()
    const run = work.startsWith('commits')
      ? () => this.#accounts.put(draw(), this.#oneRow(), 1)
      : () => this.#accounts.read(draw(), this.#oneRow())
    return runLoops(clients, seconds, run, signal)
  }

  /** Each row of the groups that are worked on, once. */
  async #readSome({ clients, signal }: SliceOptions): Promise<void> {
    const { rowsPerGroup } = this.site.size
    await forEachBelow(this.#some * rowsPerGroup, clients, signal, (n) =>
      this.#accounts.read(this.#nthOfSome(Math.floor(n / rowsPerGroup)), n % rowsPerGroup),
    )
    await this.site.settled()
  }

  #oneRow(): number {
    return Math.floor(Math.random() * this.site.size.rowsPerGroup)
  }

  #oneOfAll(): number {
    return Math.floor(Math.random() * this.site.groups)
  }

  #oneOfSome(): number {
    return this.#nthOfSome(Math.floor(Math.random() * this.#some))
  }

  #nthOfSome(n: number): number {
    return Math.floor((n * this.site.groups) / this.#some)
  }
}
