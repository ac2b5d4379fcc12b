/** Planted bugs in the change of the voters of a replica set, as nodes with logs, links and clocks carry it out. */
import type { Edit, Mutant } from './mutant.ts'

const ofEpochs = 'src/members/epochs.ts'
const ofGate = 'src/members/gate-keeper.ts'

/** Few runs change the voters: all of the mutant's seeds do. */
const everyRunRenews: Edit = {
  file: 'sim/faults/swarm-faults.ts',
  find: "['renew', 350_000, 2, 15]",
  replace: "['renew', 1_000_000, 1, 3]",
}

const everyRunReplaces: Edit = {
  file: 'sim/faults/swarm-faults.ts',
  find: "['replace', 300_000, 4, 20]",
  replace: "['replace', 1_000_000, 3, 6]",
}

const everyRunAdds: Edit = {
  file: 'sim/faults/swarm-faults.ts',
  find: "['add', 250_000, 3, 10]",
  replace: "['add', 1_000_000, 2, 5]",
}

const everyRunRemoves: Edit = {
  file: 'sim/faults/swarm-faults.ts',
  find: "['remove', 250_000, 3, 10]",
  replace: "['remove', 1_000_000, 2, 5]",
}

export const voterMutants: readonly Mutant[] = [
  {
    id: 'VOT1',
    title: 'voters: a node tells of its seal before that is durable',
    edits: [
      everyRunRenews,
      {
        file: ofEpochs,
        find: '    log.memory.whenKept(then)\n    // Else',
        replace: '    then()\n    // Else',
      },
      {
        file: 'src/members/members.ts',
        find: '    if (!epochs.isKept) return\n',
        replace: '    if (epochs.own.epoch === 0) return\n',
      },
    ],
  },
  {
    id: 'VOT2',
    title: 'voters: a node seals while a lease that it has granted lasts',
    edits: [
      everyRunRenews,
      {
        file: 'src/members/members.ts',
        find: '      if (!leases().areGrantsOver(clock.monotonicMs())) return\n',
        replace: '      leases().areGrantsOver(clock.monotonicMs())\n',
      },
    ],
  },
  {
    id: 'VOT3',
    title: 'voters: a node passes the gate without what the seals tell of open positions',
    edits: [
      everyRunRenews,
      {
        file: ofGate,
        find: '      if (isHere(told, look(told.group))) continue\n',
        replace: '      if (isHere(told, look(told.group)) || told.applied >= 0) continue\n',
      },
      {
        file: ofGate,
        find: '    if (!this.#takesUp(group)) return\n    const { applied }',
        replace: '    if (this.#takesUp(group)) return\n    const { applied }',
      },
    ],
  },
  {
    id: 'VOT4',
    title: 'voters: a node seals an epoch whose gate it has not passed, and the seal counts',
    edits: [
      everyRunRenews,
      {
        file: ofEpochs,
        find: '    const hadVote = own.isMember && own.gated === row.epoch - 1\n',
        replace: '    const hadVote = own.isMember\n',
      },
    ],
  },
  {
    id: 'VOT5',
    title: 'voters: a newcomer votes before the epoch that makes it a voter',
    edits: [
      everyRunReplaces,
      {
        file: ofEpochs,
        find: "    if (!isMember) return this.#isReader ? 'reading' : 'sealed'\n",
        replace: "    if (!isMember) return this.#isReader ? 'reading' : 'voting'\n",
      },
    ],
  },
  {
    id: 'VOT6',
    title: 'voters: a start forgets which epoch the node has sealed',
    edits: [
      everyRunRenews,
      {
        file: 'src/log/log-recovery.ts',
        find: '  const epochs = isSound ? decodeEpochs(bytes) : undefined\n',
        replace:
          '  const epochs = isSound && decodeEpochs(bytes) ? { ...lostEpochs(0, 1), gated: 1 } : undefined\n',
      },
    ],
  },
  {
    id: 'VOT7',
    title: 'voters: what a lost store had told counts for the one in its place',
    edits: [
      everyRunReplaces,
      everyRunRenews,
      {
        file: 'src/peers/peer-marks.ts',
        find: '      if (!Array.isArray(fields) || isNewStore) return []\n',
        replace: '      if (!Array.isArray(fields)) return []\n',
      },
      {
        file: 'src/peers/peer-marks.ts',
        find: '      return isOfStore ? fields : []\n',
        replace: '      return isOfStore || store !== undefined ? fields : []\n',
      },
    ],
  },
  {
    id: 'VOT8',
    title: 'voters: a store that was replaced is let in again',
    edits: [
      everyRunReplaces,
      {
        file: 'sim/faults/members-drawings.ts',
        find: 'const returnRate = 300_000\n',
        replace: 'const returnRate = 1_000_000\n',
      },
      {
        file: 'src/peers/admission.ts',
        find: '  if (known.storeId !== storeId) {\n    return `unknown-store',
        replace: '  if (known.storeId.length !== storeId.length) {\n    return `unknown-store',
      },
    ],
  },
  {
    id: 'VOT9',
    title: 'voters: a node that is being added is one of the voters before its epoch',
    edits: [
      everyRunAdds,
      {
        file: ofEpochs,
        find: '    nodes.set([...now], [...coming, ...changing(row), ...readers], readers)\n',
        replace:
          "    const added = row.change?.kind === 'add' ? changing(row) : []\n" +
          '    nodes.set([...new Set([...now, ...added])], [...coming, ...changing(row), ...readers], readers)\n',
      },
    ],
  },
  {
    id: 'VOT10',
    title: 'voters: a node that leaves keeps its vote in the epoch that begins without it',
    edits: [
      everyRunRemoves,
      {
        file: ofEpochs,
        find: '    const isMember = this.isNamed(row)\n',
        replace: '    const isMember = own.isMember || this.isNamed(row)\n',
      },
    ],
  },
  {
    id: 'VOT11',
    title: 'voters: the peers of a node that leaves end its link before it has told its seal',
    edits: [
      everyRunRemoves,
      {
        file: ofEpochs,
        find: "  return kind === 'renew' || kind === 'recover' ? [] : [node]\n",
        replace: "  return kind === 'add' ? [node] : []\n",
      },
    ],
  },
  {
    id: 'VOT12',
    title: 'voters: the acceptances of a store without a vote stand in its seal',
    edits: [
      everyRunAdds,
      {
        file: ofEpochs,
        find: '    const hadVote = own.isMember && own.gated === row.epoch - 1\n',
        replace: '    const hadVote = own.gated === row.epoch - 1 || !own.isMember\n',
      },
    ],
  },
  {
    id: 'VOT13',
    title: 'voters: a node passes the gate without what the flushes name that a seal stands for',
    edits: [
      everyRunRenews,
      {
        file: ofGate,
        find: 'isTakenThrough(voter, seal.through ?? 0, (group, position)',
        replace: 'isTakenThrough(voter, 0 * (seal.through ?? 0), (group, position)',
      },
    ],
  },
]
