/**
 * The order of test files: those that take longest first, so that no worker is left alone with one of them
 * at the end while the others have nothing to do.
 */
import { existsSync } from 'node:fs'
import { relative } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Seconds that they took on two cores; all others take less than ten. */
const seconds: Readonly<Record<string, number>> = {
  'test/cluster/heal-log.test.ts': 140,
  'test/cluster/audit.test.ts': 100,
  'test/package/install.test.ts': 75,
  'test/tables/catalogue.test.ts': 70,
  'test/cluster/damage.test.ts': 66,
  'test/cluster/replica-sets.test.ts': 62,
  'test/bench/scale.test.ts': 61,
  'test/examples/documents.test.ts': 60,
  'test/cluster/trigger-commands.test.ts': 59,
  'test/cluster/indexes.test.ts': 55,
  'test/cluster/log-store.test.ts': 55,
  'test/sim/command-line.test.ts': 50,
  'test/cluster/grow.test.ts': 48,
  'test/fuzz/fuzz.test.ts': 48,
  'test/sim/explore.test.ts': 45,
  'test/cluster/billing.test.ts': 44,
  'test/cluster/trips.test.ts': 43,
  'test/cluster/gateway.test.ts': 40,
  'test/inspect/convert-log.test.ts': 40,
  'test/sim/nemesis.test.ts': 34,
  'test/cli/nodes.test.ts': 29,
  'test/cluster/cluster.test.ts': 28,
  'test/bench/round-trips.test.ts': 25,
  'test/cluster/store-commands.test.ts': 25,
  'test/sim/run.test.ts': 25,
  'test/sim/scenarios/members.test.ts': 25,
  'test/adapters/level-tables.test.ts': 24,
  'test/cluster/chaos.test.ts': 24,
  'test/cluster/commands.test.ts': 24,
  'test/cluster/memory-of-stores.test.ts': 24,
  'test/cluster/load-table.test.ts': 23,
  'test/examples/invitations.test.ts': 22,
  'test/cluster/outputs.test.ts': 21,
  'test/sim/gateways.test.ts': 21,
  'test/bench/stop.test.ts': 20,
  'test/cluster/demo.test.ts': 20,
  'test/cluster/erase.test.ts': 20,
  'test/cluster/replace.test.ts': 20,
  'test/sim/explore-mutants.test.ts': 20,
  'test/cluster/operations.test.ts': 19,
  'test/sim/mutants.test.ts': 18,
  'test/sim/processes.test.ts': 18,
  'test/cli/compare-counting.test.ts': 17,
  'test/cluster/returns.test.ts': 17,
  'test/contracts/journal.test.ts': 17,
  'test/cluster/strangers.test.ts': 16,
  'test/adapters/level-damage.test.ts': 14,
  'test/cluster/log-rot.test.ts': 14,
  'test/bench/nothing-measured.test.ts': 13,
  'test/cluster/sessions.test.ts': 13,
  'test/cli/schema.test.ts': 12,
  'test/client/damaged-index.test.ts': 12,
  'test/cluster/overload.test.ts': 12,
  'test/cluster/placement.test.ts': 12,
  'test/cluster/refusals.test.ts': 12,
  'test/sim/quiet.test.ts': 12,
  'test/cluster/hold-commands.test.ts': 11,
  'test/cluster/node-lists.test.ts': 11,
  'test/sim/scenario-commands.test.ts': 11,
  'test/sim/scenarios/lease-ends.test.ts': 10,
  'test/sim/scenarios/leases.test.ts': 10,
  'test/cluster/clocks.test.ts': 9,
}

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { root } = this.ctx.config
    const gone = Object.keys(seconds).filter((file) => !existsSync(`${root}/${file}`))
    if (gone.length > 0)
      throw new Error(`test/longest-first.ts: no longer there: ${gone.join(', ')}`)
    const secondsOf = ({ moduleId }: TestSpecification): number =>
      seconds[relative(root, moduleId)] ?? 0
    // Of the others the largest come first, as far as is known.
    const others = await super.sort(files)
    return others.toSorted((one, other) => secondsOf(other) - secondsOf(one))
  }
}
