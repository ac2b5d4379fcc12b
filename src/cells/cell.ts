/**
 * A cell (Schemaless): immutable JSON at (row key, column name, ref key) of a datastore, with the number it
 * was added under in its shard. Names from outside are checked here.
 */
import { columnNameCharsMax, datastoreNameCharsMax } from '../base/limits.ts'
import type { NodeId, Position, Timestamp } from '../base/ids.ts'
import { wordsFor } from '../base/words.ts'
import type { Json } from './body.ts'
import { isBaseName, readForm, shardCountMax } from './datastore-form.ts'
import type { Problem } from '../base/problem.ts'

export interface ShardName {
  readonly datastore: string
  readonly shard: number
}

/** Where a cell is. */
export interface CellName {
  /** A UUID; answers carry it in lower case. */
  readonly rowKey: string
  readonly column: string
  /** A whole number from 0; the highest one of a column is its latest version. */
  readonly refKey: number
}

/** A cell to be written. */
export interface NewCell extends CellName {
  readonly body: Json
}

export interface Cell extends CellName {
  /** 1, 2, 3 … in the cell's shard, in commit order. */
  readonly addedId: number
  /** Of the log entry that wrote it: rises with the added id in a shard. */
  readonly createdAt: Timestamp
  readonly body: Json
}

/** A cell as it is stored and sent: its body packed. */
export interface StoredCell extends CellName {
  readonly addedId: number
  readonly createdAt: Timestamp
  readonly body: Uint8Array
}

/** A put that found its shard. */
export interface Added {
  readonly shard: number
  readonly addedId: number
  readonly createdAt: Timestamp
  /** False when the cell was there already, with an equal body. */
  readonly created: boolean
  readonly buffered?: undefined
}

/**
 * A put whose shard could not be reached: durable on another replica set, not readable yet. It comes
 * into its shard by itself once that is back, unless another body is there first.
 */
export interface Buffered {
  readonly shard: number
  readonly buffered: true
  readonly addedId?: undefined
  readonly createdAt?: undefined
  readonly created?: undefined
}

export type Written = Added | Buffered

/** How far a shard's log had come where an answer was made. */
export type ShardPosition = readonly [shard: number, position: Position]

/** The node that is to propose a shard's next entry. */
export type ShardLeader = readonly [shard: number, leader: NodeId]

const rowKeyPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
const columnPattern = /^[A-Za-z_][A-Za-z0-9_]*$/

// Programs in JavaScript give anything: a pattern would take a list of one text for that text.

export function isRowKey(text: unknown): boolean {
  return typeof text === 'string' && rowKeyPattern.test(text)
}

export function isColumn(text: unknown): boolean {
  if (typeof text !== 'string') return false
  return text.length <= columnNameCharsMax && columnPattern.test(text)
}

export function isDatastore(text: unknown): boolean {
  return isBaseName(text) || (typeof text === 'string' && readForm(text) !== undefined)
}

export function isRefKey(value: unknown): boolean {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

/** Why these parts name no cell, row or column; undefined when they do. Absent parts are not asked. */
export function nameProblem(name: {
  readonly rowKey?: string
  readonly column?: string
  readonly refKey?: number
}): Problem | undefined {
  const { rowKey, column, refKey } = name
  if (rowKey !== undefined && !isRowKey(rowKey)) {
    return invalid(`the row key ${quoted(rowKey)} is not a UUID`)
  }
  if (column !== undefined && !isColumn(column)) {
    const rule = `1 to ${columnNameCharsMax} letters, digits and _, not starting with a digit`
    return invalid(`the column name ${quoted(column)} is not ${rule}`)
  }
  if (refKey !== undefined && !isRefKey(refKey)) {
    return invalid(`the ref key ${wordsFor(refKey)} is not a whole number from 0 to 2^53 - 1`)
  }
  return undefined
}

export function datastoreProblem(datastore: string): Problem | undefined {
  if (isDatastore(datastore)) return undefined
  const rule = `1 to ${datastoreNameCharsMax} of a-z, 0-9 and _, starting with a letter, and maybe how many shards it has, and where: trips, trips.64 or trips.64.region-eu (a power of two up to ${shardCountMax / 2}, or with a place up to ${shardCountMax})`
  return invalid(`the datastore name ${quoted(datastore)} is not ${rule}`)
}

function invalid(message: string): Problem {
  return { code: 'invalid', message, detail: {} }
}

/** Text from outside, short enough for a message; or what is there in its place. */
function quoted(text: unknown): string {
  if (typeof text !== 'string') return wordsFor(text)
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text)
}
