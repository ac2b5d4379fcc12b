/** Runs the files of `nightly-tests.ts` whole, in the same way as the long tests. */
import { mergeConfig, type ViteUserConfig } from 'vitest/config'
import { nightlyOnly, nightlyTests } from './nightly-tests.ts'
import { common } from './vitest.config.ts'

const config: ViteUserConfig = mergeConfig(common, {
  test: {
    include: [...nightlyTests, ...nightlyOnly],
    env: { TRILITHON_TEST_NIGHTLY: 'yes' },
    retry: 1,
    maxWorkers: 3,
  },
})

export default config
