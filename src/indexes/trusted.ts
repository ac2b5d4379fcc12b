/**
 * What a program has read of a registry, and goes by for a known time before it looks again. Within
 * that time after a change every program knows it. In between, nothing is asked.
 *
 * Trust counts from when a look began: what the registry said was true at some moment after that.
 */
import type { Clock } from '../ports/clock.ts'
import { momentOf, msSince, type Moment } from '../time/moments.ts'

export interface TrustedParts<Value> {
  readonly clock: Clock
  readonly trustMs: number
  look(): Promise<Value>
}

export interface Seen<Value> {
  readonly value: Value
  /** When it was asked for. */
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
    // Nobody waits for it yet, and whoever does later hears what went wrong.
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
    const askedAt = momentOf(this.#parts.clock)
    const value = await this.#parts.look()
    this.#seen = { value, askedAt }
    return value
  }
}
