/** How many events a run may take before it is taken for a storm, or a loop of timers. */
import type { SwarmOptions } from '../swarm.ts'

/** The events of a run that is busy throughout, many times over. */
const busyEventsMax = 3_000_000

/**
 * A quiet stretch is not free of events: every node has a timer for its heartbeats, and sends one
 * to each other node. At the shortest period and for half an hour, these alone come near the events
 * of a busy run, though nothing is wrong. So they come on top. Nodes that are away, and other
 * replica sets, get none.
 */
export function computeEventsMax({ nodeCount, faultRates, limits }: SwarmOptions): number {
  const beats = Math.ceil(faultRates.quietMicros / (1_000 * limits.heartbeatMs))
  return busyEventsMax + beats * nodeCount * nodeCount
}
