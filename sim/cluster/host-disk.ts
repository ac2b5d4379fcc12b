/**
 * A node's disk in the world: the simulated disk, with times and crash fates drawn from the seed.
 */
import { OrderedJournal } from '../../src/journal/ordered-journal.ts'
import type { Journal } from '../../src/ports/journal.ts'
import type { OrderedStore, Put } from '../../src/ports/storage.ts'
import { SimDisk, type Fate } from '../world/disk.ts'
import type { HostDisk, HostLog } from './node-host.ts'
import type { Priorities } from '../world/priorities.ts'
import type { SeededRandom } from '../world/random.ts'
import type { SimProcess } from '../world/sim-process.ts'
import type { DiskConditions } from '../disk-draw.ts'
import type { TimeOptions } from '../world/turn-costs.ts'
import type { World } from '../world/world.ts'

/** Parts per million of pending writes that a crash finds done after all. */
const keptRate = 400_000
/** Parts per million of reads that see a pending write which none before them has seen. */
const shownRate = 300_000
/** How long one look of a scrub at a whole disk takes. */
const scrubMeanMicros = 3_000_000

/** The times that a disk takes. */
export type DiskTimes = DiskConditions & Pick<TimeOptions, 'waits' | 'readMeanMicros'>

/** As `DiskOptions` has them. */
interface DiskKeeps {
  readonly keepsJournal?: boolean
  readonly keepsRemains?: boolean
}

export function createHostDisk(
  world: World,
  name: string,
  conditions: DiskTimes,
  priorities: Priorities,
  onDurable: (puts: readonly Put[], isWhole: boolean) => void,
  { keepsJournal = false, keepsRemains = false }: DiskKeeps = {},
): HostDisk {
  const random = world.random.fork(`disk ${name}`)
  const label = `write ${name}`
  const reads = random.fork('reads')
  const readLabel = `read ${name}`
  const scrubs = random.fork('scrubs')
  const shows = random.fork('shows')
  let owner: SimProcess | undefined
  let extraMicros = 0
  let extraReadMicros = 0
  let nextFate: Fate | undefined
  const disk = new SimDisk({
    schedule(complete) {
      const { writeMinMicros, writeMeanMicros } = conditions
      const ownMicros = writeMinMicros + random.exponential(writeMeanMicros)
      const delayMicros = ownMicros * priorities.take(label) + extraMicros
      owner?.schedule(delayMicros, label, complete)
      hostDisk.onWrite()
    },
    waitToRead() {
      const process = owner
      const mustWait = hostDisk.onRead() || extraReadMicros > 0 || reads.chance(conditions.waits)
      if (process === undefined || !mustWait) return undefined
      hostDisk.onReadWait()
      const extra = extraReadMicros > 0 ? reads.exponential(extraReadMicros) : 0
      const delayMicros = reads.exponential(conditions.readMeanMicros) + extra
      return new Promise((resolve) => void process.schedule(delayMicros, readLabel, resolve))
    },
    // A log keeps in memory what it writes.
    showsPending: () => keepsJournal || shows.chance(shownRate),
    waitToScrub: () => scrubTime(owner, name, scrubs),
    nowMicros: () => world.nowMicros,
    onWork: (work, count, bytes) => owner?.work(work, count, bytes),
    onDurable,
    ...{ keepsJournal, keepsRemains },
  })
  const hostDisk: HostDisk = {
    disk,
    onWrite: () => undefined,
    onRead: () => false,
    onReadWait: () => undefined,
    open(process: SimProcess): OrderedStore {
      owner = process
      return disk.open()
    },
    crash(): number {
      const isKept = disk.hasPending && random.chance(keptRate)
      const fate = nextFate ?? { kind: isKept ? 'kept' : 'lost' }
      nextFate = undefined
      return disk.crash(fate) ? 1 : 0
    },
    slowDown(micros) {
      extraMicros = micros
    },
    slowReads(micros) {
      extraReadMicros = micros
    },
    decideFate(fate) {
      nextFate = fate
    },
  }
  return hostDisk
}

/** The disk of a log in LevelDB: its last batches are a journal, which may rot. */
export function createLevelLog(
  world: World,
  name: string,
  times: DiskTimes,
  priorities: Priorities,
  onDurable: (puts: readonly Put[], isWhole: boolean) => void,
): HostLog {
  const host = createHostDisk(world, name, times, priorities, onDurable, { keepsJournal: true })
  const openJournal = (process: SimProcess): Journal => new OrderedJournal(host.open(process))
  return Object.assign(host, { openJournal })
}

function scrubTime(
  process: SimProcess | undefined,
  name: string,
  random: SeededRandom,
): Promise<void> | undefined {
  if (process === undefined) return undefined
  const delayMicros = random.exponential(scrubMeanMicros)
  return new Promise((resolve) => void process.schedule(delayMicros, `scrub ${name}`, resolve))
}
