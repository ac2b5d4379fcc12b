/**
 * Test files of which `npm run test:nightly` runs more than `npm test` and `npm run test:long` do: searches of whole
 * scopes, hunts for all planted bugs, wide areas, benches and installs. They take minutes and rest on little that
 * changes. `isNightly` is true in that run alone; in the others each file runs a representative part, and its other
 * tests count as skipped.
 */
export const nightlyTests: string[] = [
  'test/bench/builds.test.ts',
  'test/bench/round-trips.test.ts',
  'test/bench/schemaless.test.ts',
  'test/bench/stop.test.ts',
  'test/bench/ycsb.test.ts',
  'test/package/install.test.ts',
  'test/sim/explore-mutants.test.ts',
  'test/sim/explore.test.ts',
]

export const isNightly: boolean = process.env['TRILITHON_TEST_NIGHTLY'] === 'yes'
