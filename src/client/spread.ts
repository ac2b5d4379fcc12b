/**
 * Whom an operation is best asked of, by what it is about: the leader of a group, or one of the nodes by
 * a number that is the same for equal questions.
 */
import { unreachable } from '../base/assert.ts'
import type { GroupId } from '../base/ids.ts'
import { isRowKey } from '../cells/cell.ts'
import { isIndexOperation, type IndexOperation } from '../cells/operation.ts'
import { shardGroup, shardOf } from '../cells/shard.ts'
import { isWorklistOperation, type WorklistOperation } from '../worklist/worklist-operation.ts'
import { readGroup, isGroupOperation } from '../txn/group-operation.ts'
import type { Operation } from '../wire/client/client-message.ts'

/** The group whose leader takes an operation that changes something; of a batch, the first item's group. */
export function groupLed(operation: Operation): GroupId | undefined {
  if (isGroupOperation(operation)) {
    return operation.kind === 'read-group' ? undefined : readGroup(operation)
  }
  if (operation.kind === 'purge') return shardGroup(operation.datastore, operation.shard)
  if (operation.kind !== 'put') return undefined
  const [first] = operation.items
  if (first === undefined || !isRowKey(first.rowKey)) return undefined
  return shardGroup(operation.datastore, shardOf(operation.datastore, first.rowKey))
}

/** Row keys are random, so their digits spread calls over the nodes; equal ones go to the same. */
export function computeSpread(operation: Operation): number {
  if (isGroupOperation(operation)) return spreadOfText(readGroup(operation))
  if (isWorklistOperation(operation)) return spreadOfTopic(operation)
  if (isIndexOperation(operation)) return spreadOfIndex(operation)
  switch (operation.kind) {
    case 'put':
    case 'get':
      return spreadOfRow(operation.items[0]?.rowKey)
    case 'row':
    case 'versions':
      return spreadOfRow(operation.rowKey)
    case 'log':
      return operation.items[0]?.shard ?? 0
    case 'purge':
      return operation.shard
    case 'status':
    case 'cancel':
      return 0
    default:
      return unreachable(operation)
  }
}

function spreadOfIndex(operation: IndexOperation): number {
  if (operation.kind !== 'index') return spreadOfText(operation.datastore)
  return spreadOfText(`${operation.name} ${String(operation.where[0]?.value)}`)
}

function spreadOfTopic(operation: WorklistOperation): number {
  return operation.kind === 'watch-worklist' ? spreadOfText(operation.topic) : (operation.turn ?? 0)
}

function spreadOfText(text: string): number {
  let spread = 0
  for (let i = 0; i < text.length; i++) spread = (spread * 31 + text.charCodeAt(i)) % 65_536
  return spread
}

function spreadOfRow(rowKey = ''): number {
  const digits = Number.parseInt(rowKey.slice(-4), 16)
  return Number.isNaN(digits) ? 0 : digits
}
