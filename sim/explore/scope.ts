/**
 * Scopes: how much may happen in a search. Three acceptors, or two, one of which a fourth may replace, one group; each submission, read,
 * time-out, crash and duplicate may come at any moment, or never; every message may be lost.
 */
export type TimerName = 'proposal' | 'read' | 'catch-up' | 'retry' | 'sweep' | 'holders' | 'idle'

/** `holders`: a proposal's, while a chosen value waits for lease holders. */
export const timerNames: readonly TimerName[] = [
  ...(['proposal', 'read', 'catch-up', 'retry', 'sweep', 'holders', 'idle'] as const),
]

/** A transaction that a client may hand to a node. Nodes count from 0, the leader of position 1. */
export interface ScopeSubmission {
  readonly node: number
  /** The key it writes. */
  readonly key: string
  /** Two submissions with the same intent are one transaction sent twice. */
  readonly intent: number
  /** Keys it has read at position 0. */
  readonly reads: readonly string[]
  /** Ranges that it has read there, each from the one key on and below the other. */
  readonly ranges?: readonly (readonly [string, string])[]
  /** Only after this submission, from 0, was answered. */
  readonly after?: number
  /** It writes the row by which the group leaves its set, in the place of a key. */
  readonly isMove?: true
}

/** Which leases there may be, and how often what of them may happen. */
export interface ScopeLeases {
  /** Grantor and holder. */
  readonly pairs: readonly (readonly [number, number])[]
  /** How long a lease lasts, in ticks of clocks that the search moves. */
  readonly ticks: number
  /** Renewals that a holder asks for by itself. */
  readonly renewals: number
  /** Ticks of holders' clocks. Grantors' follow as they may. */
  readonly lapses: number
  /** Every holder has a lease, with nothing registered under it, before the search. */
  readonly isWarm: boolean
}

export interface Scope {
  readonly name: string
  readonly title: string
  readonly submissions: readonly ScopeSubmission[]
  /** Nodes at which a client may begin a majority read. */
  readonly reads: readonly number[]
  /** Time-outs in all, of the timers named, whichever node they are at. */
  readonly timeouts: number
  readonly timers: readonly TimerName[]
  readonly crashes: number
  /** Messages delivered and left in flight to come again. */
  readonly duplicates: number
  /** Messages about later positions are all lost. */
  readonly positions: number
  /**
   * The number of submissions that are made and seen everywhere, one after another, before the
   * search.
   */
  readonly prologue: number
  /** Each node takes the others for gone and proposes itself; else it forwards to the leader. */
  readonly isEachForItself: boolean
  /**
   * A snapshot of what a node has durably applied is sent to another node that is behind. The sender forgets its log up
   * to there: no vote rests on it any more. Absent: there is none.
   */
  readonly snapshots?: 1 | undefined
  /**
   * The group has come from another set: the entries of the prologue were chosen there, and the first node alone has taken the group up.
   */
  readonly isArrival?: true
  /**
   * A node's log gives up what its data store has durably applied, and the node loses that data store: its peers restore
   * it (LOG-19). Absent: that happens to no node.
   */
  readonly losses?: 1 | undefined
  /** The voters of a second epoch. Absent: the voters stay. */
  readonly change?: ScopeChange | undefined
  /** The entry that begins the second epoch closes the bucket of the group, which goes to another set. Absent: it stays. */
  readonly closes?: true
  /** A node without a vote in an epoch is a reader in it; without a change the fourth node is one. Absent: it has no part. */
  readonly hasReaders?: true
  /** In the first epoch; absent: three. */
  readonly voters?: 2
  /** Absent: no node grants any. */
  readonly leases?: ScopeLeases
}

/** A voter is replaced by a fourth node, the fourth node is added, a voter is removed, or all stay. `at`: the voter. */
export type ScopeChange =
  { readonly kind: 'replace' | 'remove'; readonly at: number } | { readonly kind: 'add' | 'renew' }

/** A scope without any event. Each scope that is searched adds its events to it. */
export const nothing: Omit<Scope, 'name' | 'title' | 'submissions'> = {
  reads: [],
  timeouts: 0,
  timers: timerNames,
  crashes: 0,
  duplicates: 0,
  isEachForItself: true,
  positions: 1,
  prologue: 0,
}

/** A client hands this node a write of the key, whose first letter is the number of the intent. */
export function submission(
  node: number,
  key: string,
  more: Partial<ScopeSubmission> = {},
): ScopeSubmission {
  return { node, key, intent: key.charCodeAt(0), reads: [], ...more }
}
