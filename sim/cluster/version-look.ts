/**
 * The cluster version when everything has healed: where each node runs the last build, an operator puts the last version in force in
 * each replica set, and each node applies that. Of runs with an upgrade alone.
 */
import { ownVersions } from '../../src/base/cluster-version.ts'
import { StoreError } from '../../src/base/errors.ts'
import type { Referee } from '../checkers/referee.ts'
import type { SimCluster } from './comparison.ts'

const finalizeMicros = 60_000_000
/** Between two requests to one set. */
const againMicros = 1_000_000
/** Events between two looks. */
const lookEvents = 64

export async function expectVersion(
  cluster: SimCluster,
  referee: Referee,
  isBroken: () => boolean,
  { firstBuild }: { readonly firstBuild?: number },
): Promise<void> {
  if (firstBuild === undefined) return undefined
  const { world, inService, coverage } = cluster
  const isMixed = inService.some(({ build, actsAs }) => Math.min(build, actsAs) < ownVersions.max)
  if (isMixed) return coverage.count('healed with an earlier build')
  // An operator removes such a node first.
  if (isMissing(cluster)) return coverage.count('healed without a member')
  let isOver = false
  for (const { name } of inService) ask(cluster, name, () => isOver || isBroken())
  let late = findLate(cluster)
  let events = 0
  const isDone = (): boolean => {
    if (isBroken()) return true
    if (events++ % lookEvents === 0) late = findLate(cluster)
    return late.length === 0
  }
  await world.run(isDone, world.nowMicros + finalizeMicros)
  isOver = true
  referee.check(
    isBroken() || late.length === 0,
    'LIVE-1',
    'A cluster version did not come into force in the healed world.',
    () => ({ late }),
  )
  if (late.length === 0) coverage.count('upgraded')
}

/** Whether a member of a set is out of service for good. */
function isMissing(cluster: SimCluster): boolean {
  const names = cluster.inService.map(({ name }) => name)
  const members = names.flatMap((name) => cluster.readMembers(name)?.report.members ?? [])
  return members.some(({ node }) => !names.includes(node))
}

/** The nodes at which the last version is not in force. */
function findLate(cluster: SimCluster): readonly string[] {
  const names = cluster.inService.map(({ name }) => name)
  return names.filter((name) => cluster.readMembers(name)?.report.version !== ownVersions.max)
}

/** Asks the node again and again: each set has one that can. */
function ask(cluster: SimCluster, node: string, isOver: () => boolean): void {
  const { world, coverage } = cluster
  const go = (): void => {
    const port = cluster.readMembers(node)
    if (isOver() || port?.report.version === ownVersions.max) return
    world.schedule(againMicros, 'operator asks', go)
    port?.raise(ownVersions.max).then(
      () => coverage.count('finalized'),
      (error: unknown) => {
        if (!(error instanceof StoreError) || error.code === 'internal') world.fail(error)
      },
    )
  }
  go()
}
