/** Planted bugs of our own, beyond the bank: each breaks one rule of this code in particular. */
import type { Mutant } from './mutant.ts'

export const ownMutants: readonly Mutant[] = [
  {
    id: 'S01',
    title: 'a majority read is content with one answer',
    edits: [
      {
        file: 'src/replication/read.ts',
        find: 'if (current.answers.size < computeMajority(log.set.voters)) return',
        replace: 'if (current.answers.size < Math.min(1, computeMajority(log.set.voters))) return',
      },
    ],
  },
  {
    id: 'S02',
    title: 'a voter answers a majority read with what it has applied, not what it has accepted',
    edits: [
      {
        file: 'src/replication/read.ts',
        find: '  const position = highestKnown(log)\n',
        replace: '  const position = Math.min(log.state.position, highestKnown(log))\n',
      },
    ],
  },
  {
    id: 'S03',
    title: 'a notice is taken to mean whatever was accepted here, at any ballot',
    edits: [
      {
        file: 'src/replication/learn.ts',
        find: 'if (accepted === undefined || !equalBallots(accepted.ballot, ballot)) return undefined',
        replace:
          'if (accepted === undefined || equalBallots(accepted.ballot, { ...ballot, round: -1 })) return undefined',
      },
    ],
  },
  {
    id: 'S04',
    title: 'half of the voters are taken for a majority and one more for nothing',
    edits: [
      {
        file: 'src/paxos/proposer.ts',
        find: '  return count > voters.length / 2\n',
        replace: '  return count >= Math.floor(voters.length / 2)\n',
      },
    ],
  },
  {
    id: 'S05',
    title: 'of the keys that are read at once the first is not named, so that two may write it',
    edits: [
      {
        file: 'src/txn/raw-transaction.ts',
        find: 'for (const key of keys) this.#reads',
        replace: 'for (const key of keys.slice(1)) this.#reads',
      },
    ],
  },
  {
    id: 'S06',
    title: 'a store starts again in the same incarnation',
    edits: [
      {
        file: 'src/log/log-recovery.ts',
        find: 'incarnation: last.incarnation + 1,',
        replace: 'incarnation: Math.max(1, last.incarnation),',
      },
      {
        file: 'src/log/log-recovery.ts',
        find: '  if (end.incarnation >= meta.incarnation) {\n',
        replace: '  if (end.incarnation > meta.incarnation) {\n',
      },
    ],
  },
  {
    id: 'S07',
    title: 'a leader named in another incarnation uses ballot zero all the same',
    edits: [
      {
        file: 'src/replication/propose.ts',
        find: "  if ('incarnation' in leader && leader.incarnation !== context.incarnation) return false\n",
        replace:
          "  if ('incarnation' in leader && leader.incarnation > context.incarnation) return false\n",
      },
    ],
  },
  {
    id: 'S08',
    title: 'at position 1 ballot zero leaves before it is durable',
    edits: [
      {
        file: 'src/replication/propose.ts',
        find: '  if (position === 1 && ballot.round === 0) {\n',
        replace: '  if (position === 1 && ballot.round === -1) {\n',
      },
    ],
  },
  {
    id: 'S09',
    title: 'an intent that has taken effect is not recognised when it comes again',
    edits: [
      {
        file: 'src/replication/compose.ts',
        find: '  const known = findOutcome(log, transaction.session, transaction.sequence)\n',
        replace:
          '  const known = findOutcome(log, `${transaction.session}?`, transaction.sequence)\n',
      },
      {
        file: 'src/replication/submit.ts',
        find: '  const known = findOutcome(log, transaction.session, transaction.sequence)\n',
        replace:
          '  const known = findOutcome(log, `${transaction.session}?`, transaction.sequence)\n',
      },
    ],
  },
  {
    id: 'S10',
    title: 'the timestamp of an entry is the clock of its proposer, whatever came before',
    edits: [
      {
        file: 'src/replication/compose.ts',
        find: 'Math.max(state.timestamp + 1, context.stamp)',
        replace: 'Math.max(1, context.stamp)',
      },
    ],
  },
]
