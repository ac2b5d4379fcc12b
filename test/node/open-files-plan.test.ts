/** How files are shared out: LevelDB first, then connections; too few are refused in words. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { openFilesMax } from '../../src/adapters/open-files.ts'
import { planOpenFiles } from '../../src/node/open-files-plan.ts'
import { defaultListenerSettings as wanted } from '../../src/config/listener-settings.ts'

test('the bound of this process is read', () => {
  expect(openFilesMax() ?? 256).toBeGreaterThanOrEqual(256)
})

test.each([
  [65_536, 1_000, 12_000],
  [undefined, 1_000, 6_124],
  [1_024, 239, 478],
  [400, 83, 166],
  [228, 64, 32],
])('with %j files each store gets %d and connections get %d', (files, tables, connections) => {
  const plan = planOpenFiles({ openFilesMax: files, stores: 2, others: 2, wanted })
  expect(plan).toMatchObject({
    ...{ filesPerStore: tables, connections: { connectionsMax: connections } },
    isLess: connections < 12_000,
  })
})

test('too few files are refused, with how many are wanted and what to do', () => {
  const few = (): unknown => planOpenFiles({ openFilesMax: 200, stores: 2, others: 2, wanted })
  expect(few).toThrow(
    /may have 200 files open, and wants 228 at least: raise the limit \(ulimit -n/,
  )
})

test('the shares never exceed the limit, and each user of files has its least', () => {
  const asked = fc.record({
    openFilesMax: fc.integer({ min: 100, max: 100_000 }),
    stores: fc.constantFrom(0, 2),
    others: fc.nat({ max: 100 }),
    wanted: fc.record({
      connectionsMax: fc.integer({ min: 40, max: 20_000 }),
      connectionsPerAddressMax: fc.integer({ min: 1, max: 20_000 }),
      unprovenMax: fc.integer({ min: 1, max: 39 }),
      unprovenPerAddressMax: fc.integer({ min: 1, max: 39 }),
    }),
  })
  fc.assert(
    fc.property(asked, ({ openFilesMax: files, stores, others, wanted: some }) => {
      const least = 64 + 2 * others + 64 * stores + 32
      if (files < least) return
      const plan = planOpenFiles({ openFilesMax: files, stores, others, wanted: some })
      const { connectionsMax, unprovenMax, unprovenPerAddressMax } = plan.connections
      const used = 64 + 2 * others + stores * plan.filesPerStore + connectionsMax
      expect(used).toBeLessThanOrEqual(files)
      expect(connectionsMax).toBeGreaterThanOrEqual(Math.min(32, some.connectionsMax))
      expect(unprovenMax).toBeLessThan(connectionsMax)
      expect(unprovenMax).toBeGreaterThan(0)
      expect(unprovenPerAddressMax).toBeGreaterThan(0)
      if (stores > 0) expect(plan.filesPerStore).toBeGreaterThanOrEqual(64)
    }),
  )
})
