/** Values that carry their row, their number and a checksum, so that a reader recognises a wrong one. */
import { crc32 } from '../../src/base/bytes.ts'
import type { NewCell } from '../../src/cells/cell.ts'

export const column = 'BASE'

/** A row with a version for each number from 0 on. */
export interface Row {
  readonly key: string
  /** Of versions, the highest number that a node has acknowledged, and the highest that was ever sent. */
  acknowledged: number
  tried: number
}

/** `hidden`: a row was missing, or an older version in its place. `other`: no node ever wrote this value there. */
export type WrongKind = 'hidden' | 'other'

export interface Fault {
  readonly kind: WrongKind
  readonly text: string
}

export function buildCell(row: Row, refKey: number, pad: string): NewCell {
  const sum = checksum(row.key, refKey, pad)
  return { rowKey: row.key, column, refKey, body: { row: row.key, number: refKey, pad, sum } }
}

function checksum(key: string, number: number, pad: string): number {
  return crc32(Buffer.from(`${key}/${number}/${pad}`, 'latin1'))
}

/** Undefined: a node may show this value. `floor`: the number acknowledged before the read. */
export function findFault(row: Row, body: unknown, floor: number | undefined): Fault | undefined {
  const other = (text: string): Fault => ({ kind: 'other', text: `${row.key} ${text}` })
  const hidden = (text: string): Fault => ({ kind: 'hidden', text: `${row.key} ${text}` })
  if (body === undefined) return floor === undefined ? undefined : hidden('is missing')
  if (!isValue(body)) return other('has a value of another kind')
  const { number, pad, sum } = body
  if (body.row !== row.key) return other('has the value of another row')
  if (sum !== checksum(row.key, number, pad)) return other('has a value that was never written')
  if (number > row.tried) return other(`has number ${number}, of ${row.tried}`)
  const isOld = floor !== undefined && number < floor
  return isOld ? hidden(`has number ${number}, after ${floor}`) : undefined
}

interface Value {
  readonly row: unknown
  readonly number: number
  readonly pad: string
  readonly sum: unknown
}

function isValue(body: unknown): body is Value {
  if (typeof body !== 'object' || body === null) return false
  if (!('row' in body && 'number' in body && 'pad' in body && 'sum' in body)) return false
  return typeof body.number === 'number' && typeof body.pad === 'string'
}
