/** Planted bugs in the change of voters: epochs, seals, gates, carried acceptances. */
import type { Mutant } from './mutant.ts'

const ofEpochs = 'src/replication/epoch.ts'
const ofStanding = 'src/replication/standing.ts'

export const epochMutants: readonly Mutant[] = [
  {
    id: 'MOV1',
    title: 'epochs: votes are asked for and counted across epochs',
    scopes: ['change-lagging'],
    edits: [
      {
        file: ofStanding,
        find: "  return epoch === set.epoch && standing !== 'sealed'\n",
        replace: "  return (epoch > 0 || set.epoch > 0) && standing !== 'sealed'\n",
      },
    ],
  },
  {
    id: 'MOV2',
    title: 'epochs: a voter votes on in the epoch that it has sealed',
    scopes: ['change'],
    edits: [
      {
        file: ofStanding,
        find: "return log.standing === 'voting' && isRestored",
        replace: "return log.standing !== 'before-gate' && isRestored",
      },
      {
        file: ofStanding,
        find: "return epoch === set.epoch && standing !== 'sealed'",
        replace: 'return epoch === set.epoch',
      },
    ],
  },
  {
    id: 'MOV3',
    title: 'epochs: a voter votes before its gate',
    scopes: ['change'],
    edits: [
      {
        file: ofStanding,
        find: "return log.standing === 'voting' && isRestored",
        replace: "return log.standing !== 'sealed' && isRestored",
      },
    ],
  },
  {
    id: 'MOV4',
    title: 'epochs: one seal opens the gate',
    scopes: ['change'],
    edits: [
      {
        file: 'src/members/gate.ts',
        find: 'return count >= computeMajority(this.#voters)',
        replace: 'return count >= 1',
      },
    ],
  },
  {
    id: 'MOV5',
    title: 'epochs: a new voter does not carry the acceptances at open positions',
    scopes: ['change'],
    edits: [
      {
        file: ofEpochs,
        find: '    if (position <= log.state.position) continue\n',
        replace: '    if (position > 0) continue\n',
      },
    ],
  },
  {
    id: 'MOV6',
    title: 'epochs: a seal leaves the registrations of its node as they are',
    scopes: ['change-read'],
    edits: [
      {
        file: ofEpochs,
        find: '  log.proposal = undefined\n  stopReading(log, context)\n',
        replace: '  log.proposal = undefined\n',
      },
    ],
  },
  {
    id: 'MOV7',
    title: 'epochs: a prepare passes over acceptances of the epoch before',
    scopes: ['change'],
    edits: [
      {
        file: 'src/paxos/proposer.ts',
        find: '    if (accepted === undefined) continue\n',
        replace:
          '    if (accepted === undefined || accepted.ballot.epoch < phase.ballot.epoch) continue\n',
      },
    ],
  },
  {
    id: 'MOV8',
    title:
      'epochs: a leader passes over what it has taken up at the open position, and uses ballot zero',
    scopes: ['change-lagging'],
    edits: [
      {
        file: 'src/replication/propose.ts',
        find: '  return !log.records.has(log.state.position + 1)\n',
        replace: '  return log.set.epoch > 1 || !log.records.has(log.state.position + 1)\n',
      },
    ],
  },
]
