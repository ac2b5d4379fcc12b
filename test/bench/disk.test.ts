/** The count of what a disk has written, by a file of a known size. */
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { deviceWrittenBytes } from '../../bench/disk.ts'
import { withFolder } from '../cluster/harness.ts'

test('the count of a device grows by the bytes of a synced file, where the system counts them', () =>
  withFolder(async (folder) => {
    const before = await deviceWrittenBytes(folder)
    const bytes = 4 * 1024 * 1024
    const file = await open(join(folder, 'written'), 'w')
    await file.write(Buffer.alloc(bytes, 0xa5))
    await file.sync()
    await file.close()
    const after = await deviceWrittenBytes(folder)
    // A folder in memory, or of an overlay, has no device.
    if (Number.isNaN(before)) expect(after).toBeNaN()
    else expect(after - before).toBeGreaterThanOrEqual(bytes)
  }))
