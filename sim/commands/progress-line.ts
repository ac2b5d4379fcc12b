/**
 * Progress on stderr: one line that changes on a terminal; elsewhere a line whenever the topic
 * does.
 */

export class ProgressLine {
  readonly #isTerminal: boolean = process.stderr.isTTY
  readonly #isQuiet: boolean
  #topic = ''

  constructor(isQuiet = false) {
    this.#isQuiet = isQuiet
  }

  show(topic: string, text: string): void {
    if (this.#isQuiet) return
    if (this.#isTerminal) process.stderr.write(`\r\u001b[K${text.slice(0, 100)}`)
    else if (topic !== this.#topic) process.stderr.write(`${text}\n`)
    this.#topic = topic
  }

  end(): void {
    if (this.#isTerminal && !this.#isQuiet) process.stderr.write('\r\u001b[K')
  }
}
