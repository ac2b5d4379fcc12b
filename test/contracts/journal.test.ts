/** The contract of a journal, on LevelDB, on segment files, and on the simulated disks of both. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SimDisk } from '../../sim/world/disk.ts'
import { SimSegments, type SegmentFate } from '../../sim/world/segments.ts'
import { openLevelStore } from '../../src/adapters/level-storage.ts'
import { openSegmentFolder } from '../../src/adapters/segment-folder.ts'
import { systemRandom } from '../../src/adapters/system-random.ts'
import { OrderedJournal } from '../../src/journal/ordered-journal.ts'
import { openSegmentJournal } from '../../src/journal/segment-journal.ts'
import type { JournalPlace } from './journal-kit.ts'
import { journalContract } from './journal.ts'

const schedule = (complete: () => void): void => void setImmediate(complete)

async function inFolder(
  open: (path: string) => ReturnType<JournalPlace['open']>,
): Promise<JournalPlace> {
  const folder = await mkdtemp(join(tmpdir(), 'trilithon-journal-'))
  return {
    open: () => open(join(folder, 'log')),
    remove: () => rm(folder, { recursive: true, force: true }),
  }
}

/** One of the fates that a disk may have for what is under way. */
function fateOf(draw: number): SegmentFate {
  const rest = draw >> 2
  switch (draw & 3) {
    case 0:
      return { kind: 'lost' }
    case 1:
      return { kind: 'kept' }
    case 2:
      return { kind: 'torn', kept: rest % 1_000_001 }
    default:
      return { kind: 'sectors', bits: rest }
  }
}

journalContract('a journal in LevelDB', () =>
  inFolder(async (path) => new OrderedJournal(await openLevelStore(path))),
)
journalContract('a journal on the simulated disk', async () => {
  const disk = new SimDisk({ schedule })
  return {
    open: async () => new OrderedJournal(disk.open()),
    // A batch of LevelDB is whole, or not there.
    crash: (draw) => void disk.crash({ kind: draw % 2 === 0 ? 'lost' : 'kept' }),
    remove: async () => undefined,
  }
})
for (const segmentBytes of [4096, 64 * 1024]) {
  journalContract(`a journal in segment files of ${segmentBytes} bytes`, () =>
    inFolder(async (path) =>
      openSegmentJournal({
        folder: await openSegmentFolder(path),
        random: systemRandom,
        segmentBytes,
      }),
    ),
  )
  journalContract(`a journal in simulated segment files of ${segmentBytes} bytes`, async () => {
    const disk = new SimSegments({ schedule })
    return {
      open: () => openSegmentJournal({ folder: disk.open(), random: systemRandom, segmentBytes }),
      crash: (draw) => void disk.crash(fateOf(draw)),
      remove: async () => undefined,
    }
  })
}
