/** A progress bar on stderr, when that is a terminal; silence otherwise. */
import { SingleBar } from 'cli-progress'
import { grouped } from './output.ts'

export interface Progress {
  update(bytesRead: number, rowsDone: number): void
  stop(): void
}

const silent: Progress = { update: () => undefined, stop: () => undefined }

export function progressBar(bytesTotal: number, startedMs: number): Progress {
  if (!process.stderr.isTTY) return silent
  const bar = new SingleBar({
    stream: process.stderr,
    format: '{bar} {percentage}% · {rows} rows · {rate} rows/s · {eta_formatted} left',
    hideCursor: true,
    clearOnComplete: true,
  })
  bar.start(Math.max(1, bytesTotal), 0, { rows: '0', rate: '0' })
  return {
    update: (bytesRead, rowsDone) => {
      const seconds = (performance.now() - startedMs) / 1000
      const rate = seconds > 0 ? rowsDone / seconds : 0
      bar.update(bytesRead, { rows: grouped(rowsDone), rate: grouped(rate) })
    },
    stop: () => bar.stop(),
  }
}
