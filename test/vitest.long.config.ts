/**
 * Runs what `npm test` leaves out for its length, in the same way. A test of real processes that fails is tried once
 * more: a busy machine may have kept it from its time. The end of the output names it as `flaky`.
 */
import { mergeConfig, type ViteUserConfig } from 'vitest/config'
import { longTests } from './long-tests.ts'
import { common } from './vitest.config.ts'

const config: ViteUserConfig = mergeConfig(common, { test: { include: longTests, retry: 1 } })

export default config
