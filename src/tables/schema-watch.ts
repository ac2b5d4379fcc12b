/**
 * The schema that a program has opened, and its state since then: the watch looks at the registry
 * again now and then. So every program keeps an index within a known time after it was declared
 * (SPEC.md "Global indexes"). In between, it sends no request.
 *
 * Trust counts from when the look began: what the registry said was true at some moment after that.
 */
import { assert } from '../base/assert.ts'
import type { Timestamp } from '../base/ids.ts'
import type { Clock } from '../ports/clock.ts'
import { momentOf, msSince, type Moment } from '../time/moments.ts'
import type { Schema } from '../../schema/model.ts'
import type { SchemaVersion } from '../../schema/version.ts'
import { compileSchema } from './compile.ts'
import type { CompiledSchema } from './compiled.ts'
import type { SchemaView } from './registry.ts'

export interface SchemaWatchParts {
  readonly clock: Clock
  /** What the program reads and writes by. */
  readonly opened: SchemaVersion
  /** What the program declares: that version, or an earlier one. */
  readonly declared: Schema
  /** As the registry had it when the program opened it. */
  readonly view: SchemaView
  /** When the watch sent the request for it. */
  readonly askedAt: Moment
  readonly trustMs: number
  look(): Promise<SchemaView | undefined>
}

export class SchemaWatch {
  readonly #parts: SchemaWatchParts
  #compiled: CompiledSchema
  #building: ReadonlyMap<string, Timestamp>
  #latest: SchemaVersion
  #askedAt: Moment
  #look: Promise<void> | undefined

  constructor(parts: SchemaWatchParts) {
    const { view, askedAt } = parts
    this.#parts = parts
    this.#compiled = compiledBy(parts, view.version)
    this.#latest = view.version
    this.#building = view.building
    this.#askedAt = askedAt
  }

  get compiled(): CompiledSchema {
    return this.#compiled
  }

  isBuilding(index: string): boolean {
    return this.#building.has(index)
  }

  /** Has the cluster the same global index of this name still? It may have been dropped, and declared anew. */
  hasIndex(index: string): boolean {
    const { opened } = this.#parts
    const number = opened.numbers.stored[index]
    return number !== undefined && this.#latest.numbers.stored[index] === number
  }

  /** To be awaited before something is written; undefined when what is known is fresh enough. */
  trusted(): Promise<void> | undefined {
    const { clock, trustMs } = this.#parts
    const ageMs = msSince(clock, this.#askedAt)
    if (ageMs < trustMs / 2) return undefined
    const look = this.lookAgain()
    if (ageMs >= trustMs) return look
    // No caller waits for it yet, and one that waits later gets the error.
    look.catch(() => undefined)
    return undefined
  }

  lookAgain(): Promise<void> {
    this.#look ??= this.#lookOnce().finally(() => {
      this.#look = undefined
    })
    return this.#look
  }

  async #lookOnce(): Promise<void> {
    const { clock, look } = this.#parts
    const askedAt = momentOf(clock)
    const view = await look()
    assert(view !== undefined, 'TAB-6: a schema that a cluster has stays')
    this.#askedAt = askedAt
    this.#building = view.building
    const { version } = this.#latest
    if (view.version.version === version) return
    assert(view.version.version > version, 'TAB-6: versions follow one another')
    this.#latest = view.version
    this.#compiled = compiledBy(this.#parts, view.version)
  }
}

function compiledBy(
  { opened, declared }: Pick<SchemaWatchParts, 'opened' | 'declared'>,
  latest: SchemaVersion,
): CompiledSchema {
  const isNewest = opened.version === latest.version
  return compileSchema(opened, { declared, newest: isNewest ? undefined : compileSchema(latest) })
}
