/**
 * Buffered cells that their shards would not have: kept, with the reason, until an operator drops them.
 */
import { unpackBody, type Json } from '../cells/body.ts'
import {
  bufferRange,
  decodeRejected,
  rejectedTopic,
  shardOfBuffer,
  type RejectedCell,
} from '../cells/buffer-rows.ts'
import type { CellName } from '../cells/cell.ts'
import type { GroupId, Timestamp } from '../base/ids.ts'
import { listedGroupsMax } from '../base/limits.ts'
import { toStoreError, type Problem } from '../base/problem.ts'
import type { AskWorklist } from '../worklist/worklist-operation.ts'
import type { GroupPort } from '../group/group-port.ts'
import { keyAfter } from '../txn/key-range.ts'
import { signalled } from '../txn/signalled.ts'
import { notAnAnswer } from './call.ts'

export interface RejectedPut extends CellName {
  readonly datastore: string
  readonly shard: number
  readonly body: Json
  /** By the clock of the node that took it. */
  readonly bufferedAt: Timestamp
  /** Why its shard would not have it: mostly another body was there first. */
  readonly reason: Problem
}

export interface RejectedParts {
  readonly ask: AskWorklist
  readonly groups: GroupPort
  readonly timeoutMs: number
  readonly signal: AbortSignal | undefined
}

const pageRows = 100

/** Those of a datastore, or of all, in no particular order; as they are while it goes on. */
export async function* rejectedPuts(
  parts: RejectedParts,
  datastore: string | undefined,
): AsyncGenerator<RejectedPut, void, undefined> {
  const { signal } = parts
  for (let after: GroupId | undefined, isEnd = false; !isEnd;) {
    const from = after
    const groups = await signalled(signal, () => listed(parts, from))
    for (const group of groups) {
      const of = shardOfBuffer(group)
      if (of === undefined || (datastore !== undefined && of.datastore !== datastore)) continue
      for await (const cell of readRejected(parts, group)) yield { ...of, ...cell }
    }
    after = groups.at(-1)
    isEnd = groups.length < listedGroupsMax
  }
}

async function listed(
  { ask, timeoutMs }: RejectedParts,
  after: GroupId | undefined,
): Promise<readonly GroupId[]> {
  const from = after === undefined ? {} : { after }
  const operation = { kind: 'list-worklist', topic: rejectedTopic, limit: listedGroupsMax } as const
  const answer = await ask({ ...operation, ...from }, timeoutMs)
  if (answer.kind === 'list-worklist') return answer.groups.map(({ group }) => group)
  throw toStoreError(answer.kind === 'problem' ? answer.problem : notAnAnswer)
}

async function* readRejected(
  { groups, timeoutMs, signal }: RejectedParts,
  group: GroupId,
): AsyncGenerator<Omit<RejectedPut, 'datastore' | 'shard'>, void, undefined> {
  const view = await signalled(signal, () => groups.view(group, { kind: 'current' }, timeoutMs))
  let { gte } = bufferRange(rejectedTopic)
  const { lt } = bufferRange(rejectedTopic)
  for (let isEnd = false; !isEnd;) {
    const range = { gte, lt, limit: pageRows }
    const page = await signalled(signal, () => groups.scan(group, view, range, timeoutMs))
    for (const { key, value } of page.rows) yield toPut(decodeRejected(key, value))
    const last = page.rows.at(-1)
    isEnd = last === undefined || (page.isWhole && page.rows.length < pageRows)
    if (last !== undefined) gte = keyAfter(last.key)
  }
}

function toPut({ body, ...rest }: RejectedCell): Omit<RejectedPut, 'datastore' | 'shard'> {
  return { ...rest, body: unpackBody(body) ?? null }
}
