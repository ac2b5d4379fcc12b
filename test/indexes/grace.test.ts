/** The wait that begins a build, by clocks that do not agree. */
import { expect, test } from 'vitest'
import { createClock, epochMicros, MachineClock } from '../../sim/world/clock.ts'
import { SimProcess } from '../../sim/world/sim-process.ts'
import { World } from '../../sim/world/world.ts'
import { waitForGrace } from '../../src/indexes/grace.ts'
import type { Progress } from '../../src/indexes/report.ts'

const graceMs = 60_000
const skew = { offsetMicros: 0, driftPpm: 0, timerLatenessMicros: 0 }

interface Waited {
  readonly seconds: number
  /** What was told: how much is done, and of how much. */
  readonly told: readonly (readonly [number, number])[]
}

/** Waits for an index that was declared so long ago by the builder's clock, which jumps in the midst. */
async function waited(agoSeconds: number, jumpSeconds = 0): Promise<Waited> {
  const world = new World(1, 10_000)
  const machine = new MachineClock()
  const random = world.random.fork('clock')
  const clock = createClock(new SimProcess(world, 'builder'), skew, random, machine)
  const told: [number, number][] = []
  const onProgress = ({ done, total = 0 }: Progress): void => {
    told.push([done, total])
  }
  let isDone = false
  const declaredAt = epochMicros - agoSeconds * 1_000_000
  const wait = waitForGrace({ clock, onProgress }, declaredAt, graceMs)
  void wait.then(() => (isDone = true))
  world.schedule(5_000_000, 'jump', () => machine.jump(jumpSeconds * 1_000_000, 0))
  await world.run(() => isDone, 3_600_000_000)
  await wait
  return { seconds: Math.round(world.nowMicros / 1_000_000), told }
}

test('IDX-6: a build waits until the grace after its index was declared is over', async () => {
  const { seconds, told } = await waited(20)
  expect(seconds).toBe(40)
  expect(told).toHaveLength(40)
  expect(told[0]).toEqual([0, 40])
  expect(told.at(-1)).toEqual([39, 40])
  expect(await waited(60)).toEqual({ seconds: 0, told: [] })
  expect(await waited(3_600)).toEqual({ seconds: 0, told: [] })
})

test('IDX-6: an index that was declared by a clock that is ahead is waited for as if it was declared now', async () => {
  const { seconds, told } = await waited(-150)
  expect(seconds).toBe(60)
  expect(told[0]).toEqual([0, 60])
})

test('IDX-6: a wall clock that jumps makes the wait neither shorter nor longer', async () => {
  expect((await waited(20, 120)).seconds).toBe(40)
  expect((await waited(20, -120)).seconds).toBe(40)
})
