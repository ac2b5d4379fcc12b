/** The speed of a world's disks, and the kind of journal that its logs are in, as a seed draws them. */
import { isOn, type Switches } from './faults/swarm-faults.ts'
import type { SeededRandom } from './world/random.ts'

export interface DiskConditions {
  readonly writeMinMicros: number
  readonly writeMeanMicros: number
}

/** Of the runs, with logs in segment files. */
const segmentsRate = 333_333
/** Small files: journals begin many, and use them again. */
const segmentKib = [8, 32, 256]

export function drawDisk(random: SeededRandom): DiskConditions {
  return {
    writeMinMicros: random.int(20, 200),
    writeMeanMicros: random.pick([50, 1_000, 10_000, 50_000]),
  }
}

/** `segmentBytes`: as in `SwarmOptions`. */
export function drawLogStore(
  random: SeededRandom,
  switches: Switches,
): { readonly segmentBytes?: number } {
  const segmentBytes = random.pick(segmentKib) * 1024
  return random.chance(segmentsRate) && isOn('segments', switches) ? { segmentBytes } : {}
}
