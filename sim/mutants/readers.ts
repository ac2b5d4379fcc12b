/** Planted bugs in what a read-only member does. The assertions that would show them at once are out of the way. */
import type { Edit, Mutant } from './mutant.ts'

const ofStanding = 'src/replication/standing.ts'
const ofProposals = 'src/replication/propose.ts'

/** Takes a line with an assertion out. */
function without(file: string, find: string): Edit {
  return { file, find, replace: '' }
}

const everyRunDemotes: Edit = {
  file: 'sim/faults/swarm-faults.ts',
  find: "['demote', 250_000, 3, 12]",
  replace: "['demote', 1_000_000, 2, 5]",
}

export const readerMutants: readonly Mutant[] = [
  {
    id: 'RDR1',
    title: 'readers: a proposer asks readers for their votes, and they give them',
    scopes: ['reader'],
    edits: [
      {
        file: ofProposals,
        find: '  const sends: Effect[] = set.voters\n',
        replace: '  const sends: Effect[] = [...set.voters, ...(set.readers ?? [])]\n',
      },
      {
        file: ofStanding,
        find: "  if (standing === 'reading' && kind !== 'highest') return false\n",
        replace: '',
      },
      {
        file: 'src/replication/acceptance.ts',
        find: "record?.kind === 'faulty' || !hasVote(log, context)",
        replace:
          "record?.kind === 'faulty' || (log.standing !== 'reading' && !hasVote(log, context))",
      },
      without(
        'src/replication/acceptance.ts',
        "  assert(log.standing !== 'reading', 'RDR-1: a reader promises or accepts')\n",
      ),
    ],
  },
  {
    id: 'RDR2',
    title: 'readers: a reader counts itself in the majority of its read round',
    scopes: ['reader'],
    edits: [
      {
        file: 'src/replication/read.ts',
        find: 'const countsOwn = hasVote(log, context)',
        replace: "const countsOwn = hasVote(log, context) || log.standing === 'reading'",
      },
      without(
        'src/replication/invariants.ts',
        "  assert(readRound?.countsOwn !== true || standing !== 'reading', 'RDR-1: a reader counts itself')\n",
      ),
    ],
  },
  {
    id: 'RDR3',
    title: 'readers: a reader takes back what no voter answers, and proposes it',
    scopes: ['reader-forward'],
    edits: [
      {
        file: 'src/replication/submit.ts',
        find: 'return isFit && forwards < forwardsMax ? node : voterInTurn(log, context, forwards)',
        replace:
          'return isFit && forwards < 1 ? node : voterInTurn(log, context, 0) && context.node',
      },
      {
        file: ofProposals,
        find: '  if (!isProposer(log)) return\n',
        replace: "  if (!isProposer(log) && log.standing !== 'reading') return\n",
      },
      without(
        'src/replication/group.ts',
        "  assert(isProposer(log), 'RDR-2: a transaction waits at a reader to be proposed there')\n",
      ),
      without(
        'src/replication/invariants.ts',
        "  assert(standing !== 'reading' || proposal === undefined, 'RDR-2: a reader proposes')\n",
      ),
    ],
  },
  {
    id: 'RDR4',
    title: 'readers: what a voter was given ends at its peers as soon as they hear of its demotion',
    edits: [
      everyRunDemotes,
      {
        file: 'src/replica/driver-links.ts',
        find: '    keeper.leases.setPeers(nodes.others)\n',
        replace:
          '    keeper.leases.setPeers(nodes.others.filter((one) => !nodes.readers.includes(one)))\n',
      },
    ],
  },
  {
    id: 'RDR5',
    title: 'readers: a voter that becomes a read-only member keeps its vote',
    edits: [
      everyRunDemotes,
      {
        file: 'src/members/epochs.ts',
        find: '    this.#isReader = this.#isNamedReader(row)\n',
        replace: '',
      },
      {
        file: 'src/members/epochs.ts',
        find: '    const isMember = this.isNamed(row)\n',
        replace: '    const isMember = own.isMember || this.isNamed(row)\n',
      },
    ],
  },
]
