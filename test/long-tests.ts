/**
 * Tests that take most of the time: benches, hunts for planted bugs, loads and builds on real processes, most kills and
 * changes of nodes, campaigns by command line, damage of all kinds, the pages' commands, the demonstration, costs of a
 * node under load.
 * `npm run test:long` runs them, and so does `.ci/run`; `npm test` stays short without them. Of some of them
 * `npm run test:nightly` runs more (`nightly-tests.ts`).
 */
export const longTests: string[] = [
  'test/bench/builds.test.ts',
  'test/bench/round-trips.test.ts',
  'test/cli/compare-counting.test.ts',
  'test/cluster/chaos.test.ts',
  'test/cluster/clocks.test.ts',
  'test/cluster/damage.test.ts',
  'test/cluster/datastores.test.ts',
  'test/cluster/demo.test.ts',
  'test/cluster/erase.test.ts',
  'test/cluster/follow.test.ts',
  'test/cluster/gateway.test.ts',
  'test/cluster/grow.test.ts',
  'test/cluster/heal-log.test.ts',
  'test/cluster/hold-commands.test.ts',
  'test/cluster/indexes.test.ts',
  'test/cluster/log-rot.test.ts',
  'test/cluster/log-store.test.ts',
  'test/cluster/memory-of-stores.test.ts',
  'test/cluster/operations.test.ts',
  'test/cluster/outputs.test.ts',
  'test/cluster/placement.test.ts',
  'test/cluster/readers.test.ts',
  'test/cluster/recover.test.ts',
  'test/cluster/replace.test.ts',
  'test/cluster/replica-sets.test.ts',
  'test/cluster/returns.test.ts',
  'test/cluster/round-commands.test.ts',
  'test/cluster/snapshots.test.ts',
  'test/cluster/store-commands.test.ts',
  'test/cluster/trigger-commands.test.ts',
  'test/cluster/unknown-names.test.ts',
  'test/examples/documents.test.ts',
  'test/fuzz/fuzz.test.ts',
  'test/sim/command-line.test.ts',
  'test/sim/explore-mutants.test.ts',
  'test/sim/explore.test.ts',
  'test/sim/gateways.test.ts',
  'test/sim/mutants.test.ts',
  'test/sim/scenario-commands.test.ts',
  'test/sim/shapes.test.ts',
]
