/**
 * Trips made up for the demonstration, as a ride company's table of them would look. The same seed
 * gives the same trips, so a second start finds what the first one wrote.
 */
import { uniformInt } from 'pure-rand/distribution/uniformInt'
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus'
import type { LoadCell } from './cells-load-run.ts'
import { makeRowKey } from './uuid-v5.ts'

const cities = [
  { name: 'New York', latitude: 40.75, longitude: -73.98, currency: 'USD' },
  { name: 'Berlin', latitude: 52.52, longitude: 13.4, currency: 'EUR' },
  { name: 'Nairobi', latitude: -1.29, longitude: 36.82, currency: 'KES' },
  { name: 'São Paulo', latitude: -23.55, longitude: -46.63, currency: 'BRL' },
] as const

/** 1 March 2025, 00:00 UTC; trips follow one another from there. */
const firstTripMs = Date.UTC(2025, 2, 1)

/** Trips `from` to `from + count - 1` of the seed's endless row of them. */
export function sampleTrips(seed: number, from: number, count: number): readonly LoadCell[] {
  return Array.from({ length: count }, (_, i) => sampleTrip(seed, from + i))
}

export function sampleTrip(seed: number, number: number): LoadCell {
  const random = xoroshiro128plus(seed * 1_000_003 + number)
  const draw = (least: number, most: number): number => uniformInt(random, least, most)
  const near = (degrees: number): number => round(degrees + draw(-800, 800) / 10_000, 4)
  const city = cities[draw(0, cities.length - 1)] ?? cities[0]
  const kilometres = draw(5, 300) / 10
  const minutes = Math.ceil(kilometres * draw(2, 5))
  const startMs = firstTripMs + number * 7000 + draw(0, 6999)
  const body = {
    trip: number,
    city: city.name,
    driver: `driver-${draw(1, 400)}`,
    rider: `rider-${draw(1, 9000)}`,
    pickup: {
      at: isoTime(startMs),
      latitude: near(city.latitude),
      longitude: near(city.longitude),
    },
    dropoff: {
      at: isoTime(startMs + minutes * 60_000),
      latitude: near(city.latitude),
      longitude: near(city.longitude),
    },
    kilometres,
    fare: { currency: city.currency, amount: round(3 + kilometres * 1.7 + minutes * 0.3, 2) },
  }
  return { rowKey: makeRowKey(`demo-${seed}`, { kind: 'key', key: String(number) }), body }
}

function round(value: number, places: number): number {
  return Math.round(value * 10 ** places) / 10 ** places
}

function isoTime(ms: number): string {
  return new Date(ms).toISOString()
}
