/**
 * Snapshots open at one node: (group, timestamp), each held for a while after its last use, so that
 * the next read of it still finds everything. They delay forgetting at this node only (MVCC-1).
 *
 * Bounded: when the table is full a snapshot is not held, and is refused once the horizon passes it.
 */
import { assert } from '../base/assert.ts'
import type { GroupId, Timestamp } from '../base/ids.ts'

/** Open snapshots of all groups. */
export const pinsMax = 50_000

interface Pin {
  readonly group: GroupId
  readonly at: Timestamp
  until: number
}

interface GroupPins {
  readonly byTimestamp: Map<Timestamp, Pin>
  /** Of all of them; undefined: to be looked for. */
  oldest: Timestamp | undefined
}

export class Pins {
  readonly #holdMs: number
  readonly #pinsMax: number
  readonly #groups = new Map<GroupId, GroupPins>()
  /** In order of their last use, which is the order in which they end. */
  readonly #inOrder = new Set<Pin>()

  constructor(holdMs: number, max: number = pinsMax) {
    this.#holdMs = holdMs
    this.#pinsMax = max
  }

  /** Snapshots open now. */
  count(nowMs: number): number {
    this.#expire(nowMs)
    return this.#inOrder.size
  }

  /** Opens the snapshot, or holds it for longer. Times are of one monotonic clock. */
  pin(group: GroupId, at: Timestamp, nowMs: number): void {
    this.#expire(nowMs)
    const known = this.#groups.get(group)?.byTimestamp.get(at)
    if (known === undefined && this.#inOrder.size >= this.#pinsMax) return
    const pin = known ?? this.#add(group, at)
    pin.until = nowMs + this.#holdMs
    this.#inOrder.delete(pin)
    this.#inOrder.add(pin)
  }

  #add(group: GroupId, at: Timestamp): Pin {
    const pins = this.#groups.get(group) ?? { byTimestamp: new Map(), oldest: undefined }
    this.#groups.set(group, pins)
    const pin = { group, at, until: 0 }
    pins.byTimestamp.set(at, pin)
    if (pins.oldest !== undefined) pins.oldest = Math.min(pins.oldest, at)
    return pin
  }

  isPinned(group: GroupId, at: Timestamp, nowMs: number): boolean {
    this.#expire(nowMs)
    return this.#groups.get(group)?.byTimestamp.has(at) === true
  }

  /** The oldest snapshot of the group that is open. */
  oldest(group: GroupId, nowMs: number): Timestamp | undefined {
    this.#expire(nowMs)
    const pins = this.#groups.get(group)
    if (pins === undefined) return undefined
    if (pins.oldest === undefined) {
      let oldest = Number.POSITIVE_INFINITY
      for (const at of pins.byTimestamp.keys()) oldest = Math.min(oldest, at)
      pins.oldest = oldest
    }
    return pins.oldest
  }

  /** The group's past is another one now: its history ends at its horizon. */
  forgetAll(group: GroupId): void {
    const pins = this.#groups.get(group)
    if (pins === undefined) return
    for (const pin of pins.byTimestamp.values()) this.#inOrder.delete(pin)
    this.#groups.delete(group)
  }

  #expire(nowMs: number): void {
    for (const pin of this.#inOrder) {
      if (pin.until > nowMs) return
      this.#inOrder.delete(pin)
      this.#forget(pin)
    }
  }

  #forget({ group, at }: Pin): void {
    const pins = this.#groups.get(group)
    assert(pins?.byTimestamp.delete(at) === true, 'mvcc: a pin is listed once, under its group')
    if (pins.oldest === at) pins.oldest = undefined
    if (pins.byTimestamp.size === 0) this.#groups.delete(group)
  }
}
