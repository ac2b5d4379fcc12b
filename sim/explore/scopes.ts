/** The scopes that are searched, small ones first. */
import { closeScopes } from './close-scopes.ts'
import { moveScopes } from './move-scopes.ts'

import { readerScopes } from './reader-scopes.ts'
import { nothing, submission, type Scope, type ScopeLeases, type TimerName } from './scope.ts'

const rivals = [submission(1, 'b'), submission(2, 'c')]
const duel = [submission(0, 'a'), submission(1, 'b')]
const ofProposals: readonly TimerName[] = ['proposal']
/**
 * Position 1 is chosen and known everywhere before anything else: the search is about position 2.
 */
const second = { ...nothing, prologue: 1, positions: 2 } as const

/** The second node grants to the third, which reads; the first one writes. */
const oneGrantor: ScopeLeases = { pairs: [[1, 2]], ticks: 1, renewals: 0, lapses: 0, isWarm: true }
const bothGrantors: ScopeLeases['pairs'] = [
  [0, 2],
  [1, 2],
]
const ofReaders: ScopeLeases['pairs'] = [...bothGrantors, [0, 1], [2, 1]]
const ofHolders: readonly TimerName[] = ['holders']
const leased = { ...nothing, submissions: [submission(0, 'a')], reads: [2], timers: ofHolders }

/** A node may lose its data store once, whichever has applied anything. */
const lost = { ...nothing, submissions: [submission(0, 'a')], losses: 1 } as const

/** Small ones first. */
export const scopes: readonly Scope[] = [
  {
    ...nothing,
    name: 'forward',
    title: 'a write through another node than the leader',
    submissions: [submission(1, 'b')],
    timeouts: 3,
    isEachForItself: false,
  },
  {
    ...nothing,
    name: 'crash',
    title: 'one proposer, one crash, two time-outs',
    submissions: [submission(0, 'a')],
    crashes: 1,
    timeouts: 2,
  },
  {
    ...nothing,
    name: 'read',
    title: 'a write, and a read elsewhere that may have to finish it',
    submissions: [submission(0, 'a')],
    reads: [1],
    timeouts: 3,
    timers: ['catch-up'],
  },
  {
    ...nothing,
    name: 'read-restarts',
    title: 'a write, and a read at a node that restarts and reads once more',
    submissions: [submission(0, 'a')],
    reads: [2, 2],
    crashes: 1,
    timers: [],
  },
  {
    ...leased,
    name: 'lease',
    title: 'a write, and a read that registers its node',
    leases: oneGrantor,
  },
  {
    ...leased,
    name: 'lease-cold',
    title: 'the same, by a node that has no lease yet',
    leases: { ...oneGrantor, isWarm: false, lapses: 1 },
  },
  {
    ...leased,
    name: 'lease-retried',
    title: 'holders are told, then revoked',
    leases: { ...oneGrantor, renewals: 1 },
    timeouts: 2,
    isEachForItself: false,
  },
  {
    ...leased,
    name: 'lease-revoked',
    title: 'a registration that is revoked',
    leases: { ...oneGrantor, renewals: 1 },
    duplicates: 1,
  },
  {
    ...leased,
    name: 'lease-grantors',
    title: 'a registration at two nodes',
    leases: { ...oneGrantor, pairs: bothGrantors, renewals: 1 },
  },
  {
    ...nothing,
    name: 'one-shot',
    title: 'the leader and another propose; nothing is retried',
    submissions: duel,
  },
  {
    ...nothing,
    name: 'phantom',
    title: 'two transactions that scan where the other inserts, behind a third',
    submissions: [
      submission(0, 'x'),
      submission(0, 'a', { ranges: [['b', 'c']] }),
      submission(0, 'b', { ranges: [['a', 'b']] }),
    ],
    positions: 3,
  },
  {
    ...nothing,
    name: 'rivals',
    title: 'two proposers at one round, neither the leader',
    submissions: rivals,
  },
  {
    ...nothing,
    name: 'retry',
    title: 'one transaction sent through two nodes',
    submissions: [submission(0, 'a'), submission(1, 'a')],
  },
  {
    ...second,
    name: 'resend',
    title: 'an applied transaction comes again elsewhere, and one crash',
    submissions: [submission(0, 'a'), submission(1, 'a')],
    timeouts: 2,
    crashes: 1,
  },
  {
    ...second,
    name: 'second',
    title: 'at position 2 its leader and another propose',
    submissions: [submission(0, 'a'), submission(0, 'c'), submission(1, 'b')],
  },
  {
    ...second,
    name: 'leader-restarts',
    title: 'the leader of position 2 may restart',
    submissions: [submission(0, 'a'), submission(0, 'c'), submission(0, 'd')],
    crashes: 1,
  },
  {
    ...nothing,
    name: 'repeat',
    title: 'two proposers, one message that comes twice',
    submissions: duel,
    duplicates: 1,
  },
  {
    ...leased,
    name: 'lease-readers',
    title: 'two readers that grant to one another',
    leases: {
      ...oneGrantor,
      pairs: [
        [1, 2],
        [2, 1],
      ],
    },
    reads: [1, 2],
  },
  {
    ...leased,
    name: 'lease-renewed',
    title: 'the same, and renewals',
    leases: { ...oneGrantor, renewals: 3 },
    duplicates: 1,
  },
  {
    ...leased,
    name: 'lease-second',
    title: 'two writes at two positions',
    leases: oneGrantor,
    submissions: [submission(0, 'a'), submission(0, 'b', { after: 0 })],
    positions: 2,
  },
  {
    ...leased,
    name: 'lease-ticks',
    title: 'a lease that lasts two ticks',
    leases: { ...oneGrantor, ticks: 2, renewals: 1, lapses: 2 },
  },
  {
    ...leased,
    name: 'lease-lapses',
    title: 'a lease that runs out',
    leases: { ...oneGrantor, renewals: 1, lapses: 2 },
  },
  {
    ...leased,
    name: 'lease-restarts',
    title: 'registrations, restarts, and no write',
    leases: { ...oneGrantor, renewals: 1, lapses: 1 },
    submissions: [],
    reads: [2, 2],
    crashes: 2,
  },
  {
    ...leased,
    name: 'lease-both',
    title: 'two registrations of one node, both revoked',
    leases: { ...oneGrantor, pairs: bothGrantors, renewals: 1 },
    duplicates: 1,
  },
  {
    ...leased,
    name: 'lease-idle',
    title: 'a registration that is given up',
    leases: { ...oneGrantor, renewals: 1 },
    reads: [2, 2],
    timeouts: 1,
    timers: ['idle'],
  },
  {
    ...leased,
    name: 'lease-given-up',
    title: 'a registration that is given up, and a writer that waits for it',
    leases: oneGrantor,
    reads: [2, 2],
    timeouts: 2,
    timers: ['idle', 'holders'],
  },
  {
    ...leased,
    name: 'lease-crash',
    title: 'a registration, and one crash',
    leases: { ...oneGrantor, lapses: 1 },
    crashes: 1,
  },
  {
    ...nothing,
    name: 'duel',
    title: 'the leader and another propose, one phase is retried',
    submissions: duel,
    timeouts: 1,
    timers: ofProposals,
  },
  {
    ...second,
    name: 'conflict',
    title: 'two transactions that read what the other writes',
    submissions: [
      submission(2, 'x'),
      submission(0, 'a', { reads: ['b'] }),
      submission(1, 'b', { reads: ['a'] }),
    ],
    positions: 3,
  },
  {
    ...nothing,
    name: 'two-reads',
    title: 'a write and two reads at other nodes',
    submissions: [submission(0, 'a')],
    reads: [1, 2],
    timeouts: 3,
    timers: ['catch-up'],
  },
  {
    ...nothing,
    name: 'duel-crash',
    title: 'two proposers and one crash',
    submissions: duel,
    crashes: 1,
  },
  {
    ...second,
    name: 'second-crash',
    title: 'two proposers at position 2 and one crash',
    submissions: [submission(0, 'a'), submission(0, 'c'), submission(1, 'b')],
    crashes: 1,
  },
  {
    ...second,
    name: 'second-duel',
    title: 'two proposers at position 2, one phase is retried',
    submissions: [submission(0, 'a'), submission(0, 'c'), submission(1, 'b')],
    timeouts: 1,
    timers: ofProposals,
  },
  {
    ...nothing,
    name: 'snapshot',
    title: 'a replica that is behind takes in a snapshot while others propose, and may crash',
    submissions: [submission(0, 'a')],
    timeouts: 1,
    timers: ofProposals,
    crashes: 1,
    snapshots: 1,
  },
  {
    ...nothing,
    name: 'snapshot-above',
    title: 'a snapshot below what its taker has accepted',
    submissions: [
      submission(0, 'a'),
      submission(0, 'c', { after: 0 }),
      submission(1, 'b', { after: 1 }),
    ],
    positions: 2,
    snapshots: 1,
  },
  {
    ...lost,
    name: 'lost-data',
    title: 'a node loses its data under a log that ends, and one that is behind proposes',
    submissions: [submission(0, 'a'), submission(1, 'b', { after: 0 })],
  },
  {
    ...lost,
    name: 'lost-data-read',
    title: 'the same, and a node reads that is behind, or has lost its data itself',
    reads: [1],
  },
  {
    ...lost,
    name: 'lost-data-snapshot',
    title: 'the same, and a peer whose log has ended as well sends a snapshot',
    submissions: [submission(0, 'a'), submission(1, 'b', { after: 0 })],
    snapshots: 1,
  },
  {
    ...lost,
    ...second,
    name: 'lost-data-second',
    title: 'the same at position 2, whose leader is named',
    submissions: [submission(0, 'a'), submission(0, 'c'), submission(1, 'b', { after: 1 })],
  },
  {
    ...lost,
    name: 'lost-data-crash',
    title: 'the same, and one crash',
    submissions: [submission(0, 'a'), submission(1, 'b', { after: 0 })],
    crashes: 1,
  },
  {
    ...lost,
    name: 'lost-data-duel',
    title: 'the same, while both propose at once',
    submissions: duel,
  },
  {
    ...nothing,
    name: 'change',
    title: 'a voter is replaced while the leader writes',
    submissions: [submission(0, 'a')],
    change: { kind: 'replace', at: 2 },
  },
  {
    ...nothing,
    name: 'change-leader',
    title: 'the leader is replaced, and another proposes',
    submissions: duel,
    change: { kind: 'replace', at: 0 },
  },
  {
    ...nothing,
    name: 'change-read',
    title: 'a voter is replaced that reads by a lease, while the leader writes',
    submissions: [submission(0, 'a')],
    reads: [2],
    timers: [],
    change: { kind: 'replace', at: 2 },
    leases: { ...oneGrantor, lapses: 1 },
  },
  {
    ...nothing,
    name: 'change-lagging',
    title: 'the voter that is replaced proposes, and so does the leader',
    submissions: [submission(2, 'b'), submission(0, 'a')],
    change: { kind: 'replace', at: 2 },
  },
  {
    ...nothing,
    name: 'change-crash',
    title: 'a voter is replaced while the leader writes, and one crash',
    submissions: [submission(0, 'a')],
    crashes: 1,
    change: { kind: 'replace', at: 2 },
  },
  {
    ...nothing,
    name: 'change-second',
    title: 'a voter is replaced while the leader and another write, at two positions',
    submissions: [submission(0, 'a'), submission(1, 'b', { after: 0 })],
    positions: 2,
    change: { kind: 'replace', at: 0 },
  },
  {
    ...nothing,
    name: 'change-add',
    title: 'a node is added while the leader writes',
    submissions: [submission(0, 'a')],
    change: { kind: 'add' },
  },
  {
    ...nothing,
    name: 'change-remove',
    title: 'a voter is removed that proposes while the leader does',
    submissions: duel,
    change: { kind: 'remove', at: 1 },
  },
  {
    ...nothing,
    name: 'change-remove-leader',
    title: 'the leader is removed while it writes, and another proposes',
    submissions: duel,
    change: { kind: 'remove', at: 0 },
  },
  ...readerScopes,
  ...moveScopes,
  ...closeScopes,
  {
    ...nothing,
    name: 'two-positions',
    title: 'two proposers, the loser goes on at position 2',
    submissions: duel,
    positions: 2,
  },
  {
    ...nothing,
    name: 'duel-2',
    title: 'two proposers, two phases are retried',
    submissions: duel,
    timeouts: 2,
    timers: ofProposals,
  },
  {
    ...leased,
    name: 'lease-again',
    title: 'registered, revoked, registered anew',
    leases: { ...oneGrantor, renewals: 2 },
    reads: [2, 2],
    duplicates: 1,
  },
  {
    ...leased,
    name: 'lease-duel',
    title: 'two proposers, of whom one holds a lease',
    leases: oneGrantor,
    submissions: [submission(0, 'a'), submission(2, 'b')],
  },
  {
    ...leased,
    name: 'lease-all',
    title: 'two readers, two writes, and everything at once',
    submissions: [submission(0, 'a'), submission(0, 'b', { after: 0 })],
    leases: { ...oneGrantor, pairs: ofReaders, ticks: 2, renewals: 3, lapses: 3 },
    reads: [2, 1, 2],
    positions: 2,
    timeouts: 3,
    timers: ['holders', 'proposal', 'catch-up', 'idle'],
    crashes: 1,
    duplicates: 1,
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
