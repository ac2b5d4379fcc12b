/** A node's disk in the world: the simulated disk, with times and crash fates drawn from the seed. */
import type { OrderedStore, Put } from '../src/ports/storage.ts'
import { SimDisk, type Fate } from './disk.ts'
import type { HostDisk } from './node-host.ts'
import type { Priorities } from './priorities.ts'
import type { SimProcess } from './sim-process.ts'
import type { DiskConditions } from './swarm.ts'
import type { World } from './world.ts'

/** Parts per million of pending writes that a crash finds done after all. */
const keptRate = 400_000

export function createHostDisk(
  world: World,
  name: string,
  conditions: DiskConditions,
  priorities: Priorities,
  onDurable: (puts: readonly Put[], isWhole: boolean) => void,
): HostDisk {
  const random = world.random.fork(`disk ${name}`)
  const label = `write ${name}`
  let owner: SimProcess | undefined
  let extraMicros = 0
  let nextFate: Fate | undefined
  const disk = new SimDisk({
    schedule(complete) {
      const { writeMinMicros, writeMeanMicros } = conditions
      const ownMicros = writeMinMicros + random.exponential(writeMeanMicros)
      const delayMicros = ownMicros * priorities.take(label) + extraMicros
      owner?.schedule(delayMicros, label, complete)
      hostDisk.onWrite()
    },
    onDurable,
  })
  const hostDisk: HostDisk = {
    disk,
    onWrite: () => undefined,
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
    decideFate(fate) {
      nextFate = fate
    },
  }
  return hostDisk
}
