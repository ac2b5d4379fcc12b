/** The worklist as it is served from this node's listing: see `Worklist`. */
import { worklistPrefix, decodeTopic } from '../group/worklist-key.ts'
import { latin1 } from '../base/bytes.ts'
import type { GroupId, Position } from '../base/ids.ts'
import { listedGroupsMax } from '../base/limits.ts'
import { movedTopic } from '../group/moved-row.ts'
import type { Clock } from '../ports/clock.ts'
import type { WorklistIndex } from './worklist-index.ts'
import type { ListedGroup, LocalWorklists, TopicCounts, Worklist } from '../group/replica-port.ts'

/** The knowledge of a node about the groups that are listed. */
export type WorklistGroups = Pick<Worklist, 'isOurs' | 'hasLeft'>

type Wake = (listed: ListedGroup) => void

export class LocalWorklist implements LocalWorklists {
  readonly isOurs: (group: GroupId) => boolean
  /** Whether the group has left this node's replica set: the next set has its worklist. */
  readonly hasLeft: (group: GroupId) => boolean
  readonly #listing: WorklistIndex
  readonly #watches = new Map<string, Set<Wake>>()

  constructor(listing: WorklistIndex, clock: Clock, { isOurs, hasLeft }: WorklistGroups) {
    this.#listing = listing
    this.isOurs = isOurs
    this.hasLeft = hasLeft ?? (() => false)
    listing.onListed = (topic, group, position) => {
      const watches = this.#watches.get(topic)
      if (watches === undefined) return
      // Once the step that applies the row is over: a woken worker reads, and may submit.
      clock.defer(() => {
        for (const wake of watches) wake({ group, position })
      })
    }
  }

  async list(
    topic: string,
    after: GroupId | undefined,
    limit: number,
  ): Promise<readonly ListedGroup[]> {
    const most = Math.min(limit, listedGroupsMax)
    const found: ListedGroup[] = []
    for (let from = after; ;) {
      const page = await this.#listing.list(topic, from, most)
      // Of those that have left this node has only to clear what it has.
      const isForAll = topic === movedTopic
      found.push(...(isForAll ? page : page.filter(({ group }) => !this.hasLeft(group))))
      from = page.at(-1)?.group
      if (page.length < most || found.length >= most) return found.slice(0, most)
    }
  }

  async topics(limit: number): Promise<readonly string[]> {
    const prefixes = await this.#listing.topics(limit)
    return prefixes.flatMap((prefix) => decodeTopic(prefix) ?? [])
  }

  counts(): Readonly<Record<string, TopicCounts>> {
    const counts = [...this.#listing.counts].flatMap(([prefix, { put, gone }]) => {
      const topic = decodeTopic(prefix)
      return topic === undefined ? [] : [[topic, { put, gone }] as const]
    })
    return Object.fromEntries(counts)
  }

  unlist(topic: string, group: GroupId, position: Position): void {
    this.#listing.unlist(topic, group, position)
  }

  watch(topic: string, wake: Wake): () => void {
    const text = latin1(worklistPrefix(topic))
    const watches = this.#watches.get(text) ?? new Set<Wake>()
    this.#watches.set(text, watches)
    // The same function may watch twice, and be cancelled once.
    const own: Wake = (listed) => wake(listed)
    watches.add(own)
    return () => {
      watches.delete(own)
      if (watches.size === 0 && this.#watches.get(text) === watches) this.#watches.delete(text)
    }
  }
}
