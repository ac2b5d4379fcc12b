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

/** Which node fails: one that reads the group, its leader, a leader that reads it as well, or another. */
export type GapName = 'reader' | 'leader' | 'readingLeader' | 'other'

interface Sample extends Cost {
  readonly roundTrips: number
}

export interface RoundTripsOptions {
  /** Measures failures of groups that one of this number of regions after the leader's reads; absent: of all groups. */
  readonly readersPerLeader?: number
}

export async function benchRoundTrips(
  regions: RegionCount,
  { readersPerLeader = regions }: RoundTripsOptions = {},
): Promise<RoundTripsReport> {
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
  const writeGapLeases = await measureGaps(area, readersPerLeader)
  const figures = {
    commitAtLeader: computeFigure(samples.commitAtLeader),
    commitBesideReader: computeFigure(samples.commitBesideReader),
    commitElsewhere: computeFigure(samples.commitElsewhere),
    commitAfterFollowing: computeFigure(samples.commitAfterFollowing),
    currentReadFirst: computeFigure(samples.currentReadFirst),
    currentReadRepeated: computeFigure(samples.currentReadRepeated),
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
  await area.putUncounted(home, row, refKey++)
  note('commitAtLeader', home, await area.put(home, row, refKey++))
  note('commitElsewhere', away, await area.put(away, row, refKey++))
  note('currentReadFirst', away, await area.get(away, row))
  note('currentReadRepeated', away, await area.get(away, row))
  note('commitBesideReader', home, await area.put(home, row, refKey++))
  for (let count = 0; count < writesToFollow; count++) {
    await area.putUncounted(away, row, refKey++)
  }
  note('commitAfterFollowing', away, await area.put(away, row, refKey++))
}

/** The longest of all groups that are led from one region and read from another, for every next writer. */
async function measureGaps(
  area: WideArea,
  readersPerLeader: number,
): Promise<Record<GapName, number>> {
  const gaps: Record<GapName, number> = { reader: 0, leader: 0, readingLeader: 0, other: 0 }
  const regions = [...area.distances.keys()]
  for (const home of regions) {
    const stepsTo = (away: number): number => (away - home + regions.length) % regions.length
    const isMeasured = (away: number): boolean => away !== home && stepsTo(away) <= readersPerLeader
    for (const away of regions.filter(isMeasured)) {
      for (const { name, readers, failing } of listFailures(home, away, regions)) {
        for (const writer of regions.filter((one) => one !== failing)) {
          const gap = await measureGap(area, { home, readers, failing, writer })
          gaps[name] = Math.max(gaps[name], rounded(gap))
        }
      }
    }
  }
  return gaps
}

interface Failure {
  readonly name: GapName
  /** Regions that read the group before. */
  readonly readers: readonly number[]
  readonly failing: number
}

function listFailures(home: number, away: number, regions: readonly number[]): Failure[] {
  const others = regions.filter((one) => one !== home && one !== away)
  return [
    { name: 'reader', readers: [away], failing: away },
    { name: 'leader', readers: [away], failing: home },
    { name: 'readingLeader', readers: [home], failing: home },
    { name: 'readingLeader', readers: [home, away], failing: home },
    ...others.map((other) => ({ name: 'other', readers: [away], failing: other }) as const),
  ]
}

/** Of a group of its own: the last writer leads a group, and so the failure before would change this. */
async function measureGap(
  area: WideArea,
  { home, readers, failing, writer }: Omit<Failure, 'name'> & Record<'home' | 'writer', number>,
): Promise<number> {
  const row = area.row(home)
  await area.putUncounted(home, row, 0)
  for (const reader of readers) await area.get(reader, row)
  return await area.gap(failing, writer, row, 1)
}

function computeFigure(samples: readonly Sample[]): Figure {
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
