/**
 * An operator who upgrades nodes one by one, goes back with some of them, and puts the next cluster version in force. He keeps to the
 * rule of the page on upgrades: no node goes back to an earlier build once he has asked for that with no earlier build left.
 */
import { unreachable } from '../../src/base/assert.ts'
import { ownVersions } from '../../src/base/cluster-version.ts'
import { StoreError } from '../../src/base/errors.ts'
import type { UpgradeFault } from './fault.ts'
import type { Context, FaultOf } from './nemesis-context.ts'

export function strikeUpgrade(fault: UpgradeFault, context: Context): void {
  switch (fault.kind) {
    case 'change-build':
      return changeBuild(fault, context)
    case 'finalize':
      return finalize(fault, context)
    default:
      return unreachable(fault)
  }
}

function changeBuild(fault: FaultOf<'change-build'>, context: Context): void {
  const { node, build, downMicros } = fault
  const { victims, coverage } = context
  const victim = victims.find(({ name }) => name === node)
  if (victim === undefined || victim.build === build) return
  const isBack = build < victim.build
  if (isBack && context.finalized.has(keyOf(node, context))) return
  context.count(fault)
  if (isBack) {
    context.hasGoneBack = true
    coverage.count('back to an earlier build')
  }
  victim.build = build
  if (victim.isUp()) context.strikeDown(victim, downMicros)
}

/** The replica set of the node. */
function keyOf(node: string, { atlas }: Context): string {
  return atlas.firstOf(node)
}

function finalize(fault: FaultOf<'finalize'>, context: Context): void {
  const { node, looksFirst } = fault
  const key = keyOf(node, context)
  const ofSet = context.victims.filter((one) => keyOf(one.name, context) === key)
  const isWhole = ofSet.every(({ build }) => build === ownVersions.max)
  if (!isWhole && (looksFirst || context.hasGoneBack)) return
  if (isWhole) context.finalized.add(key)
  const port = context.members(node)
  if (port === undefined) return
  context.count(fault)
  port.raise(ownVersions.max).then(
    () => context.coverage.count('finalized'),
    (error: unknown) => {
      if (!(error instanceof StoreError) || error.code === 'internal')
        return context.world.fail(error)
      context.coverage.count(isWhole ? 'finalize not carried out' : 'finalize refused for a build')
    },
  )
}
