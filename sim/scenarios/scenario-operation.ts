/**
 * The operations of clients, as data: the client, the request and the time. A run that draws its
 * operations reports them as they begin. A scenario lists them, so that each can be left out. Times
 * are microseconds of the world's clock from the start of the run. Plain JSON.
 */
import type { Json } from '../../src/cells/body.ts'

/** The replicas' own groups that blind writes go to. */
export type BlindGroup = 'x' | 'y'

export type CellOperation =
  | {
      readonly kind: 'put'
      readonly client: string
      readonly atMicros: number
      readonly row: string
      readonly column: string
      readonly refKey: number
      readonly body: Json
    }
  | {
      readonly kind: 'get'
      readonly client: string
      readonly atMicros: number
      readonly isCurrent: boolean
      readonly row: string
      readonly column: string
      readonly refKey: number
    }
  | {
      readonly kind: 'latest'
      readonly client: string
      readonly atMicros: number
      readonly isCurrent: boolean
      readonly row: string
      readonly column: string
    }
  | {
      /** The newest cell of every column; with a limit, page by page. */
      readonly kind: 'row'
      readonly client: string
      readonly atMicros: number
      readonly isCurrent: boolean
      readonly row: string
      readonly limit?: number
    }
  | {
      readonly kind: 'versions'
      readonly client: string
      readonly atMicros: number
      readonly isCurrent: boolean
      readonly row: string
      readonly column: string
      readonly from: number
      readonly limit: number
      readonly reverse: boolean
      /** Page by page to the end; else one page. */
      readonly isWhole?: boolean
    }
  | {
      readonly kind: 'log'
      readonly client: string
      readonly atMicros: number
      readonly isCurrent: boolean
      readonly shard: number
      readonly after: number
      readonly limit: number
      /** Page by page to the end; else one page. */
      readonly isWhole?: boolean
    }
  | {
      /** A page of the log of a shard, from a time on that cells are stamped with. */
      readonly kind: 'since'
      readonly client: string
      readonly atMicros: number
      readonly isCurrent: boolean
      readonly shard: number
      readonly time: number
      readonly limit: number
    }
  | {
      /** The newest cell of a column in several rows, at once. */
      readonly kind: 'gets'
      readonly client: string
      readonly atMicros: number
      readonly isCurrent: boolean
      readonly rows: readonly string[]
      readonly column: string
    }
  | {
      /** A page of the log of several shards, at once; `after` is in their order. */
      readonly kind: 'logs'
      readonly client: string
      readonly atMicros: number
      readonly isCurrent: boolean
      readonly shards: readonly number[]
      readonly after: readonly number[]
      readonly limit: number
    }
  | {
      /** Of all cells up to an added id, in the time that is known of it; to the end of the log. */
      readonly kind: 'purge'
      readonly client: string
      readonly atMicros: number
      readonly shard: number
      readonly upTo: number
      readonly column?: string
      readonly keepsLatest: boolean
    }

/** A write straight to the replicas, tried until it has an outcome. */
export interface BlindOperation {
  readonly kind: 'blind'
  readonly client: string
  readonly atMicros: number
  readonly group: BlindGroup
  /** Of the session's writes, counted from 1 and rising with the time. */
  readonly sequence: number
}

/** The replicas' own groups that lists are in, and the lists of each of them. */
export type ListGroup = 'p' | 'q'
export type ListName = 'a' | 'b' | 'e' | 'f' | 's1' | 's2' | 's3' | 's4' | 's5' | 's6'

export type ListMicro =
  | { readonly kind: 'append'; readonly list: ListName; readonly element: string }
  | { readonly kind: 'read'; readonly list: ListName }

/** A transaction on lists of a group, tried until it has an outcome; or a read of some of them. */
export interface ListOperation {
  readonly kind: 'lists'
  readonly client: string
  readonly atMicros: number
  readonly group: ListGroup
  readonly isCurrent: boolean
  readonly micro: readonly ListMicro[]
}

export type Operation = CellOperation | BlindOperation | ListOperation

export function isCellOperation(operation: Operation): operation is CellOperation {
  return operation.kind !== 'blind' && operation.kind !== 'lists'
}

/** The request in a few words. */
export function describeAsked(operation: Operation): string {
  const { kind } = operation
  if (kind === 'blind') return `blind write ${operation.sequence} to ${operation.group}`
  if (kind === 'lists') return describeLists(operation)
  if (kind === 'purge') {
    const what = operation.keepsLatest ? 'superseded cells' : 'all cells'
    return `purge of ${what} of shard ${operation.shard} up to ${operation.upTo}`
  }
  const level = kind === 'put' || operation.isCurrent ? kind : `${kind} (any)`
  if (kind === 'log') return `${level} of shard ${operation.shard} after ${operation.after}`
  if (kind === 'since') return `${level} of shard ${operation.shard} from ${operation.time} on`
  if (kind === 'logs') return `${level} of shards ${operation.shards.join(', ')}`
  if (kind === 'gets') return `${level} of ${operation.column} in ${operation.rows.length} rows`
  const row = `${level} of row ${operation.row.slice(0, 8)}`
  if (kind === 'row') return row
  if (kind === 'latest') return `${row} ${operation.column}`
  if (kind === 'versions') return `${row} ${operation.column} from ${operation.from}`
  return `${row} ${operation.column}/${operation.refKey}`
}

function describeLists({ group, isCurrent, micro }: ListOperation): string {
  const words = micro.map((one) =>
    one.kind === 'read' ? `read ${one.list}` : `append ${one.element} to ${one.list}`,
  )
  return `in group ${group}${isCurrent ? '' : ' (any)'}: ${words.join(', ')}`
}
