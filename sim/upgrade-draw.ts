/**
 * An upgrade drawn from a seed: all nodes begin with a build of the first cluster version, and an operator starts each of them with this
 * build, at moments of their own. Some go back meanwhile. Now and then the operator asks for the next cluster version, at times too early.
 */
import { ownVersions } from '../src/base/cluster-version.ts'
import { nodeName } from './cluster/endpoints.ts'
import type { UpgradeFault } from './faults/fault.ts'
import type { FaultRates } from './faults/swarm-faults.ts'
import { SeededRandom } from './world/random.ts'

/** Of nodes, that go back to the build before for a while; of operators, that do not look at the builds. */
const backRate = 200_000
const blindRate = 500_000
const second = 1_000_000

interface Drawn {
  readonly seed: number
  readonly nodeCount: number
  readonly faultRates: FaultRates
  readonly workload: { readonly lone?: unknown }
}

/** None where a node is to be alone with a write: all others go on then. */
export function drawUpgrade({
  seed,
  nodeCount,
  faultRates,
  workload,
}: Drawn): readonly UpgradeFault[] {
  const { firstBuild } = faultRates
  if (firstBuild === undefined || workload.lone !== undefined) return []
  const random = new SeededRandom(`${seed}/faults/upgrade`)
  // A quiet stretch moves what comes behind it.
  const lengthMicros = faultRates.lengthMicros - faultRates.quietMicros
  const nodes = random.shuffle(Array.from({ length: nodeCount }, (_, i) => nodeName(i)))
  const restarts = nodes.flatMap((node) => drawRestarts(random, { node, firstBuild, lengthMicros }))
  const looksFirst = !random.chance(blindRate)
  const asked = Array.from({ length: random.int(2, 10) }, (): UpgradeFault => {
    const atMicros = random.int(0, lengthMicros - 1)
    return { kind: 'finalize', atMicros, node: random.pick(nodes), looksFirst }
  })
  return [...restarts, ...asked]
}

interface Restarted {
  readonly node: string
  readonly firstBuild: number
  readonly lengthMicros: number
}

function drawRestarts(
  random: SeededRandom,
  { node, firstBuild, lengthMicros }: Restarted,
): readonly UpgradeFault[] {
  const restart = (atMicros: number, build: number): UpgradeFault => {
    const downMicros = random.exponential(random.pick([1_000, second / 5, second]))
    return { kind: 'change-build', atMicros, node, downMicros, build }
  }
  const atMicros = random.int(0, Math.floor(lengthMicros * 0.6))
  const first = restart(atMicros, ownVersions.max)
  if (!random.chance(backRate)) return [first]
  const backMicros = random.int(atMicros, Math.floor(lengthMicros * 0.7))
  const againMicros = random.int(backMicros, Math.floor(lengthMicros * 0.8))
  return [first, restart(backMicros, firstBuild), restart(againMicros, ownVersions.max)]
}
