/**
 * An operator who changes the voters of a replica set: asks a node, and another one when that does not answer, until the
 * change is made. A change that has begun goes on when the world heals.
 */
import { unreachable } from '../../src/base/assert.ts'
import { StoreError } from '../../src/base/errors.ts'
import { nodeId } from '../../src/base/ids.ts'
import type { Change } from '../../src/members/change.ts'
import type { MembersPort } from '../../src/members/report.ts'
import type { MembersFault } from './fault.ts'
import { isUsedLog } from './atlas.ts'
import type { Context, DiskImages, FaultOf, Victim } from './nemesis-context.ts'
import { putDisks } from './nemesis-disk.ts'

/** An answer that has not come by then is waited for no longer. */
const againMicros = 6_000_000
const refusedMicros = 500_000
const lookMicros = 100_000
const renewTriesMax = 5

export function strikeMembers(fault: MembersFault, context: Context): void {
  switch (fault.kind) {
    case 'renew':
      return renew(fault, context)
    case 'replace':
      return replace(fault, context)
    case 'mistaken-replace':
      return replaceInError(fault, context)
    case 'add':
      return add(fault, context)
    case 'demote':
      return demote(fault, context)
    case 'remove':
      return remove(fault, context)
    default:
      return unreachable(fault)
  }
}

function renew(fault: FaultOf<'renew'>, context: Context): void {
  const { node } = fault
  const others = context.atlas.setOf(node).filter((one) => one !== node)
  ask(context, {
    ...{ nodes: [node, ...others], triesMax: renewTriesMax },
    request: (port) => port.renew(),
    onMade: () => context.count(fault),
  })
}

function replace(fault: FaultOf<'replace'>, context: Context): void {
  const { node, downMicros } = fault
  const { atlas, victims, world } = context
  const victim = victims.find(({ name }) => name === node)
  if (victim === undefined) return
  const lost = imagesOf(victim, context)
  if (!atlas.loseStore(node)) return
  context.count(fault)
  victim.lose()
  context.onStoreLost(node)
  forgetImages(node, context)
  ask(context, {
    ...{ nodes: atlas.setOf(node).filter((one) => one !== node), triesMax: Infinity },
    request: (port) => port.replace(nodeId(node)),
    onMade: ({ seat }) => {
      if (seat === undefined) return world.fail(new TypeError('a replacement without a seat'))
      world.schedule(downMicros, 'takes a seat', () => {
        victim.takeSeat(seat)
        expectVote(victim, context, () => comeBack(fault, lost, context))
      })
    },
  })
}

function add(fault: FaultOf<'add'>, context: Context): void {
  const { node, downMicros, readerMicros } = fault
  const { atlas, victims, world } = context
  const victim = victims.find(({ name }) => name === node)
  if (victim === undefined || !atlas.add(node)) return
  const [id, url] = [nodeId(node), `http://${node}`]
  ask(context, {
    ...{ nodes: atlas.setOf(node), triesMax: Infinity },
    request: (port) => (readerMicros === undefined ? port.add(id, url) : port.addReader(id, url)),
    onMade: ({ number, seat }) => {
      if (seat === undefined) return world.fail(new TypeError('a node is added without a seat'))
      context.count(fault)
      world.schedule(downMicros, 'takes a seat', () => {
        victim.takeSeat(seat)
        if (readerMicros === undefined) expectVote(victim, context, () => undefined)
        else expectReader(victim, { number, readerMicros }, context)
      })
    },
  })
}

/** Once the node is a read-only member, and a while later, it gets a vote. `number`: of the change that adds it. */
function expectReader(
  victim: Victim,
  added: { readonly number: number; readonly readerMicros: number },
  context: Context,
): void {
  const { world, coverage } = context
  world.schedule(lookMicros, 'look for a read-only member', () => {
    const isReader = context.members(victim.name)?.report.standing === 'read-only'
    if (!isReader) return expectReader(victim, added, context)
    coverage.count('added as a read-only member')
    const { number, readerMicros } = added
    world.schedule(readerMicros, 'gets a vote', () =>
      promote(victim, number, context, () => undefined),
    )
  })
}

/** `after`: the change that has made it a read-only member. A node that is behind may know of an earlier promotion. */
function promote(victim: Victim, after: number, context: Context, then: () => void): void {
  const { name } = victim
  ask(context, {
    ...{ nodes: context.atlas.setOf(name), triesMax: Infinity },
    request: (port) => {
      // It may have been made by a request before this one, whose answer was lost.
      const { change } = port.report
      const isLater = change !== undefined && change.number > after
      const isAsked = isLater && change.kind === 'promote' && change.node === name
      const isMade = isAsked && change.phase !== 'given-up'
      return isMade ? Promise.resolve({ change }) : port.promote(nodeId(name))
    },
    onMade: () => expectVote(victim, context, then),
  })
}

function demote(fault: FaultOf<'demote'>, context: Context): void {
  const { node, lengthMicros } = fault
  const { atlas, victims, world, coverage } = context
  const victim = victims.find(({ name }) => name === node)
  if (victim === undefined || victim.isRetired || !atlas.demote(node)) return
  ask(context, {
    ...{ nodes: atlas.setOf(node).filter((one) => one !== node), triesMax: Infinity },
    request: (port) => {
      const { change } = port.report
      const isMade = change?.kind === 'demote' && change.node === node
      return isMade ? Promise.resolve({ change }) : port.demote(nodeId(node))
    },
    onMade: ({ number }) => {
      context.count(fault)
      world.schedule(lengthMicros, 'gets its vote back', () =>
        promote(victim, number, context, () => coverage.count('read-only member votes again')),
      )
    },
  })
}

function remove(fault: FaultOf<'remove'>, context: Context): void {
  const { node } = fault
  const { atlas, victims } = context
  const victim = victims.find(({ name }) => name === node)
  if (victim === undefined || !atlas.remove(node)) return
  ask(context, {
    ...{ nodes: atlas.setOf(node).filter((one) => one !== node), triesMax: Infinity },
    request: (port) => port.remove(nodeId(node)),
    onMade: () => {
      context.count(fault)
      expectEnd(victim, context)
    },
  })
}

/** A node that was removed ends when it hears of that: it may be added again with another store. */
function expectEnd(victim: Victim, context: Context): void {
  const { atlas, world, coverage } = context
  world.schedule(lookMicros, 'look for an end', () => {
    if (!victim.isRetired) return expectEnd(victim, context)
    coverage.count('removed node ended')
    victim.becomeSpare()
    context.onStoreLost(victim.name)
    forgetImages(victim.name, context)
    atlas.becomeSpare(victim.name)
  })
}

/** The node may be up all the while: the others have no links with it until the change is given up. */
function replaceInError(fault: FaultOf<'mistaken-replace'>, context: Context): void {
  const { node, lengthMicros } = fault
  const { atlas, world } = context
  if (!atlas.outvote(node)) return
  const nodes = atlas.setOf(node).filter((one) => one !== node)
  const asked = { nodes, triesMax: Infinity }
  const giveUp = ({ number }: Change): void =>
    ask(context, {
      ...asked,
      // It may have been given up by a request before this one, whose answer was lost.
      request: (port) => {
        const { change } = port.report
        const isOver = change !== undefined && isPast(change, number)
        return isOver ? Promise.resolve({ change }) : port.cancel()
      },
      onMade: () => atlas.endReplacing(node),
    })
  ask(context, {
    ...asked,
    request: (port) => port.replace(nodeId(node)),
    onMade: (change) => {
      context.count(fault)
      world.schedule(lengthMicros, 'gives a change up', () => giveUp(change))
    },
  })
}

/** The change of that number is given up, or a later one has begun. A node that is behind knows an earlier one, which says nothing. */
function isPast(change: Change, number: number): boolean {
  return change.number > number || (change.number === number && change.phase === 'given-up')
}

/** A data disk of the lost store is of no use to another one. */
function forgetImages(node: string, { images }: Context): void {
  for (const fault of images.keys()) {
    if (fault.kind === 'stale-disk' && fault.node === node && fault.disk === 'data') {
      images.delete(fault)
    }
  }
}

/** Undefined: damage of now would be damage when they are put back, and the atlas would not know of it. */
function imagesOf({ name, disks }: Victim, { atlas }: Context): DiskImages | undefined {
  if (atlas.isSwapped(name) || atlas.hasHurtData(name) || !atlas.isSound(name)) return undefined
  return { log: disks.log.disk.image(), data: disks.data.disk.image() }
}

/** The lost store takes the place of the one that has its vote. */
function comeBack(
  { node, backMicros }: FaultOf<'replace'>,
  lost: DiskImages | undefined,
  context: Context,
): void {
  if (backMicros === undefined || lost === undefined || !isUsedLog(lost.log)) return
  context.after(backMicros, 'lost store is back', () => {
    const atMicros = context.world.nowMicros
    const old = { kind: 'stale-disk', name: 'lost store', disk: 'both' } as const
    const when = { atMicros, imageAtMicros: atMicros, downMicros: 0 }
    putDisks({ ...old, ...when, node }, lost, context)
  })
}

/** Until it votes it counts as lost. */
function expectVote(victim: Victim, context: Context, then: () => void): void {
  const { atlas, world, coverage } = context
  world.schedule(lookMicros, 'look for a vote', () => {
    if (!atlas.isSettled(victim.name)) return expectVote(victim, context, then)
    coverage.count('replaced store votes')
    atlas.endReplacing(victim.name)
    then()
  })
}

interface Asking {
  /** Asked in turn. */
  readonly nodes: readonly string[]
  readonly triesMax: number
  request(port: MembersPort): Promise<{ readonly change: Change }>
  onMade(change: Change): void
}

function ask(context: Context, { nodes, triesMax, request, onMade }: Asking): void {
  const { world } = context
  let isMade = false
  let tries = 0
  let waits = 0
  const go = (): void => {
    if (isMade || tries === triesMax) return
    const port = context.members(nodes[tries % nodes.length] ?? '')
    tries += 1
    again(port === undefined ? refusedMicros : againMicros)
    if (port === undefined) return
    request(port).then(
      ({ change }) => {
        if (!isMade) onMade(change)
        isMade = true
      },
      (error: unknown) => {
        if (isExpected(error)) again(refusedMicros)
        else world.fail(error)
      },
    )
  }
  /** The last wait counts. */
  const again = (delayMicros: number): void => {
    const wait = (waits += 1)
    world.schedule(delayMicros, 'operator asks', () => {
      if (wait === waits) go()
    })
  }
  go()
}

/** Another change is under way, no majority answers, or the node has failed. */
function isExpected(error: unknown): boolean {
  return error instanceof StoreError && error.code !== 'internal'
}
