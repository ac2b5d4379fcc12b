/** Two replica sets in two simulated regions, and a table with PLACEMENT BY region: commits stay in the region, and outlive the other one. */
import { beforeAll, expect, test } from 'vitest'
import { farMicros, PlacedArea } from '../../bench/placed-area.ts'
import { benchPlacement } from '../../bench/placement.ts'

const roundTripMs = (2 * farMicros) / 1_000

let area: PlacedArea
beforeAll(async () => {
  area = await PlacedArea.open()
})

function violations(): readonly unknown[] {
  return area.cluster.referee.violations
}

test('MOVE-8: a commit of a group in the own region takes no way between the regions', async () => {
  for (const [from, region] of ['r1', 'r2'].entries()) {
    const times: number[] = []
    for (let id = 0; id < 10; id++) {
      const key = { in: region, id }
      expect(area.setOf('placed', key)).toBe(from)
      times.push(await area.commit(from, 'placed', key))
      expect(await area.read(from, key)).toHaveLength(100)
    }
    // One may wait for the schema, whose group is in the other region, and which a client reads anew at times.
    expect(times.filter((ms) => ms >= roundTripMs / 4).length).toBeLessThanOrEqual(1)
  }
  expect(violations()).toEqual([])
})

test('MOVE-8: a client of one region writes and reads groups of the other, which holds them', async () => {
  for (const [from, region] of ['r2', 'r1'].entries()) {
    const key = { in: region, id: 100 }
    expect(area.setOf('placed', key)).toBe(1 - from)
    expect(await area.commit(from, 'placed', key)).toBeGreaterThanOrEqual(roundTripMs)
    expect(await area.read(1 - from, key)).toHaveLength(100)
  }
  expect(violations()).toEqual([])
})

test('MOVE-8: a region that no set is in is refused to writes and to reads', async () => {
  const key = { in: 'r3', id: 1 }
  const refused = { code: 'invalid', message: expect.stringContaining('there are r1, r2') }
  await expect(area.commit(0, 'placed', key)).rejects.toMatchObject(refused)
  await expect(area.read(1, key)).rejects.toMatchObject(refused)
})

test('a region that is down leaves commits of the other as they are, and has its rows when it is back', async () => {
  const far = area.cluster.hosts.filter(({ name }) => area.cluster.sets[1]?.includes(name))
  expect(far).toHaveLength(3)
  for (const host of far) host.crash()
  for (let id = 200; id < 210; id++) {
    expect(await area.commit(0, 'placed', { in: 'r1', id })).toBeLessThan(roundTripMs / 4)
  }
  for (const host of far) host.restart()
  await area.timed(
    () => new Promise((resolve) => area.cluster.world.schedule(5_000_000, 'up', () => resolve(0))),
  )
  expect(await area.read(0, { in: 'r2', id: 3 })).toHaveLength(100)
  expect(violations()).toEqual([])
})

test('bench placement: a commit of a group in its own region takes a fraction of what one of a hashed group takes', async () => {
  const { figures } = await benchPlacement()
  expect(figures.placed.p50).toBeLessThan(roundTripMs / 4)
  expect(figures.hashed.mean).toBeGreaterThan(4 * figures.placed.mean)
})
