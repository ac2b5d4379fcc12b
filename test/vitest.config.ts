/**
 * How `npm test` runs the tests, all but the longest (`long-tests.ts`, `nightly-tests.ts`): files on two workers, one after another on each, the longest first. Files on a worker
 * share modules, which keep nothing that a test rests on: making them anew for each file took a fifth of the
 * time.
 *
 * What they test is the built program in dist/, loaded by Node itself: through the runner's modules, where
 * each use of an import is a look-up, a simulation takes a third longer. Processes that tests start run it as one file
 * (`joined/`), which they load in a fifth of the time.
 *
 * Workers have the V8 flags that processes of campaigns have (`v8Flags` of `sim/campaign.ts`), but for short stacks:
 * simulations and searches are most of what the workers compute, and take a quarter less of a processor's time with them.
 */
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { configDefaults, defineConfig, mergeConfig } from 'vitest/config'
import type { Plugin, ViteUserConfig } from 'vitest/config'
import { longTests } from './long-tests.ts'
import { nightlyOnly } from './nightly-tests.ts'
import { LongestFirst } from './longest-first.ts'
import { nodeOptions } from './joined/join.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const built = ['src', 'sim', 'schema', 'bench'].map((folder) => join(root, folder, '/'))
/** Not built: they stand for programs of others. */
const examples = join(root, 'schema/examples/')

const builtProgram: Plugin = {
  name: 'built-program',
  enforce: 'pre',
  resolveId(imported, importer) {
    if (importer === undefined || !imported.startsWith('.')) return undefined
    const source = resolve(dirname(importer), imported)
    const isBuilt = built.some((folder) => source.startsWith(folder))
    if (!isBuilt || source.startsWith(examples)) return undefined
    return join(root, 'dist', source.slice(root.length).replace(/\.ts$/, '.js'))
  },
}

/** Of all runs. */
export const common: ViteUserConfig = defineConfig({
  root,
  plugins: [builtProgram],
  test: {
    setupFiles: ['test/setup.ts'],
    globalSetup: ['test/build.ts'],
    env: { NODE_OPTIONS: nodeOptions },
    server: { deps: { external: [/\/dist\/(src|sim|schema|bench)\//] } },
    pool: 'forks',
    execArgv: [
      '--min-semi-space-size=64',
      '--max-semi-space-size=64',
      '--initial-old-space-size=256',
      '--interrupt-budget=270336',
      '--max-inlined-bytecode-size-cumulative=460',
    ],
    maxWorkers: 2,
    sequence: { sequencer: LongestFirst },
    isolate: false,
    watch: false,
    allowOnly: false,
    // They end what hangs. A busy machine is slow, and fails no test.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 60_000 } },
    reporters: ['default', './test/reporter.ts'],
  },
})

const config: ViteUserConfig = mergeConfig(common, {
  test: {
    include: ['test/**/*.test.ts'],
    exclude: [...configDefaults.exclude, ...longTests, ...nightlyOnly],
  },
})

export default config
