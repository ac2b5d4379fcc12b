/**
 * More planted bugs of our own, around the agreement rather than in it: the driver, recovery, the
 * overlay, sessions, catch-up, digests, who may join, clocks.
 */
import type { Mutant } from './mutant.ts'

export const nodeMutants: readonly Mutant[] = [
  {
    id: 'S11',
    title: 'peers: a peer is told of a flush before it is durable',
    edits: [
      {
        file: 'src/peers/peers.ts',
        find: 'const frame = { durableFlush: this.#options.log.durableFlush, messages }',
        replace: 'const frame = { durableFlush: this.#options.log.durableFlush + 1, messages }',
      },
    ],
  },
  {
    id: 'S12',
    title: 'driver: deadlines are set by the monotonic clock and read off the wall clock',
    edits: [
      {
        file: 'src/replica/driver-work.ts',
        find: 'const now = clock.monotonicMs()\n',
        replace: 'const now = clock.wallMicros() / 1000\n',
      },
    ],
  },
  {
    id: 'S13',
    title: 'overlay: a batch that is durable takes rows written again meanwhile along',
    edits: [
      {
        file: 'src/store/overlay.ts',
        find: '    if (later === row) {\n',
        replace: '    if (later !== undefined) {\n',
      },
    ],
  },
  {
    id: 'S14',
    title:
      'overlay: of a group, what one batch takes and what waits for the next are not told apart',
    edits: [
      {
        file: 'src/store/overlay.ts',
        find: '      if (overlay.waiting === undefined) this.#drop(group, overlay, rows)\n      else this.#releaseRows(group, overlay, rows)\n',
        replace: '      this.#drop(group, overlay, [...overlay.rows.values()])\n',
      },
    ],
  },
  {
    id: 'S15',
    title: 'sessions: a group forgets one outcome more than the floor allows',
    edits: [
      {
        file: 'src/replication/apply.ts',
        find: '  raiseFloor(session, transaction.floor)\n',
        replace: '  raiseFloor(session, transaction.floor + 1)\n',
      },
    ],
  },
  {
    id: 'S16',
    title: 'validation: what is older than the window is taken for unchanged',
    edits: [
      {
        file: 'src/replication/window.ts',
        find: '    if (readPosition < this.#from) return { position: through }\n',
        replace: '',
      },
    ],
  },
  {
    id: 'S17',
    title: 'validation: a group that comes back into memory takes all before for unchanged',
    edits: [
      {
        file: 'src/replication/log.ts',
        find: 'new ValidationWindow(state.position, limits)',
        replace: 'new ValidationWindow(0 * state.position, limits)',
      },
    ],
  },
  {
    id: 'S18',
    title: 'catch-up: what was accepted is passed on as if it were chosen',
    edits: [
      {
        file: 'src/log/log-index.ts',
        find: 'return { ballot: this.#ballotIn(cells, row + chosenAt), place',
        replace:
          'const at = (cells[row + chosenAt] ?? none) === none ? acceptedAt : chosenAt\n' +
          '      return { ballot: this.#ballotIn(cells, row + at), place',
      },
      {
        file: 'src/replication/catch-up.ts',
        find: 'Math.min(message.through, log.state.position)',
        replace: 'Math.max(message.through, log.state.position)',
      },
    ],
  },
  {
    id: 'S19',
    title: 'digest: a group that is known at all is taken to be known in full',
    edits: [
      {
        file: 'src/peers/peer-marks.ts',
        find: 'log.highest(group) >= position) pending',
        replace: 'log.highest(group) >= Math.min(position, 1)) pending',
      },
    ],
  },
  {
    id: 'S41',
    title: 'a list of groups: the node asks nobody for those that it has not heard of',
    edits: [
      {
        file: 'src/peers/group-discovery.ts',
        find: 'if (nodes.otherVoters.length === 0) return',
        replace: 'if (nodes.otherVoters.length >= 0) return',
      },
    ],
  },
  {
    id: 'S42',
    title: 'a list of groups: what is accepted and not applied is left out',
    edits: [
      {
        file: 'src/replica/group-list.ts',
        find: 'data.groups(prefix, after, limit, known())',
        replace: 'data.groups(prefix, after, limit, [])',
      },
    ],
  },
  {
    id: 'S43',
    title: 'digests: what one names is not asked for again after a start, known here or not',
    edits: [
      {
        file: 'src/peers/peer-digest-cursor.ts',
        find: '      if (this.#log.highest(group) < position) return false\n',
        replace: '',
      },
    ],
  },
  {
    id: 'S44',
    title: 'digests: what is known here counts before the log has it durably',
    edits: [
      {
        file: 'src/peers/peer-digest-cursor.ts',
        find: '    if (this.#log.durableFlush < this.#older.coveredByFlush) return false\n',
        replace: '',
      },
    ],
  },
  {
    id: 'S27',
    title: 'catching up: who has arrived goes on asking, and settles what nobody proposed',
    edits: [
      {
        file: 'src/replication/catch-up.ts',
        find: 'log.catchUp.through <= log.state.position)\n    log.catchUp = undefined',
        replace: 'log.catchUp.through < log.state.position) log.catchUp = undefined',
      },
    ],
  },
  {
    id: 'S21',
    title: 'reads: one that begins while a round is on its way shares its answers',
    edits: [
      {
        file: 'src/replication/read.ts',
        find: '  if (log.readRound !== undefined) return\n',
        replace:
          '  if (log.readRound !== undefined) {\n' +
          '    const reads = [...log.readRound.reads, ...log.readsWaiting]\n' +
          '    log.readRound = { ...log.readRound, reads }\n' +
          '    log.readsWaiting = []\n' +
          '    return\n' +
          '  }\n',
      },
    ],
  },
  {
    id: 'S22',
    title: 'acceptance: a damaged record counts as one that was never written',
    edits: [
      {
        file: 'src/replication/acceptance.ts',
        find: "  if (record?.kind === 'faulty' || !hasVote(log, context)) {\n",
        replace: '  if (!hasVote(log, context)) {\n',
      },
    ],
  },
  {
    id: 'S23',
    title: 'joining: a disk that is behind what it once said may vote again',
    edits: [
      {
        file: 'src/peers/admission.ts',
        find: '  const isSameIncarnation = known.incarnation === incarnation\n',
        replace:
          '  const isSameIncarnation = known.durableFlush >= 0\n  if (isSameIncarnation) return undefined\n',
      },
    ],
  },
  {
    id: 'S24',
    title: 'joining: an empty store is taken for a new node under the old name',
    edits: [
      {
        file: 'src/peers/admission.ts',
        find: 'if (known.storeId !== storeId) {\n',
        replace: 'if (known.storeId !== storeId) {\n    if (storeId !== node) return undefined\n',
      },
    ],
  },
  {
    id: 'S25',
    title: 'recovery: of the groups that the log knows more of, the first is not looked at',
    edits: [
      {
        file: 'src/replica/log-replay.ts',
        find: 'for (const group of [...log.groupsWithUnsettled()]) {',
        replace: 'for (const group of [...log.groupsWithUnsettled()].slice(1)) {',
      },
    ],
  },
  {
    id: 'S26',
    title: 'recovery: a chosen record is read back as a mere acceptance',
    edits: [
      {
        file: 'src/log/flush.ts',
        find: "  [chosenValueCode]: 'chosen',\n",
        replace: "  [chosenValueCode + 10]: 'chosen',\n",
      },
    ],
  },
  {
    id: 'S28',
    title: 'an entry goes by the clock of its proposer, however far that is ahead of the others',
    edits: [
      {
        file: 'src/replica/driver-work.ts',
        find: 'stamp: clocks.held({ wall, now })',
        replace: 'stamp: wall',
      },
    ],
  },
  {
    id: 'S71',
    title: 'a clock that is behind is not noticed',
    edits: [
      {
        file: 'src/peers/peer-clocks.ts',
        find: "    if (this.lagMs(reading) * 1_000 > pickMost('behind')) return 'behind'\n",
        replace: '',
      },
    ],
  },
  {
    id: 'S72',
    title: 'a node whose clock is behind goes by its own',
    edits: [
      {
        file: 'src/peers/peer-clocks.ts',
        find: 'const held = Math.max(Math.min(wall, latest), earliest)',
        replace: 'const held = Math.min(wall, Math.max(latest, earliest))',
      },
    ],
  },
  {
    id: 'S73',
    title: 'a client whose request looks too long by the clock of a node is refused for good',
    edits: [
      {
        file: 'src/txn/intents.ts',
        find: "  return problem('unavailable', message)\n",
        replace: "  return problem('invalid', message)\n",
      },
    ],
  },
]
