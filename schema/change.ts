/** One difference between two schemas, and why it cannot be made while a cluster works, if so. */
import { checkMessage } from './problem.ts'

export type SchemaChangeKind =
  | 'rename-schema'
  | 'add-table'
  | 'drop-table'
  | 'change-key'
  | 'change-group'
  | 'change-delete'
  | 'change-expiry'
  | 'change-placement'
  | 'add-property'
  | 'drop-property'
  | 'change-type'
  | 'change-presence'
  | 'add-default'
  | 'change-default'
  | 'add-index'
  | 'drop-index'
  | 'change-index'

export interface SchemaChange {
  readonly kind: SchemaChangeKind
  /** `Photo`, `Photo.exif.camera`, `PhotosByTag`. */
  readonly subject: string
  /** `property Photo.rating is new`. */
  readonly message: string
  /** Why it cannot be made; absent: it can, at any time. */
  readonly refusal?: string
  /** Advice on another way. */
  readonly hint?: string
}

/** `property Photo.rating is new, but rows that are there are without it; make it optional`. */
export function changeText(change: SchemaChange): string {
  checkMessage('changeText', change)
  const { message, refusal, hint } = change
  const reason = refusal === undefined ? '' : `, but ${refusal}`
  return `${message}${reason}${hint === undefined ? '' : `; ${hint}`}`
}
