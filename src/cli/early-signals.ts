/**
 * Signals that come while the files of a command are still being loaded. Without a listener, the system would end the
 * process without a word. Nothing has begun by then, so the process ends at once, and says so.
 */

const signals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const
const longVerbs = ['node', 'gateway', 'demo']

function endAtOnce(signal: NodeJS.Signals): void {
  process.stderr.write(`${signal} came before anything had started: ended\n`)
  process.exit(0)
}

/** For a command that runs until a signal stops it. */
export function listenEarly(verb: string | undefined): void {
  if (verb === undefined || !longVerbs.includes(verb)) return
  for (const signal of signals) process.on(signal, endAtOnce)
}

/** The command listens itself from now on. */
export function listenNoMore(): void {
  for (const signal of signals) process.off(signal, endAtOnce)
}
