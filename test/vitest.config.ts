/** How the tests run: files side by side on two workers, one after another within a file. */
import { fileURLToPath } from 'node:url'
import { defineConfig, type ViteUserConfig } from 'vitest/config'

const config: ViteUserConfig = defineConfig({
  root: fileURLToPath(new URL('..', import.meta.url)),
  test: {
    include: ['test/**/*.test.ts'],
    setupFiles: ['test/setup.ts'],
    pool: 'forks',
    maxWorkers: 2,
    watch: false,
    allowOnly: false,
    testTimeout: 30_000,
    hookTimeout: 30_000,
    reporters: ['default', './test/reporter.ts'],
  },
})

export default config
