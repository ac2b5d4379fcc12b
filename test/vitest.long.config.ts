/**
 * Runs what `npm test` leaves out for its length, in the same way. A test of real processes that fails is tried once
 * more: a busy machine may have kept it from its time. The end of the output names it as `flaky`.
 *
 * There are three workers for two cores: most of these tests wait for their processes more than half of the time.
 */
import { mergeConfig, type ViteUserConfig } from 'vitest/config'
import { longTests } from './long-tests.ts'
import { common } from './vitest.config.ts'

const config: ViteUserConfig = mergeConfig(common, {
  test: { include: longTests, retry: 1, maxWorkers: 3 },
})

export default config
