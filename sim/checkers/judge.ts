/**
 * All checkers of a run, and the events that each of them receives. The judge sees every node's
 * messages, trace and disks; the code under test does not know of it.
 */
import { equalBytes, fromLatin1, latin1 } from '../../src/base/bytes.ts'
import { groupOfBytes } from '../../src/base/ids.ts'
import { isSharedOut } from '../../src/base/placed-group.ts'
import { encodeTuple } from '../../src/base/tuple.ts'
import { decodeMove, movedKey } from '../../src/group/moved-row.ts'
import { decodeShares, sharesKey } from '../../src/members/shares-row.ts'
import { hashToBucket } from '../../src/placement/placement.ts'
import type { SharesRow } from '../../src/placement/shares.ts'
import { decodeEntry } from '../../src/replication/entry.ts'
import { unreachable } from '../../src/base/assert.ts'
import type { Placement } from '../../src/placement/placement.ts'
import type { Put } from '../../src/ports/storage.ts'
import type { TraceEvent } from '../../src/ports/trace.ts'
import type { PeerFrame } from '../../src/replication/message.ts'
import type { Coverage } from '../coverage.ts'
import type { Narrator } from '../cluster/narrator.ts'
import type { TimeOptions } from '../world/turn-costs.ts'
import { AcceptorChecker } from './acceptor-checker.ts'
import { WorklistChecker } from './worklist-checker.ts'
import { CellChecker } from './cell-checker.ts'
import { ClockChecker } from './clock-checker.ts'
import { DataDisks } from './data-disks.ts'
import { EpochChecker } from './epoch-checker.ts'
import { EraseChecker } from './erase-checker.ts'
import { FreshnessChecker } from './freshness-checker.ts'
import { DigestChecker } from './digest-checker.ts'
import { decodeRecordsLeft, decodeRecords } from './flush-records.ts'
import { IndexChecker } from './index-checker.ts'
import { LogChecker } from './log-checker.ts'
import { LogEndChecker, type LogEndCheckerParts } from './log-end-checker.ts'
import { LogFirstChecker } from './log-first-checker.ts'
import { LogModel } from './log-model.ts'
import { PaceChecker, type PaceLimits } from './pace-checker.ts'
import { describePlace, PositionBook, type PositionView } from './position-book.ts'
import { ProposalChecker } from './proposal-checker.ts'
import type { Referee } from './referee.ts'
import { TurnChecker } from './turn-checker.ts'
import { VersionChecker } from './version-checker.ts'
import { readBallot, readBytes, readCommit, readNumber, readText } from './trace-fields.ts'

export interface JudgeParts {
  readonly placement: Placement
  readonly limits: PaceLimits & LogEndCheckerParts['limits']
  readonly referee: Referee
  readonly coverage: Coverage
  /** Receives every event, when a reader wants the story. */
  readonly narrator: Narrator | undefined
  readonly times: TimeOptions
  /** The monotonic clock of a node now. */
  monotonicMs(node: string): number
  /** The world's time. */
  nowMicros(): number
}

/** How far a node is with a snapshot of a group. */
export type TakingStage = 'asked' | 'aside' | 'back'

export class Judge {
  readonly book: PositionBook
  readonly model: LogModel
  readonly log: LogChecker
  readonly logFirst: LogFirstChecker
  readonly cells: CellChecker
  readonly disks: DataDisks
  readonly worklists: WorklistChecker
  readonly indexes: IndexChecker
  readonly clocks: ClockChecker
  readonly turns: TurnChecker
  readonly erased: EraseChecker
  readonly epochs: EpochChecker
  readonly freshness: FreshnessChecker
  readonly versions: VersionChecker
  /** Called after an entry was applied and checked. */
  onApplied: (node: string, group: string) => void = () => undefined
  /** Called as a node asks for a snapshot of a group, puts the group aside for it, and has it back. */
  onTaking: (stage: TakingStage, node: string, group: string) => void = () => undefined
  /** Called as an entry becomes visible somewhere: who might still serve the group without it? */
  onVisible: (node: string, group: string, position: number) => void = () => undefined
  readonly #proposals: ProposalChecker
  readonly #acceptors: AcceptorChecker
  readonly #digests: DigestChecker
  readonly #logEnds: LogEndChecker
  readonly #pace: PaceChecker
  readonly #narrator: Narrator | undefined
  readonly #referee: Referee
  readonly #forgotten = new Set<string>()

  constructor(parts: JudgeParts) {
    const { placement, limits, referee, coverage, narrator, times } = parts
    const monotonicMs = parts.monotonicMs.bind(parts)
    this.#narrator = narrator
    this.#referee = referee
    this.book = new PositionBook(placement)
    this.model = new LogModel({ referee })
    const onChosen = (view: PositionView): void => {
      this.model.onChosen(view)
      noteMoves(this.book, view)
      noteShares(this.book, referee, view)
      checkSet(this.book, referee, view)
      if (view.position === 1 && view.chosen !== undefined) {
        this.book.voters.noteBegun(view.group, view.chosen.ballot.node)
      }
    }
    const { book, model } = this
    this.#proposals = new ProposalChecker({ book, referee, coverage, onChosen })
    this.disks = new DataDisks((group, position) => model.of(group).horizons[position] ?? 0)
    const durablePosition = (node: string, group: string): number =>
      this.disks.findPosition(node, group)
    this.log = new LogChecker({ book, referee, model, durablePosition })
    const isForgotten = (node: string): boolean => this.#forgotten.has(node)
    const applied = (node: string, group: string): number => this.log.appliedPosition(node, group)
    const isTaking = (node: string, group: string): boolean => this.disks.isSwitching(node, group)
    this.epochs = new EpochChecker({ book, referee, applied, isTaking })
    this.#acceptors = new AcceptorChecker(book, referee, this.#proposals, this.epochs)
    this.#digests = new DigestChecker({ referee, findPosition: durablePosition, isForgotten })
    const others = (node: string): readonly string[] =>
      book.voters.stayingOf(node).filter((one) => one !== node)
    const about = { referee, findPosition: durablePosition, isForgotten, others }
    this.#logEnds = new LogEndChecker({ ...about, limits, monotonicMs })
    this.logFirst = new LogFirstChecker(referee)
    this.#pace = new PaceChecker(limits, referee)
    this.cells = new CellChecker(referee)
    this.worklists = new WorklistChecker(referee)
    this.indexes = new IndexChecker(referee, coverage)
    this.clocks = new ClockChecker(book, referee, coverage)
    this.turns = new TurnChecker(referee, times)
    this.versions = new VersionChecker(referee, placement)
    this.erased = new EraseChecker(referee)
    this.freshness = new FreshnessChecker(referee, () => parts.nowMicros())
    model.onWrite = (write) => {
      this.indexes.onWrite(write)
      this.cells.onWrite(write)
    }
  }

  /**
   * The node's log is of another time, and the others know: it no longer votes. Until they tell it
   * so, its own writes and proposals harm no other node; a vote that it sends would.
   */
  onForgotten(node: string): void {
    this.#narrator?.note(node, 'has an old disk')
    this.#forgotten.add(node)
  }

  /** Another store is to have the node's vote. The votes of the lost one count on: another epoch counts those of the new one. */
  onStoreLost(node: string): void {
    this.#narrator?.note(node, 'has lost its store')
    this.#forgotten.delete(node)
    this.book.forget(node)
    this.onDataReplaced(node, [])
    this.#digests.onStoreLost(node)
    this.#logEnds.onStoreLost(node)
    this.logFirst.onStoreLost(node)
    this.epochs.onStoreLost(node)
  }

  /** The node's data disk holds something else: `puts` is all of it. */
  onDataReplaced(node: string, puts: readonly Put[]): void {
    this.#narrator?.note(node, 'has another data disk')
    this.disks.replace(node, puts)
    this.erased.onReplaced(node)
    this.worklists.replace(node, puts)
    this.#digests.onReplaced(node)
    this.#logEnds.onReplaced(node)
  }

  onStart(node: string): void {
    this.#narrator?.note(node, 'starts')
    this.log.onStart(node)
    this.epochs.onStarted(node)
    this.#logEnds.onStart(node)
  }

  /** It has taken up its disks, which are sound. */
  onOpen(node: string): void {
    if (!this.#forgotten.has(node)) this.log.onOpen(node)
  }

  onDown(node: string): void {
    this.#narrator?.note(node, 'is down')
  }

  /** Records an action that no checker looks at, for readers of the story. */
  note(who: string, what: string): void {
    this.#narrator?.note(who, what)
  }

  onFrameSent(from: string, to: string, frame: PeerFrame): void {
    this.#narrator?.sent(from, to, frame)
    this.#referee.check(
      !this.#forgotten.has(from),
      'PAX-2',
      'A node whose log went back in time was let in again.',
      () => ({ from, to }),
    )
    this.#pace.onSent(from, to, frame)
    for (const message of frame.messages) {
      this.#acceptors.onSent(from, message)
      this.epochs.onSent(from, message)
      this.#proposals.onSent(from, message)
      this.#logEnds.onSent(from, to, message)
      const isFirst = message.kind === 'snapshot-request' && message.part === 0
      if (isFirst) this.onTaking('asked', from, message.group)
    }
  }

  onFrameDelivered(from: string, to: string, frame: PeerFrame): void {
    this.#narrator?.delivered(from, to, frame)
    for (const message of frame.messages) {
      this.#proposals.onDelivered(from, to, message)
      this.versions.onDelivered(from, to, message)
      this.#logEnds.onDelivered(from, to, message)
    }
  }

  /** A write of a node's log disk became durable; not `isWhole`: a crash left a part of it. */
  onLogDurable(node: string, puts: readonly Put[], isWhole = true): void {
    if (this.#forgotten.has(node)) return
    const written = puts.map((put) => {
      return { put, records: isWhole ? decodeRecords(put) : decodeRecordsLeft(put) }
    })
    const voted = written.flatMap(({ records }) => records)
    this.epochs.onVotes(node, puts, voted)
    for (const { put, records } of written) {
      this.#digests.onLogDurable(node, put, records, isWhole)
      this.erased.onLogDurable(node, put)
      this.#logEnds.onLogDurable(node, put, records)
      for (const record of records) {
        this.#narrator?.durable(node, record)
        this.#acceptors.onDurable(node, record)
        this.logFirst.onLogDurable(node, record)
        this.versions.onLogDurable(node, record)
      }
    }
    this.epochs.onLogDurable(node, puts)
  }

  /** A write of a node's data disk became durable. */
  onDataDurable(node: string, puts: readonly Put[], nowMicros: number): void {
    this.erased.onDataDurable(node, puts, nowMicros)
    this.worklists.onDurable(node, puts)
    this.#digests.onDataDurable(node, puts)
    for (const changed of this.disks.onDurable(node, puts)) {
      const { group, position, stateHash, isSnapshot } = changed
      this.#narrator?.rows(node, group, position)
      this.log.onDurableRows(node, changed)
      if (stateHash === undefined) continue
      this.log.onDurableState(node, group, position, stateHash)
      // The entries before a snapshot stand in the log of its sender.
      const isOfLog = !isSnapshot && !this.#forgotten.has(node)
      if (isOfLog) this.logFirst.onDataDurable(node, group, position)
    }
  }

  /** A snapshot takes a group over, or has taken it over. */
  #onTaking(node: string, event: TraceEvent): void {
    const { group, position } = readPlace(event)
    if (event.kind === 'aside') {
      this.log.onAside(node, group)
      return this.onTaking('aside', node, group)
    }
    this.log.onInstalled(node, group, position)
    this.onVisible(node, group, position)
    this.onTaking('back', node, group)
    return this.onApplied(node, group)
  }

  onTrace(node: string, event: TraceEvent): void {
    this.#narrator?.event(node, event)
    const kind = classifyEvent(event)
    switch (kind) {
      case 'propose':
        return this.#onProposed(node, event)
      case 'chosen': {
        const value = readBytes(event, 'value')
        const { group, position } = readPlace(event)
        const ballot = readBallot(event, 'ballot')
        this.freshness.onKnown(group, position)
        return this.#proposals.onRegardedAsChosen(node, group, position, ballot, value)
      }
      case 'apply': {
        const { group, position } = readPlace(event)
        this.log.onApplied(node, group, position, readBytes(event, 'value'))
        this.versions.onApplied(node, group, position, readBytes(event, 'value'))
        this.freshness.onKnown(group, position)
        this.onVisible(node, group, position)
        return this.onApplied(node, group)
      }
      case 'taking':
        return this.#onTaking(node, event)
      case 'health':
        return this.#onHealth(node, event)
      case 'serve':
        return this.#onServed(node, event)
      case 'fresh': {
        const maxStalenessMs = readNumber(event, 'maxStalenessMs')
        return this.freshness.onAnswered(node, { ...readPlace(event), maxStalenessMs })
      }
      case 'promise':
      case 'accept': {
        const { group, position } = readPlace(event)
        const ballot = readBallot(event, 'ballot')
        this.epochs.onDecided(node, { kind, group, position, ballot })
        return this.log.onVoted(node, group, position)
      }
      case 'settled': {
        const commit = readCommit(event)
        if (commit === undefined) return undefined
        const { position, attempt } = commit
        return this.log.onCommitAnswered(node, readText(event, 'group'), position, attempt)
      }
      case 'epoch':
        return this.epochs.onEntered(node, readNumber(event, 'epoch'))
      case 'other':
        return undefined
      default:
        return unreachable(kind)
    }
  }

  /** The node has found the rows of a group wrong, or has right ones again. */
  #onHealth(node: string, event: TraceEvent): void {
    const group = readText(event, 'group')
    if (event.kind === 'ill') this.log.onIll(node, group)
    else this.log.onMended(node, group)
  }

  #onProposed(node: string, event: TraceEvent): void {
    if (this.#forgotten.has(node)) return
    const value = readBytes(event, 'value')
    const { group, position } = readPlace(event)
    this.#proposals.onProposed(node, group, position, readBallot(event, 'ballot'), value)
  }

  #onServed(node: string, event: TraceEvent): void {
    const { group, position } = readPlace(event)
    const { timestamp } = event
    const at = typeof timestamp === 'number' ? timestamp : undefined
    if (event['isLeased'] === true) this.log.onServedAlone(node, group, position)
    this.log.onServed(node, group, position, at)
  }
}

type KnownKind =
  | 'propose'
  | 'chosen'
  | 'promise'
  | 'accept'
  | 'apply'
  | 'taking'
  | 'health'
  | 'serve'
  | 'fresh'
  | 'settled'
  | 'epoch'
  | 'other'

function classifyEvent({ kind }: TraceEvent): KnownKind {
  switch (kind) {
    case 'propose':
    case 'chosen':
    case 'promise':
    case 'accept':
    case 'apply':
    case 'serve':
    case 'fresh':
    case 'settled':
    case 'epoch':
      return kind
    case 'ill':
    case 'mended':
      return 'health'
    case 'aside':
    case 'installed':
      return 'taking'
    default:
      return 'other'
  }
}

function readPlace(event: TraceEvent): { readonly group: string; readonly position: number } {
  return { group: readText(event, 'group'), position: readNumber(event, 'position') }
}

/** MOVE-9: each value is chosen in the set that has the group at that position. */
function checkSet({ voters }: PositionBook, referee: Referee, view: PositionView): void {
  const { chosen } = view
  if (chosen === undefined) return
  const { node } = chosen.ballot
  referee.check(
    voters.isOfSet(node, view),
    'MOVE-9',
    'A set has chosen a value at a position of a group that is in another set there.',
    () => describePlace(view, node, chosen.ballot),
  )
}

/** Rules that know the set of a position hear of each entry by which a group leaves its set. */
function noteMoves({ voters }: PositionBook, { group, position, chosen }: PositionView): void {
  const entry = chosen === undefined ? undefined : decodeEntry(chosen.value)
  for (const { mutations } of entry?.transactions ?? []) {
    for (const { key, value } of mutations) {
      if (value === undefined || !equalBytes(key, movedKey)) continue
      const to = decodeMove(value)
      if (to !== undefined) voters.noteMove(group, position, to)
    }
  }
}

/** The names of the sets' own groups begin so. */
const setGroupsPrefix = latin1(encodeTuple(['members']))

/** MOVE-15: as a set opens buckets, it has each group of theirs that has begun, or has had it and knows where it is. */
function noteShares(book: PositionBook, referee: Referee, view: PositionView): void {
  const { voters } = book
  for (const row of sharesIn(view)) {
    const before = new Map(row.flatMap(({ buckets }) => buckets.map((b) => [b, voters.homeOf(b)])))
    for (const { buckets } of voters.noteShares(view.group, row)) {
      const own = voters.setAt(view.group, Infinity)
      for (const group of book.groups) {
        const name = groupOfBytes(fromLatin1(group))
        const bucket = isSharedOut(name) ? hashToBucket(name) : -1
        const isBegun = book.of(group, 1).chosen !== undefined
        if (!isBegun || before.get(bucket) === own || !buckets.includes(bucket)) continue
        referee.check(
          voters.hasHad(group, own),
          'MOVE-15',
          'A set has opened a bucket, and has nothing of a group that has begun in another set.',
          () => ({ ...describePlace(view, ''), left: Buffer.from(name, 'latin1').toString('hex') }),
        )
      }
    }
  }
}

function sharesIn({ group, chosen }: PositionView): readonly SharesRow[] {
  if (!group.startsWith(setGroupsPrefix)) return []
  const entry = chosen === undefined ? undefined : decodeEntry(chosen.value)
  const mutations = entry?.transactions.flatMap((one) => one.mutations) ?? []
  return mutations.flatMap(({ key, value }) => {
    const row = value !== undefined && equalBytes(key, sharesKey) ? decodeShares(value) : undefined
    return row === undefined ? [] : [row]
  })
}
