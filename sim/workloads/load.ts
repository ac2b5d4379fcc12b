/** The load that the clients of a run are made to offer for a while: they read it before each operation. */
import type { World } from '../world/world.ts'

const second = 1_000_000

export class Load {
  readonly #world: World
  #stormUntil = 0
  #idleUntil = 0
  #hugeUntil = 0

  constructor(world: World) {
    this.#world = world
  }

  storm(lengthMicros: number): void {
    this.#stormUntil = this.#world.nowMicros + lengthMicros
  }

  idle(lengthMicros: number): void {
    this.#idleUntil = this.#world.nowMicros + lengthMicros
  }

  huge(lengthMicros: number): void {
    this.#hugeUntil = this.#world.nowMicros + lengthMicros
  }

  /** All clients work on one row, without a pause. */
  get isStorm(): boolean {
    return this.#world.nowMicros < this.#stormUntil
  }

  /** How long until clients begin operations again. */
  get idleMicros(): number {
    return Math.max(0, this.#idleUntil - this.#world.nowMicros)
  }

  /** Waits for a part of an idle time. Healing ends idle times early, so callers check again. */
  passIdle(): Promise<void> {
    return this.#world.sleep(Math.min(this.idleMicros, second))
  }

  /** Some puts are as large as they may be. */
  get isHuge(): boolean {
    return this.#world.nowMicros < this.#hugeUntil
  }

  heal(): void {
    this.#stormUntil = 0
    this.#idleUntil = 0
    this.#hugeUntil = 0
  }
}
