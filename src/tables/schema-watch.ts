/**
 * The schema that a program has opened, and its state since then: the watch looks at the registry
 * again now and then. So every program keeps an index within a known time after it was declared, and
 * stops reading it within that time after it was dropped (SPEC.md "The life of an index"). In between,
 * the watch sends no request.
 */
import { assert } from '../base/assert.ts'
import type { Clock } from '../ports/clock.ts'
import type { Moment } from '../time/moments.ts'
import { isAsked, notAsked } from '../indexes/state.ts'
import { Trusted } from '../indexes/trusted.ts'
import { StoreError } from '../base/errors.ts'
import type { Schema } from '../../schema/model.ts'
import type { SchemaVersion } from '../../schema/version.ts'
import { compileSchema } from './compile.ts'
import type { CompiledSchema } from './compiled.ts'
import { findLife, type IndexLife } from './index-life.ts'
import { hasIndex, type SchemaView } from './registry.ts'

export interface SchemaWatchParts {
  readonly clock: Clock
  /** The version by which the program reads and writes. */
  readonly opened: SchemaVersion
  /** The schema that the program declares: that version, or an earlier one. */
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
  readonly #trusted: Trusted<SchemaView>
  #compiled: CompiledSchema
  #latest: SchemaView

  constructor(parts: SchemaWatchParts) {
    const { clock, trustMs, view, askedAt } = parts
    this.#parts = parts
    this.#compiled = compiledBy(parts, view.version)
    this.#latest = view
    const look = (): Promise<SchemaView> => this.#look()
    this.#trusted = new Trusted({ clock, trustMs, look }, { value: view, askedAt })
  }

  get compiled(): CompiledSchema {
    return this.#compiled
  }

  /** To be awaited before something is written; undefined when what is known is fresh enough. */
  trusted(): Promise<void> | undefined {
    const view = this.#trusted.fresh()
    return view instanceof Promise ? view.then(() => undefined) : undefined
  }

  /**
   * To be awaited before a query of an index that the opened version has; undefined when it may begin.
   * Rejects with `unavailable` while it is not ready, and with `not-found` when it is dropped.
   */
  asked(index: string): Promise<void> | undefined {
    const looking = this.trusted()
    if (looking === undefined && this.#mayAsk(index)) return undefined
    return this.#lookAt(index, looking)
  }

  async #lookAt(index: string, looking: Promise<void> | undefined): Promise<void> {
    await looking
    if (!this.#mayAsk(index)) await this.#trusted.now()
    if (!this.#hasIndex(index)) throw wasDropped(index)
    const { state } = this.findLife(index)
    const flags = `--schema ${this.#compiled.name}`
    if (!isAsked(state)) throw notAsked({ name: index, flags }, state)
    assert(this.#mayAsk(index), 'IDX-6: what is asked has all rows')
  }

  /** As far as is known. */
  findLife(index: string): IndexLife {
    return findLife(this.#latest.lives, index)
  }

  #mayAsk(index: string): boolean {
    return this.#hasIndex(index) && isAsked(this.findLife(index).state)
  }

  /** Has the cluster the same index of this name still? It may have been dropped, and declared anew. */
  #hasIndex(index: string): boolean {
    const number = this.#parts.opened.numbers.stored[index]
    return number === undefined || hasIndex(this.#latest.version, { name: index, number })
  }

  async #look(): Promise<SchemaView> {
    const view = await this.#parts.look()
    assert(view !== undefined, 'TAB-6: a schema that a cluster has stays')
    const { version } = this.#latest.version
    assert(view.version.version >= version, 'TAB-6: versions follow one another')
    if (view.version.version > version) this.#compiled = compiledBy(this.#parts, view.version)
    this.#latest = view
    return view
  }
}

function wasDropped(name: string): StoreError {
  const message = `index ${name} was dropped; leave it out of what this program declares, or, where it has been declared anew, open the tables again`
  return new StoreError('not-found', message, { index: 'dropping' })
}

function compiledBy(
  { opened, declared }: Pick<SchemaWatchParts, 'opened' | 'declared'>,
  latest: SchemaVersion,
): CompiledSchema {
  const isNewest = opened.version === latest.version
  return compileSchema(opened, { declared, newest: isNewest ? undefined : compileSchema(latest) })
}
