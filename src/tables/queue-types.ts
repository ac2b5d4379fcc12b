/**
 * Typed queues: declared beside the tables, of messages with a body of one type to groups of one root.
 * Bodies are JSON, so that any program and the command line can read them.
 */
import { StoreError } from '../base/errors.ts'
import type { GroupId, Timestamp } from '../base/ids.ts'
import type { ReadKey, TableShape } from '../../schema/infer.ts'
import type { Table } from '../../schema/table.ts'
import type { ConsumeOptions } from '../queues/limits.ts'
import { checkQueueName } from '../queues/names.ts'
import { tableName } from './given.ts'

export type RootTable = Table<TableShape, true>

export interface Queue<Root extends RootTable = RootTable, Body = unknown> {
  readonly name: string
  /** Messages go to groups of this root. */
  readonly to: Root
  /** Only its type counts. */
  readonly body?: Body
}

/** `queue<Invitation>()('invitations', Calendar)`; the body's type is JSON. */
export function queue<Body>(): <Root extends RootTable>(
  name: string,
  to: Root,
) => Queue<Root, Body> {
  return (name, to) => {
    const checked = checkQueueName(name)
    if (tableName('queue', to) !== '' && to.isRoot) return { name: checked, to }
    throw new StoreError('invalid', `queue ${name}: ${to.name} is no root; messages go to groups`)
  }
}

export interface Message<Root extends RootTable = RootTable, Body = unknown> {
  /** Names the message among those of its group: a rerun, or another process, sees the same. */
  readonly id: number
  /** The root's key of the group that it was sent to. */
  readonly to: ReadKey<Root>
  /** The root's key of the group that sent it; absent when the schema here has no such root. */
  readonly from:
    { readonly table: string; readonly key: Readonly<Record<string, unknown>> } | undefined
  readonly body: Body
  /** When the transaction that sent it took effect. */
  readonly sentAt: Timestamp
  /** 1 for the first time that a handler is given it, as far as handlers failed. */
  readonly attempt: number
}

export interface QueueCallOptions extends ConsumeOptions {
  /** Told of each failure of the handler, and of what could not be looked after for a while. */
  readonly onFailed?: (error: unknown, group: GroupId) => void
  /** Stops the handler when it is aborted, as its `stop` does. */
  readonly signal?: AbortSignal
}
