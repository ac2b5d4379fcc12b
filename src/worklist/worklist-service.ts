/**
 * Answers questions to this node's worklist. Entries applied here wake the callers that wait for something
 * under a topic. For each topic that callers wait for, the service keeps a bounded number of the newest
 * changes, so that no caller misses one between two questions. It also keeps which members asked lately.
 */
import { assert, unreachable } from '../base/assert.ts'
import { afterWorklist, worklistPrefix, isTopic } from '../group/worklist-key.ts'
import { StoreError } from '../base/errors.ts'
import type { GroupId, NodeId, Timestamp } from '../base/ids.ts'
import { captureOutcome } from '../base/problem.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import type { Pace } from '../ports/pace.ts'
import { randomUuid, type Random } from '../ports/random.ts'
import { isAtEnd, type ListedGroup, type LocalReplica, type Row } from '../group/replica-port.ts'
import {
  worklistWaitMsMax,
  membersMax,
  topicsMax,
  type WorklistAnswer,
  type WorklistOperation,
  type ListWorklist,
  type SumWorklist,
  type TopicSum,
  type WatchWorklist,
} from './worklist-operation.ts'
import { Feed } from './worklist-feed.ts'

export interface WorklistServicePorts {
  readonly replica: LocalReplica
  readonly clock: Clock
  readonly random: Random
  readonly node: NodeId
}

/** Topics that callers wait for. */
const feedsMax = 1_000
/** How long a topic is watched after the last question about it. */
const feedIdleMs = 120_000
/** Counted for one topic. */
const countedGroupsMax = 1_000
const countedRowsMax = 100_000
const pageRows = 1_000
const pageBytesMax = 1024 * 1024
/** Costs in units of `ports/slices.ts`: looking at a group, counting a page, telling who waited of changes. */
const groupWork = 8
const pageWork = 100
const watchWork = 10

export class WorklistService {
  readonly #ports: WorklistServicePorts
  readonly #feeds = new Map<string, Feed>()
  /** Tells marks of this run of the node from those of others. */
  readonly #run: string
  #sweep: Timer | undefined
  #isStopped = false

  constructor(ports: WorklistServicePorts) {
    this.#ports = ports
    this.#run = randomUuid(ports.random)
  }

  /** Resolves with the answer. Any failure is a problem in it. */
  async execute(
    operation: WorklistOperation,
    timeoutMs: number,
    pace?: Pace,
  ): Promise<WorklistAnswer> {
    const answered = await captureOutcome(() => this.#execute(operation, timeoutMs, pace))
    return answered.kind === 'ok' ? answered.value : answered
  }

  /** Ends all waits. */
  stop(): void {
    this.#isStopped = true
    this.#sweep?.cancel()
    for (const feed of this.#feeds.values()) feed.stop()
    this.#feeds.clear()
  }

  async #execute(
    operation: WorklistOperation,
    timeoutMs: number,
    pace: Pace | undefined,
  ): Promise<WorklistAnswer> {
    if (this.#isStopped) throw new StoreError('closed', 'this node is stopping; ask another one')
    if (operation.kind !== 'sum-worklist') checkTopic(operation.topic)
    switch (operation.kind) {
      case 'list-worklist':
        return { kind: 'list-worklist', groups: await this.#list(operation, pace) }
      case 'watch-worklist':
        return this.#watch(operation, timeoutMs, pace)
      case 'sum-worklist':
        return {
          kind: 'sum-worklist',
          node: this.#ports.node,
          topics: await this.#sum(operation, pace),
        }
      default:
        return unreachable(operation)
    }
  }

  /** Those that have nothing any more are looked at here, where it costs least, and left out. */
  async #list(
    { topic, after, limit }: ListWorklist,
    pace: Pace | undefined,
  ): Promise<readonly ListedGroup[]> {
    const found: ListedGroup[] = []
    const { worklist } = this.#ports.replica
    for (let from = after; found.length < limit;) {
      const page = await worklist.list(topic, from, limit)
      for (const listed of page) {
        await spend(pace, groupWork)
        if (found.length < limit && (await this.#hasRows(topic, listed.group))) found.push(listed)
      }
      if (page.length < limit) return found
      from = page.at(-1)?.group
    }
    return found
  }

  async #hasRows(topic: string, group: GroupId): Promise<boolean> {
    const { replica } = this.#ports
    const { position } = await replica.read(group, 'snapshot', readTimeoutMs)
    const rows = await replica.scan(group, { limit: 1, ...buildRange(topic) })
    if (rows.length === 0) replica.worklist.unlist(topic, group, position)
    return rows.length > 0
  }

  async #watch(
    operation: WatchWorklist,
    timeoutMs: number,
    pace: Pace | undefined,
  ): Promise<WorklistAnswer> {
    const { topic, member, mark, waitMs, isLeaving } = operation
    const feed = this.#ensureFeed(topic)
    const since = this.#readMark(mark)
    if (isLeaving) feed.leave(member)
    else feed.see(member)
    const longestMs = Math.min(waitMs, timeoutMs, worklistWaitMsMax)
    if (since !== undefined && !feed.isLost(since)) await feed.wait(since, longestMs, pace)
    // All who wait are woken at once.
    await spend(pace, watchWork)
    // More may have come at once than is remembered.
    const isGap = since === undefined || feed.isLost(since)
    const groups = isGap ? [] : feed.since(since)
    feed.seeAgain(member)
    const members = feed.members()
    return { kind: 'watch-worklist', groups, mark: `${this.#run}/${feed.last}`, isGap, members }
  }

  #readMark(mark: string | undefined): number | undefined {
    if (mark?.startsWith(`${this.#run}/`) !== true) return undefined
    const number = Number(mark.slice(this.#run.length + 1))
    return Number.isSafeInteger(number) ? number : undefined
  }

  #ensureFeed(topic: string): Feed {
    const known = this.#feeds.get(topic)
    if (known !== undefined) return known
    if (this.#feeds.size >= feedsMax) {
      const message = 'too many topics are waited for at this node; try again later'
      throw new StoreError('overloaded', message, { limit: 'feedsMax', limitValue: feedsMax })
    }
    const { replica, clock } = this.#ports
    const feed = new Feed(clock, membersMax, (wake) => replica.worklist.watch(topic, wake))
    this.#feeds.set(topic, feed)
    this.#sweep ??= clock.setTimer(feedIdleMs, () => this.#forgetIdle())
    return feed
  }

  #forgetIdle(): void {
    this.#sweep = undefined
    for (const [topic, feed] of this.#feeds) {
      if (feed.idleMs < feedIdleMs) continue
      feed.stop()
      this.#feeds.delete(topic)
    }
    if (this.#feeds.size === 0) return
    this.#sweep = this.#ports.clock.setTimer(feedIdleMs, () => this.#forgetIdle())
  }

  async #sum({ prefix }: SumWorklist, pace: Pace | undefined): Promise<readonly TopicSum[]> {
    const topics = await this.#ports.replica.worklist.topics(topicsMax)
    const sums: TopicSum[] = []
    for (const topic of topics) {
      if (!topic.startsWith(prefix)) continue
      const sum = await this.#computeSum(topic, pace)
      if (sum.rows > 0) sums.push(sum)
    }
    return sums
  }

  async #computeSum(topic: string, pace: Pace | undefined): Promise<TopicSum> {
    const listed = await this.#list({ kind: 'list-worklist', topic, limit: countedGroupsMax }, pace)
    const sum = new RowCount()
    for (const { group } of listed) await this.#count(topic, group, sum, pace)
    const isWhole = sum.rows < countedRowsMax && listed.length < countedGroupsMax
    const { rows, oldest } = sum
    return { topic, groups: listed.length, rows, isWhole, ...(oldest !== undefined && { oldest }) }
  }

  async #count(
    topic: string,
    group: GroupId,
    sum: RowCount,
    pace: Pace | undefined,
  ): Promise<void> {
    let range: { readonly gt?: Uint8Array; readonly gte?: Uint8Array; readonly lt: Uint8Array } =
      buildRange(topic)
    while (sum.rows < countedRowsMax) {
      await spend(pace, pageWork)
      const asked = { limit: pageRows, bytesMax: pageBytesMax, ...range }
      const rows = await this.#ports.replica.scan(group, asked)
      sum.add(rows)
      const last = rows.at(-1)
      if (last === undefined || isAtEnd(rows, asked)) return
      assert(rows.length <= pageRows, 'queues: a page has no more rows than were asked for')
      range = { gt: last.key, lt: afterWorklist(topic) }
    }
  }
}

const readTimeoutMs = 1_000

async function spend(pace: Pace | undefined, work: number): Promise<void> {
  const turn = pace?.spend(work)
  if (turn !== undefined) await turn
}

/** A caller may have made the name up. */
function checkTopic(topic: string): void {
  if (isTopic(topic)) return
  const message = `${JSON.stringify(topic)} is no topic: its name is text, neither empty nor too long`
  throw new StoreError('invalid', message)
}

class RowCount {
  rows = 0
  oldest: Timestamp | undefined

  add(rows: readonly Row[]): void {
    this.rows += rows.length
    for (const { timestamp } of rows) this.oldest = Math.min(this.oldest ?? timestamp, timestamp)
  }
}

function buildRange(topic: string): { readonly gte: Uint8Array; readonly lt: Uint8Array } {
  return { gte: worklistPrefix(topic), lt: afterWorklist(topic) }
}
