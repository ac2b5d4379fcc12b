/**
 * Errors that this program should not have met: in serving one request, one message of a peer, one group in the
 * background. Each ends that, is told to whoever waits for it as `internal` with an id, is logged under the id
 * and counted, and ends nothing else: were it the node that ended, one request sent again would end all of them.
 * What fails inside a step of the core, or in a write, is no such error: a node in doubt of its own state stops.
 */
import { problem, type Problem } from '../base/problem.ts'
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import type { Figure } from './metrics.ts'

/** Where it was met. */
export const bugPlaces = ['request', 'http', 'message', 'delivery', 'relay', 'buffer'] as const
export type BugPlace = (typeof bugPlaces)[number]

export interface Bug {
  /** Eight hexadecimal digits. */
  readonly id: string
  readonly place: BugPlace
  readonly error: Error
}

export interface BugParts {
  readonly clock: Clock
  readonly random: Random
  /** Of each, after the call that met it: whoever is told may end the process. Must not throw. */
  tell(bug: Bug): void
}

/** Notes what was thrown; whoever waits is told what it returns. */
export type NoteBug = (place: BugPlace, thrown: unknown) => Problem

export class Bugs {
  readonly #parts: BugParts
  readonly #counts = new Map<BugPlace, number>()

  constructor(parts: BugParts) {
    this.#parts = parts
  }

  readonly note: NoteBug = (place, thrown) => {
    this.#counts.set(place, (this.#counts.get(place) ?? 0) + 1)
    const id = this.#parts.random
      .int(0, 2 ** 32 - 1)
      .toString(16)
      .padStart(8, '0')
    const bug = { id, place, error: errorOf(thrown) }
    this.#parts.clock.defer(() => this.#parts.tell(bug))
    const text = `this process met an error of its own, and has it in its log as error ${id}; please report it`
    return problem('internal', text)
  }

  figures(): readonly Figure[] {
    return bugPlaces.map((place) => ({
      name: 'trilithon_internal_errors_total',
      help: 'Errors of the program itself since the start, by where they were met. Please report them.',
      value: this.#counts.get(place) ?? 0,
      labels: { place },
    }))
  }
}

function errorOf(thrown: unknown): Error {
  if (thrown instanceof Error) return thrown
  return new Error('something was thrown that is no error', { cause: thrown })
}
