/**
 * Where a page of a scan ended. A cursor is of one scan: its bytes begin with what tells that scan from others, so one
 * that was cut off, or is of another group, table, range or direction, is refused and begins no other scan.
 */
import { sha256 } from '../base/bytes.ts'
import { StoreError } from '../base/errors.ts'
import { encodeTuple } from '../base/tuple.ts'
import type { KeyRange } from '../group/outcome.ts'

/** The place that a cursor goes on from. */
export interface Scanned {
  /** 'rows', 'tree' or 'index'; and of a global index, which. */
  readonly what: string
  /** Of a table or index, in its schema. */
  readonly number: number
  /** Absent where it is of many groups. */
  readonly group: string
  readonly range: KeyRange
  readonly reverse: boolean
}

const markBytes = 8

/** `key`: the last one of the page. */
export function cursorAt(scanned: Scanned, key: Uint8Array): string {
  return Buffer.concat([hashScan(scanned), key]).toString('base64url')
}

/** The key that the page before ended with. Throws `invalid`. */
export function keyAt(scanned: Scanned, cursor: string): Uint8Array {
  const bytes = Buffer.from(cursor, 'base64url')
  const isWhole = bytes.toString('base64url') === cursor && bytes.length > markBytes
  if (isWhole && bytes.subarray(0, markBytes).equals(hashScan(scanned))) {
    return bytes.subarray(markBytes)
  }
  const message = 'this cursor is of another scan; give the one that the page before came with'
  throw new StoreError('invalid', message)
}

function hashScan({ what, number, group, range, reverse }: Scanned): Buffer {
  const { gte, lt } = range
  const told = [what, number, group, encodeHex(gte), encodeHex(lt), reverse ? 1 : 0]
  return sha256(encodeTuple(told)).subarray(0, markBytes)
}

function encodeHex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}
