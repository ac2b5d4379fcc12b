/** Real time, for commands with a time limit. */

/** Returns a function that says whether this many seconds have passed since now. */
export function timer(seconds: number): () => boolean {
  const secondsSpent = stopwatch()
  return () => secondsSpent() > seconds
}

/** Says how many seconds have passed since now. */
export function stopwatch(): () => number {
  const startedAt = process.hrtime.bigint()
  return () => Number(process.hrtime.bigint() - startedAt) / 1e9
}
