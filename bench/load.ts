/** Closed loops of a load: each of `clients` waits for its answer before it asks again. */
import { StoreError } from '../src/base/errors.ts'

export interface LoadResult {
  readonly operations: number
  readonly failures: number
  readonly elapsedMs: number
  readonly p50Ms: number
  readonly p95Ms: number
  readonly p99Ms: number
  readonly maxMs: number
}

/** One operation of a load that has several kinds of them. */
export interface Drawn<Kind extends string> {
  readonly kind: Kind
  readonly run: () => Promise<unknown>
}

/** The result of a load of several kinds. */
export interface MixedResult<Kind extends string> {
  readonly elapsedMs: number
  readonly byKind: ReadonlyMap<Kind, LoadResult>
  /** Failures by the code of their error, or what it says where it has none. */
  readonly failures: Readonly<Record<string, number>>
}

/** Runs the loops for `seconds`; an operation that rejects is a failure and has no latency. */
export async function runLoops(
  clients: number,
  seconds: number,
  operation: () => Promise<unknown>,
  signal?: AbortSignal,
): Promise<LoadResult> {
  const drawn = { kind: 'only', run: operation } as const
  const { elapsedMs, byKind } = await runMixed(clients, seconds, () => drawn, signal)
  return byKind.get('only') ?? summarizeLoad([], 0, elapsedMs)
}

/** The same with operations of several kinds, drawn one by one; each kind has its own result. */
export async function runMixed<Kind extends string>(
  clients: number,
  seconds: number,
  draw: () => Drawn<Kind>,
  signal?: AbortSignal,
): Promise<MixedResult<Kind>> {
  const tallies = new Map<Kind, { readonly latenciesMs: number[]; failures: number }>()
  const failures: Record<string, number> = {}
  const start = performance.now()
  const end = start + seconds * 1000
  async function loop(): Promise<void> {
    for (let began = start; began < end; began = performance.now()) {
      if (signal?.aborted === true) return
      const { kind, run } = draw()
      const tally = tallies.get(kind) ?? { latenciesMs: [], failures: 0 }
      tallies.set(kind, tally)
      try {
        await run()
        tally.latenciesMs.push(performance.now() - began)
      } catch (error) {
        // Counted and shown: a bench with failures is no bench.
        tally.failures += 1
        const reason = readFailure(error)
        failures[reason] = (failures[reason] ?? 0) + 1
      }
    }
  }
  await Promise.all(Array.from({ length: clients }, loop))
  const elapsedMs = performance.now() - start
  const results = [...tallies].map(
    ([kind, tally]) => [kind, summarizeLoad(tally.latenciesMs, tally.failures, elapsedMs)] as const,
  )
  return { elapsedMs, byKind: new Map(results), failures }
}

function readFailure(error: unknown): string {
  if (error instanceof StoreError) return error.code
  return error instanceof Error ? error.message : 'no reason was given'
}

export function summarizeLoad(
  latenciesMs: readonly number[],
  failures: number,
  elapsedMs: number,
): LoadResult {
  // Without a function to compare by, which takes several times as long: this is the client's CPU.
  const sorted = Float64Array.from(latenciesMs).sort()
  const last = sorted.length - 1
  const at = (share: number): number =>
    sorted[Math.min(last, Math.floor(sorted.length * share))] ?? 0
  const percentiles = { p50Ms: at(0.5), p95Ms: at(0.95), p99Ms: at(0.99), maxMs: at(1) }
  return { operations: sorted.length, failures, elapsedMs, ...percentiles }
}
