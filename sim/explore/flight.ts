/** Messages in flight, what an action leads to, and the kinds of both that the searched graph tells apart (`model.ts`). */
import type { SentMessage } from './node-action.ts'
import type { Breach } from './observation.ts'
import type { ActionKind } from './state-vector.ts'

export interface Flight {
  readonly from: number
  readonly to: number
  readonly message: SentMessage
}

/** The result of an action. `vector` is valid until the next call. */
export interface Successor {
  readonly vector: number[]
  readonly breaches: readonly Breach[]
  readonly isHalted: boolean
}

export const answers: ReadonlySet<SentMessage['kind']> = new Set([
  ...(['accepted', 'promised', 'refused', 'highest', 'faulty'] as const),
  ...(['committed', 'invalidated', 'revoked'] as const),
])

export const settling: ReadonlySet<ActionKind> = new Set(['deliver', 'flush'])
export const restarts: ReadonlySet<ActionKind> = new Set(['crash', 'lose'])
