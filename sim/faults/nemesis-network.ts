/** Faults of the network; losses, delays and doubles are the weather's. */
import { unreachable } from '../../src/base/assert.ts'
import type { NetworkFault, Way } from './fault.ts'
import type { Context } from './nemesis-context.ts'

export function strikeNetwork(fault: NetworkFault, context: Context): void {
  const { world, weather } = context
  switch (fault.kind) {
    case 'cut':
      context.count(fault)
      return cut(fault.ways, fault.lengthMicros, fault.resets, context)
    case 'isolate-leader': {
      const leader = context.leader()
      if (leader === undefined) return undefined
      context.count(fault)
      return cut(waysAround(leader, context), fault.lengthMicros, false, context)
    }
    case 'reset': {
      const [from, to] = fault.between
      context.count(fault)
      return context.resetLink(from, to)
    }
    case 'lose-reply':
      return context.loseNextReply(fault.node)
    case 'echo':
      return context.echo(fault.node, fault.framesMax)
    case 'clog':
      context.count(fault)
      for (const [from, to] of fault.ways) {
        weather.clog(from, to, world.nowMicros + fault.lengthMicros)
      }
      return undefined
    case 'slow-node':
      context.count(fault)
      return weather.slow(fault.node, fault.extraMicros, world.nowMicros + fault.lengthMicros)
    default:
      return unreachable(fault)
  }
}

function cut(
  ways: readonly Way[],
  lengthMicros: number,
  resets: boolean,
  { weather, resetLink, after }: Context,
): void {
  for (const [from, to] of ways) {
    weather.cut(from, to)
    if (resets) resetLink(from, to)
  }
  after(lengthMicros, 'mend', () => {
    for (const [from, to] of ways) weather.mend(from, to)
  })
}

function waysAround(node: string, { victims, clients }: Context): readonly Way[] {
  const others = [...victims.map((victim) => victim.name), ...clients]
  return others
    .filter((other) => other !== node)
    .flatMap((other): Way[] => [
      [node, other],
      [other, node],
    ])
}
