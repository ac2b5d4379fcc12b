/** Errors of a store that must not be used: the reason and the remedy. */
import { StoreError } from '../base/errors.ts'
import type { GroupId } from '../base/ids.ts'

/** No reader can tell which groups are concerned, so no answer of this store can be relied on. */
export function corruptLog(what: string, cause?: unknown): StoreError {
  return new StoreError(
    'corrupt',
    `The log of this node is damaged: ${what}. This store must not vote again: leave the node ` +
      'stopped and keep its data folder for inspection. The others go on as long as they are a ' +
      'majority; they refuse an empty folder under this name.',
    { store: 'log' },
    { cause },
  )
}

/** Everything in the data store can be had from the log again. */
export function corruptData(what: string, cause?: unknown): StoreError {
  return new StoreError(
    'corrupt',
    `The data store of this node is damaged: ${what}. It is derived from the log: stop the node, ` +
      'move the folder "data" inside its data folder away, and start again; it is rebuilt.',
    { store: 'data' },
    { cause },
  )
}

/** Rows of one group are damaged: the group is put aside, and its peers mend it. All other groups are served. */
export class DamagedGroup extends StoreError {
  constructor(group: GroupId) {
    const message =
      'rows that this replica has of the group are damaged, and it takes them from another one; ask another one'
    super('unavailable', message, { group })
  }
}

/** Gives undefined in place of a value that is damaged, of a group that is put aside for that. */
export function unlessDamaged<Read>(read: () => Read): Read | undefined {
  try {
    return read()
  } catch (error) {
    if (error instanceof DamagedGroup) return undefined
    throw error
  }
}

/** Why the data store takes no write any more: what its engine calls damage is of what is derived. */
export function dataFailure(error: unknown): Error {
  const reason = toError(error)
  const isDamage =
    reason instanceof StoreError && reason.code === 'corrupt' && reason.detail.store === undefined
  return isDamage ? corruptData(reason.message, reason) : reason
}

export function unknownFormat(where: string, format: unknown): StoreError {
  return new StoreError(
    'invalid',
    `The ${where} is of format ${String(format)}, which this version does not know. Start the ` +
      'node with the version that wrote it, or a later one.',
  )
}

/** A thrown value as the reason why a node stops. */
export function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error('a node found a bug', { cause: error })
}
