/** A log that cannot be written takes lines away, and nothing else. */
import { closeSync, existsSync, openSync } from 'node:fs'
import { expect, test } from 'vitest'
import { openLog } from '../../src/cli/process-log.ts'

const full = '/dev/full'

test.skipIf(!existsSync(full))('a full volume is counted, and does not end the process', () => {
  const fd = openSync(full, 'w')
  const { logger, lost } = openLog('info', { node: 'a' }, fd)
  for (let i = 0; i < 100; i++) logger.info('x'.repeat(20_000))
  const { lines, failures } = lost()
  expect(failures).toBeGreaterThan(0)
  // The queue is bounded: 2 MB do not wait.
  expect(lines).toBeGreaterThan(40)
  closeSync(fd)
})
