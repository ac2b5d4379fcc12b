/**
 * How many holds this node has, for its figures. A look at the figures begins a count, if the last one is half a
 * minute old, and has the number of the count before.
 */
import type { GroupId } from '../base/ids.ts'
import { listedGroupsMax } from '../base/limits.ts'
import type { LocalReplica } from '../group/replica-port.ts'
import type { Clock } from '../ports/clock.ts'
import { holdRange, holdTopic } from './holds.ts'

const countMs = 30_000
/** Holds of one group that are counted. */
const pageRows = 500

export interface HoldCountParts {
  readonly replica: Pick<LocalReplica, 'scan' | 'worklist'>
  readonly clock: Clock
  /** Told of a count that came to no end. */
  onFailed(error: unknown): void
}

export class HoldCount {
  readonly #parts: HoldCountParts
  #held: number | undefined
  #work: Promise<void> | undefined
  #countedMs = -countMs

  constructor(parts: HoldCountParts) {
    this.#parts = parts
  }

  /** Holds of groups, of tables, of row keys, and of each shard of a datastore; undefined until they are counted. */
  get held(): number | undefined {
    this.refresh()
    return this.#held
  }

  refresh(): void {
    const nowMs = this.#parts.clock.monotonicMs()
    if (this.#work !== undefined || nowMs - this.#countedMs < countMs) return
    this.#countedMs = nowMs
    this.#work = this.#count()
      .catch((error: unknown) => {
        this.#parts.onFailed(error)
      })
      .finally(() => {
        this.#work = undefined
      })
  }

  async #count(): Promise<void> {
    const { worklist } = this.#parts.replica
    let count = 0
    for (let after: GroupId | undefined; ;) {
      const listed = await worklist.list(holdTopic, after, listedGroupsMax)
      for (const { group, position } of listed) {
        const own = await this.#countIn(group)
        // A hold that was lifted leaves its group on the list.
        if (own === 0) worklist.unlist(holdTopic, group, position)
        count += own
      }
      after = listed.at(-1)?.group
      if (listed.length < listedGroupsMax || after === undefined) break
    }
    this.#held = count
  }

  async #countIn(group: GroupId): Promise<number> {
    return (await this.#parts.replica.scan(group, { ...holdRange, limit: pageRows })).length
  }
}
