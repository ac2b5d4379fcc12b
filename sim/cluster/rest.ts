/** Whether an idle world, without client requests, comes to rest. */
import type { Limits } from '../../src/base/limits.ts'
import type { Traffic } from './cluster.ts'
import type { SimCluster } from './comparison.ts'

const quietMicros = 10_000_000
/** Messages that a quiet world may still see: answers to duplicates that come late. */
const straysMax = 50
/** Looks at a world that should be at rest before it is said not to be. */
const looksMax = 3

export type Rest = Omit<Traffic, 'bytes'> & { readonly isAtRest: boolean }

export async function watchRest(
  cluster: SimCluster,
  { sweepMs, suspectMs, forwardMs, digestMs, backoffMaxMs }: Limits,
  isBroken: () => boolean,
): Promise<Rest> {
  const { world } = cluster
  const restMs = 2 * Math.max(sweepMs, suspectMs, forwardMs, digestMs, backoffMaxMs)
  const since = cluster.traffic
  await world.run(isBroken, world.nowMicros + restMs * 1_000)
  let seen = await look(cluster, since, isBroken)
  // Nodes answer in a burst the frames that a clogged way lets go at last; unrest that feeds itself goes on.
  for (let looks = 1; looks < looksMax && !seen.isAtRest; looks++) {
    seen = await look(cluster, since, isBroken)
  }
  return seen
}

async function look(cluster: SimCluster, since: Traffic, isBroken: () => boolean): Promise<Rest> {
  const { world } = cluster
  const before = cluster.traffic
  await world.run(isBroken, world.nowMicros + quietMicros)
  const after = cluster.traffic
  const proposals = after.proposals - before.proposals
  const messages = after.messages - before.messages
  const renewals = after.renewals - before.renewals
  // A request whose second copy comes very late is a request.
  const requests = after.requests - before.requests
  // An accept that comes very late may tell of a position in doubt, which is settled some time
  // after.
  const latecomers = after.latecomers - since.latecomers
  const late = after.latecomers - before.latecomers
  const isSilent =
    proposals <= requests + latecomers && messages <= straysMax * (1 + requests + late + proposals)
  // A holder without readers gives its leases up.
  const isAtRest = isSilent && (renewals === 0 || requests + late > 0)
  return { proposals, messages, renewals, requests, latecomers, isAtRest }
}
