/**
 * Questions to peers about what they have of their groups, and the answers to theirs. A question that has no answer in
 * time has none.
 */
import type { GroupId, NodeId } from '../base/ids.ts'
import type { Limits } from '../base/limits.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import type { CompareMessage, Marks, Sums, ToldMark } from '../replication/message.ts'
import type { GroupMark } from '../store/bucket-sums.ts'

const kinds = ['sums-request', 'sums', 'marks-request', 'marks'] as const

export function isOfComparison(message: { readonly kind: string }): message is CompareMessage {
  return kinds.some((kind) => kind === message.kind)
}

export interface CompareAsksParts {
  readonly clock: Clock
  readonly limits: Pick<Limits, 'phaseTimeoutMs'>
  drawNumber(): number
  send(to: NodeId, message: CompareMessage): void
  /** Of this node; undefined: the groups are not counted yet. */
  sums(): Uint8Array | undefined
  /** The group as this node has it; undefined: it is not known, or not to be relied on. */
  find(group: GroupId): GroupMark | undefined
  /** A peer has told what it has of a group. */
  onTold(from: NodeId, mark: ToldMark): void
}

/** An answer is waited for this many times `phaseTimeoutMs`: no client waits for it. */
const patience = 10

interface Question {
  readonly to: NodeId
  readonly kind: 'sums' | 'marks'
  readonly resolve: (answer: Sums | Marks | undefined) => void
  readonly timer: Timer
}

export class CompareAsks {
  readonly #parts: CompareAsksParts
  readonly #asked = new Map<number, Question>()
  #isStopped = false

  constructor(parts: CompareAsksParts) {
    this.#parts = parts
  }

  /** The sums of the peer's buckets; undefined: it does not tell them. */
  async sums(to: NodeId): Promise<Uint8Array | undefined> {
    const answer = await this.#ask(to, 'sums', (asked) => ({ kind: 'sums-request', asked }))
    return answer?.kind === 'sums' && answer.sums.length > 0 ? answer.sums : undefined
  }

  /** The groups as the peer has them, in their order; undefined: it does not tell. */
  async marks(to: NodeId, groups: readonly GroupId[]): Promise<readonly ToldMark[] | undefined> {
    const marks = groups.map((group) => this.#mark(group))
    const answer = await this.#ask(to, 'marks', (asked) => ({
      ...{ kind: 'marks-request', asked, marks },
    }))
    const isWhole =
      answer?.kind === 'marks' &&
      answer.marks.length === groups.length &&
      answer.marks.every(([group], at) => group === groups[at])
    return isWhole ? answer.marks : undefined
  }

  #ask(
    to: NodeId,
    kind: Question['kind'],
    make: (asked: number) => CompareMessage,
  ): Promise<Sums | Marks | undefined> {
    const { clock, limits, drawNumber, send } = this.#parts
    if (this.#isStopped) return Promise.resolve(undefined)
    return new Promise((resolve) => {
      const asked = drawNumber()
      const timer = clock.setTimer(patience * limits.phaseTimeoutMs, () => {
        this.#asked.delete(asked)
        resolve(undefined)
      })
      this.#asked.set(asked, { to, kind, resolve, timer })
      send(to, make(asked))
    })
  }

  #mark(group: GroupId): ToldMark {
    const { position = 0, hash = '' } = this.#parts.find(group) ?? {}
    return [group, position, Buffer.from(hash, 'latin1')]
  }

  onMessage(from: NodeId, message: CompareMessage): void {
    const { send, sums, onTold } = this.#parts
    const { asked } = message
    switch (message.kind) {
      case 'sums-request':
        return send(from, { kind: 'sums', asked, sums: sums() ?? new Uint8Array() })
      case 'marks-request': {
        const marks = message.marks.map(([group]) => this.#mark(group))
        send(from, { kind: 'marks', asked, marks })
        for (const mark of message.marks) onTold(from, mark)
        return
      }
      default:
        return this.#onAnswer(from, message)
    }
  }

  #onAnswer(from: NodeId, answer: Sums | Marks): void {
    const question = this.#asked.get(answer.asked)
    if (question?.to !== from || question.kind !== answer.kind) return
    this.#asked.delete(answer.asked)
    question.timer.cancel()
    question.resolve(answer)
  }

  stop(): void {
    this.#isStopped = true
    for (const { timer, resolve } of this.#asked.values()) {
      timer.cancel()
      resolve(undefined)
    }
    this.#asked.clear()
  }
}
