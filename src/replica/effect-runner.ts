/**
 * Carries out the effects of steps, in order. "Durable, then visible": the effects in a `persist`'s `after`
 * begin when the flush is on the disk.
 *
 * Applied positions are gathered. Their watchers hear of them when the steps under way are over, since a
 * watcher may ask for the next step at once.
 */
import { assert, unreachable } from '../base/assert.ts'
import type { GroupId, NodeId, Position } from '../base/ids.ts'
import type { Clock } from '../ports/clock.ts'
import type { Trace } from '../ports/trace.ts'
import type { Effect } from '../replication/effect.ts'
import type { GroupMessage } from '../replication/message.ts'
import type { DataStore } from '../store/data-store.ts'
import type { Deadlines } from '../time/deadlines.ts'
import type { Fetches } from '../peers/fetches.ts'
import type { LeaseKeeper } from '../peers/lease-keeper.ts'
import type { LogStore } from '../log/log-store.ts'
import type { Peers } from '../peers/peers.ts'
import type { Replica } from './replica.ts'
import type { Requests } from './requests.ts'
import type { CatchUpReplies } from '../peers/replies.ts'

export interface EffectRunnerParts {
  readonly node: NodeId
  readonly clock: Clock
  readonly trace: Trace
  readonly log: LogStore
  readonly data: DataStore
  readonly replica: Replica
  readonly peers: Peers
  readonly fetches: Fetches
  readonly replies: CatchUpReplies
  readonly keeper: LeaseKeeper
  readonly requests: Requests
  readonly wakes: Deadlines<GroupId>
  /** A message of this node to itself: a step of its own. */
  deliver(message: GroupMessage): void
}

export class EffectRunner {
  readonly #parts: EffectRunnerParts
  #applied: { readonly group: GroupId; readonly position: Position }[] = []

  constructor(parts: EffectRunnerParts) {
    this.#parts = parts
  }

  run(effects: readonly Effect[], group: GroupId): void {
    for (const effect of effects) this.#carryOut(effect, group)
    this.#parts.fetches.onStep(group)
  }

  /** Wakes those who wait for what has been applied since the last call. */
  tellApplied(): void {
    const applied = this.#applied
    this.#applied = []
    for (const { group, position } of applied) this.#parts.requests.applied(group, position)
  }

  #carryOut(effect: Effect, group: GroupId): void {
    const { log, keeper, requests, wakes, trace } = this.#parts
    switch (effect.kind) {
      case 'send':
        return this.#send(effect.to, effect.message)
      case 'deliver':
        return this.#parts.deliver(effect.message)
      case 'send-accepted':
        return this.#sendAccepted(effect)
      case 'renew':
        return keeper.ask(effect.to)
      case 'slow':
        return keeper.tellSlow(effect.holder)
      case 'persist':
        return log.append(effect.records, () => this.run(effect.after, group))
      case 'note':
        return log.note([effect.record])
      case 'apply':
        return this.#apply(effect)
      case 'verdict':
        trace.emit({ kind: 'settled', group, verdict: effect.verdict })
        return requests.settle(effect.request, effect.verdict)
      case 'serve': {
        const { position, timestamp } = effect
        trace.emit({ kind: 'serve', group, level: 'current', position })
        return requests.serve(effect.read, { position, timestamp })
      }
      case 'wake':
        return wakes.add(effect.group, effect.at)
      case 'send-entries':
        return this.#parts.replies.ask(effect)
      default:
        return unreachable(effect)
    }
  }

  #send(to: NodeId, message: GroupMessage): void {
    const { node, peers, fetches } = this.#parts
    assert(to !== node, 'replica: a message to this node is sent to the others')
    if (message.kind === 'fetch') fetches.ask(to, message)
    else peers.send(to, message)
  }

  #sendAccepted(effect: Effect & { readonly kind: 'send-accepted' }): void {
    const { node, replica, clock, deliver, peers } = this.#parts
    const message = replica.accepted(effect, clock.monotonicMs())
    if (effect.to === node) deliver(message)
    else peers.send(effect.to, message)
  }

  #apply(effect: Effect & { kind: 'apply' }): void {
    const { group, position, value } = effect
    const { data, trace } = this.#parts
    assert(position >= 1, 'LOG-1: a position before the first one is applied')
    data.commit(effect)
    trace.emit({ kind: 'apply', group, position, value })
    this.#applied.push({ group, position })
  }
}
