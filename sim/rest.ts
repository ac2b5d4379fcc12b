/** Whether a world in which nobody asks for anything comes to rest. */
import type { Limits } from '../src/base/limits.ts'
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
  await world.run(isBroken, world.nowMicros + restMs * 1_000)
  let seen = await look(cluster, isBroken)
  // What a clogged way lets go at last is answered in a burst; unrest that feeds itself goes on.
  for (let looks = 1; looks < looksMax && !seen.isAtRest; looks++) {
    seen = await look(cluster, isBroken)
  }
  return seen
}

async function look(cluster: SimCluster, isBroken: () => boolean): Promise<Rest> {
  const { world } = cluster
  const before = cluster.traffic
  await world.run(isBroken, world.nowMicros + quietMicros)
  const after = cluster.traffic
  const proposals = after.proposals - before.proposals
  const messages = after.messages - before.messages
  // A request whose second copy comes very late is a request.
  const requests = after.requests - before.requests
  const isAtRest = proposals <= requests && messages <= straysMax * (1 + requests)
  return { proposals, messages, requests, isAtRest }
}
