/** Planted bugs in buckets that go from one replica set to another: the searches of the closing of one find them, and runs of two sets. */
import { toAndFro } from './moves.ts'
import type { Mutant } from './mutant.ts'

const ofShares = 'src/placement/shares.ts'

export const bucketMutants: readonly Mutant[] = [
  {
    id: 'BKT1',
    title: 'buckets: a node begins groups in a bucket that its set has closed',
    rules: ['MOVE-14'],
    scopes: ['close'],
    edits: [
      {
        file: ofShares,
        find: "      case 'closed':\n        return this.#ownEpoch < share.epoch\n",
        replace: "      case 'closed':\n        return true\n",
      },
    ],
  },
  {
    id: 'BKT2',
    title: 'buckets: a node tells which groups may have begun before it has passed its gate',
    rules: ['MOVE-14'],
    scopes: ['close'],
    edits: [
      {
        file: 'src/members/share-requests.ts',
        find: '  if (!isVoting || own.epoch < share.epoch) {\n',
        replace: '  if (!isVoting && own.epoch < share.epoch) {\n',
      },
    ],
  },
  {
    id: 'BKT3',
    title: 'buckets: a node that has lost the entry which closed a bucket takes part in it',
    rules: ['MOVE-14'],
    scopes: ['close-crash'],
    edits: [
      {
        file: ofShares,
        find: '    if (this.#rowEpoch < this.#ownEpoch) return false\n',
        replace: '',
      },
    ],
  },
  {
    id: 'BKT4',
    title: 'buckets: the list of one node settles which groups may have begun',
    rules: ['MOVE-14'],
    scopes: ['close'],
    edits: [
      {
        file: 'src/members/shares-row.ts',
        find: '  const isSettled = count >= computeMajority(voters)\n',
        replace: '  const isSettled = count >= 1\n',
      },
    ],
  },
  {
    id: 'BKT5',
    title: 'buckets: a node that has a listed group does not begin it',
    rules: ['MOVE-14'],
    scopes: ['close'],
    edits: [
      {
        file: ofShares,
        find: '        return this.#ownEpoch < share.epoch || this.#began.get(share)?.has(group) === true\n',
        replace: '        return this.#ownEpoch < share.epoch\n',
      },
    ],
  },
  {
    id: 'BKT6',
    title: 'buckets: a set opens buckets, and the groups that have begun in them have not come',
    rules: ['MOVE-15'],
    edits: [
      ...toAndFro,
      {
        file: 'sim/workloads/bucket-giver.ts',
        find: 'const givesRate = 600_000\nconst thinkMeanMicros = 3_000_000\n',
        replace: 'const givesRate = 1_000_000\nconst thinkMeanMicros = 200_000\n',
      },
      {
        file: 'sim/workloads/bucket-giver.ts',
        find: 'const raisesRate = 500_000\n',
        replace: 'const raisesRate = 1_000_000\n',
      },
      {
        file: 'src/node/bucket-mover.ts',
        find: '      const ofShare = names.filter((group) => moves.shareOf(group)?.term === share.term)\n',
        replace:
          '      const ofShare = names.filter((group) => moves.shareOf(group)?.term === 0)\n',
      },
    ],
  },
  {
    id: 'LTS1',
    title: 'sets: a set that has come later takes groups by the hash of their names',
    rules: ['MOVE-16', 'MOVE-15', 'PAX-1', 'LOG-1', 'LOG-2', 'LOG-8'],
    edits: [
      ...toAndFro,
      {
        file: 'sim/cluster/cluster.ts',
        find: '    const { options, eventsMax, clientCodec, faults } = parts\n    this.#parts = parts\n',
        replace:
          '    const { eventsMax, clientCodec, faults } = parts\n    const options = { ...parts.options, laterNodes: 3 }\n    this.#parts = { ...parts, options }\n',
      },
      {
        file: 'sim/workloads/bucket-giver.ts',
        find: 'const givesRate = 600_000\nconst thinkMeanMicros = 3_000_000\n',
        replace: 'const givesRate = 1_000_000\nconst thinkMeanMicros = 200_000\n',
      },
      {
        file: 'sim/workloads/bucket-giver.ts',
        find: 'const addsRate = 500_000\n',
        replace: 'const addsRate = 1_000_000\n',
      },
      {
        file: 'src/placement/placement.ts',
        find: '    later.push(set)\n',
        replace: '    later.push(set)\n    numbers.push(all.length)\n',
      },
    ],
  },
]
