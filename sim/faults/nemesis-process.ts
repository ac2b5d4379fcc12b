/** Faults of processes, of clocks, and the load. */
import { unreachable } from '../../src/base/assert.ts'
import type { ClockFault, LoadFault, ProcessFault } from './fault.ts'
import type { Context, FaultOf, Victim } from './nemesis-context.ts'

export function strikeProcess(fault: ProcessFault, context: Context): void {
  switch (fault.kind) {
    case 'crash':
      return crash(fault, context)
    case 'crash-in-recovery':
      return crashInRecovery(fault, context)
    case 'stop':
      return stop(fault, context)
    case 'pause':
    case 'suspend': {
      const victim = context.standing(fault.node)
      if (victim === undefined) return undefined
      context.count(fault)
      return victim[fault.kind](fault.lengthMicros)
    }
    case 'stall-in-read': {
      const victim = context.standing(fault.node)
      return victim?.onNextRead(() => {
        context.count(fault)
        victim.pause(fault.lengthMicros)
      })
    }
    case 'stall':
      return context.standing(fault.node)?.stall(fault.lengthMicros, () => {
        context.count(fault)
      })
    default:
      return unreachable(fault)
  }
}

function crash(fault: FaultOf<'crash'>, context: Context): void {
  const { node, downMicros, inWriteMicros, inSwitch } = fault
  const victim = context.standing(node)
  if (victim === undefined) return
  const strikeDown = (): void => {
    context.count(fault)
    context.strikeDown(victim, downMicros)
  }
  const strikeIfUp = (): void => {
    if (victim.isUp()) strikeDown()
  }
  if (inSwitch !== undefined) {
    return victim.onNextSwitch(() =>
      onDataWrite(victim, inSwitch, () => context.after(0, 'crash in switch', strikeIfUp)),
    )
  }
  if (inWriteMicros === undefined) return strikeDown()
  victim.onNextWrite(() => {
    context.after(inWriteMicros, 'crash in write', strikeIfUp)
  })
}

function crashInRecovery(fault: FaultOf<'crash-in-recovery'>, context: Context): void {
  const { kind, node, lengthMicros, writesBefore } = fault
  const victim = context.standing(node)
  if (victim === undefined) return
  const { data } = victim.disks
  data.slowDown(lengthMicros)
  context.after(lengthMicros, kind, () => {
    data.slowDown(0)
    if (victim.isUp()) crashAgain(victim, writesBefore, fault, context)
  })
}

/** Down; and, started again, down once more for each of these. */
function crashAgain(
  victim: Victim,
  [writes, ...later]: readonly number[],
  fault: FaultOf<'crash-in-recovery'>,
  context: Context,
): void {
  const { kind, downMicros } = fault
  context.strikeDown(victim, downMicros)
  if (writes === undefined) return
  // The start was scheduled first, for the same moment: the node is up again.
  context.after(downMicros, kind, () => {
    if (!victim.isUp()) return
    onDataWrite(victim, writes, () => {
      context.after(0, kind, () => {
        if (!victim.isUp()) return
        context.count(fault)
        crashAgain(victim, later, fault, context)
      })
    })
  })
}

/** Calls `strike` as a write of the data disk begins, after this many others. */
function onDataWrite(victim: Victim, writesBefore: number, strike: () => void): void {
  victim.onNextWrite(() => {
    if (writesBefore === 0) strike()
    else onDataWrite(victim, writesBefore - 1, strike)
  }, 'data')
}

function stop(fault: FaultOf<'stop'>, context: Context): void {
  const victim = context.standing(fault.node)
  if (victim === undefined) return
  context.count(fault)
  victim.stop(() => {
    context.strikeDown(victim, fault.downMicros)
  })
}

export function strikeClock(fault: ClockFault, context: Context): void {
  const victim = context.victim(fault.node)
  if (victim === undefined) return
  context.count(fault)
  if (fault.kind === 'clock-jump') {
    victim.machine.jump(fault.wallMicros, fault.monotonicMicros)
    return
  }
  const { lengthMicros, wallMicros, everyMicros } = fault
  const fromMicros = context.world.nowMicros
  victim.machine.strobe({
    fromMicros,
    wallMicros,
    everyMicros,
    untilMicros: fromMicros + lengthMicros,
  })
}

export function strikeLoad(fault: LoadFault, context: Context): void {
  const { load } = context
  context.count(fault)
  switch (fault.kind) {
    case 'storm':
      return load.storm(fault.lengthMicros)
    case 'idle':
      return load.idle(fault.lengthMicros)
    case 'huge':
      return load.huge(fault.lengthMicros)
    case 'client-death':
      return context.killClient(fault.client, fault.downMicros)
    case 'client-pause':
      return context.pauseClient(fault.client, fault.lengthMicros)
    default:
      return unreachable(fault)
  }
}
