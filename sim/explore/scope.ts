/**
 * Scopes: how much may happen in a search. Three acceptors, one group; each submission, read,
 * time-out, crash and duplicate may come at any moment, or never; every message may be lost.
 */
export type TimerName = 'proposal' | 'read' | 'chase' | 'retry' | 'sweep'

export const timerNames: readonly TimerName[] = ['proposal', 'read', 'chase', 'retry', 'sweep']

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
  /** So many submissions are made and seen everywhere, one after another, before the search. */
  readonly prologue: number
  /** Each node takes the others for gone and proposes itself; else it forwards to the leader. */
  readonly isEachForItself: boolean
}

const nothing = {
  ...{ reads: [], timeouts: 0, timers: timerNames, crashes: 0, duplicates: 0 },
  ...{ isEachForItself: true, positions: 1, prologue: 0 },
} as const

function submission(
  node: number,
  key: string,
  more: Partial<ScopeSubmission> = {},
): ScopeSubmission {
  return { node, key, intent: key.charCodeAt(0), reads: [], ...more }
}

const rivals = [submission(1, 'b'), submission(2, 'c')]
const duel = [submission(0, 'a'), submission(1, 'b')]
const ofProposals: readonly TimerName[] = ['proposal']
/** Position 1 is chosen and known everywhere before anything else: what follows is about 2. */
const second = { ...nothing, prologue: 1, positions: 2 } as const

/** Small ones first. */
export const scopes: readonly Scope[] = [
  {
    ...{ ...nothing, name: 'forward', title: 'a write through another node than the leader' },
    ...{ submissions: [submission(1, 'b')], timeouts: 3, isEachForItself: false },
  },
  {
    ...{ ...nothing, name: 'crash', title: 'one proposer, one crash, two time-outs' },
    ...{ submissions: [submission(0, 'a')], crashes: 1, timeouts: 2 },
  },
  {
    ...{
      ...nothing,
      name: 'read',
      title: 'a write, and a read elsewhere that may have to finish it',
    },
    ...{ submissions: [submission(0, 'a')], reads: [1], timeouts: 3, timers: ['chase'] },
  },
  {
    ...{
      ...nothing,
      name: 'one-shot',
      title: 'the leader and another propose; nothing is retried',
    },
    submissions: duel,
  },
  {
    ...{
      ...nothing,
      name: 'phantom',
      title: 'two transactions that scan where the other inserts, behind a third',
    },
    submissions: [
      submission(0, 'x'),
      submission(0, 'a', { ranges: [['b', 'c']] }),
      submission(0, 'b', { ranges: [['a', 'b']] }),
    ],
    positions: 3,
  },
  {
    ...{ ...nothing, name: 'rivals', title: 'two proposers at one round, neither the leader' },
    submissions: rivals,
  },
  {
    ...{ ...nothing, name: 'retry', title: 'one transaction sent through two nodes' },
    submissions: [submission(0, 'a'), submission(1, 'a')],
  },
  {
    ...{
      ...second,
      name: 'resend',
      title: 'an applied transaction comes again elsewhere, and one crash',
    },
    ...{ submissions: [submission(0, 'a'), submission(1, 'a')], timeouts: 2, crashes: 1 },
  },
  {
    ...{ ...second, name: 'second', title: 'at position 2 its leader and another propose' },
    submissions: [submission(0, 'a'), submission(0, 'c'), submission(1, 'b')],
  },
  {
    ...{ ...second, name: 'leader-restarts', title: 'the leader of position 2 may restart' },
    submissions: [submission(0, 'a'), submission(0, 'c'), submission(0, 'd')],
    crashes: 1,
  },
  {
    ...{ ...nothing, name: 'repeat', title: 'two proposers, one message that comes twice' },
    ...{ submissions: duel, duplicates: 1 },
  },
  {
    ...{ ...nothing, name: 'duel', title: 'the leader and another propose, one phase is retried' },
    ...{ submissions: duel, timeouts: 1, timers: ofProposals },
  },
  {
    ...{ ...second, name: 'conflict', title: 'two transactions that read what the other writes' },
    submissions: [
      submission(2, 'x'),
      submission(0, 'a', { reads: ['b'] }),
      submission(1, 'b', { reads: ['a'] }),
    ],
    positions: 3,
  },
  {
    ...{ ...nothing, name: 'two-reads', title: 'a write and two reads at other nodes' },
    submissions: [submission(0, 'a')],
    ...{ reads: [1, 2], timeouts: 3, timers: ['chase'] },
  },
  {
    ...{ ...nothing, name: 'duel-crash', title: 'two proposers and one crash' },
    ...{ submissions: duel, crashes: 1 },
  },
  {
    ...{ ...second, name: 'second-crash', title: 'two proposers at position 2 and one crash' },
    ...{ submissions: [submission(0, 'a'), submission(0, 'c'), submission(1, 'b')], crashes: 1 },
  },
  {
    ...{
      ...second,
      name: 'second-duel',
      title: 'two proposers at position 2, one phase is retried',
    },
    submissions: [submission(0, 'a'), submission(0, 'c'), submission(1, 'b')],
    ...{ timeouts: 1, timers: ofProposals },
  },
  {
    ...{
      ...nothing,
      name: 'two-positions',
      title: 'two proposers, the loser goes on at position 2',
    },
    ...{ submissions: duel, positions: 2 },
  },
  {
    ...{ ...nothing, name: 'duel-2', title: 'two proposers, two phases are retried' },
    ...{ submissions: duel, timeouts: 2, timers: ofProposals },
  },
]

export function scopeNamed(name: string): Scope | undefined {
  return scopes.find((scope) => scope.name === name)
}

export function describeSubmission(scope: Scope, at: number): string {
  const found = scope.submissions[at]
  if (found === undefined) return '?'
  const ranges = (found.ranges ?? []).map(([gte, lt]) => `${gte}…${lt}`)
  const all = [...found.reads, ...ranges]
  const reads = all.length === 0 ? '' : `, having read ${all.join(' ')}`
  return `a write of ${found.key} (intent ${found.intent}${reads})`
}
