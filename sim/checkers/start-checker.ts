/**
 * A node that takes part knew nothing of damage in what votes rest on, which was there when it
 * began.
 */
import { AssertionError } from '../../src/base/assert.ts'
import { votingSpans } from '../../src/store/row-format.ts'
import type { SimDisk } from '../world/disk.ts'

/** `data`: of a node that has opened its stores. Undefined: all is well. */
export function startDamage(name: string, data: SimDisk): AssertionError | undefined {
  if (data.wasSoundAtOpen(votingSpans)) return undefined
  return new AssertionError(`DISK-14: ${name} takes part on state records that were damaged`)
}
