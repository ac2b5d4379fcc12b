/** Looks at what is under a topic, group by group: for operators who inspect queues. */
import { afterWorklist, worklistPrefix } from '../group/worklist-key.ts'
import { compareBytes } from '../base/bytes.ts'
import type { GroupId, Timestamp } from '../base/ids.ts'
import type { Clock } from '../ports/clock.ts'
import type { Worklist } from '../group/replica-port.ts'
import type { GroupPort } from '../group/group-port.ts'
import { prefixRange } from '../txn/key-range.ts'
import type { StoredRow } from '../txn/reads.ts'
import { runRead } from '../txn/run-read.ts'
import { decodeInbox, readSentAt, type InboxMessage } from './message.ts'
import { atOncePrefix, decodeDue, decodeNumber, queueTopic } from './names.ts'

export interface InspectParts {
  readonly worklist: Worklist
  readonly groups: GroupPort
  readonly clock: Clock
  readonly timeoutMs: number
  /** Gives the look up (`../txn/signalled.ts`). */
  readonly signal?: AbortSignal | undefined
}

/** Groups asked for at once. */
const groupsAtOnce = 500

/** Groups that have something under a topic, in the order of their names, those behind `start`. */
export async function* groupsUnder(
  { worklist: whole, signal }: Pick<InspectParts, 'worklist' | 'signal'>,
  topic: string,
  start?: GroupId,
): AsyncGenerator<GroupId, void> {
  const worklist = (signal && whole.until?.(signal)) ?? whole
  for (let after = start; ;) {
    const listed = await worklist.list(topic, after, groupsAtOnce)
    for (const { group } of listed) yield group
    after = listed.at(-1)?.group
    if (after === undefined || listed.length < groupsAtOnce) return
  }
}

/** Rows of a group under a topic as of now, from a key on. */
export async function rowsUnder(
  { groups, clock, timeoutMs, signal }: InspectParts,
  group: GroupId,
  topic: string,
  limit: number,
  gte: Uint8Array = worklistPrefix(topic),
): Promise<readonly StoredRow[]> {
  const range = { gte, lt: afterWorklist(topic), limit }
  const from = { kind: 'current' } as const
  const { value } = await runRead(groups, group, from, { clock, timeoutMs, signal }, ({ rows }) =>
    rows.scan(range),
  )
  return value.rows
}

export interface WaitingMessage {
  readonly group: GroupId
  readonly id: number
  readonly message: InboxMessage
  readonly sentAt: Timestamp
  /** Of one that was delayed. */
  readonly due: Timestamp | undefined
}

/** Messages of a queue that no handler has handled yet, by group and in their order; `limit` at most. */
export async function listWaiting(
  parts: InspectParts,
  queue: string,
  limit: number,
): Promise<readonly WaitingMessage[]> {
  const found: WaitingMessage[] = []
  const topic = queueTopic(queue)
  const { lt: endOfFirst } = prefixRange(atOncePrefix(queue))
  const isDelayed = ({ key }: StoredRow): boolean => compareBytes(key, endOfFirst) >= 0
  for await (const group of groupsUnder(parts, topic)) {
    for (const row of await rowsUnder(parts, group, topic, limit - found.length)) {
      const message = decodeInbox(row.value)
      const due = isDelayed(row) ? decodeDue(row.key) : undefined
      const common = { group, id: decodeNumber(row.key), message }
      found.push({ ...common, sentAt: readSentAt(message, row), due })
    }
    if (found.length >= limit) return found
  }
  return found
}
