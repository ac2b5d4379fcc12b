/** How far a long look into a folder has come: a bar on a terminal, else a line now and then. Always on stderr. */
import { SingleBar } from 'cli-progress'
import { byteText, duration, say } from './output.ts'

export interface LookProgress {
  /** `part` of all, 0 to 1; `bytes` read so far. */
  update(doing: string, part: number, bytes: number): void
  stop(): void
}

/** Between two lines where no terminal is. */
const linesEveryMs = 10_000
const barEveryMs = 100
const ticks = 1_000

export function lookProgress(
  isTerminal: boolean = process.stderr.isTTY,
  nowMs: () => number = () => performance.now(),
): LookProgress {
  const startedMs = nowMs()
  const bar = isTerminal ? makeBar() : undefined
  let toldMs = startedMs
  return {
    update: (doing, part, bytes) => {
      const ms = nowMs()
      if (ms - toldMs < (bar === undefined ? linesEveryMs : barEveryMs)) return
      toldMs = ms
      const left = part > 0 ? duration(((ms - startedMs) * (1 - part)) / part) : 'some time'
      const percent = Math.floor(100 * part)
      if (bar === undefined) say(`${doing}: ${byteText(bytes)} read, ${percent} %, ${left} left`)
      else bar.update(Math.floor(ticks * part), { doing, bytes: byteText(bytes), left })
    },
    stop: () => bar?.stop(),
  }
}

/** How far passes of unknown length have come: a line now and then, on stderr. */
export function passProgress(
  nowMs: () => number = () => performance.now(),
): (doing: string, bytes: number) => void {
  let toldMs = nowMs()
  return (doing, bytes) => {
    if (nowMs() - toldMs < linesEveryMs) return
    toldMs = nowMs()
    say(`${doing}: ${byteText(bytes)} read`)
  }
}

function makeBar(): SingleBar {
  const bar = new SingleBar({
    stream: process.stderr,
    format: '{bar} {percentage}% · {doing} · {bytes} read · {left} left',
    hideCursor: true,
    clearOnComplete: true,
  })
  bar.start(ticks, 0, { doing: '', bytes: byteText(0), left: 'some time' })
  return bar
}
