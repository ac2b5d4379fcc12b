/** A group that has come from another set (MOVE-10): the entries of the prologue were chosen there, and one node here has taken it up. */
import { present } from '../../src/base/assert.ts'
import type { LogHome } from '../../src/replication/log.ts'
import { cutThrough } from './lost-data.ts'
import { newNode, type NodeState } from './node-state.ts'
import { movedTo, type Setting } from './setting.ts'

/** While the entries of the prologue are chosen. */
const atHome: LogHome = { set: movedTo, isGuest: false, mayMove: true }
/** From the beginning of the search on. */
const asGuest: LogHome = { set: movedTo, isGuest: true, mayMove: true }

/** The node that has taken the group up. */
const takerAt = 1

/** The nodes before the prologue. */
export function firstNodes(setting: Setting): readonly NodeState[] {
  const home = setting.scope.isArrival === true ? atHome : undefined
  return setting.names.map((_, at) => newNode(setting, at, home))
}

/**
 * The nodes behind it, where a group arrives: one has what the other set has of the group, and no entry; the others have nothing. It
 * is not the first node, which the last entry names as the leader: an entry of another set names none of this one.
 */
export function arrivedNodes(
  setting: Setting,
  stateOf: (at: number) => NodeState,
): readonly NodeState[] {
  if (setting.scope.isArrival !== true) return []
  const before = stateOf(takerAt)
  const last = present(before.states.at(-1), 'explore: a node without a state record')
  const log = { ...before.log, home: asGuest }
  const taken = { ...before, log, disk: cutThrough(before.disk, last.position), states: [last] }
  return setting.names.map((_, at) => (at === takerAt ? taken : newNode(setting, at, asGuest)))
}
