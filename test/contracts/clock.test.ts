/** The contract of clocks: the system's, a simulated one, and those that tests turn. */
import { createClock } from '../../sim/world/clock.ts'
import { SimProcess } from '../../sim/world/sim-process.ts'
import { World } from '../../sim/world/world.ts'
import { systemClock } from '../../src/adapters/system-clock.ts'
import { exactClock, passMs } from '../cells/kit.ts'
import { HandClock } from '../ports/hand-clock.ts'
import { TestClock } from '../txn/test-ports.ts'
import { clockContract } from './clock.ts'

clockContract("the system's clock", () => ({
  clock: systemClock,
  pass: (ms) => new Promise((resolve) => void setTimeout(resolve, ms)),
}))

clockContract('a simulated clock', () => {
  const world = new World(1, 10_000)
  const clock = createClock(new SimProcess(world, 'n1'), exactClock, world.random)
  return {
    clock,
    pass: (ms) => passMs(world, ms),
  }
})

clockContract('a clock that is turned by hand', () => {
  const clock = new HandClock()
  return {
    clock,
    pass: async (ms) => {
      while (clock.turn());
      clock.pass(ms)
    },
  }
})

clockContract('a clock whose time passes with its timers', () => {
  const clock = new TestClock()
  return { clock, pass: (ms) => new Promise((resolve) => void clock.setTimer(ms, resolve)) }
})
