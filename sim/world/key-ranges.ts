/** Ranges of keys as text, in which the simulated disk looks keys up. */
import { latin1 } from '../../src/base/bytes.ts'
import type { Range } from '../../src/ports/storage.ts'
import type { KeyRange } from './ordered-map.ts'

export function isWithin(name: string, { gte, gt, lt }: KeyRange): boolean {
  if (gte !== undefined && name < gte) return false
  if (gt !== undefined && name <= gt) return false
  return lt === undefined || name < lt
}

export function textRange({ gte, gt, lt, reverse = false, limit }: Range): KeyRange {
  return { gte: gte && latin1(gte), gt: gt && latin1(gt), lt: lt && latin1(lt), reverse, limit }
}
