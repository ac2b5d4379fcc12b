/** Planted bugs in read leases: what a holder counts on, and whom a writer waits for. */
import type { Edit, Mutant } from './mutant.ts'

/** Few runs suspend machines: all of the mutant's seeds do. */
const everyRunSuspends: Edit = {
  file: 'sim/faults/swarm-faults.ts',
  find: "['suspend', 150_000, 1, 8]",
  replace: "['suspend', 1_000_000, 1, 2]",
}

export const leaseMutants: readonly Mutant[] = [
  {
    id: 'G04',
    title: 'a holder counts its lease from when the grant came',
    edits: [
      {
        file: 'src/lease/holder.ts',
        find: '{ asked, leaseMs }: Renewed, { now }: ClockReading',
        replace: '{ asked, leaseMs }: Renewed, { now, wall }: ClockReading',
      },
      {
        file: 'src/lease/holder.ts',
        find: '    const sentAtMs = asked.sentAt / 1000\n',
        replace: '    const sentAtMs = Math.max(asked.sentAt / 1000, now)\n',
      },
      {
        file: 'src/lease/holder.ts',
        find: '    held.sentWall = asked.sentWall\n',
        replace: '    held.sentWall = Math.max(asked.sentWall, wall)\n',
      },
    ],
  },
  {
    id: 'G06',
    title: 'an invalidation is heeded by who serves alone already, and not by who is about to',
    scopes: ['lease-retried'],
    edits: [
      {
        file: 'src/replication/read-lease.ts',
        find: '  log.minReadPosition = Math.max(log.minReadPosition, position)\n  catchUpTo(log, context, position, from)\n',
        replace:
          '  if (isLeased(log, context)) log.minReadPosition = Math.max(log.minReadPosition, position)\n  catchUpTo(log, context, position, from)\n',
      },
    ],
  },
  {
    id: 'G16',
    title: 'a writer waits for no lease holder',
    edits: [
      {
        file: 'src/replication/commit.ts',
        find: '  if (awaited.length > 0) return waitForHolders',
        replace: '  if (awaited.length > voters.length) return waitForHolders',
      },
    ],
  },
  {
    id: 'L01',
    title: 'an acceptance names no lease holder while its voter is young',
    edits: [
      {
        file: 'src/lease/grantor.ts',
        find: '    const blindUntilMs = this.#computeEnd(startedMs, longestLeaseMs)\n',
        replace: '    const blindUntilMs = this.#computeEnd(startedMs, 0)\n',
      },
    ],
  },
  {
    id: 'L02',
    title: 'an answer that was on its way when its grantor revoked still counts',
    // The answer's late copy must come after the revocation, and before the holder asks or hears
    // anew.
    scopes: ['lease-revoked'],
    edits: [
      {
        file: 'src/replication/read-lease.ts',
        find: '  log.lease?.ignored.add(peer)\n',
        replace: '',
      },
    ],
  },
  {
    id: 'L03',
    title: 'what was registered under an earlier term counts under the next',
    edits: [
      {
        file: 'src/lease/holder.ts',
        find: '  return held?.term !== undefined && isSameTerm(held.term, term)\n',
        replace: '  return held?.term !== undefined && term.number <= held.term.number\n',
      },
    ],
  },
  {
    id: 'L04',
    title: 'a registration that is being revoked is said to be over at once',
    edits: [
      {
        file: 'src/lease/grantor.ts',
        find: 'return revocation === undefined || now < revocation.endsMs',
        replace: 'return revocation === undefined || now < revocation.endsMs - 1_000_000',
      },
    ],
  },
  {
    id: 'L05',
    title: 'renewals do not tell of what is revoked',
    edits: [
      {
        file: 'src/lease/grantor.ts',
        find: 'const revoked = [...revocations.keys()]\n',
        replace: 'const revoked = [...revocations.keys()].slice(revocations.size)\n',
      },
    ],
  },
  {
    id: 'L06',
    title: 'answers to any attempt count for the last one',
    edits: [
      {
        file: 'src/replication/read-lease.ts',
        find: '  if (lease?.attempt !== read || term === undefined',
        replace: '  if (lease === undefined || lease.attempt < read || term === undefined',
      },
    ],
  },
  {
    id: 'L07',
    title: 'a read under a lease looks at what is applied, not at what is accepted',
    edits: [
      {
        file: 'src/replication/read-lease.ts',
        find: '  return Math.max(highestKnown(log), log.minReadPosition)\n',
        replace:
          '  return Math.max(highestKnown(log) * 0 + log.state.position, log.minReadPosition)\n',
      },
    ],
  },
  {
    id: 'L16',
    title: 'rows that are read at once are taken for current without a lease',
    edits: [
      {
        file: 'src/replica/reads.ts',
        find: "if (from === 'current') return this.#underLease(group)",
        replace: "if (from === 'current') return this.#parts.replica.appliedInMemory(group)",
      },
    ],
  },
  {
    id: 'L08',
    title: 'a holder serves before it has what the answers of its attempt told of',
    edits: [
      {
        file: 'src/replication/read-lease.ts',
        find: '  log.minReadPosition = Math.max(log.minReadPosition, position)\n  lease.grants',
        replace:
          '  log.minReadPosition = Math.max(log.minReadPosition, 0 * position)\n  lease.grants',
      },
    ],
  },
  {
    id: 'L09',
    title: 'a group that is not read any more is released, and served all the same',
    edits: [
      {
        file: 'src/replication/read-lease.ts',
        find: '  if (isRead) return\n  endLease(log, context)\n',
        replace:
          '  if (isRead) return\n  if (context.limits.leaseMs === 0) endLease(log, context)\n',
      },
    ],
  },
  {
    id: 'L10',
    title: 'a registration is over for the writer when one of those that listed it says so',
    edits: [
      {
        file: 'src/replication/holders.ts',
        find: '  listed?.get(holder)?.by.delete(voter)\n}\n\n/** Holders',
        replace:
          '  if (listed?.get(holder)?.by.has(voter) === true) listed.delete(holder)\n}\n\n/** Holders',
      },
    ],
  },
  {
    id: 'L11',
    title: 'an acceptance names no lease holder at all',
    edits: [
      {
        file: 'src/replication/acceptance.ts',
        find: 'const holders = leases.holders(group, position, now)\n',
        replace: 'const holders = leases.holders(group, position, now).slice(0, 0)\n',
      },
    ],
  },
  {
    id: 'L12',
    title: 'a registration that is revoked counts as over a moment later',
    edits: [
      {
        file: 'src/lease/grantor.ts',
        find: 'endsMs: grant.untilMs })',
        replace: 'endsMs: now + 1 })',
      },
    ],
  },
  {
    id: 'L13',
    title: 'any renewal ends what a restarted grantor cannot know',
    // A renewal of before a restart counts only while one end of the new link is up and the other
    // is not.
    scopes: ['lease-restarts'],
    edits: [
      {
        file: 'src/lease/grantor.ts',
        find: '    if (message.grantor === this.#incarnation) peer.blindUntilMs = 0\n',
        replace: '    if (message.grantor >= 0) peer.blindUntilMs = 0\n',
      },
    ],
  },
  {
    id: 'L14',
    title: 'who was told of the position before is taken to have been told of this one',
    edits: [
      {
        file: 'src/lease/grantor.ts',
        find: '    if (registration.position >= position) return false\n',
        replace: '    if (registration.position + 1 >= position) return false\n',
      },
    ],
  },
  {
    id: 'L15',
    title: 'an answer to an earlier life of the holder extends its lease',
    // The first renewal of the holder's new life must be lost, and an answer to its last one still
    // come.
    scopes: ['lease-restarts'],
    edits: [
      {
        file: 'src/lease/holder.ts',
        find: '    if (message.asked.incarnation !== this.#incarnation) return false\n',
        replace: '    if (message.asked.incarnation > this.#incarnation) return false\n',
      },
    ],
  },
  {
    id: 'L17',
    title: 'a group that nobody reads any more stays in the lease',
    edits: [
      {
        file: 'src/replication/read-lease.ts',
        find: '  if (isRead) return\n',
        replace: '  if (isRead || lease.attempt > 0) return\n',
      },
    ],
  },
  {
    id: 'L18',
    title: 'who is told of a position has its registrations forgotten, and counts on them',
    edits: [
      {
        file: 'src/replication/read-lease.ts',
        find: '  if (log.lease !== undefined) return\n',
        replace: '  if (log.lease?.attempt === 0) return\n',
      },
    ],
  },
  {
    id: 'L19',
    title: 'the word that nothing is counted on ends what is registered after it',
    scopes: ['lease-given-up'],
    edits: [
      {
        file: 'src/replication/read-lease.ts',
        find: '  tellReleased(log, context, context.drawNumber())\n',
        replace: '  tellReleased(log, context, Number.MAX_SAFE_INTEGER)\n',
      },
    ],
  },
  {
    id: 'L20',
    title: 'a holder acknowledges an invalidation, and serves what it had',
    edits: [
      {
        file: 'src/replication/read-lease.ts',
        find: '  log.minReadPosition = Math.max(log.minReadPosition, position)\n  catchUpTo(log, context, position, from)\n',
        replace: '  log.catchUp ??= undefined\n',
      },
    ],
  },
  {
    id: 'L21',
    title: 'a group is registered anew while its holder has not heard that it was revoked',
    scopes: ['lease-idle'],
    edits: [
      {
        file: 'src/lease/grantor.ts',
        find: '    if (grant.revocations.has(group)) return undefined\n',
        replace: '',
      },
    ],
  },
  {
    id: 'L22',
    title: 'a holder whose machine was suspended counts on what it held before',
    edits: [
      {
        file: 'src/lease/holder.ts',
        find: '    return wall - sentWall > passedMicros + drift + suspensionMs * 1000\n',
        replace:
          '    return wall - sentWall > passedMicros + drift + suspensionMs * 1_000_000_000\n',
      },
      everyRunSuspends,
    ],
  },
  {
    id: 'L24',
    title: 'a holder hands a lease back as its epoch ends, and counts on it all the same',
    scopes: ['change-read'],
    edits: [
      {
        file: 'src/lease/holder.ts',
        find: '      held.givenUp = term\n      held.term = undefined\n',
        replace: '',
      },
    ],
  },
  {
    id: 'L25',
    title: 'a lease that was handed back as its epoch ended begins again by a late answer',
    scopes: ['change-read'],
    edits: [
      {
        file: 'src/lease/holder.ts',
        find: '      held.givenUp = term\n      held.term = undefined\n',
        replace: '      held.term = undefined\n',
      },
    ],
  },
  {
    id: 'L23',
    title: 'who is told unasked of what is revoked is not told of which groups',
    edits: [
      {
        file: 'src/lease/grantor.ts',
        find: '? undefined : this.#answer(grant)\n',
        replace: '? undefined : { ...this.#answer(grant), revoked: [] }\n',
      },
    ],
  },
]
