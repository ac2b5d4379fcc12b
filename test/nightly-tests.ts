/**
 * Test files of which `npm run test:nightly` runs more than `npm test` and `npm run test:long` do: searches of whole
 * scopes, hunts for all planted bugs, wide areas, builds of indexes that a page shows, benches and installs. They take minutes and rest on little that
 * changes. `isNightly` is true in that run alone; in the others each file runs a representative part, and its other
 * tests count as skipped.
 */
export const nightlyTests: string[] = [
  'test/bench/builds.test.ts',
  'test/bench/round-trips.test.ts',
  'test/cluster/heal-log.test.ts',
  'test/examples/documents.test.ts',
  'test/sim/explore-mutants.test.ts',
  'test/sim/explore.test.ts',
]

/**
 * Test files that run at night alone: the longest of those that need the machine for themselves, or that rest on parts which
 * the other suites test in smaller ways. An audit of a killed cluster, the largest examples, installs of the package.
 */
export const nightlyOnly: string[] = [
  'test/bench/scale.test.ts',
  'test/bench/schemaless.test.ts',
  'test/bench/stop.test.ts',
  'test/bench/ycsb.test.ts',
  'test/cluster/audit.test.ts',
  'test/cluster/billing.test.ts',
  'test/cluster/heavy-polls.test.ts',
  'test/cluster/trips.test.ts',
  'test/examples/invitations.test.ts',
  'test/inspect/convert-log.test.ts',
  'test/package/install.test.ts',
  'test/sim/processes.test.ts',
  'test/tables/catalogue.test.ts',
]

export const isNightly: boolean = process.env['TRILITHON_TEST_NIGHTLY'] === 'yes'
