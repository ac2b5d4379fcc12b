/**
 * Gives peers the directory of this node's groups, page by page: to one that asks for a digest of flushes which the log
 * has given up, or which the disk has lost.
 *
 * All pages together name what the flushes through the first page's one name. Of each group with a position in those,
 * either the data store has that position, or the log holds the group in memory: so each page takes the names that the
 * log holds before it looks for state records. The page depends on nothing but the question: this node may start anew
 * between two pages.
 *
 * LIVE-6  Positions of groups are looked up a piece after the other (`slices.ts`).
 */
import type { GroupId, NodeId, Position } from '../base/ids.ts'
import type { Limits } from '../base/limits.ts'
import type { Directory, DirectoryRequest } from '../replication/message.ts'
import type { Work } from './slices.ts'

export interface DirectoryPagesParts {
  readonly limits: Pick<Limits, 'digestGroupsMax'>
  readonly log: {
    readonly durableFlush: number
    /** The groups with positions that the data store may not hold durably. */
    heldGroups(): Iterable<GroupId>
    /** The group's highest position with a value, applied or not. */
    highest(group: GroupId): Position
  }
  /** The first groups behind `after`, in their order, `known` among them. */
  groups(
    after: GroupId | undefined,
    limit: number,
    known: readonly GroupId[],
  ): Promise<readonly GroupId[]>
  /** Does the work piece by piece, in order within its lane. */
  later(lane: string, work: Work): void
  send(to: NodeId, message: Directory): void
  /** The data store cannot be read. */
  onFailed(error: unknown): void
}

export class DirectoryPages {
  readonly #parts: DirectoryPagesParts
  /** Of each peer the last question. A peer that asks anew has no use for the answer to an older one. */
  readonly #asked = new Map<NodeId, DirectoryRequest>()
  readonly #answering = new Set<NodeId>()

  constructor(parts: DirectoryPagesParts) {
    this.#parts = parts
  }

  ask(to: NodeId, request: DirectoryRequest): void {
    this.#asked.set(to, request)
    if (!this.#answering.has(to)) void this.#answer(to)
  }

  async #answer(to: NodeId): Promise<void> {
    this.#answering.add(to)
    try {
      for (let next = this.#take(to); next !== undefined; next = this.#take(to)) {
        await this.#answerOne(to, next)
      }
    } catch (error) {
      this.#parts.onFailed(error)
    } finally {
      this.#answering.delete(to)
    }
  }

  #take(to: NodeId): DirectoryRequest | undefined {
    const request = this.#asked.get(to)
    this.#asked.delete(to)
    return request
  }

  async #answerOne(to: NodeId, { asked, through: first, after }: DirectoryRequest): Promise<void> {
    const { limits, log, groups, later } = this.#parts
    const through = after === undefined ? log.durableFlush : first
    const limit = limits.digestGroupsMax
    const names = await groups(after, limit, [...log.heldGroups()])
    const next = names.length < limit ? undefined : names.at(-1)
    const about = {
      ...{ kind: 'directory' as const, asked, through },
      ...(after !== undefined && { after }),
      ...(next !== undefined && { next }),
    }
    await new Promise<void>((resolve) => {
      const pieces = this.#name(to, about, names, resolve)
      later(`directory ${to}`, { name: 'directory', pieces })
    })
  }

  *#name(
    to: NodeId,
    about: Omit<Directory, 'groups'>,
    names: readonly GroupId[],
    onEnd: () => void,
  ): Generator<number, void> {
    const { log, send } = this.#parts
    const groups: (readonly [GroupId, Position])[] = []
    for (const name of names) {
      // A group whose record is not in memory is read.
      yield 0
      const position = log.highest(name)
      // Of a group that has promises alone there is nothing to be had.
      if (position > 0) groups.push([name, position])
    }
    send(to, { ...about, groups })
    onEnd()
  }
}
