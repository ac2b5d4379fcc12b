/**
 * Leases seen from outside: what every node could serve by itself, against what was shown anywhere.
 *
 * LEASE-1  A node that may serve a current read by itself must see every position applied anywhere.
 * LEASE-2  A registration that a node counts on is known to its grantor, who lists it for every
 *          position that the node may not have.
 */
import type { NodeId, Position } from '../../src/base/ids.ts'
import type { Book } from './book.ts'
import type { Breach } from './observation.ts'
import type { Setting } from './setting.ts'

/** A node's rights by its leases, and its knowledge of its peers' leases. */
export interface LeaseView {
  readonly leased: Position | undefined
  readonly counted: readonly NodeId[]
  readonly seen: Position
  readonly listed: readonly (readonly NodeId[])[]
}

const nothing: readonly Breach[] = []

export function leaseBreaches(
  { names }: Setting,
  views: readonly LeaseView[],
  { states }: Book,
): readonly Breach[] {
  const applied = Math.max(0, ...states.keys())
  let breaches: Breach[] | undefined
  for (const [at, { leased, counted, seen }] of views.entries()) {
    if (leased !== undefined && leased < applied) {
      const sentence = 'A node may serve reads by itself that miss what was applied elsewhere.'
      breaches = [...(breaches ?? []), { rule: 'LEASE-1', sentence }]
    }
    for (const grantor of counted) {
      const holder = names[at]
      const listed = views[names.indexOf(grantor)]?.listed[seen + 1] ?? []
      if (holder === undefined || listed.includes(holder)) continue
      const sentence = 'A node counts on a registration that its grantor does not list.'
      breaches = [...(breaches ?? []), { rule: 'LEASE-2', sentence }]
    }
  }
  return breaches ?? nothing
}
