/** Closed loops of a load: each of `clients` waits for its answer before it asks again. */

export interface LoadResult {
  readonly operations: number
  readonly failures: number
  readonly elapsedMs: number
  readonly p50Ms: number
  readonly p95Ms: number
  readonly p99Ms: number
  readonly maxMs: number
}

/** Runs the loops for `seconds`; an operation that rejects is a failure and has no latency. */
export async function runLoops(
  clients: number,
  seconds: number,
  operation: () => Promise<unknown>,
): Promise<LoadResult> {
  const latenciesMs: number[] = []
  let failures = 0
  const start = performance.now()
  const end = start + seconds * 1000
  async function loop(): Promise<void> {
    for (let began = start; began < end; began = performance.now()) {
      try {
        await operation()
        latenciesMs.push(performance.now() - began)
      } catch {
        // Counted and shown: a bench with failures is no bench.
        failures += 1
      }
    }
  }
  await Promise.all(Array.from({ length: clients }, loop))
  return resultOf(latenciesMs, failures, performance.now() - start)
}

/** Sorts what it is given. */
export function resultOf(latenciesMs: number[], failures: number, elapsedMs: number): LoadResult {
  latenciesMs.sort((a, b) => a - b)
  const last = latenciesMs.length - 1
  const at = (share: number): number =>
    latenciesMs[Math.min(last, Math.floor(latenciesMs.length * share))] ?? 0
  const percentiles = { p50Ms: at(0.5), p95Ms: at(0.95), p99Ms: at(0.99), maxMs: at(1) }
  return { operations: latenciesMs.length, failures, elapsedMs, ...percentiles }
}
