/**
 * How the tests run: files on two workers, one after another on each. Files on a worker share modules, which
 * keep nothing that a test rests on: making them anew for each file took a fifth of the time.
 */
import { fileURLToPath } from 'node:url'
import { defineConfig, type ViteUserConfig } from 'vitest/config'

const config: ViteUserConfig = defineConfig({
  root: fileURLToPath(new URL('..', import.meta.url)),
  test: {
    include: ['test/**/*.test.ts'],
    setupFiles: ['test/setup.ts'],
    pool: 'forks',
    maxWorkers: 2,
    isolate: false,
    watch: false,
    allowOnly: false,
    testTimeout: 30_000,
    hookTimeout: 30_000,
    reporters: ['default', './test/reporter.ts'],
  },
})

export default config
