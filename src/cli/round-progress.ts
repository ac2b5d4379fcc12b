/** How far rounds at nodes are, on stderr: a line that changes on a terminal, else one now and then. */
import { say } from './output.ts'

export interface ProgressLine {
  show(text: string): void
  end(): void
}

/** Between two lines where no terminal is. */
const linesEveryMs = 5_000
const clearLine = '\r\u001B[2K'

export function progressLine(
  isTerminal: boolean = process.stderr.isTTY,
  nowMs: () => number = () => performance.now(),
): ProgressLine {
  let told = ''
  let toldMs = Number.NEGATIVE_INFINITY
  return {
    show: (text) => {
      if (text === told) return
      if (isTerminal) {
        // A line that is longer than the terminal is wide could not be cleared.
        process.stderr.write(clearLine + text.slice(0, process.stderr.columns - 1))
      } else {
        if (nowMs() - toldMs < linesEveryMs) return
        say(text)
      }
      told = text
      toldMs = nowMs()
    },
    end: () => {
      if (isTerminal && told !== '') process.stderr.write(clearLine)
    },
  }
}
