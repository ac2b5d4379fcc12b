/** Messages of typed queues, as they are sent and handled. Bodies are JSON text. */
import { StoreError } from '../base/errors.ts'
import type { GroupId } from '../base/ids.ts'
import type { QueueSource } from '../queues/handle-call.ts'
import type { Taken } from '../queues/take.ts'
import type { CompiledSchema } from './compiled.ts'
import { groupContext, rootOfGroup, type GroupContext } from './group-context.ts'
import type { Message, Queue, RootTable } from './queue-types.ts'
import { tableName } from './given.ts'
import { checkScalar } from './scalar.ts'
import { typed } from './types.ts'

/** Queues of two schemas are never the same one. */
export function storedName(schema: CompiledSchema, name: string): string {
  return `${schema.name}.${name}`
}

export function findReceiver(schema: CompiledSchema, { to }: Queue, key: unknown): GroupId {
  const name = tableName('tx.send', to)
  const root = schema.tables.get(name)
  if (root !== undefined) return groupContext(schema, root, key).group
  throw new StoreError('invalid', `schema ${schema.name} has no table ${name}`)
}

export function encodeBody({ name }: Queue, body: unknown): Uint8Array {
  return Buffer.from(JSON.stringify(checkScalar('json', body, `queue ${name}: the body`)))
}

/** The group that messages are handled in. */
export function contextOfGroup(schema: CompiledSchema, group: GroupId): GroupContext {
  const found = rootOfGroup(schema, group)
  if (found !== undefined) return { schema, ...found, group }
  const message = `a message came to a group that is none of schema ${schema.name}'s`
  throw new StoreError('schema-mismatch', message, { group })
}

/** The message that a handler is given, as its queue declares it. */
export function toMessage<Root extends RootTable, Body>(
  context: GroupContext,
  { id, message, sentAt }: Taken,
): Message<Root, Body> {
  const { sender, body, failures } = message
  const from = rootOfGroup(context.schema, sender ?? context.group)
  return typed<Message<Root, Body>>({
    id,
    sentAt,
    attempt: failures + 1,
    to: buildKey(context),
    from: from && { table: from.root.name, key: buildKey(from) },
    body: decodeBody(body),
  })
}

function decodeBody(body: Uint8Array): unknown {
  try {
    const value: unknown = JSON.parse(Buffer.from(body).toString())
    return value
  } catch (cause) {
    const message = 'the body of a message is not JSON; it was sent by another kind of program'
    throw new StoreError('schema-mismatch', message, {}, { cause })
  }
}

function buildKey({
  root,
  values,
}: Pick<GroupContext, 'root' | 'values'>): Record<string, unknown> {
  return Object.fromEntries(root.key.map(({ name }, place) => [name, values[place]]))
}

/** Where handlers come from; tables that were opened without one only send. */
export function handling(source: QueueSource | undefined): QueueSource {
  if (source !== undefined) return source
  throw new StoreError('invalid', 'these tables were opened without a cluster to handle queues of')
}
