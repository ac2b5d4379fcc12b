/** What clocks show and what nodes make of them, seen from outside. */
import type { SeenClock } from './checkers/clock-checker.ts'
import type { SimCluster } from './comparison.ts'
import { setsOf } from './endpoints.ts'

type Host = SimCluster['hosts'][number]

/** For a node to ask the others for their clocks a few times. */
const clocksMicros = 15_000_000

/** Waits until all nodes know of their clocks what they should, not for long, and judges what they make of it. */
export async function lookAtClocks(
  { world, hosts, judge, referee }: SimCluster,
  setCount: number | undefined,
  leadMsMax: number,
): Promise<void> {
  const seen = seenClocks(hosts, setsOf(hosts.length, setCount))
  const isOver = (): boolean => referee.violations.length > 0
  const isKnown = (): boolean => seen.every((of) => judge.clocks.isWell(of(), leadMsMax))
  await world.run(() => isOver() || isKnown(), world.nowMicros + clocksMicros)
  for (const of of seen) judge.clocks.onWell(of(), leadMsMax)
}

/** For each replica set its nodes as they are when it is asked; none where one is missing: the others may not know. */
function seenClocks(
  hosts: readonly Host[],
  sets: readonly (readonly string[])[],
): readonly (() => readonly SeenClock[])[] {
  return sets.map((set) => () => {
    const all = hosts.filter(({ name }) => set.includes(name)).flatMap(seenClockOf)
    return all.length === set.length ? all : []
  })
}

function seenClockOf({ name, reading, program }: SimCluster['hosts'][number]): SeenClock[] {
  if (reading === undefined || program === undefined) return []
  const { clocks } = program.replica
  const { isClockAhead, isClockBehind } = clocks.status(reading)
  const { wall } = reading
  const said = { isAhead: isClockAhead, isBehind: isClockBehind }
  return [{ node: name, wall, held: clocks.held(reading), ...said }]
}
