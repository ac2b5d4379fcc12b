/**
 * A node as a process runs it: where a failure is one that a start heals, a new start follows in the same process. A
 * supervisor need not start the process again.
 */
import { toError } from '../store/damage.ts'
import { Daemon, type DaemonOptions } from './daemon.ts'

export class LastingDaemon {
  /** The node must stop. Called once. */
  onFailure: (reason: Error) => void = () => undefined
  readonly #options: DaemonOptions
  readonly #ending = new AbortController()
  #daemon: Daemon | undefined
  #starting: Promise<void> = Promise.resolve()

  /** Resolves and rejects as `Daemon.start` does. */
  static async start(options: Omit<DaemonOptions, 'signal'>): Promise<LastingDaemon> {
    const lasting = new LastingDaemon(options)
    await lasting.#start()
    return lasting
  }

  private constructor(options: Omit<DaemonOptions, 'signal'>) {
    this.#options = { ...options, signal: this.#ending.signal }
  }

  async #start(): Promise<void> {
    const daemon = await Daemon.start(this.#options)
    this.#daemon = daemon
    daemon.onFailure = (reason) => this.#onFailure(daemon, reason)
  }

  #onFailure(daemon: Daemon, reason: Error): void {
    if (!daemon.healsByStart(reason)) return this.onFailure(reason)
    this.#starting = this.#startAgain(daemon)
  }

  async #startAgain(daemon: Daemon): Promise<void> {
    try {
      await daemon.stop()
      this.#daemon = undefined
      if (!this.#ending.signal.aborted) await this.#start()
    } catch (error) {
      if (!this.#ending.signal.aborted) this.onFailure(toError(error))
    }
  }

  /** Ends in order, also a start that asks the others for a seat. */
  async stop(): Promise<void> {
    this.#ending.abort()
    await this.#starting
    await this.#daemon?.stop()
  }
}
