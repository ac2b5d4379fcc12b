/** How much is in the queues: what a node counted under their topics, by queue. */
import type { Timestamp } from '../base/ids.ts'
import type { TopicSum } from '../worklist/worklist-operation.ts'
import { outboxTopic, queueOfTopic } from './names.ts'

export interface QueueSum {
  /** Undefined: the messages on their way from group to group, of all queues. */
  readonly queue: string | undefined
  readonly waiting: RowsSum
  readonly dead: RowsSum
}

export interface RowsSum {
  readonly messages: number
  /** Groups that have them. */
  readonly groups: number
  /** False: these were counted, and there are more. */
  readonly isWhole: boolean
  /** When the oldest was put there. */
  readonly oldest: Timestamp | undefined
}

const none: RowsSum = { messages: 0, groups: 0, isWhole: true, oldest: undefined }

/** In the order of their names, what is on its way first. */
export function computeSums(topics: readonly TopicSum[]): readonly QueueSum[] {
  const sums = new Map<string, QueueSum>()
  const onTheWay = topics.find(({ topic }) => topic === outboxTopic)
  for (const sum of topics) {
    const named = queueOfTopic(sum.topic)
    if (named === undefined) continue
    const { queue, isDead } = named
    const before = sums.get(queue) ?? { queue, waiting: none, dead: none }
    sums.set(queue, { ...before, [isDead ? 'dead' : 'waiting']: toRowsSum(sum) })
  }
  const queues = [...sums.values()].toSorted((a, b) => ((a.queue ?? '') < (b.queue ?? '') ? -1 : 1))
  if (onTheWay === undefined) return queues
  return [{ queue: undefined, waiting: toRowsSum(onTheWay), dead: none }, ...queues]
}

function toRowsSum({ rows: messages, groups, isWhole, oldest }: TopicSum): RowsSum {
  return { messages, groups, isWhole, oldest }
}
