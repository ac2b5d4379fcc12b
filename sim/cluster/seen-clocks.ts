/** The clocks of nodes and the nodes' own corrections of them, seen from outside. */
import type { SeenClock } from '../checkers/clock-checker.ts'
import { epochMicros } from '../world/clock.ts'
import type { SimCluster } from './comparison.ts'
import type { SwarmOptions } from '../swarm.ts'

type Host = SimCluster['hosts'][number]

/** For a node to ask the others for their clocks a few times. */
const clocksMicros = 15_000_000

/**
 * Waits until all nodes know of their clocks what they should, not for long, and judges what they
 * make of it.
 */
export async function lookAtClocks(
  { world, hosts, judge, referee, sets }: SimCluster,
  leadMsMax: number,
): Promise<void> {
  const seen = seenClocks(hosts, sets)
  const isOver = (): boolean => referee.violations.length > 0
  const isKnown = (): boolean => seen.every((of) => judge.clocks.isWell(of(), leadMsMax))
  await world.run(() => isOver() || isKnown(), world.nowMicros + clocksMicros)
  for (const of of seen) judge.clocks.onWell(of(), leadMsMax)
}

/**
 * The nodes in service that may be expected to take what clients date (CLOCK-2): each whose clock
 * is right, or whose whole set is there to tell it otherwise. A minority of its set cannot tell a
 * node that it is wrong.
 */
export function nodesInTime(
  { world, inService, sets }: SimCluster,
  { limits }: Pick<SwarmOptions, 'limits'>,
): readonly string[] {
  const names: readonly string[] = inService.map(({ name }) => name)
  const isWhole = (node: string): boolean =>
    sets.some((set) => set.includes(node) && set.every((one) => names.includes(one)))
  const wall = epochMicros + world.nowMicros
  const isRight = (host: Host): boolean =>
    readSeenClock(host).every(({ held }) => Math.abs(held - wall) <= limits.clockLeadMsMax * 1_000)
  return inService.filter((host) => isWhole(host.name) || isRight(host)).map(({ name }) => name)
}

/**
 * For each replica set its nodes at the time of the call; none where one is missing: the others may
 * not know.
 */
function seenClocks(
  hosts: readonly Host[],
  sets: readonly (readonly string[])[],
): readonly (() => readonly SeenClock[])[] {
  return sets.map((set) => () => {
    const all = hosts.filter(({ name }) => set.includes(name)).flatMap(readSeenClock)
    return all.length === set.length ? all : []
  })
}

function readSeenClock({ name, reading, program }: Host): SeenClock[] {
  if (reading === undefined || program === undefined) return []
  const { clocks } = program.replica
  const { isClockAhead, isClockBehind } = clocks.status(reading)
  const { wall } = reading
  const said = { isAhead: isClockAhead, isBehind: isClockBehind }
  return [{ node: name, wall, held: clocks.held(reading), ...said }]
}
