/**
 * Errors that this program should not have met: in serving one request, one message of a peer, one group in
 * the background. An error ends the work that met it, and nothing else. The caller gets `internal` with an
 * id; the process logs the error under the id and counts it. If the error ended the node, a client that sends
 * the request again would end all nodes. A failure inside a step of the core, or in a write, is no such
 * error: a node in doubt of its own state stops.
 */
import { problem, type Problem } from '../base/problem.ts'
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import type { Figure } from './metrics.ts'

/** Where it was met. */
export const bugPlaces = [
  'request',
  'http',
  'message',
  'delivery',
  'relay',
  'moved',
  'buckets',
  'sets',
  'expiry',
  'holds',
  'buffer',
] as const
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
  /**
   * Reports each bug after the call that met it has returned, so this function may end the process. Must not
   * throw.
   */
  tell(bug: Bug): void
}

/** Notes a thrown error; returns the problem that answers the caller. */
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
    const bug = { id, place, error: toError(thrown) }
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

function toError(thrown: unknown): Error {
  if (thrown instanceof Error) return thrown
  return new Error('something was thrown that is no error', { cause: thrown })
}
