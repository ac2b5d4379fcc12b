/**
 * `bench placement`: what a commit costs in one of two regions, where the application places the group in its own region, and where a
 * hash of the key chooses the replica set. Simulated, and so the same on every machine.
 */
import { farMicros, PlacedArea, regionNames, type AreaTable } from './placed-area.ts'

const groupsPerRegion = 40

/** Milliseconds of a commit of a new group. */
export interface CommitTimes {
  readonly mean: number
  readonly p50: number
  readonly worst: number
}

export interface PlacementReport {
  readonly bench: 'placement'
  readonly roundTripMs: number
  readonly groups: number
  readonly figures: Readonly<Record<AreaTable, CommitTimes>>
}

export async function benchPlacement(): Promise<PlacementReport> {
  const area = await PlacedArea.open()
  const measure = async (to: AreaTable): Promise<CommitTimes> => {
    const all: number[] = []
    for (const [from, region] of regionNames.entries()) {
      for (let id = 0; id < groupsPerRegion; id++) {
        all.push(await area.commit(from, to, { in: region, id }))
      }
    }
    const sorted = all.toSorted((a, b) => a - b)
    const mean = all.reduce((sum, ms) => sum + ms, 0) / all.length
    return {
      mean: Math.round(10 * mean) / 10,
      p50: sorted[Math.floor(sorted.length / 2)] ?? 0,
      worst: sorted.at(-1) ?? 0,
    }
  }
  const figures = { placed: await measure('placed'), hashed: await measure('hashed') }
  const groups = groupsPerRegion * regionNames.length
  return { bench: 'placement', roundTripMs: (2 * farMicros) / 1_000, groups, figures }
}

export function describePlacement({ roundTripMs, groups, figures }: PlacementReport): string {
  const { placed, hashed } = figures
  const line = (name: string, { mean, p50, worst }: CommitTimes): string =>
    `${name}: ${mean} ms on average, ${p50} ms in the median, ${worst} ms at worst`
  return [
    `2 regions, ${roundTripMs} ms there and back; first commits of ${groups} groups, half of them in each region`,
    line('PLACEMENT BY region', placed),
    line('by a hash of the key', hashed),
    '',
  ].join('\n')
}
