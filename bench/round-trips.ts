/**
 * `bench round-trips`: what commits and reads cost in a wide area, as round trips to the nearest
 * majority, messages, bytes and flushes. Simulated, and so the same on every machine: a change that
 * makes one of them worse is seen at once (`test/bench/round-trips.test.ts`).
 */
import { WideArea, type Cost, type Distances } from './wide-area.ts'

/** Milliseconds there and back. */
const distancesByRegions: Readonly<Record<RegionCount, Distances>> = {
  3: [
    [0, 40, 80],
    [40, 0, 100],
    [80, 100, 0],
  ],
  5: [
    [0, 40, 80, 120, 160],
    [40, 0, 100, 140, 120],
    [80, 100, 0, 60, 90],
    [120, 140, 60, 0, 50],
    [160, 120, 90, 50, 0],
  ],
}

export type RegionCount = 3 | 5

/** Writes from a region before the next one is measured as one that leadership may have followed. */
const writesToFollow = 40

export interface Figure {
  /** Of the time to the nearest majority of the region that asked: the median and the worst. */
  readonly roundTrips: number
  readonly roundTripsMax: number
  readonly ms: number
  /** On average; what follows upon the answer counts. */
  readonly messages: number
  readonly bytes: number
  readonly flushes: number
}

export type RoundTripName =
  | 'commitAtLeader'
  /** While a node of another region serves reads by itself: the commit waits for it, too. */
  | 'commitBesideReader'
  | 'commitElsewhere'
  | 'commitAfterFollowing'
  | 'currentReadFirst'
  | 'currentReadRepeated'

export interface RoundTripsReport {
  readonly bench: 'round-trips'
  readonly regions: RegionCount
  readonly distancesMs: Distances
  readonly figures: Readonly<Record<RoundTripName, Figure>>
  /** Lease times that writes stand still for after the failure of one node, at most. */
  readonly writeGapLeases: Readonly<Record<GapName, number>>
}

/** Which node fails: one that reads the group, its leader, or another. */
export type GapName = 'reader' | 'leader' | 'other'

interface Sample extends Cost {
  readonly roundTrips: number
}

export async function benchRoundTrips(regions: RegionCount): Promise<RoundTripsReport> {
  const distancesMs = distancesByRegions[regions]
  const area = await WideArea.open(distancesMs)
  const samples: Record<RoundTripName, Sample[]> = {
    ...{ commitAtLeader: [], commitBesideReader: [], commitElsewhere: [] },
    commitAfterFollowing: [],
    ...{ currentReadFirst: [], currentReadRepeated: [] },
  }
  for (const home of distancesMs.keys()) {
    for (const away of distancesMs.keys()) {
      if (away !== home) await visit(area, home, away, samples)
    }
  }
  const writeGapLeases = await gapsOf(area)
  const figures = {
    commitAtLeader: figureOf(samples.commitAtLeader),
    commitBesideReader: figureOf(samples.commitBesideReader),
    commitElsewhere: figureOf(samples.commitElsewhere),
    commitAfterFollowing: figureOf(samples.commitAfterFollowing),
    currentReadFirst: figureOf(samples.currentReadFirst),
    currentReadRepeated: figureOf(samples.currentReadRepeated),
  }
  return { bench: 'round-trips', regions, distancesMs, figures, writeGapLeases }
}

/** A group that is led from one region, then read and written from another. */
async function visit(
  area: WideArea,
  home: number,
  away: number,
  samples: Record<RoundTripName, Sample[]>,
): Promise<void> {
  const row = area.row(home)
  const note = (name: RoundTripName, region: number, cost: Cost): void => {
    samples[name].push({ ...cost, roundTrips: cost.ms / area.majorityMs(region) })
  }
  let refKey = 0
  // The first entry of a group waits for the leader's own disk.
  await area.put(home, row, refKey++)
  note('commitAtLeader', home, await area.put(home, row, refKey++))
  note('commitElsewhere', away, await area.put(away, row, refKey++))
  note('currentReadFirst', away, await area.get(away, row))
  note('currentReadRepeated', away, await area.get(away, row))
  note('commitBesideReader', home, await area.put(home, row, refKey++))
  for (let count = 0; count < writesToFollow; count++) await area.put(away, row, refKey++)
  note('commitAfterFollowing', away, await area.put(away, row, refKey++))
}

/** The longest of all groups that are led from one region and read from another. */
async function gapsOf(area: WideArea): Promise<Record<GapName, number>> {
  const gaps: Record<GapName, number> = { reader: 0, leader: 0, other: 0 }
  for (const home of area.distances.keys()) {
    for (const away of area.distances.keys()) {
      if (away === home) continue
      const row = area.row(home)
      let refKey = 0
      const measure = async (name: GapName, failing: number, writer: number): Promise<void> => {
        await area.put(home, row, refKey++)
        await area.get(away, row)
        const gap = await area.gap(failing, writer, row, refKey++)
        gaps[name] = Math.max(gaps[name], rounded(gap))
      }
      const others = [...area.distances.keys()].filter((one) => one !== home && one !== away)
      await measure('reader', away, home)
      for (const other of others) await measure('other', other, home)
      await measure('leader', home, away)
    }
  }
  return gaps
}

function figureOf(samples: readonly Sample[]): Figure {
  const sorted = samples.map(({ roundTrips }) => roundTrips).toSorted((a, b) => a - b)
  const mean = (of: (sample: Sample) => number): number =>
    rounded(samples.reduce((sum, sample) => sum + of(sample), 0) / samples.length)
  return {
    roundTrips: rounded(sorted[Math.floor(sorted.length / 2)] ?? 0),
    roundTripsMax: rounded(sorted.at(-1) ?? 0),
    ms: mean(({ ms }) => ms),
    messages: mean(({ messages }) => messages),
    bytes: mean(({ bytes }) => bytes),
    flushes: mean(({ flushes }) => flushes),
  }
}

function rounded(value: number): number {
  return Math.round(value * 1_000) / 1_000
}
