/**
 * Disks that are lost for good: every now and then a daemon is killed, its data folder goes, and an empty store takes
 * its place, by the request that `trilithon nodes replace` makes. Other faults strike meanwhile, also the newcomer.
 */
import { mkdir, rm } from 'node:fs/promises'
import { SeededRandom } from '../world/random.ts'
import type { Daemon } from './daemon.ts'
import { pause } from './workload.ts'

export interface ReplacementsParts {
  readonly seed: number
  readonly daemons: readonly Daemon[]
  /** From the end of one replacement to the next loss, on average. */
  readonly everySeconds: number
  /** Of the daemon of that name. */
  dataFolder(id: string): string
  readonly onReplaced?: (count: number) => void
}

interface Change {
  readonly number: number
  readonly phase: string
  readonly node?: string
  readonly seat?: number
}

const askMs = 5_000
const pollMs = 200
/** Of one replacement, while other faults strike and the machine is busy. */
const replacedMsMax = 180_000

export class Replacements {
  /** Stores that were replaced. */
  count = 0
  readonly #parts: ReplacementsParts
  readonly #random: SeededRandom
  readonly #ending = new AbortController()
  #work: Promise<string | undefined> = Promise.resolve(undefined)
  #isAbandoned = false

  constructor(parts: ReplacementsParts) {
    this.#parts = parts
    this.#random = new SeededRandom(`${parts.seed}/replacements`)
  }

  start(): void {
    this.#work = this.#run()
  }

  /** Begins no further one. Resolves when the one under way is done, with the problem in words where it could not be. */
  end(): Promise<string | undefined> {
    this.#ending.abort()
    return this.#work
  }

  /** Resolves soon, whatever is under way. */
  async abandon(): Promise<void> {
    this.#isAbandoned = true
    await this.end()
  }

  async #run(): Promise<string | undefined> {
    const { daemons, everySeconds, onReplaced } = this.#parts
    const { signal } = this.#ending
    for (;;) {
      await pause(this.#random.exponential(everySeconds * 1_000), signal)
      if (signal.aborted) return undefined
      const up = daemons.filter(({ isUp }) => isUp)
      if (up.length === 0) continue
      const lost = this.#random.pick(up)
      if (!(await this.#replace(lost))) {
        return `${lost.id} lost its disk, and was not replaced within ${replacedMsMax / 1_000} s`
      }
      this.count += 1
      onReplaced?.(this.count)
    }
  }

  /** False: it took too long. */
  async #replace(lost: Daemon): Promise<boolean> {
    const folder = this.#parts.dataFolder(lost.id)
    const untilMs = performance.now() + replacedMsMax
    lost.hold()
    await lost.kill()
    await rm(folder, { recursive: true, force: true })
    await mkdir(folder)
    const change = await this.#until(untilMs, () => this.#begin(lost.id))
    if (change === undefined) return false
    lost.release({ TRILITHON_SEAT: String(change.seat) })
    lost.start()
    return (await this.#until(untilMs, () => this.#findDone(lost, change.number))) ?? false
  }

  async #until<Found>(
    untilMs: number,
    look: () => Promise<Found | undefined>,
  ): Promise<Found | undefined> {
    while (performance.now() < untilMs && !this.#isAbandoned) {
      const found = await look()
      if (found !== undefined) return found
      await pause(pollMs)
    }
    return undefined
  }

  /** Asks one node after the other: any may be down, cut off, or know of the change before as not done yet. */
  async #begin(id: string): Promise<Change | undefined> {
    for (const url of this.#urls(id)) {
      const answer = await ask(`${url}/members/replace?node=${id}`, 'POST')
      if (answer === undefined || !('seat' in answer) || answer.node !== id) continue
      return answer
    }
    return undefined
  }

  /** A later change may have followed: an operator's, never another one of this run. */
  async #findDone(lost: Daemon, number: number): Promise<true | undefined> {
    for (const url of this.#urls(lost.id)) {
      const answer = await ask(`${url}/members`, 'GET')
      if (answer !== undefined && answer.number === number && answer.phase === 'done') return true
    }
    return undefined
  }

  #urls(id: string): readonly string[] {
    const others = this.#parts.daemons.filter((one) => one.id !== id && one.isUp)
    return others.flatMap(({ place }) => place.url ?? [])
  }
}

/** The change that the answer names; undefined where no answer came, or a refusal. */
async function ask(url: string, method: 'GET' | 'POST'): Promise<Change | undefined> {
  try {
    const answer = await fetch(url, { method, signal: AbortSignal.timeout(askMs) })
    if (!answer.ok) return undefined
    const told: Change & { readonly change?: Change } = JSON.parse(await answer.text())
    return told.change ?? told
  } catch {
    // The node is down, or does not answer in time.
    return undefined
  }
}
