/** The seals and the gate of one node during a step: what the edge of a node does as the voters change. */
import { assert } from '../../src/base/assert.ts'
import type { NodeId } from '../../src/base/ids.ts'
import type { ReplicaSet } from '../../src/placement/placement.ts'
import { openRecords } from '../../src/replication/epoch.ts'
import type { GroupEvent } from '../../src/replication/group.ts'
import type { GroupLog } from '../../src/replication/log.ts'
import { isGateOpen, type ChangeState, type Gated } from './change.ts'
import type { Sealed, SentMessage } from './node-action.ts'
import type { Setting } from './setting.ts'

export interface SealPorts {
  readonly setting: Setting
  readonly name: NodeId
  log(): GroupLog
  step(event: GroupEvent): void
  send(to: NodeId, message: SentMessage): void
}

export class Seals {
  change: ChangeState
  readonly #ports: SealPorts

  constructor(change: ChangeState, ports: SealPorts) {
    this.change = change
    this.#ports = ports
  }

  hear(): void {
    const { setting, log, step } = this.#ports
    this.change = { ...this.change, isEnding: true }
    if (log().standing !== 'reading') return
    assert(setting.nextSet !== undefined, 'explore: a reader becomes a voter of no epoch')
    step({ kind: 'epoch', set: setting.nextSet })
    this.ask()
  }

  /** The node starts again. `isDurable`: a seal that was on its way has reached the disk. */
  restart(isDurable: boolean): void {
    const { part, isPastGate } = this.change
    const isSealed = this.change.isSealed || isDurable
    this.change = { part, isEnding: false, isSealed, isPastGate, seals: new Map() }
  }

  /** The node tells its seal to the voters of the next epoch, and goes over to it if it is one of them. */
  onDurable(): void {
    const { nextSet } = this.#ports.setting
    assert(nextSet !== undefined, 'explore: an epoch is sealed that none follows')
    this.change = { ...this.change, isSealed: true }
    const own = this.#own()
    this.#tell()
    if (this.change.part !== 'stays') return this.#follow(nextSet)
    this.#ports.step({ kind: 'epoch', set: nextSet })
    this.take(this.#ports.name, own)
  }

  /** One that leaves is a reader of the next epoch, where the scope has readers. */
  #follow(set: ReplicaSet): void {
    const { setting, step } = this.#ports
    if (setting.scope.hasReaders === true) step({ kind: 'follow', set })
  }

  /** A new run does not know whether its seal arrived; before the gate it knows no seal but its own. */
  ask(): void {
    const { setting, name, log, send } = this.#ports
    if (this.change.isSealed) this.#tell()
    if (log().standing !== 'before-gate') return
    for (const to of setting.set.voters) {
      if (to === name) this.take(to, this.#own())
      else send(to, { kind: 'seal-request' })
    }
  }

  answer(to: NodeId): void {
    if (this.change.isSealed) this.#ports.send(to, this.#own())
  }

  take(from: NodeId, { applied, open }: Sealed): void {
    const { log, step } = this.#ports
    if (log().standing !== 'before-gate') return
    const known = this.change.seals.get(from) ?? 0
    const seals = new Map(this.change.seals).set(from, Math.max(known, applied))
    this.change = { ...this.change, seals }
    if (open.length > 0) step({ kind: 'carry', acceptances: open })
    if (applied > log().state.position) step({ kind: 'exists', position: applied, informer: from })
  }

  /** At once: a gate that is passed later is one whose last seal came later. */
  passGate(pending: Gated['pending']): void {
    const { setting, log, step } = this.#ports
    if (!isGateOpen(setting, { change: this.change, log: log(), pending })) return
    this.change = { ...this.change, isPastGate: true, seals: new Map() }
    step({ kind: 'gate' })
  }

  #tell(): void {
    const { setting, name, send } = this.#ports
    const own = this.#own()
    for (const to of setting.nextSet?.voters ?? []) if (to !== name) send(to, own)
  }

  /** As it is now: of the first epoch this node accepts no more. */
  #own(): Sealed {
    const { setting, log } = this.#ports
    const { open: all, damaged } = openRecords(log().records)
    assert(damaged.length === 0, 'explore: no disk damages a record here')
    const open = all.filter(({ ballot }) => ballot.epoch === setting.set.epoch)
    return { kind: 'sealed', applied: log().state.position, open }
  }
}
