/**
 * Epochs, as the nodes' log disks show them: which a node acts in, and whether it is past the gate.
 *
 * MOVE-2  Once a seal is durable its node votes in no earlier epoch, and it tells of the seal only then.
 * MOVE-3  A node votes in an epoch only once its gate is durable, and knows by then all that was chosen in earlier ones.
 *         Its seal counts only where it had passed the gate of the epoch that it seals.
 */
import { recordKey } from '../../src/journal/ordered-journal.ts'
import { equalBytes, latin1 } from '../../src/base/bytes.ts'
import type { FlushRecord } from '../../src/log/flush.ts'
import type { OwnEpochs } from '../../src/log/own-epochs.ts'
import { decodeEpochs, memoryName } from '../../src/log/peer-memory.ts'
import type { Put } from '../../src/ports/storage.ts'
import { describeBallot } from '../../src/paxos/ballot.ts'
import type { Message } from '../../src/replication/message.ts'
import { describePlace, isAtLeast, type PositionBook, type PositionView } from './position-book.ts'
import type { Referee } from './referee.ts'

export interface EpochCheckerParts {
  readonly book: PositionBook
  readonly referee: Referee
  /** How far the node has applied the group. */
  applied(node: string, group: string): number
  /** Whether a snapshot that is on the node's disk is taking the group over. */
  isTaking(node: string, group: string): boolean
}

/** A promise, or an acceptance. */
export type Vote = Pick<FlushRecord, 'kind' | 'position' | 'ballot'> & { readonly group: string }

const memoryText = latin1(recordKey(memoryName))

export class EpochChecker {
  /** Whether the node's log is damaged: it has no vote where it cannot tell how it voted, and keeps nothing of others there. */
  isHurt: (node: string) => boolean = () => false
  readonly #parts: EpochCheckerParts
  /** As the log of each node durably has it. */
  readonly #own = new Map<string, OwnEpochs>()
  /** The epoch that a node acts in since a turn of its present run, which its disk may not have yet. */
  readonly #entered = new Map<string, number>()
  /** The votes that nodes have decided on before they entered a later epoch: their flushes may come behind the record of that epoch. */
  readonly #decided = new Set<string>()

  constructor(parts: EpochCheckerParts) {
    this.#parts = parts
  }

  /** The epoch that the node durably acts in. */
  epochOf(node: string): number {
    return this.#own.get(node)?.epoch ?? 1
  }

  /** A run of the node begins: it acts in the epoch that its disk has. */
  onStarted(node: string): void {
    this.#entered.delete(node)
  }

  /** From this turn on the node votes in no earlier epoch. */
  onEntered(node: string, epoch: number): void {
    this.#entered.set(node, epoch)
  }

  /** The node votes, and its disk will have that. */
  onDecided(node: string, vote: Vote): void {
    const entered = this.#entered.get(node) ?? 0
    if (vote.ballot.epoch >= entered) this.#decided.add(voteKey(node, vote))
  }

  /** Another store is to have the node's vote. */
  onStoreLost(node: string): void {
    this.#own.delete(node)
    this.#parts.book.voters.forget(node)
  }

  /** A write of the node's log is becoming durable, with these records. */
  onVotes(node: string, puts: readonly Put[], records: readonly FlushRecord[]): void {
    const before = this.#own.get(node)
    const after = findEpochs(puts) ?? before
    if (after === undefined) return
    for (const record of records) {
      if (record.kind === 'promise' || record.kind === 'accept') {
        this.#onVoted(node, record, before ?? after, after)
      }
    }
  }

  /** A write of the node's log has become durable. */
  onLogDurable(node: string, puts: readonly Put[]): void {
    const gated = this.#own.get(node)?.gated ?? 1
    const after = findEpochs(puts)
    if (after === undefined) return
    this.#own.set(node, after)
    this.#parts.book.voters.note(node, after)
    this.#parts.referee.check(
      after.soundFor < after.epoch || after.gated >= after.epoch - 1,
      'MOVE-3',
      'The seal of a node counts that had not passed the gate of the epoch which it seals.',
      () => ({ node, epoch: after.epoch, gated: after.gated }),
    )
    if (after.gated > gated && !this.isHurt(node)) this.#onGate(node, after)
  }

  #onVoted(node: string, record: FlushRecord, before: OwnEpochs, after: OwnEpochs): void {
    const { book, referee } = this.#parts
    const { group, position, ballot } = record
    const view = book.of(group, position)
    // A promise of an open position is written again, so that its flush is not needed any more.
    const isCopy = isAtLeast(view.acceptors.get(node)?.promised, ballot)
    if (record.kind === 'promise' && isCopy) return
    const where = (): Readonly<Record<string, unknown>> => ({
      ...describePlace(view, node, ballot),
      ...{ epoch: after.epoch, gated: after.gated, isMember: after.isMember },
    })
    // The node tells its seal, which names these votes, only when the flushes that were under way are durable.
    const isDecided = this.#decided.delete(voteKey(node, record))
    referee.check(
      ballot.epoch >= before.epoch || isDecided,
      'MOVE-2',
      'A node votes in an epoch that it has durably sealed.',
      where,
    )
    const isPast = after.gated === ballot.epoch && !after.blocked.includes(group)
    const isVoter = ballot.epoch < after.epoch ? before.gated === ballot.epoch : isPast
    referee.check(
      isVoter && (ballot.epoch < after.epoch ? before : after).isMember,
      'MOVE-3',
      'A node votes in an epoch whose gate it has not durably passed, or in which it has no vote.',
      where,
    )
  }

  /** Each value chosen in an earlier epoch is applied here, or held as accepted. */
  #onGate(node: string, { epoch, blocked }: OwnEpochs): void {
    const { book, referee, applied, isTaking } = this.#parts
    for (const group of book.groups) {
      if (isTaking(node, group)) continue
      if (blocked.some((one) => one === group)) continue
      const through = applied(node, group)
      for (const view of book.listPositions(group)) {
        if (view.position <= through || view.chosen === undefined) continue
        if (view.chosen.ballot.epoch >= epoch || isGoneOn(view, epoch)) continue
        if (!book.voters.isVoter(view, node, epoch)) continue
        referee.check(
          isKnown(view, node),
          'MOVE-3',
          'A node passes a gate without a value that an earlier epoch has chosen.',
          () => ({ ...describePlace(view, node, view.chosen?.ballot), epoch, applied: through }),
        )
      }
    }
  }

  onSent(node: string, message: Message): void {
    if (message.kind === 'seal-page') {
      const own = this.#own.get(node)
      this.#parts.referee.check(
        own?.epoch === message.epoch && own.soundFor === message.epoch,
        'MOVE-2',
        'A node tells of a seal that is not durable, or that counts for nothing.',
        () => ({ node, told: message.epoch, epoch: own?.epoch, soundFor: own?.soundFor }),
      )
    } else if (message.kind === 'standing') {
      const { epoch, gated } = this.#own.get(node) ?? { epoch: 1, gated: 1 }
      this.#parts.referee.check(
        message.epoch <= epoch && message.gated <= gated,
        'MOVE-2',
        'A node tells of an epoch, or of a gate, that is not durable.',
        () => ({ node, told: message, epoch, gated }),
      )
    }
  }
}

/** The last ones in a write. */
function findEpochs(puts: readonly Put[]): OwnEpochs | undefined {
  const put = puts.findLast(({ key }) => latin1(key) === memoryText)
  return put?.value && decodeEpochs(put.value)
}

/** Of one ballot a node may promise and accept. */
function voteKey(node: string, { kind, group, position, ballot }: Vote): string {
  return `${node} ${kind} ${position} ${describeBallot(ballot)} ${group}`
}

/**
 * A voter has accepted in the epoch, so its seal tells of no earlier acceptance there. The value is safe without this node
 * (`src/members/SPEC.md`).
 */
function isGoneOn({ acceptors }: PositionView, epoch: number): boolean {
  return [...acceptors.values()].some(({ accepted }) => accepted?.ballot.epoch === epoch)
}

function isKnown({ acceptors, chosen }: PositionView, node: string): boolean {
  const own = acceptors.get(node)
  if (own?.hasChosen === true || chosen === undefined) return true
  const { accepted } = own ?? {}
  if (accepted === undefined || !isAtLeast(accepted.ballot, chosen.ballot)) return false
  return equalBytes(accepted.value, chosen.value)
}
