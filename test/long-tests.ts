/**
 * Tests that take most of the time: whole benches, hunts for planted bugs, an audit of a killed cluster,
 * loads and builds on real processes, damage of all kinds, the pages' commands, installs of the package. `npm run test:long` runs them, and so does `.ci/run`; `npm test` stays short without them.
 */
export const longTests: string[] = [
  'test/bench/builds.test.ts',
  'test/bench/round-trips.test.ts',
  'test/bench/scale.test.ts',
  'test/bench/schemaless.test.ts',
  'test/bench/stop.test.ts',
  'test/bench/ycsb.test.ts',
  'test/cluster/audit.test.ts',
  'test/cluster/billing.test.ts',
  'test/cluster/chaos.test.ts',
  'test/cluster/damage.test.ts',
  'test/cluster/indexes.test.ts',
  'test/cluster/replica-sets.test.ts',
  'test/cluster/trips.test.ts',
  'test/cluster/unknown-names.test.ts',
  'test/examples/documents.test.ts',
  'test/fuzz/fuzz.test.ts',
  'test/package/install.test.ts',
  'test/sim/explore-mutants.test.ts',
  'test/sim/explore.test.ts',
]
