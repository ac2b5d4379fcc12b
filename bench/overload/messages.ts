/** The messages to a sender and from it, over its channel to the process that began it. */

export interface ClosedLoad {
  readonly kind: 'closed'
  /** Puts under way; each that ends is followed by another one. */
  readonly underWay: number
  readonly ms: number
}

export interface OpenLoad {
  readonly kind: 'open'
  readonly perSecond: number
  /** Before it counts: queues fill. */
  readonly fillMs: number
  readonly ms: number
  /** The load that it offers after that, and for how long. */
  readonly afterPerSecond: number
  readonly afterMs: number
}

export type Load = ClosedLoad | OpenLoad

/** How the puts ended that the sender began while it counted. */
export interface Ends {
  sent: number
  /** Acknowledged while it counted, and after it, whenever the sender began them. */
  ok: number
  okLater: number
  refused: number
  /** By code. */
  readonly others: Record<string, number>
  readonly tookMs: number[]
}

export interface OpenEnds extends Ends {
  /** After the end: by slices of `sliceMs`, the puts asked in each, and those of them acknowledged in `inTimeMs`. */
  readonly after: readonly Slice[]
  /** After the end: until a client that comes then is answered in `freshInTimeMs`; undefined: it was not. */
  readonly freshMs?: number
}

export interface Slice {
  asked: number
  inTime: number
}

export const sliceMs = 250
export const inTimeMs = 1_000
/** Of a client that has nothing else to ask. */
export const freshInTimeMs = 500

export type Said = { readonly kind: 'ready' } | { readonly kind: 'ended'; readonly ends: OpenEnds }
