/** The disk of a node's log in segment files, with times and crash fates drawn from the seed. */
import type { Put } from '../../src/ports/storage.ts'
import type { Fate } from '../world/disk.ts'
import type { Priorities } from '../world/priorities.ts'
import type { SeededRandom } from '../world/random.ts'
import { SegmentLog } from '../world/segment-log.ts'
import type { SegmentFate } from '../world/segments.ts'
import type { SimProcess } from '../world/sim-process.ts'
import type { World } from '../world/world.ts'
import type { DiskTimes } from './host-disk.ts'
import type { HostLog } from './node-host.ts'

const million = 1_000_000

export function createSegmentLog(
  world: World,
  name: string,
  times: DiskTimes & { readonly segmentBytes: number },
  priorities: Priorities,
  onDurable: (puts: readonly Put[], isWhole: boolean) => void,
): HostLog {
  const random = world.random.fork(`segments ${name}`)
  const reads = random.fork('reads')
  const label = `write ${name}`
  let owner: SimProcess | undefined
  let extraMicros = 0
  let extraReadMicros = 0
  let nextFate: SegmentFate | undefined
  const disk = new SegmentLog({
    random: random.fork('salts'),
    segmentBytes: times.segmentBytes,
    nowMicros: () => world.nowMicros,
    onDurable,
    onWork: (work, count, bytes) => owner?.work(work, count, bytes),
    schedule(complete) {
      const ownMicros = times.writeMinMicros + random.exponential(times.writeMeanMicros)
      owner?.schedule(ownMicros * priorities.take(label) + extraMicros, label, complete)
      host.onWrite()
    },
    waitToRead() {
      const process = owner
      if (process === undefined) return undefined
      const mustWait = host.onRead() || extraReadMicros > 0 || reads.chance(times.waits)
      if (mustWait) host.onReadWait()
      const extra = extraReadMicros > 0 ? reads.exponential(extraReadMicros) : 0
      // Bytes that are at hand come in a turn of their own, too: a thread reads them.
      const delayMicros = mustWait ? reads.exponential(times.readMeanMicros) + extra : 0
      return new Promise((resolve) => void process.schedule(delayMicros, `read ${name}`, resolve))
    },
    pause: (ms) =>
      new Promise((resolve) => {
        owner?.schedule(Math.ceil(1000 * ms), `pause ${name}`, resolve)
      }),
  })
  const host: HostLog = {
    disk,
    onWrite: () => undefined,
    onRead: () => false,
    onReadWait: () => undefined,
    openJournal(process) {
      owner = process
      return disk.open()
    },
    crash() {
      const fate = nextFate ?? drawFate(random)
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
      nextFate = fate && asSegmentFate(fate)
    },
  }
  return host
}

function drawFate(random: SeededRandom): SegmentFate {
  const kind = random.pick(['lost', 'lost', 'kept', 'kept', 'torn', 'sectors'] as const)
  if (kind === 'torn') return { kind, kept: random.int(0, million) }
  return kind === 'sectors' ? { kind, bits: random.int(0, 2 ** 30 - 1) } : { kind }
}

function asSegmentFate(fate: Fate): SegmentFate {
  if (fate.kind === 'cut-short') return { kind: 'torn', kept: fate.kept }
  return fate.kind === 'torn' ? { kind: 'sectors', bits: 2 ** fate.puts - 1 } : fate
}
