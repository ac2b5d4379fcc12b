/** Sessions of tables purge some rows instead of deleting them, and set and lift holds that forbid both. */
import type { HeldTables, HoldTarget } from '../../src/client/holds.ts'
import type { Client } from '../../src/client/client.ts'
import type { SeededRandom } from '../world/random.ts'
import { offers, type Drawing } from './table-draw.ts'
import { buildRoot, offerSeconds } from './table-schema.ts'
import type { TableStep } from './table-step.ts'

/** Parts per million. */
const half = 500_000
const holds = 300_000
const clearings = 500_000
/** In the place of a table. */
const wholeGroup = 'group'

/** The part of deletions that are purges. */
export function withPurges(
  random: SeededRandom,
  steps: readonly TableStep[],
): readonly TableStep[] {
  return steps.map((step) =>
    step.kind === 'delete' && random.chance(half) ? { ...step, kind: 'purge' } : step,
  )
}

/** Among the steps now and then a shelf that goes with its items, or an item that comes to one. */
export function withClearings(
  random: SeededRandom,
  store: string,
  steps: readonly TableStep[],
): readonly TableStep[] {
  const key = { store, shelf: random.pick([1, 2]) }
  const item = { ...key, item: random.pick(['a', 'b', 'c']), price: random.int(0, 6) }
  const more: readonly TableStep[] = random.chance(half)
    ? [{ kind: 'delete', table: 'Shelf', key }]
    : [{ kind: 'put', table: 'Item', row: item }]
  return random.chance(clearings) ? [...more, ...steps] : steps
}

/** Offers are made anew at about the moment at which they expire and are removed. */
export const renewEarliestMicros: number = offerSeconds * 1_000_000 - 50_000
export const renewMeanMicros = 150_000
/** A node that lacks much catches up when the others rest. */
export const renewalsMax = 8

export function drawRenewal({ random, store }: Drawing, who: string): readonly TableStep[] {
  const kind = random.chance(half) ? 'put' : 'insert'
  return offers.map((offer) => ({ kind, table: 'Offer', row: { store, offer, who } }))
}

export interface HoldingParts {
  readonly client: Pick<Client, 'holds'>
  readonly writtenStores: readonly string[]
  readonly timeoutMs: number
  readonly erases: boolean
}

/** Now and then sets a hold, of a group or of a table there, or lifts one, which others may have set. */
export function drawHold(
  random: SeededRandom,
  db: HeldTables,
  { client, writtenStores, timeoutMs, erases }: HoldingParts,
): () => Promise<unknown> {
  if (!erases || !random.chance(holds)) return () => Promise.resolve()
  const of = random.pick([wholeGroup, 'Item', 'Offer', 'Shelf'])
  const target = targetOf(db, random.pick(writtenStores), of)
  return random.chance(half)
    ? () => client.holds.set(target, 'case 1', { timeoutMs })
    : () => client.holds.clear(target, { timeoutMs })
}

/** At the end: the workers would look again and again at rows that are held and have expired. */
export function liftAll(
  db: HeldTables,
  store: string,
  held: readonly string[],
  { client, timeoutMs }: HoldingParts,
): () => Promise<void> {
  return async () => {
    for (const of of held) await client.holds.clear(targetOf(db, store, of), { timeoutMs })
  }
}

function targetOf(db: HeldTables, store: string, of: string): HoldTarget {
  const group = { db, key: buildRoot(store) }
  return of === wholeGroup ? group : { ...group, table: { name: of } }
}
