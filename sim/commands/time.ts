/** Real time, for commands that are given so much of it. */

/** Says whether so many seconds have passed since now. */
export function timer(seconds: number): () => boolean {
  const secondsSpent = stopwatch()
  return () => secondsSpent() > seconds
}

/** Says how many seconds have passed since now. */
export function stopwatch(): () => number {
  const startedAt = process.hrtime.bigint()
  return () => Number(process.hrtime.bigint() - startedAt) / 1e9
}
