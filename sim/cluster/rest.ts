/** Whether an idle world, without client requests, comes to rest. */
import type { Limits } from '../../src/base/limits.ts'
import type { Traffic } from './cluster.ts'
import type { SimCluster } from './comparison.ts'

const quietMicros = 10_000_000
/** Messages that a quiet world may still see: answers to duplicates that come late. */
const straysMax = 50
/**
 * Looks at a world that should be at rest before it is said not to be. They begin anew where something comes from outside, or rows expire:
 * a holder gives its leases up as late as one and a half idle times behind the last read.
 */
const calmMax = 3
/** In all: unrest that feeds itself goes on. */
const looksMax = 12

export type Rest = Omit<Traffic, 'bytes'> & { readonly isAtRest: boolean }

/** `isStirred`: something was proposed, or came late. */
type Look = Rest & { readonly isStirred: boolean }

export async function watchRest(
  cluster: SimCluster,
  { sweepMs, suspectMs, forwardMs, digestMs, backoffMaxMs }: Limits,
  isBroken: () => boolean,
): Promise<Rest> {
  const { world } = cluster
  const restMs = 2 * Math.max(sweepMs, suspectMs, forwardMs, digestMs, backoffMaxMs)
  const since = cluster.traffic
  await world.run(isBroken, world.nowMicros + restMs * 1_000)
  let calm = 0
  // Nodes answer in a burst the frames that a clogged way lets go at last.
  for (let looks = 1; ; looks++) {
    const { isStirred, ...seen } = await look(cluster, since, isBroken)
    calm = isStirred ? 0 : calm + 1
    if (seen.isAtRest || isBroken() || calm === calmMax || looks === looksMax) return seen
  }
}

async function look(cluster: SimCluster, since: Traffic, isBroken: () => boolean): Promise<Look> {
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
  const fromOutside = requests + late
  const isStirred = fromOutside + proposals > 0
  const isAtRest = isSilent && (renewals === 0 || fromOutside > 0)
  return { proposals, messages, renewals, requests, latecomers, isAtRest, isStirred }
}
