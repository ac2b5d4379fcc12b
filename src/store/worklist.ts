/** The worklist as it is served from this node's listing: see `Worklist`. */
import { worklistPrefix, decodeTopic } from '../group/worklist-key.ts'
import { latin1 } from '../base/bytes.ts'
import type { GroupId, Position } from '../base/ids.ts'
import type { Clock } from '../ports/clock.ts'
import type { WorklistIndex } from './worklist-index.ts'
import type { ListedGroup, LocalWorklists, TopicCounts } from '../group/replica-port.ts'

type Wake = (listed: ListedGroup) => void

export class LocalWorklist implements LocalWorklists {
  readonly isOurs: (group: GroupId) => boolean
  readonly #listing: WorklistIndex
  readonly #watches = new Map<string, Set<Wake>>()

  constructor(listing: WorklistIndex, clock: Clock, isOurs: (group: GroupId) => boolean) {
    this.#listing = listing
    this.isOurs = isOurs
    listing.onListed = (topic, group, position) => {
      const watches = this.#watches.get(topic)
      if (watches === undefined) return
      // Once the step that applies the row is over: a woken worker reads, and may submit.
      clock.defer(() => {
        for (const wake of watches) wake({ group, position })
      })
    }
  }

  list(topic: string, after: GroupId | undefined, limit: number): Promise<readonly ListedGroup[]> {
    return this.#listing.list(topic, after, limit)
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
