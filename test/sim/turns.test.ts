/** Turns that take time, reads that wait, and copies that come long after. */
import { expect, test } from 'vitest'
import { Referee } from '../../sim/checkers/referee.ts'
import { coldTurnMicrosMax, TurnChecker, turnMicrosMax } from '../../sim/checkers/turn-checker.ts'
import { createClock } from '../../sim/world/clock.ts'
import { Coverage } from '../../sim/coverage.ts'
import { createHostDisk } from '../../sim/cluster/host-disk.ts'
import { Network } from '../../sim/world/network.ts'
import { noPriorities, Priorities } from '../../sim/world/priorities.ts'
import { drawPlan, runPlan, type RunPlan } from '../../sim/run.ts'
import { calmOptions } from '../../sim/scenarios/scenario-calm.ts'
import { SimProcess, type Turn } from '../../sim/world/sim-process.ts'
import { noFaultRates } from '../../sim/faults/swarm-faults.ts'
import { drawSwarm } from '../../sim/swarm.ts'
import { CostMeter, noTimes, type TimeOptions } from '../../sim/world/turn-costs.ts'
import { Weather } from '../../sim/world/weather.ts'
import { World } from '../../sim/world/world.ts'
import { putOf } from '../contracts/storage.ts'

const never = (): boolean => false
const exact = { offsetMicros: 0, driftPpm: 0, timerLatenessMicros: 0 }
const usual: TimeOptions = { ...noTimes, costFactor: 1 }

interface Busy {
  readonly world: World
  readonly process: SimProcess
  readonly turns: Turn[]
}

function busy(times: TimeOptions = usual): Busy {
  const world = new World(1, 10_000)
  const process = new SimProcess(world, 'n1', new CostMeter(times))
  const turns: Turn[] = []
  process.onTurn = (turn) => turns.push(turn)
  return { world, process, turns }
}

test('during a turn its clock goes on, its timers start at its end, and arrivals wait in order', async () => {
  const { world, process, turns } = busy()
  const clock = createClock(process, exact, world.random)
  const ran: [string, number, number][] = []
  const note = (what: string): void => void ran.push([what, world.nowMicros, process.nowMicros])
  process.schedule(100, 'works', () => {
    const before = clock.monotonicMs()
    process.work('step', 1_000)
    // Eight microseconds a step.
    expect(clock.monotonicMs() - before).toBeCloseTo(8, 6)
    process.schedule(50, 'later', () => note('later'))
  })
  process.schedule(200, 'first', () => note('first'))
  process.schedule(8_103, 'last', () => note('last'))
  await world.run(never, 100_000)
  expect(ran).toEqual([
    ['first', 8_102, 8_104],
    ['last', 8_103, 8_106],
    ['later', 8_152, 8_154],
  ])
  expect(turns[0]).toEqual({ label: 'works', micros: 8_002, work: { turn: 1, step: 1_000 } })
})

test('work after an awaited promise counts to the turn that resolved it', async () => {
  const { world, process, turns } = busy()
  process.schedule(10, 'reads', () => {
    void Promise.resolve()
      .then(() => undefined)
      .then(() => process.work('row', 10, 500))
  })
  await world.run(never, 1_000)
  expect(turns).toEqual([{ label: 'reads', micros: 10, work: { turn: 1, row: 10, bytes: 500 } }])
})

test('without a meter nothing takes any time', async () => {
  const world = new World(1, 1_000)
  const process = new SimProcess(world, 'c1')
  process.schedule(10, 'works', () => process.work('step', 1_000_000))
  await world.run(never, 20)
  expect([process.nowMicros, process.heldUpMicros]).toEqual([10, 0])
})

test('a process that dies in the middle of its work does nothing of what waits', async () => {
  const { world, process } = busy()
  let ran = 0
  process.schedule(0, 'works', () => process.work('step', 1_000))
  process.schedule(1_000, 'waits', () => (ran += 1))
  world.schedule(2_000, 'crash', () => process.kill())
  await world.run(never, 100_000)
  expect(ran).toBe(0)
})

test('a frame sent in a turn leaves at its end, and in order', async () => {
  const { world, process } = busy()
  const weather = new Weather(calmOptions(1).link)
  const codec = {
    encode: (frame: string) => Buffer.from(frame),
    decode: (bytes: Uint8Array) => Buffer.from(bytes).toString(),
  }
  const observer = { onSent: () => undefined, onDelivered: () => undefined }
  const parts = { world, weather, coverage: new Coverage(), codec, observer, name: 'peer' }
  const network = new Network(parts)
  const came: [string, number][] = []
  const handlers = {
    self: () => ({}),
    admit: () => undefined,
    onRefused: () => undefined,
    onLink: () => undefined,
    onFrame: (_: string, frame: string) => void came.push([frame, world.nowMicros]),
  }
  const sender = network.attach(process, ['n2'])
  sender.start(handlers)
  network.attach(new SimProcess(world, 'n2'), []).start(handlers)
  process.schedule(20_000, 'sends', () => {
    sender.send('n2', 'early')
    process.work('step', 1_000)
    sender.send('n2', 'late')
  })
  await world.run(never, 100_000)
  expect(came).toEqual([
    ['early', 21_012],
    ['late', 29_022],
  ])
})

test('a read waits for its disk while all else goes on, and dies with its process', async () => {
  const world = new World(1, 10_000)
  const process = new SimProcess(world, 'n1')
  const conditions = { writeMinMicros: 0, writeMeanMicros: 0, waits: 0, readMeanMicros: 0 }
  const priorities = new Priorities(noPriorities, world, new Coverage())
  const host = createHostDisk(world, 'n1 data', conditions, priorities, () => undefined)
  const store = host.open(process)
  const seen: [string, number][] = []
  const read = async (what: string): Promise<void> => {
    for await (const rows of store.scan({})) {
      const keys = rows.map(({ key }) => Buffer.from(key).toString())
      seen.push([`${what} ${keys.join()}`, world.nowMicros])
    }
  }
  process.schedule(0, 'writes', () => void store.write([putOf('a'), putOf('b')]))
  process.schedule(10, 'reads at once', () => void read('at once'))
  process.schedule(20, 'reads late', () => {
    host.slowReads(1_000)
    void read('late')
  })
  process.schedule(21, 'writes', () => void store.write([putOf('c')]))
  world.schedule(1_000_000, 'reads in vain', () => {
    void read('in vain')
    process.kill()
  })
  await world.run(never, 10_000_000)
  const [[first, firstAt] = [], [second, secondAt] = []] = seen
  expect([first, firstAt, second]).toEqual(['at once a,b', 10, 'late a,b'])
  expect(secondAt).toBeGreaterThan(21)
  expect(seen.length).toBe(2)
})

test('LIVE-6: the checker finds a turn too long for a usual processor, with its work', () => {
  const found = (times: TimeOptions, micros: number): unknown => {
    const referee = new Referee(() => 0)
    const checker = new TurnChecker(referee, times)
    checker.onTurn('n1', 7, { label: 'timer n1', micros, work: { get: 3 } })
    expect(checker.longest).toMatchObject({ node: 'n1', atMicros: 7, label: 'timer n1' })
    return referee.violations.map(({ rule, detail }) => [rule, detail['node'], detail['ran']])
  }
  const violation = [['LIVE-6', 'n1', 'timer n1']]
  expect(found(usual, turnMicrosMax)).toEqual([])
  expect(found(usual, turnMicrosMax + 1)).toEqual(violation)
  expect(found({ ...usual, costFactor: 10 }, 10 * turnMicrosMax)).toEqual([])
  expect(found({ ...usual, getMicros: 50 }, coldTurnMicrosMax)).toEqual([])
  expect(found({ ...usual, getMicros: 50 }, coldTurnMicrosMax + 1)).toEqual(violation)
})

test('nothing else of a seed moves when its turns and reads take no time', () => {
  for (const seed of [1, 2, 3, 25]) {
    const { times, ...others } = drawSwarm(seed)
    const off = drawSwarm(seed, { without: ['turn-costs', 'read-waits'] })
    expect(off).toEqual({ ...others, times: noTimes })
    expect(drawSwarm(seed, { only: ['turn-costs'] }).times?.costFactor).toBe(times?.costFactor)
  }
})

test('META-1: in a world of long turns, slow reads and late copies a plan takes one course', async () => {
  const { options } = drawPlan(1)
  const moments = { atMicros: 500_000, lengthMicros: 1_500_000 }
  const plan: RunPlan = {
    options: {
      ...options,
      times: { costFactor: 10, getMicros: 50, waits: 1_000_000, readMeanMicros: 1_000 },
      faultRates: noFaultRates(2_000_000),
    },
    faults: [
      { kind: 'slow-read', ...moments, node: 'n1', disk: 'data', extraMicros: 20_000 },
      { kind: 'stall-in-read', ...moments, node: 'n2' },
      { kind: 'echo', atMicros: 1_500_000, node: 'n3', framesMax: 16 },
    ],
  }
  const first = await runPlan(plan, { endsAtHealing: true })
  const second = await runPlan(plan, { endsAtHealing: true })
  expect([first.outcome, first.hash]).toEqual(['clean', second.hash])
  const marks = ['waited for a turn', 'waited for a read', 'slow-read', 'stall-in-read', 'echo']
  for (const mark of marks) expect(first.coverage[mark] ?? 0, mark).toBeGreaterThan(0)
})
