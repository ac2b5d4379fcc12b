/** The words for what is wrong with a journal of segment files. */
import { StoreError } from '../base/errors.ts'
import type { SegmentFile } from '../ports/segments.ts'

export function damageText(file: SegmentFile, offset: number, what: string): string {
  return `${file.name} at byte ${offset}: ${what}`
}

export function damagedError(path: string, what: string): StoreError {
  return new StoreError(
    'corrupt',
    `the journal ${path} is damaged (${what}); keep the folder for inspection`,
  )
}

export function closedError(path: string): StoreError {
  return new StoreError('closed', `the journal ${path} is closed`)
}
