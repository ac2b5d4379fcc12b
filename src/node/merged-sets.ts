/**
 * Merges the answers of all replica sets into one. A set that does not answer is not left out in silence: its
 * problem is the answer, unless the caller accepts a part.
 */
import { compareText } from '../base/bytes.ts'
import { listedGroupsMax } from '../base/limits.ts'
import { mayBeRetried } from '../client/call.ts'
import type { WorklistAnswer, ListWorklist, TopicSum } from '../worklist/worklist-operation.ts'
import type { GroupAnswer, ListGroups } from '../txn/group-operation.ts'

/**
 * A group that has left a set may be in the names of both. Each set bounds the names it lists, whatever the caller wants. A longer
 * merged list would have gaps behind the last name of a set that was cut off.
 */
export async function mergedGroups(
  { limit }: ListGroups,
  asked: readonly Promise<GroupAnswer>[],
): Promise<GroupAnswer> {
  const found: (GroupAnswer & { readonly kind: 'list-groups' })['groups'][number][] = []
  for (const answer of await Promise.all(asked)) {
    if (answer.kind !== 'list-groups') return answer
    found.push(...answer.groups)
  }
  const groups = [...new Set(found)].sort(compareText).slice(0, boundPage(limit))
  return { kind: 'list-groups', groups }
}

/** `own` is that of the node's set: without it there is no part either. */
export async function mergedListing(
  { limit, isPartial }: ListWorklist,
  own: Promise<WorklistAnswer>,
  others: readonly Promise<WorklistAnswer>[],
): Promise<WorklistAnswer> {
  const found: (WorklistAnswer & { readonly kind: 'list-worklist' })['groups'][number][] = []
  const [first, ...rest] = await Promise.all([own, ...others])
  const heard = isPartial === true ? rest.filter((answer) => !isOutage(answer)) : rest
  for (const answer of [first, ...heard]) {
    if (answer.kind !== 'list-worklist') return answer
    found.push(...answer.groups)
  }
  const groups = found.sort((a, b) => compareText(a.group, b.group)).slice(0, boundPage(limit))
  return { kind: 'list-worklist', groups }
}

function isOutage(answer: WorklistAnswer): boolean {
  return answer.kind === 'problem' && mayBeRetried(answer.problem)
}

function boundPage(limit: number): number {
  return Math.min(limit, listedGroupsMax)
}

/** `node` is the first one's: whose own answer this is. */
export async function mergedSums(
  asked: readonly Promise<WorklistAnswer>[],
): Promise<WorklistAnswer> {
  const sums = new Map<string, TopicSum>()
  const answers = await Promise.all(asked)
  for (const answer of answers) {
    if (answer.kind !== 'sum-worklist') return answer
    for (const sum of answer.topics) sums.set(sum.topic, added(sums.get(sum.topic), sum))
  }
  const [first] = answers
  if (first?.kind !== 'sum-worklist') throw new RangeError('node: nobody was asked')
  const topics = [...sums.values()].sort((a, b) => compareText(a.topic, b.topic))
  return { ...first, topics }
}

function added(known: TopicSum | undefined, sum: TopicSum): TopicSum {
  if (known === undefined) return sum
  const times = [known.oldest, sum.oldest].filter((time) => time !== undefined)
  return {
    topic: sum.topic,
    groups: known.groups + sum.groups,
    rows: known.rows + sum.rows,
    isWhole: known.isWhole && sum.isWhole,
    ...(times.length > 0 && { oldest: Math.min(...times) }),
  }
}
