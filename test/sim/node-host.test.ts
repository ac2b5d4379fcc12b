/** A node of the world over crashes and suspensions: its machine's clocks outlive its processes. */
import { expect, test } from 'vitest'
import type { Timer } from '../../src/ports/clock.ts'
import { epochMicros } from '../../sim/world/clock.ts'
import { Coverage } from '../../sim/coverage.ts'
import { SimDisk } from '../../sim/world/disk.ts'
import {
  NodeHost,
  type DiskHost,
  type HostPorts,
  type Program,
} from '../../sim/cluster/node-host.ts'
import { noTimes, type TimeOptions } from '../../sim/world/turn-costs.ts'
import { World } from '../../sim/world/world.ts'

const ignore = (): void => undefined

/** A disk that only ever has to crash. */
function idleDisk(): DiskHost<SimDisk> {
  return {
    ...{ slowReads: ignore, onRead: () => false, onReadWait: ignore },
    ...{ crash: () => 0, onWrite: ignore, slowDown: ignore, decideFate: ignore },
    disk: new SimDisk({ schedule: ignore }),
  }
}

/** A host whose program does nothing; the clock of its present process. */
function hosted(times: TimeOptions = noTimes): {
  readonly world: World
  readonly host: NodeHost<Program>
  readonly clock: () => HostPorts['clock']
  readonly process: () => HostPorts['process']
} {
  const world = new World(1, 100_000_000)
  let ports: HostPorts | undefined
  const host = new NodeHost<Program>({
    ...{ world, coverage: new Coverage(), name: 'n1' },
    skew: { offsetMicros: 0, driftPpm: 0, timerLatenessMicros: 0 },
    disks: { log: idleDisk(), data: idleDisk() },
    ...{ times, onTurn: ignore },
    open: (given) => {
      ports = given
      return Promise.resolve({ stop: () => Promise.resolve() })
    },
    ...{ onDown: ignore, onStart: ignore, onOpen: ignore, onTrace: ignore, onFailed: ignore },
  })
  host.restart()
  const started = (): HostPorts => {
    if (ports === undefined) throw new Error('not started')
    return ports
  }
  return { world, host, clock: () => started().clock, process: () => started().process }
}

test.each(['crash', 'resume'] as const)(
  'a machine that was suspended is awake after a %s, and its timers come in time',
  async (how) => {
    const { world, host, clock } = hosted()
    const fired: number[] = []
    const setTimer = (): Timer => clock().setTimer(1, () => fired.push(world.nowMicros))
    world.schedule(1_000, 'suspend', () => host.suspend(10_000_000))
    world.schedule(5_000, 'wake', () => {
      host[how]()
      host.restart()
      setTimer()
    })
    await world.run(() => fired.length > 0, 20_000)
    expect(fired).toEqual([6_001])
    expect(host.reading).toEqual({ now: 2.001, wall: epochMicros + 6_001 })
  },
)

test('a suspension that strikes a process ahead of the world never sets its clock back', async () => {
  const { world, host, clock, process } = hosted({ ...noTimes, costFactor: 1 })
  const seen: number[] = []
  const read = (): unknown => seen.push(clock().monotonicMs())
  const noted = (): void => {
    process().work('message', 4)
    read()
  }
  world.schedule(1_000, 'work', noted)
  // 16 microseconds of work were begun: the process has read its clock at 1,016.
  world.schedule(1_005, 'suspend', () => host.suspend(2_000))
  world.schedule(1_006, 'read', read)
  world.schedule(3_100, 'read', read)
  await world.run(() => seen.length === 3, 20_000)
  expect(seen).toEqual([1.016, 1.016, 1.1])
})
