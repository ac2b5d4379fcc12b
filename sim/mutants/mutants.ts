/**
 * Planted bugs: patches against the real sources, applied to a copy, never switches in them. Each
 * must be found by the simulator; `canary` shows that failures are reported at all, and `control`
 * that nothing is reported without a bug.
 */
import type { Edit, Mutant } from './mutant.ts'
import { askedMutants } from './asked.ts'
import { buildMutants } from './builds.ts'
import { bucketMutants } from './buckets.ts'
import { bufferMutants } from './buffer.ts'
import { clockMutants } from './clocks.ts'
import { cellMutants } from './cells.ts'
import { costMutants } from './cost.ts'
import { freshnessMutants } from './freshness.ts'
import { gatewayMutants } from './gateway.ts'
import { hashMutants } from './hashes.ts'
import { epochMutants } from './epochs.ts'
import { healingMutants } from './healing.ts'
import { historyMutants } from './history.ts'
import { indexMutants } from './indexes.ts'
import { leaseMutants } from './leases.ts'
import { loadMutants } from './load.ts'
import { logMutants } from './log.ts'
import { eraseMutants } from './erase.ts'
import { logEndMutants } from './log-end.ts'
import { moveMutants } from './moves.ts'
import { mvccMutants } from './mvcc.ts'
import { journalMutants } from './journal.ts'
import { memoryMutants } from './memory.ts'
import { readerMutants } from './readers.ts'
import { scrubMutants } from './scrub.ts'
import { nodeMutants } from './node.ts'
import { ownMutants } from './own.ts'
import { paceMutants } from './pace.ts'
import { queueMutants } from './queues.ts'
import { sessionMutants } from './sessions.ts'
import { snapshotMutants } from './snapshots.ts'
import { tableMutants } from './tables.ts'
import { copyMutants } from './copies.ts'
import { timeMutants } from './time.ts'
import { triggerMutants } from './triggers.ts'
import { upgradeMutants } from './upgrade.ts'
import { validationMutants } from './validation.ts'
import { voterMutants } from './voters.ts'

/** Rules whose violations clients can see for themselves. */
const clientRules = ['CELL-1', 'CELL-2', 'CELL-3', 'CELL-8', 'LEASE-3', 'LOG-3']

const readOfAnUnchosenValue: readonly Edit[] = [
  {
    file: 'src/replication/read.ts',
    find: "import { catchUpTo, refuseFalseClaims } from './catch-up.ts'\n",
    replace:
      "import { catchUpTo, refuseFalseClaims } from './catch-up.ts'\nimport { decide } from './learn.ts'\n",
  },
  {
    file: 'src/replication/read.ts',
    find: '  catchUpTo(log, context, target, informer)\n',
    replace:
      '  for (let at = log.state.position + 1; at <= target; at++) {\n' +
      '    const record = log.records.get(at)\n' +
      "    const seen = record?.kind === 'present' ? record.acceptor.accepted : undefined\n" +
      '    if (seen !== undefined) decide(log, context, at, seen.ballot, seen.value)\n' +
      '  }\n' +
      '  catchUpTo(log, context, target, informer)\n',
  },
]

export const mutants: readonly Mutant[] = [
  {
    id: 'control',
    title: 'the sources as they are: nothing may be found',
    edits: [],
    isHarmless: true,
    seedsMax: 100,
  },
  {
    id: 'canary',
    title: 'the simulator reports a failure at every fiftieth seed',
    edits: [
      {
        file: 'sim/run.ts',
        find: '    await this.#faultyPhase()\n',
        replace:
          "    await this.#faultyPhase()\n    this.#referee.check(this.#options.seed % 50 !== 0, 'META-2', 'canary', () => ({}))\n",
      },
    ],
  },
  {
    id: 'G01',
    title: 'a promise leaves before it is durable',
    edits: [
      {
        file: 'src/replica/effect-runner.ts',
        find: 'return log.append(effect.records, () => this.run(effect.after, group))',
        replace:
          'log.append(effect.records, () => undefined)\n        return this.run(effect.after, group)',
      },
    ],
  },
  {
    id: 'G02',
    title: 'ballots are compared by their epoch and round alone',
    edits: [
      {
        file: 'src/paxos/ballot.ts',
        find: '    compareText(a.node, b.node) ||\n    a.incarnation - b.incarnation\n',
        replace: '    (compareText(a.node, b.node) && 0)\n',
      },
    ],
  },
  {
    id: 'G03',
    title: 'the first value answered is adopted, not the one accepted at the highest ballot',
    edits: [
      {
        file: 'src/paxos/proposer.ts',
        find: 'if (highest === undefined || compareBallots(accepted.ballot, highest.ballot) > 0) {',
        replace: 'if (highest === undefined) {',
      },
    ],
  },
  {
    id: 'G05',
    title: 'catch-up applies what it has in order of position, holes or not',
    edits: [
      {
        file: 'src/replication/learn.ts',
        find: '    const position = log.state.position + 1\n    const decision = log.decisions.get(position)\n',
        replace:
          '    const known = [...log.decisions].filter(([, one]) => one.value !== undefined)\n' +
          '    const position = Math.min(...known.map(([at]) => at))\n' +
          '    log.state.position = Number.isFinite(position) ? position - 1 : log.state.position\n' +
          '    const decision = log.decisions.get(position)\n',
      },
    ],
  },
  {
    id: 'G07',
    title: 'who finishes an adopted value takes itself for the next leader',
    edits: [
      {
        file: 'src/replication/learn.ts',
        find: '  const { writes, outcomes } = applyEntry(log.state, entry)\n',
        replace:
          '  const { writes, outcomes } = applyEntry(log.state, entry)\n' +
          '  if (decision.ballot.node === context.node && decision.ballot.round > 0) {\n' +
          '    log.state.nextLeader = { node: context.node, incarnation: context.incarnation }\n' +
          '  }\n',
      },
    ],
  },
  {
    id: 'G08',
    title: 'an acceptor takes ballot zero whatever it has promised',
    edits: [
      {
        file: 'src/paxos/acceptor.ts',
        find:
          '): AcceptDecision {\n  const { promised, accepted } = acceptor\n' +
          '  if (promised !== undefined && compareBallots(ballot, promised) < 0) {',
        replace:
          '): AcceptDecision {\n  const { promised, accepted } = acceptor\n' +
          '  if (ballot.round > 0 && promised !== undefined && compareBallots(ballot, promised) < 0) {',
      },
      {
        file: 'src/paxos/acceptor.ts',
        find: '  const next = checked(acceptor, { promised: ballot, accepted: { ballot, value } })\n',
        replace: '  const next = { promised: ballot, accepted: { ballot, value } }\n',
      },
    ],
  },
  {
    id: 'G17',
    title: 'rows and the applied position go to the data disk in two writes',
    edits: [
      {
        file: 'src/store/applier.ts',
        find: '      this.#underWay = this.#ports.write(batch).then(\n',
        replace:
          '      const { write } = this.#ports\n' +
          '      const isState = ({ key }: Put): boolean =>\n' +
          '        key[0] === 0x73\n' +
          '      const rows = batch.puts.filter((put) => !isState(put))\n' +
          '      const states = batch.puts.filter(isState)\n' +
          '      const writeBoth = (): Promise<void> =>\n' +
          '        write({ ...batch, puts: rows }).then(() => write({ ...batch, puts: states }))\n' +
          '      this.#underWay = writeBoth().then(\n',
      },
    ],
  },
  {
    id: 'G18',
    title: 'a majority read takes an accepted value for chosen and leaves it unfinished',
    edits: readOfAnUnchosenValue,
  },
  {
    id: 'G18-seen',
    title: 'the same, to be found by what clients see, and by nothing else',
    edits: readOfAnUnchosenValue,
    rules: clientRules,
  },
  ...ownMutants,
  ...paceMutants,
  ...queueMutants,
  ...nodeMutants,
  ...memoryMutants,
  ...clockMutants,
  ...journalMutants,
  ...scrubMutants,
  ...historyMutants,
  ...validationMutants,
  ...moveMutants,
  ...upgradeMutants,
  ...bucketMutants,
  ...mvccMutants,
  ...leaseMutants,
  ...freshnessMutants,
  ...bufferMutants,
  ...costMutants,
  ...gatewayMutants,
  ...loadMutants,
  ...logMutants,
  ...snapshotMutants,
  ...eraseMutants,
  ...logEndMutants,
  ...hashMutants,
  ...epochMutants,
  ...readerMutants,
  ...voterMutants,
  ...healingMutants,
  ...tableMutants,
  ...triggerMutants,
  ...cellMutants,
  ...indexMutants,
  ...timeMutants,
  ...copyMutants,
  ...sessionMutants,
  ...askedMutants,
  ...buildMutants,
]
