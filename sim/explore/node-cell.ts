/**
 * The results that the search computes once for each state of a node: its possible actions, and the
 * states they lead to.
 */
import type { LogRecord } from '../../src/replication/effect.ts'
import { mayExpire, mayLapse } from './lease-pairs.ts'
import { isRestoredBy } from './lost-data.ts'
import { setTimers, type NodeState } from './node-state.ts'
import type { LeaseView } from './lease-rules.ts'
import type { Breach } from './observation.ts'
import { timerNames } from './scope.ts'
import type { Setting } from './setting.ts'
import { packAction, type ActionCode } from './state-vector.ts'

/** The effect of an action on its node, in numbers. */
export interface Transition {
  readonly node: number
  readonly sent: readonly number[]
  readonly observations: number
  readonly breaches: readonly Breach[]
  readonly isHalted: boolean
}

/** A node's state with its computed results. */
export interface NodeCell {
  readonly state: NodeState
  readonly transitions: Map<ActionCode, Transition>
  /** Everything but deliveries, submissions and reads. */
  readonly actions: readonly ActionCode[]
  readonly crashes: readonly ActionCode[]
  /** A crash with which the data store is lost. */
  readonly losses: readonly ActionCode[]
  /** Computed at the first use. */
  leases: LeaseView | undefined
}

export function buildNodeCell(state: NodeState, setting: Setting): NodeCell {
  const { scope } = setting
  const actions: ActionCode[] = []
  const isWithin = ({ position }: LogRecord): boolean => position <= scope.positions
  const next = state.pending.find((write) => write.isForced)
  if (next?.isSeal === true || next?.records.some(isWithin) === true)
    actions.push(packAction('flush', 0, 0))
  const isDone = state.log.state.position >= scope.positions
  for (const timer of isDone ? [] : setTimers(state.log)) {
    if (!scope.timers.includes(timer)) continue
    actions.push(packAction('timer', 0, timerNames.indexOf(timer)))
  }
  actions.push(...leaseActions(state, setting))
  if (scope.snapshots !== undefined) actions.push(...snapshotActions(state, setting))
  actions.push(...restoreActions(state))
  if (setting.nextSet !== undefined) actions.push(...changeActions(state))
  const crashes: ActionCode[] = []
  const losses: ActionCode[] = []
  for (let writes = 0; writes <= state.pending.length; writes++) {
    for (const [at, { position }] of state.states.entries()) {
      crashes.push(packAction('crash', 0, at * 32 + writes))
      if (position > 0) losses.push(packAction('lose', 0, at * 32 + writes))
    }
  }
  return { state, transitions: new Map(), actions, crashes, losses, leases: undefined }
}

/** The state records with which the node would be restored, each as the last that is durable by then. */
function restoreActions({ restoring, states }: NodeState): ActionCode[] {
  if (restoring === undefined) return []
  return [...states.entries()].flatMap(([at, { position }]) =>
    isRestoredBy(restoring, position) ? [packAction('restore', 0, at)] : [],
  )
}

/** A voter that hears of the change hands back what it holds, and lets what it has granted run out; then it seals. */
function changeActions({ change, log, pairs }: NodeState): ActionCode[] {
  // A reader that becomes a voter takes up the epoch at any time.
  if (change.part === 'joins' && log.standing === 'reading') return [packAction('hear', 0, 0)]
  if (change.part === 'joins' || log.standing !== 'voting' || change.isSealed) return []
  const lent = [...pairs.lent.values()]
  if (!change.isEnding && lent.length + pairs.borrowed.size > 0) return [packAction('hear', 0, 0)]
  return lent.some(mayExpire) ? [] : [packAction('seal', 0, 0)]
}

/** A snapshot of each state that the data store may hold, to each node. */
function snapshotActions({ states }: NodeState, { names }: Setting): ActionCode[] {
  const actions: ActionCode[] = []
  for (const [at, { position }] of states.entries()) {
    if (position === 0) continue
    for (const peer of names.keys()) actions.push(packAction('snapshot', 0, at * 4 + peer))
  }
  return actions
}

function leaseActions({ pairs, log }: NodeState, { names, scope }: Setting): ActionCode[] {
  const actions: ActionCode[] = []
  for (const [peer, borrowed] of pairs.borrowed) {
    const at = names.indexOf(peer)
    if (log.lease !== undefined) actions.push(packAction('renew', 0, at))
    if (mayLapse(borrowed, scope.leases?.ticks ?? 0)) actions.push(packAction('lapse', 0, at))
  }
  for (const [peer, lent] of pairs.lent) {
    if (mayExpire(lent)) actions.push(packAction('expire', 0, names.indexOf(peer)))
  }
  return actions
}
