/**
 * A value that a program has read from a registry, and goes by for a known time before it looks again.
 * Within that time after a change every program knows the change. In between, the program sends no
 * request.
 *
 * Trust counts from when a look began: the value was true at some moment after that.
 */
import type { Clock } from '../ports/clock.ts'
import { readMoment, msSince, type Moment } from '../time/moments.ts'

export interface TrustedParts<Value> {
  readonly clock: Clock
  readonly trustMs: number
  look(): Promise<Value>
}

export interface Seen<Value> {
  readonly value: Value
  /** When the program sent its request. */
  readonly askedAt: Moment
}

export class Trusted<Value> {
  readonly #parts: TrustedParts<Value>
  #seen: Seen<Value> | undefined
  #looking: Promise<Value> | undefined

  constructor(parts: TrustedParts<Value>, seen?: Seen<Value>) {
    this.#parts = parts
    this.#seen = seen
  }

  /** Fresh enough to write by: at once, unless nothing is known for long. */
  fresh(): Value | Promise<Value> {
    const { clock, trustMs } = this.#parts
    const seen = this.#seen
    const ageMs = seen === undefined ? Infinity : msSince(clock, seen.askedAt)
    if (seen !== undefined && ageMs < trustMs / 2) return seen.value
    const looking = this.now()
    if (seen === undefined || ageMs >= trustMs) return looking
    // No caller waits for this look yet; one that joins it later hears of an error.
    looking.catch(() => undefined)
    return seen.value
  }

  /** As it is now. Callers at the same time share one look. */
  now(): Promise<Value> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined
    })
    return this.#looking
  }

  async #look(): Promise<Value> {
    const askedAt = readMoment(this.#parts.clock)
    const value = await this.#parts.look()
    this.#seen = { value, askedAt }
    return value
  }
}
