/**
 * The worklist as it is seen by a process that is no node: nodes list groups and say what comes. Of the
 * processes that ask the same node, each takes the groups that hash to it.
 */
import { sha256, compareBytes } from '../base/bytes.ts'
import { StoreError } from '../base/errors.ts'
import type { GroupId } from '../base/ids.ts'
import { toStoreError, type Problem } from '../base/problem.ts'
import type { Clock } from '../ports/clock.ts'
import { randomUuid, type Random } from '../ports/random.ts'
import type { Worklist, ListedGroup } from '../group/replica-port.ts'
import { signalled } from '../txn/signalled.ts'
import { pause } from '../time/moments.ts'
import type { WorklistAnswer, AskWorklist } from './worklist-operation.ts'

export interface RemoteWorklistParts {
  readonly ask: AskWorklist
  readonly clock: Clock
  readonly random: Random
  /**
   * Whether a listing may lack the groups of replica sets that do not answer: for who lists again and
   * again. Else there is none without them.
   */
  readonly isPartial?: boolean
}

/** How long one question waits for a change. */
const watchMs = 3_000
const answerMs = 5_000
/** After a question that came to nothing. */
const againMs = 200
/** Groups listed at once after a gap. */
const gapGroups = 500

export class RemoteWorklist implements Worklist {
  readonly #parts: RemoteWorklistParts
  /** Names this process among those that share the work. */
  readonly #member: string
  #members: readonly string[]
  /** Pages of one listing are of one node. */
  #turn = 0

  constructor(parts: RemoteWorklistParts) {
    this.#parts = parts
    this.#member = randomUuid(parts.random)
    this.#members = [this.#member]
  }

  list(topic: string, after: GroupId | undefined, limit: number): Promise<readonly ListedGroup[]> {
    return this.#list([topic, after, limit])
  }

  until(signal: AbortSignal): Worklist {
    return {
      list: (...asked) => signalled(signal, () => this.#list(asked, signal)),
      unlist: () => this.unlist(),
      watch: (topic, wake) => this.watch(topic, wake),
      isOurs: (group) => this.isOurs(group),
    }
  }

  async #list(
    [topic, after, limit]: Parameters<Worklist['list']>,
    signal?: AbortSignal,
  ): Promise<readonly ListedGroup[]> {
    if (after === undefined) this.#turn += 1
    const behind = after === undefined ? {} : { after }
    const part = this.#parts.isPartial === true ? ({ isPartial: true } as const) : {}
    const asked = { topic, limit, turn: this.#turn, ...behind, ...part }
    const operation = { kind: 'list-worklist', ...asked } as const
    const answer = await this.#parts.ask(operation, answerMs, signal)
    if (answer.kind === 'list-worklist') return answer.groups
    throw toStoreError(answer.kind === 'problem' ? answer.problem : notAnAnswer)
  }

  /** Nodes look for themselves. */
  unlist(): void {
    // A group that is listed in vain is found so when it is listed next.
  }

  watch(topic: string, wake: (listed: ListedGroup) => void): () => void {
    const state = { isOver: false }
    void this.#follow(topic, wake, state)
    return () => {
      state.isOver = true
      void this.#leave(topic)
    }
  }

  /** The member whose hash with the group is highest: when one leaves, only its groups move. */
  isOurs(group: GroupId): boolean {
    if (this.#members.length <= 1) return true
    const rank = (member: string): Uint8Array => sha256(`${member} ${group}`)
    const own = rank(this.#member)
    return this.#members.every((one) => compareBytes(rank(one), own) <= 0)
  }

  async #follow(
    topic: string,
    wake: (listed: ListedGroup) => void,
    state: { readonly isOver: boolean },
  ): Promise<void> {
    let mark: string | undefined
    while (!state.isOver) {
      try {
        const told = await this.#ask(topic, mark)
        this.#members = told.members.includes(this.#member) ? told.members : [this.#member]
        const groups = told.isGap ? await this.list(topic, undefined, gapGroups) : told.groups
        if (state.isOver) return
        // Not before: groups that were not listed are still a gap.
        mark = told.mark
        for (const listed of groups) wake(listed)
      } catch (error) {
        if (!(error instanceof StoreError)) throw error
        // The client is: nodes that stop are passed over.
        if (error.code === 'closed') return
        await pause(this.#parts, againMs)
      }
    }
  }

  /** The others need not wait to find out. */
  async #leave(topic: string): Promise<void> {
    const own = { topic, member: this.#member, waitMs: 0, isLeaving: true }
    await this.#parts.ask({ kind: 'watch-worklist', ...own }, answerMs)
  }

  async #ask(
    topic: string,
    mark: string | undefined,
  ): Promise<WorklistAnswer & { readonly kind: 'watch-worklist' }> {
    const own = { topic, member: this.#member, waitMs: watchMs, isLeaving: false }
    const known = mark === undefined ? {} : { mark }
    const operation = { kind: 'watch-worklist', ...own, ...known } as const
    const answer = await this.#parts.ask(operation, watchMs + answerMs)
    if (answer.kind === 'watch-worklist') return answer
    throw toStoreError(answer.kind === 'problem' ? answer.problem : notAnAnswer)
  }
}

const notAnAnswer: Problem = {
  code: 'corrupt',
  message: 'the node answered something else than was asked',
  detail: {},
}
