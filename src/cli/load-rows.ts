/**
 * Lines as a loader takes them: rows, and rejections by line number. A line that cannot be a row never spoils
 * the lines after it.
 */
import type { Json } from '../cells/body.ts'
import type { Line } from './load-lines.ts'

export type Row =
  /** `chars`: about its size, for bounding batches. */
  | { readonly kind: 'row'; readonly line: number; readonly body: Json; readonly chars: number }
  | Rejected
  | { readonly kind: 'blank'; readonly line: number }

export interface Rejected {
  readonly kind: 'rejected'
  readonly line: number
  readonly reason: string
}

export interface RowParser {
  /** The rows that are whole with this line. */
  push(line: Line): readonly Row[]
  /** The rows that are left at the end of the file. */
  end(): readonly Row[]
}

export type RowFormat = 'csv' | 'jsonl'

export function rejected(line: number, reason: string): Rejected {
  return { kind: 'rejected', line, reason }
}

/** Why a line is no row, in any format. */
export const nulInside = 'a NUL stands in it: the file may be UTF-16, or damaged'
export const secondMark = 'it begins with a byte order mark: another file may begin here'
