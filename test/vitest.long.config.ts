/** Runs what `npm test` leaves out for its length, in the same way. */
import { mergeConfig, type ViteUserConfig } from 'vitest/config'
import { longTests } from './long-tests.ts'
import { common } from './vitest.config.ts'

const config: ViteUserConfig = mergeConfig(common, { test: { include: longTests } })

export default config
