/**
 * A process of the world: what dies in a crash, stands still in a pause, and is busy for as long as
 * its work takes. Everything that a node's ports schedule goes through its process, so a dead one
 * never acts again.
 *
 * A turn runs in one event, at the moment when it begins; what it costs is known at its end. Until
 * that time has passed nothing else runs here, what the turn sent has not left, and its clocks show
 * how far it is.
 */
import { assert } from '../../src/base/assert.ts'
import type { CostMeter, Work, WorkDone } from './turn-costs.ts'
import type { Scheduled, World } from './world.ts'

/**
 * Work that comes due while the process is busy for no longer than this begins at once, with clocks
 * that show the time of its turn. Its effects leave at the right time all the same, and the world
 * saves an event.
 */
const aheadMicrosMax = 200

/** Something to be run; `run` is gone once it is cancelled. */
class Due implements Scheduled {
  readonly label: string
  run: (() => void) | undefined
  scheduled: Scheduled | undefined = undefined

  constructor(label: string, run: () => void) {
    this.label = label
    this.run = run
  }

  /** Work that is due in a pause and waits for its end can still be cancelled before that. */
  cancel(): void {
    this.run = undefined
    this.scheduled?.cancel()
  }
}

/** A turn that is over. */
export interface Turn {
  /** Of the event in which it ran. */
  readonly label: string
  readonly micros: number
  readonly work: WorkDone
}

export class SimProcess {
  readonly name: string
  /** Called at the end of each turn that cost something. */
  onTurn: (turn: Turn) => void = () => undefined
  /** Called when something has to wait for the end of a turn. */
  onWait: () => void = () => undefined
  readonly #world: World
  readonly #meter: CostMeter | undefined
  /** The turn that the checker does not judge: the number of its event. */
  #overlooked = -1
  /** By how much its work takes longer. */
  #slowness = 1
  #isAlive = true
  #pausedUntilMicros = 0
  /** Since when it works without a break, and for how long that takes it. */
  #busyFromMicros = 0
  #busyNanos = 0
  /** The event of the current turn, and the time owed before it. */
  #turnEvent = -1
  #nanosBefore = 0
  /** Work that came due meanwhile, in order. */
  readonly #waiting: Due[] = []
  #wallRead = { event: -1, micros: 0 }
  #next: Scheduled | undefined
  #stall: { readonly lengthMicros: number; readonly onStruck: () => void } | undefined

  /** Without a meter its turns take no time. */
  constructor(world: World, name: string, meter?: CostMeter) {
    this.#world = world
    this.name = name
    this.#meter = meter
  }

  get isAlive(): boolean {
    return this.#isAlive
  }

  /** The moment at which it is: ahead of the world's by what its turn has cost so far. */
  get nowMicros(): number {
    const { nowMicros } = this.#world
    if (this.#busyNanos === 0) return nowMicros
    return Math.max(nowMicros, this.#busyFromMicros + Math.floor(this.#busyNanos / 1_000))
  }

  /**
   * Where it was when it looked at its wall clock, if it did so in this turn: that may have jumped
   * since.
   */
  get seenMicros(): number {
    const { event, micros } = this.#wallRead
    return event === this.#world.eventCount ? micros : this.nowMicros
  }

  get #readyMicros(): number {
    return Math.max(this.nowMicros, this.#pausedUntilMicros)
  }

  /** Runs `run` in this process after `delayMicros`; late after a pause, never after a crash. */
  schedule(delayMicros: number, label: string, run: () => void): Scheduled {
    const due = new Due(label, run)
    const aheadMicros = this.nowMicros - this.#world.nowMicros
    due.scheduled = this.#world.schedule(aheadMicros + delayMicros, label, () => {
      this.#attempt(due)
    })
    return due
  }

  #attempt(due: Due): void {
    if (!this.#isAlive || due.run === undefined) return
    if (this.#mustWait) this.#wait(due)
    else this.#run(due)
  }

  get #mustWait(): boolean {
    return this.#waiting.length > 0 || !this.#isReady
  }

  get #isReady(): boolean {
    const { nowMicros } = this.#world
    return this.#pausedUntilMicros <= nowMicros && this.nowMicros <= nowMicros + aheadMicrosMax
  }

  #run({ run }: Due): void {
    this.work('turn', 1)
    run?.()
  }

  #wait(due: Due): void {
    if (this.nowMicros > this.#world.nowMicros) this.onWait()
    this.#waiting.push(due)
    this.#next ??= this.#goOnLater()
  }

  /** One thing after another: when the next one can begin is known when the one before is over. */
  #goOnLater(): Scheduled {
    const delayMicros = this.#readyMicros - this.#world.nowMicros
    return this.#world.schedule(delayMicros, `late ${this.name}`, () => {
      this.#next = undefined
      if (!this.#isAlive) return
      if (this.#isReady) this.#goOn()
      else this.#next = this.#goOnLater()
    })
  }

  #goOn(): void {
    const due = this.#waiting.shift()
    if (this.#waiting.length > 0) {
      this.#world.atTurnEnd(() => {
        if (this.#isAlive && this.#waiting.length > 0) this.#next ??= this.#goOnLater()
      })
    }
    if (due?.run !== undefined) this.#run(due)
  }

  /** Runs `run` now in this process, or when its pause or its work is over. */
  enter(label: string, run: () => void): void {
    if (!this.#isAlive) return
    const due = new Due(label, run)
    if (this.#mustWait) this.#wait(due)
    else this.#run(due)
  }

  /** Notes this much work of the current turn. */
  work(work: Work, count: number, bytes = 0): void {
    if (this.#meter === undefined) return
    if (this.#turnEvent !== this.#world.eventCount) this.#beginTurn()
    this.#busyNanos += this.#slowness * this.#meter.note(work, count, bytes)
  }

  /** The world itself has it do something in this turn, as much as it likes. */
  overlookTurn(): void {
    this.#overlooked = this.#world.eventCount
  }

  /** From now on its work takes this many times as long. */
  slowBy(factor: number): void {
    this.#slowness = factor
  }

  #beginTurn(): void {
    const { nowMicros, eventCount } = this.#world
    this.#turnEvent = eventCount
    if (this.nowMicros <= nowMicros) {
      this.#busyFromMicros = nowMicros
      this.#busyNanos = 0
    }
    this.#nanosBefore = this.#busyNanos
    const { label } = this.#world
    this.#world.atTurnEnd(() => {
      const nanos = (this.#busyNanos - this.#nanosBefore) / this.#slowness
      const micros = Math.floor(nanos / 1_000)
      const work = this.#meter?.take() ?? {}
      if (this.#isAlive && this.#overlooked !== eventCount) this.onTurn({ label, micros, work })
    })
  }

  /** Nothing runs here for a while; messages and timers wait, the clock goes on. */
  pause(lengthMicros: number): void {
    const untilMicros = this.#world.nowMicros + lengthMicros
    if (untilMicros <= this.#pausedUntilMicros) return
    this.#pausedUntilMicros = untilMicros
    this.#world.schedule(lengthMicros, `resume ${this.name}`, () => {
      if (this.#pausedUntilMicros === untilMicros) this.resume()
    })
  }

  /** The pause is over, also before its time. */
  resume(): void {
    this.#pausedUntilMicros = 0
    if (this.#waiting.length === 0) return
    this.#next?.cancel()
    this.#next = this.#goOnLater()
  }

  /** How long nothing leaves this process yet. */
  get heldUpMicros(): number {
    return this.#readyMicros - this.#world.nowMicros
  }

  /** A pause that begins right after the clock was read next: what follows from it comes late. */
  stall(lengthMicros: number, onStruck: () => void): void {
    this.#stall = { lengthMicros, onStruck }
  }

  onWallRead(): void {
    this.#wallRead = { event: this.#world.eventCount, micros: this.nowMicros }
    this.onClockRead()
  }

  onClockRead(): void {
    const stall = this.#stall
    if (stall === undefined) return
    this.#stall = undefined
    this.pause(stall.lengthMicros)
    stall.onStruck()
  }

  /** A crash: its scheduled work never happens. */
  kill(): void {
    assert(this.#isAlive, 'process: killed twice')
    this.#isAlive = false
  }
}
