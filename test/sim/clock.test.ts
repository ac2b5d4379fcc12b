import { expect, test } from 'vitest'
import { createClock, epochMicros, MachineClock } from '../../sim/world/clock.ts'
import { SimProcess } from '../../sim/world/sim-process.ts'
import { World } from '../../sim/world/world.ts'

const never = (): boolean => false
const exact = { offsetMicros: 0, driftPpm: 0, timerLatenessMicros: 0 }

test('the wall clock jumps, and the monotonic one does not', () => {
  const world = new World(1, 1_000)
  const machine = new MachineClock()
  const clock = createClock(new SimProcess(world, 'n1'), exact, world.random, machine)
  machine.jump(5_000_000, 0)
  expect([clock.wallMicros() - epochMicros, clock.monotonicMs()]).toEqual([5_000_000, 0])
  machine.jump(-8_000_000, -1_000)
  expect([clock.wallMicros() - epochMicros, clock.monotonicMs()]).toEqual([-3_000_000, 0])
})

test('both clocks jump forward, and the jump outlives the process', () => {
  const world = new World(1, 1_000)
  const machine = new MachineClock()
  machine.jump(7_000, 7_000)
  const clock = createClock(new SimProcess(world, 'n1'), exact, world.random, machine)
  expect([clock.wallMicros() - epochMicros, clock.monotonicMs()]).toEqual([7_000, 7])
})

test('however often it jumps, a clock stays within the minutes that the store asks for', () => {
  const machine = new MachineClock()
  for (let i = 0; i < 10; i++) machine.jump(90_000_000, 0)
  expect(machine.wallShiftMicros(0)).toBe(150_000_000)
  for (let i = 0; i < 10; i++) machine.jump(-90_000_000, 0)
  expect(machine.wallShiftMicros(0)).toBe(-150_000_000)
})

test('a strobing clock jumps to and fro, and is right again afterwards', () => {
  const machine = new MachineClock()
  machine.strobe({ fromMicros: 100, untilMicros: 140, wallMicros: 1_000, everyMicros: 10 })
  const shifts = [100, 109, 110, 120, 130, 140].map((now) => machine.wallShiftMicros(now))
  expect(shifts).toEqual([1_000, 1_000, 0, 1_000, 0, 0])
})

test('after a stall begins at a reading, nothing runs until it is over', async () => {
  const world = new World(1, 1_000)
  const process = new SimProcess(world, 'n1')
  const clock = createClock(process, exact, world.random)
  const ran: number[] = []
  let strikes = 0
  process.stall(500, () => (strikes += 1))
  process.schedule(10, 'reads', () => {
    expect(clock.monotonicMs()).toBe(0.01)
    expect(process.heldUpMicros).toBe(500)
    process.schedule(0, 'acts', () => ran.push(world.nowMicros))
  })
  await world.run(never, 10_000)
  expect([ran, strikes]).toEqual([[510], 1])
})

test('while a machine is suspended its wall clock goes on, and the other one and its timers wait', async () => {
  const world = new World(1, 10_000)
  const process = new SimProcess(world, 'n1')
  const machine = new MachineClock()
  const skew = { ...exact, driftPpm: 100_000 }
  const clock = createClock(process, skew, world.random, machine)
  const fired: (readonly [micros: number, monotonicMs: number, wallMicros: number])[] = []
  const note = (): void => {
    fired.push([world.nowMicros, clock.monotonicMs(), clock.wallMicros() - epochMicros])
  }
  clock.setTimer(1.1, note)
  clock.setTimer(5.5, note)
  clock.setTimer(5.5, () => fired.push([0, 0, 0])).cancel()
  world.schedule(500, 'suspend', () => {
    machine.suspend(500, 2_000)
    process.pause(2_000)
  })
  await world.run(never, 20_000)
  expect(fired).toEqual([
    [3_001, expect.closeTo(1.1011, 6), 3_301],
    [7_001, expect.closeTo(5.5011, 6), 7_701],
  ])
})

test('overlapping suspensions last as long as the longest, or until a wake ends them', () => {
  const machine = new MachineClock()
  machine.suspend(100, 50)
  machine.suspend(120, 100)
  machine.suspend(130, 10)
  expect([110, 220, 300].map((now) => machine.suspendedMicros(now))).toEqual([10, 120, 120])
  machine.suspend(300, 1_000)
  machine.wake(400)
  machine.wake(500)
  expect(machine.suspendedMicros(600)).toBe(220)
})

test('a pause that is ended early lets through what was due, in its order', async () => {
  const world = new World(1, 1_000)
  const process = new SimProcess(world, 'n1')
  const ran: string[] = []
  process.pause(1_000)
  for (const name of ['a', 'b']) {
    process.schedule(10, name, () => ran.push(`${name}@${world.nowMicros}`))
  }
  const cancelled = process.schedule(10, 'c', () => ran.push('c'))
  world.schedule(50, 'resume', () => {
    cancelled.cancel()
    process.resume()
  })
  await world.run(never, 10_000)
  expect(ran).toEqual(['a@50', 'b@50'])
})
