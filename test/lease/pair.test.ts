/**
 * One holder x and one grantor y, with clocks that drift and a network that loses, copies and reorders,
 * against LEASE-2 at every moment.
 */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { groupOfBytes, nodeId, type GroupId, type NodeId } from '../../src/base/ids.ts'
import { defaultLimits, type Limits } from '../../src/base/limits.ts'
import { Leases, type OutgoingMessage } from '../../src/lease/leases.ts'
import type { HandBack, Renew, Renewed, Slow, Term } from '../../src/lease/message.ts'
import type { ClockReading } from '../../src/lease/clock-reading.ts'

const [x, y, z] = [nodeId('x'), nodeId('y'), nodeId('z')]
const groupNamed = (name: string): GroupId => groupOfBytes(Buffer.from(name))
const [g, h] = [groupNamed('g'), groupNamed('h')]
const ignore = (): void => undefined

/** As groups use them (`replication/read-lease.ts`). */
const limits: Limits = { ...defaultLimits, leaseMs: 200, clockDriftPpm: 100_000 }

type Message =
  | Renew
  | Renewed
  | Slow
  | HandBack
  | { readonly kind: 'query'; readonly group: GroupId; readonly attempt: number }
  | { readonly kind: 'release'; readonly group: GroupId; readonly attempt: number }
  | {
      readonly kind: 'highest'
      readonly group: GroupId
      readonly attempt: number
      readonly term: Term | undefined
      /** When it was answered. */
      readonly moment: number
    }

/** The holder's last attempt to register a group. */
interface Attempt {
  readonly number: number
  term: Term | undefined
  moment: number
  isIgnored: boolean
}

type Step =
  | { readonly kind: 'pass'; readonly ms: number }
  | { readonly kind: 'ask' | 'link' | 'refuse' }
  | { readonly kind: 'begin' | 'again' | 'release' | 'revoke'; readonly group: GroupId }
  | { readonly kind: 'deliver' | 'copy' | 'lose' | 'settle'; readonly index: number }
  | { readonly kind: 'holder restarts'; readonly offset: number; readonly isOrderly: boolean }
  | { readonly kind: 'grantor restarts'; readonly offset: number; readonly ms: number }
  | { readonly kind: 'disturbance'; readonly ms: number; readonly isForward: boolean }

interface Case {
  /** Thousandths that each clock gains: the holder's two, the grantor's. */
  readonly drifts: readonly [number, number, number]
  /** A disturbance is a suspension of the holder's machine; else its wall clock is set. */
  readonly isSuspending: boolean
  readonly steps: readonly Step[]
}

class Clock {
  readonly #rate: number
  #base = 1_000
  #since = 0

  constructor(drift: number) {
    this.#rate = 1 + drift / 1_000
  }

  read(real: number): number {
    return this.#base + (real - this.#since) * this.#rate
  }

  set(real: number, base: number): void {
    this.#since = real
    this.#base = base
  }
}

/** How much of what is to be checked did occur, in all runs. */
const seen = { counting: 0, blind: 0, revoked: 0, suspended: 0, hurried: 0 }

class World {
  #real = 0
  #moment = 0
  #attempts = 0
  readonly #isSuspending: boolean
  readonly #holderClock: Clock
  readonly #wallClock: Clock
  readonly #grantorClock: Clock
  readonly #incarnations = { holder: 1, grantor: 1 }
  #holder: Leases
  #grantor: Leases
  readonly #inFlight: { readonly to: NodeId; readonly message: Message }[] = []
  readonly #leased = new Map<GroupId, Attempt>()
  /** The last moment at which the grantor did not list the holder. */
  readonly #unlisted = new Map<GroupId, number>()
  readonly #revoking = new Set<GroupId>()

  constructor({ drifts, isSuspending }: Case) {
    const [holder, wall, grantor] = drifts
    this.#isSuspending = isSuspending
    this.#holderClock = new Clock(holder)
    this.#wallClock = new Clock(wall)
    this.#grantorClock = new Clock(grantor)
    this.#holder = this.#start(x)
    this.#grantor = this.#start(y)
  }

  #start(node: NodeId): Leases {
    const { holder, grantor } = this.#incarnations
    const incarnation = node === x ? holder : grantor
    const startedMs = (node === x ? this.#holderClock : this.#grantorClock).read(this.#real)
    const leases = new Leases({ node, nodes: [x, y], incarnation, limits, startedMs })
    leases.onRevoking = (to, message) => {
      seen.hurried += 1
      this.#send(to, message)
    }
    return leases
  }

  get #reading(): ClockReading {
    const wall = Math.round(this.#wallClock.read(this.#real) * 1000)
    return { now: this.#holderClock.read(this.#real), wall }
  }

  get #grantorNow(): number {
    return this.#grantorClock.read(this.#real)
  }

  take(step: Step): void {
    switch (step.kind) {
      case 'pass':
        for (let ms = 0; ms < step.ms; ms += 1) this.#pass(1)
        return
      case 'ask':
        return this.#tell(this.#holder.ask(y, this.#reading))
      case 'link':
        return this.#tell(this.#holder.onLink(y, this.#incarnations.grantor, this.#reading))
      case 'settle':
        return this.#settle(step.index)
      case 'begin':
      case 'again':
      case 'release':
      case 'revoke':
        return this.#takeOf(step.kind, step.group)
      case 'deliver':
        return this.#deliver(step.index)
      case 'copy':
        return this.#deliver(step.index, true)
      case 'lose':
        this.#inFlight.splice(step.index % Math.max(1, this.#inFlight.length), 1)
        return
      default:
        return this.#takeFault(step)
    }
  }

  #takeOf(kind: 'begin' | 'again' | 'release' | 'revoke', group: GroupId): void {
    const attempt = this.#leased.get(group)
    if (kind === 'revoke') {
      const wasListed = this.#isListed(group)
      const isOver = this.#grantor.revoke(group, 1, x, this.#grantorNow)
      this.#check(!isOver || !this.#isCounting(group), 'counted on though revoked')
      this.#check(isOver !== wasListed, 'revoked though listed, or the other way round')
      if (!isOver) this.#revoking.add(group)
      else if (this.#revoking.delete(group)) seen.revoked += 1
      return
    }
    if (kind === 'release') {
      if (attempt === undefined) return
      this.#leased.delete(group)
      if (attempt.term !== undefined) this.#send(y, { kind, group, attempt: attempt.number })
      return
    }
    if (kind === 'begin') {
      this.#attempts += 1
      const number = this.#incarnations.holder * 2 ** 32 + this.#attempts
      this.#leased.set(group, { number, term: undefined, moment: 0, isIgnored: false })
    }
    if (!this.#holder.confirmLive(y, this.#reading)) this.#tell(this.#holder.ask(y, this.#reading))
    const number = this.#leased.get(group)?.number
    if (number !== undefined) this.#send(y, { kind: 'query', group, attempt: number })
  }

  #takeFault(step: Step): void {
    switch (step.kind) {
      case 'holder restarts':
        if (step.isOrderly) this.#tell(this.#holder.handBack())
        this.#leased.clear()
        this.#incarnations.holder += 1
        this.#holderClock.set(this.#real, step.offset)
        this.#holder = this.#start(x)
        return
      case 'grantor restarts':
        this.#real += step.ms
        this.#incarnations.grantor += 1
        this.#grantorClock.set(this.#real, step.offset)
        this.#grantor = this.#start(y)
        return
      case 'disturbance': {
        if (!this.#isSuspending) {
          const by = step.isForward ? step.ms : -step.ms
          return this.#wallClock.set(this.#real, this.#wallClock.read(this.#real) + by)
        }
        const { now } = this.#reading
        const wasLive = this.#holder.confirmLive(y, this.#reading)
        this.#real += step.ms
        this.#holderClock.set(this.#real, now)
        seen.suspended += wasLive ? 1 : 0
        return
      }
      case 'refuse':
        this.#grantor.onMessage(z, { kind: 'slow', holder: x }, this.#grantorReading, ignore)
        return
      default:
        throw new Error(step.kind)
    }
  }

  get #grantorReading(): ClockReading {
    return { now: this.#grantorNow, wall: 0 }
  }

  #tell(told: readonly OutgoingMessage[]): void {
    for (const [to, message] of told) this.#send(to, message)
  }

  #send(to: NodeId, message: Message): void {
    this.#inFlight.push({ to, message })
  }

  /** Delivers all but the oldest ones, which stay on their way for longer. */
  #settle(left: number): void {
    for (let count = 0; count < 20 && this.#inFlight.length > left; count += 1) this.#deliver(left)
  }

  #deliver(index: number, isCopied = false): void {
    const place = index % Math.max(1, this.#inFlight.length)
    const packet = this.#inFlight[place]
    if (packet === undefined) return
    if (!isCopied) this.#inFlight.splice(place, 1)
    if (packet.to === y) this.#atGrantor(packet.message)
    else this.#atHolder(packet.message)
    this.look()
  }

  #atGrantor(message: Message): void {
    if (message.kind === 'highest') throw new Error('to the grantor')
    if (message.kind === 'query') {
      const { group, attempt } = message
      const term = this.#grantor.register({
        group,
        from: x,
        attempt,
        position: 0,
        now: this.#grantorNow,
      })
      return this.#send(x, { kind: 'highest', group, attempt, term, moment: this.#moment })
    }
    if (message.kind === 'release') {
      return this.#grantor.release(message.group, x, message.attempt)
    }
    this.#tell(this.#grantor.onMessage(x, message, this.#grantorReading, ignore))
  }

  #atHolder(message: Message): void {
    if (message.kind === 'query' || message.kind === 'release') throw new Error('to the holder')
    if (message.kind !== 'highest') {
      const drop = (group: GroupId): void => this.#drop(group)
      return this.#tell(this.#holder.onMessage(y, message, this.#reading, drop))
    }
    const attempt = this.#leased.get(message.group)
    if (attempt?.number !== message.attempt || message.term === undefined) return
    if (attempt.isIgnored) return
    attempt.term = message.term
    attempt.moment = message.moment
  }

  #drop(group: GroupId): void {
    const attempt = this.#leased.get(group)
    if (attempt === undefined) return
    attempt.term = undefined
    attempt.isIgnored = true
  }

  #pass(ms: number): void {
    this.#real += ms
    this.look()
  }

  #isListed(group: GroupId): boolean {
    return this.#grantor.holders(group, 1, this.#grantorNow).some(({ node }) => node === x)
  }

  #isCounting(group: GroupId): boolean {
    const term = this.#leased.get(group)?.term
    return term !== undefined && this.#holder.confirmHeld(y, term, this.#reading)
  }

  /** LEASE-2, now; and that the grantor has not once failed to list what is counted on since it answered. */
  look(): void {
    this.#moment += 1
    for (const group of [g, h]) {
      const isListed = this.#isListed(group)
      if (!isListed) this.#unlisted.set(group, this.#moment)
      if (!this.#isCounting(group)) continue
      seen.counting += 1
      this.#check(isListed, 'counted on, and not listed')
      const attempt = this.#leased.get(group)
      const unlisted = this.#unlisted.get(group) ?? 0
      this.#check(unlisted <= (attempt?.moment ?? 0), 'counted on, and not listed meanwhile')
      this.#checkLife(group, attempt?.term?.incarnation === this.#incarnations.grantor)
    }
  }

  /** An acknowledgement of an earlier life of the holder does not stand for this one. */
  #checkLife(group: GroupId, isOfThisGrantor: boolean): void {
    if (!isOfThisGrantor) {
      seen.blind += 1
      return
    }
    const [listed] = this.#grantor.holders(group, 1, this.#grantorNow)
    this.#check(listed?.incarnation === this.#incarnations.holder, 'listed in another life')
  }

  #check(holds: boolean, what: string): void {
    if (!holds) throw new Error(`LEASE-2: ${what}`)
  }
}

const of = (weight: number, arbitrary: fc.Arbitrary<Step>) => ({ weight, arbitrary })
const upTo = (max: number, min = 0): fc.Arbitrary<number> => fc.integer({ min, max })
const drift = fc.oneof(fc.constantFrom(-99, 99), upTo(99, -99))
const kind = fc.constantFrom
const [group, offset, ms, index] = [
  fc.constantFrom(g, g, h),
  upTo(1_400, 600),
  upTo(12, 1),
  upTo(6),
]
const step: fc.Arbitrary<Step> = fc.oneof(
  of(60, fc.record({ kind: kind('pass'), ms })),
  of(15, fc.record({ kind: kind('pass'), ms: upTo(140, 20) })),
  of(60, fc.record({ kind: kind('ask', 'ask', 'link') })),
  of(
    100,
    fc.record({ kind: kind('begin', 'begin', 'again', 'release', 'revoke', 'revoke'), group }),
  ),
  of(140, fc.record({ kind: kind('deliver', 'deliver', 'copy', 'lose'), index })),
  of(120, fc.record({ kind: kind('settle'), index: fc.constantFrom(0, 0, 1, 2, 3) })),
  of(10, fc.record({ kind: kind('holder restarts'), offset, isOrderly: fc.boolean() })),
  of(10, fc.record({ kind: kind('grantor restarts'), offset, ms: upTo(40) })),
  of(6, fc.record({ kind: kind('disturbance'), ms: upTo(400), isForward: fc.boolean() })),
  of(1, fc.record({ kind: kind('refuse') })),
)
const drawn: fc.Arbitrary<Case> = fc.record({
  drifts: fc.tuple(drift, drift, drift),
  isSuspending: fc.boolean(),
  steps: fc.array(step, { maxLength: 150, size: 'max' }),
})

test('LEASE-2: under any clocks, network and restarts a grantor lists each holder that counts on it', () => {
  fc.assert(
    fc.property(drawn, (one) => {
      const world = new World(one)
      for (const step of one.steps) {
        world.take(step)
        world.look()
      }
    }),
    { numRuns: 6_000 },
  )
  expect(seen.counting).toBeGreaterThan(10_000)
  expect(seen.blind).toBeGreaterThan(500)
  expect(seen.revoked).toBeGreaterThan(100)
  expect(seen.suspended).toBeGreaterThan(50)
  expect(seen.hurried).toBeGreaterThan(100)
})
