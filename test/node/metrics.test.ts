/** The page of figures has the memory of the process by its kinds. */
import { expect, test } from 'vitest'
import { createMetrics } from '../../src/node/metrics.ts'

const mib = 1024 * 1024

async function readFigures(): Promise<(name: string) => number> {
  const metrics = createMetrics({ node: 'x' })
  const { text } = await metrics.page([])
  metrics.close()
  return (name) => Number(new RegExp(`^${name}\\{.*\\} (\\d+)$`, 'm').exec(text)?.[1])
}

test('the page has the objects, the memory that the engine has taken for them, and the buffers', async () => {
  const before = await readFigures()
  const buffer = Buffer.alloc(64 * mib, 1)
  const after = await readFigures()
  const external = 'nodejs_external_memory_bytes'
  expect(after(external) - before(external)).toBeGreaterThan(buffer.length - 16 * mib)
  const [used, total] = [
    after('nodejs_heap_size_used_bytes'),
    after('nodejs_heap_size_total_bytes'),
  ]
  expect(used).toBeGreaterThan(mib)
  expect(total).toBeGreaterThanOrEqual(used)
  expect(after('process_resident_memory_bytes')).toBeGreaterThan(buffer.length)
})
