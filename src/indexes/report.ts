/** Reports of a build, a comparison or a drop of an index on itself. */
import { StoreError } from '../base/errors.ts'
import type { IndexPlace } from './state.ts'

export const upkeepPhases = [
  'waiting',
  'counting',
  'filling',
  'relaying',
  'comparing',
  'clearing',
] as const

export interface Progress {
  readonly phase: (typeof upkeepPhases)[number]
  /** Seconds while it waits; groups or shards otherwise. */
  readonly done: number
  /** Absent while it is not known. */
  readonly total?: number
}

/**
 * Wraps the function by which a caller hears of progress. Where it is an async function that fails, the next
 * call of this throws its error: the work ends with it, and the process does not.
 */
export function telling(
  onProgress: (progress: Progress) => unknown = () => undefined,
): (progress: Progress) => void {
  let failure: { readonly error: unknown } | undefined
  return (progress) => {
    if (failure !== undefined) throw failure.error
    const told = onProgress(progress)
    if (!(told instanceof Promise)) return
    told.catch((error: unknown) => {
      failure ??= { error }
    })
  }
}

/**
 * Does the work with options by whose `onProgress` the caller hears nothing more once the work has ended: beside a part that
 * fails others are under way, which go on to their end.
 */
export async function whileAtWork<
  Options extends { readonly onProgress?: (progress: Progress) => unknown },
  Result,
>(options: Options, work: (told: Options) => Promise<Result>): Promise<Result> {
  const { onProgress } = options
  if (onProgress === undefined) return work(options)
  let isOver = false
  const tell = (progress: Progress): unknown => (isOver ? undefined : onProgress(progress))
  try {
    return await work({ ...options, onProgress: tell })
  } finally {
    isOver = true
  }
}

/** Faults listed; a longer report is of no help. */
export const indexFaultsMax = 1000

/** An entry that is not what its row says. */
export interface IndexFault {
  readonly kind: 'missing' | 'left-over' | 'other-content'
  readonly index: string
  /** The entry, in words; of an index over cells, the row's key. */
  readonly entry: string
}

/** The result of comparing an index with its rows, or with its cells. */
export interface ComparedRows {
  readonly rows: number
  /** At most `indexFaultsMax`. */
  readonly faults: readonly IndexFault[]
}

/** The same, of tables. */
export interface IndexReport extends ComparedRows {
  readonly entries: number
}

/** Why an index that is filled is not ready. */
export function notRight({ name, flags }: IndexPlace, faults: readonly IndexFault[]): StoreError {
  const [first] = faults
  const words = first === undefined ? '' : `, the first one ${first.kind}: ${first.entry}`
  const message = `index ${name} is filled, and not ready: ${faults.length} entries are not what their rows say${words}; trilithon index build ${flags} ${name} fills it again`
  return new StoreError('unavailable', message, { index: 'building' })
}
