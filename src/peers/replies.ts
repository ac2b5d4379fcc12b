/**
 * Answers peers that ask for what they lack: out of the log, an entry or a flush a piece (`slices.ts`).
 *
 * LIVE-6  Of what a peer asks for, no turn reads more than a slice. Its questions wait in a lane of its
 *         own, a bounded number of them: the peer sends one that finds no room again (`fetches.ts`).
 */
import type { GroupId, NodeId, Position } from '../base/ids.ts'
import type { Limits } from '../base/limits.ts'
import type { Trace } from '../ports/trace.ts'
import type { Effect } from '../replication/effect.ts'
import type { ChosenEntry, DigestRequest, Entries, Message } from '../replication/message.ts'
import type { WrittenSince } from '../log/flush-ledger.ts'
import type { Slices } from './slices.ts'

export type Question = Effect & { readonly kind: 'send-entries' }

/** The log, as far as it is read here. */
export interface ReadableLog {
  /** The entry that was chosen there; undefined where that is not known, or damaged. */
  chosen(group: GroupId, position: Position): Omit<ChosenEntry, 'position'> | undefined
  /** The groups written since a flush: see `FlushLedger.since`. */
  since(after: number, limit: number): Generator<number, WrittenSince>
}

/** Groups as the data store durably has them: a snapshot may go in the place of entries. */
export interface SnapshotSource {
  /** The position of the group; 0: there is nothing to send. */
  durable(group: GroupId): Position
}

export interface CatchUpRepliesParts {
  readonly log: ReadableLog
  readonly snapshots: SnapshotSource
  readonly limits: Pick<
    Limits,
    | 'snapshotAfterEntries'
    | 'catchUpEntriesMax'
    | 'catchUpBytesMax'
    | 'digestGroupsMax'
    | 'questionsMax'
    | 'slicePiecesMax'
    | 'sliceBytesMax'
  >
  readonly trace: Trace
  readonly slices: Pick<Slices, 'add'>
  send(to: NodeId, message: Message): void
  /** Whether the peer may be sent, in this turn, what it can ask for again. */
  hasRoomFor(to: NodeId): boolean
}

/** An answer is one piece of work where it is taken up: it brings this part of what one turn may do at most. */
const answersPerSlice = 4

/** Questions that one work answers. By group: a newer question takes the place of an older one. */
interface Line {
  readonly questions: Map<GroupId, Question>
  isAnswering: boolean
}

/** The questions of a peer that have no answer yet. */
interface Asked {
  readonly usual: Line
  /** A client waits for these there: they come first. */
  readonly awaited: Line
  /** The last one; a peer that asks anew has no use for the answer to an older one. */
  digest: DigestRequest | undefined
  isNaming: boolean
}

export class CatchUpReplies {
  readonly #parts: CatchUpRepliesParts
  readonly #asked = new Map<NodeId, Asked>()

  constructor(parts: CatchUpRepliesParts) {
    this.#parts = parts
  }

  /** The peer lacks these entries. */
  ask(question: Question): void {
    const { to, group } = question
    const { limits, slices, trace } = this.#parts
    if (question.through < question.from) return this.#answerEmpty(question)
    const { usual, awaited } = this.#of(to)
    const known = [awaited, usual].find(({ questions }) => questions.has(group))
    if (
      known === undefined &&
      usual.questions.size + awaited.questions.size >= limits.questionsMax
    ) {
      return trace.mark('no_room_to_answer_peer')
    }
    const isAwaited = question.isAwaited || known === awaited
    if (isAwaited) usual.questions.delete(group)
    const line = isAwaited ? awaited : usual
    line.questions.set(group, question)
    if (line.isAnswering) return
    line.isAnswering = true
    slices.add(`supply ${to}`, { name: 'send-entries', pieces: this.#answer(line) }, isAwaited)
  }

  /** The peer asks which groups were written. */
  askDigest(to: NodeId, request: DigestRequest): void {
    const asked = this.#of(to)
    asked.digest = request
    if (asked.isNaming) return
    asked.isNaming = true
    this.#parts.slices.add(`digest ${to}`, { name: 'digest', pieces: this.#name(to, asked) })
  }

  #of(to: NodeId): Asked {
    let asked = this.#asked.get(to)
    if (asked === undefined) {
      asked = { usual: newLine(), awaited: newLine(), digest: undefined, isNaming: false }
      this.#asked.set(to, asked)
    }
    return asked
  }

  *#answer(line: Line): Generator<number, void> {
    for (;;) {
      const [question] = line.questions.values()
      if (question === undefined) break
      line.questions.delete(question.group)
      this.#send(question.to, yield* this.#entriesFor(question))
    }
    line.isAnswering = false
  }

  /** It reads nothing, and leaves before the notice of what is committed next: the peer then asks anew. */
  #answerEmpty({ to, group, epoch, from, committed }: Question): void {
    this.#send(to, { kind: 'entries', group, epoch, from, entries: [], committed })
  }

  #send(to: NodeId, answer: Entries): void {
    const { send, hasRoomFor, trace } = this.#parts
    if (hasRoomFor(to)) send(to, answer)
    else trace.mark('no_room_to_answer_peer')
  }

  /**
   * Committed entries, contiguous from the first one asked for, as many as the bounds allow. Where the log does not
   * give the first one, or the peer lacks very many, it offers a snapshot instead.
   */
  *#entriesFor(question: Question): Generator<number, Entries> {
    const { log, limits, snapshots } = this.#parts
    const { group, epoch, from, through, committed } = question
    const none = { kind: 'entries', group, epoch, from, entries: [], committed } as const
    if (through - from >= limits.snapshotAfterEntries) {
      const snapshot = snapshots.durable(group)
      if (snapshot - from >= limits.snapshotAfterEntries) return { ...none, snapshot }
    }
    const share = Math.ceil(limits.slicePiecesMax / answersPerSlice)
    const entriesMax = Math.min(limits.catchUpEntriesMax, share)
    const bytesMax = Math.min(limits.catchUpBytesMax, limits.sliceBytesMax / answersPerSlice)
    const entries: ChosenEntry[] = []
    let bytes = 0
    for (let position = from; position <= through; position++) {
      if (entries.length >= entriesMax) break
      const found = log.chosen(group, position)
      if (found === undefined) break
      if (entries.length > 0 && bytes + found.value.length > bytesMax) break
      entries.push({ position, ...found })
      bytes += found.value.length
      yield found.value.length
    }
    if (entries.length === 0) {
      const snapshot = snapshots.durable(group)
      if (snapshot >= from) return { ...none, snapshot }
    }
    return { kind: 'entries', group, epoch, from, entries, committed }
  }

  *#name(to: NodeId, asked: Asked): Generator<number, void> {
    const { log, limits, send } = this.#parts
    for (let request = asked.digest; request !== undefined; request = asked.digest) {
      asked.digest = undefined
      const { after, asked: number } = request
      const written = yield* log.since(after, limits.digestGroupsMax)
      send(to, { kind: 'digest', after, asked: number, ...written })
    }
    asked.isNaming = false
  }
}

function newLine(): Line {
  return { questions: new Map(), isAnswering: false }
}
