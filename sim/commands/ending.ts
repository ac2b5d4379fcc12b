/** The end of a long run by a signal: its own processes end with it. */

const exitCodeBySignal = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const

/** Signals that ask this process to end end the run, which then takes what it started with it. */
export class Ending {
  readonly #abort = new AbortController()
  readonly #onAgain: () => void
  #by: keyof typeof exitCodeBySignal | undefined

  /**
   * `onAgain`: called at a second signal, when the user does not want to wait for the end under
   * way.
   */
  constructor(onAgain: () => void = () => undefined) {
    this.#onAgain = onAgain
    for (const name of signalNames) process.on(name, this.#end)
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  get by(): string | undefined {
    return this.#by
  }

  get exitCode(): number {
    return this.#by === undefined ? 0 : exitCodeBySignal[this.#by]
  }

  forget(): void {
    for (const name of signalNames) process.off(name, this.#end)
  }

  readonly #end = (name: NodeJS.Signals): void => {
    if (this.#by !== undefined) return this.#onAgain()
    this.#by = signalNames.find((one) => one === name)
    this.#abort.abort(new Error(`ended by ${name}`))
  }
}

const signalNames = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
