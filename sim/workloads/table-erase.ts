/** What sessions of tables do against deletions: some rows are purged, and holds forbid both for a while. */
import type { RootKey } from '../../src/tables/tables.ts'
import type { HeldTables } from '../../src/client/holds.ts'
import type { Client } from '../../src/client/client.ts'
import type { SeededRandom } from '../world/random.ts'
import type { TableStep } from './table-step.ts'

/** Parts per million. */
const half = 500_000
const holds = 300_000

/** Some of what is deleted is purged. */
export function withPurges(
  random: SeededRandom,
  steps: readonly TableStep[],
): readonly TableStep[] {
  return steps.map((step) =>
    step.kind === 'delete' && random.chance(half) ? { ...step, kind: 'purge' } : step,
  )
}

/** Now and then sets a hold, of the group or of a table there, or lifts one, which others may have set. */
export function drawHold(
  random: SeededRandom,
  client: Pick<Client, 'holds'>,
  group: { readonly db: HeldTables; readonly key: RootKey },
  timeoutMs: number,
): (() => Promise<unknown>) | undefined {
  if (!random.chance(holds)) return undefined
  const name = random.pick([undefined, 'Item', 'Offer', 'Shelf'])
  const target = { ...group, ...(name !== undefined && { table: { name } }) }
  return random.chance(half)
    ? () => client.holds.set(target, 'case 1', { timeoutMs })
    : () => client.holds.clear(target, { timeoutMs })
}
